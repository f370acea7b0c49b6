package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The payloads are Status bodies as kube-apiserver and gardener-apiserver
// answer them.
func TestFromKubernetesStatus(t *testing.T) {
	for _, tc := range []struct {
		name, body string
		class      Class
		code       string
		retryAt    time.Duration
	}{
		{"not found", `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"shoots.core.gardener.cloud \"n-1\" not found","reason":"NotFound","details":{"name":"n-1","group":"core.gardener.cloud","kind":"shoots"},"code":404}`, Gone, "NotFound", 0},
		{"optimistic lock", `{"kind":"Status","status":"Failure","message":"Operation cannot be fulfilled on shoots.core.gardener.cloud \"n-1\": the object has been modified; please apply your changes to the latest version and try again","reason":"Conflict","code":409}`, Throttled, "Conflict", 0},
		{"already exists", `{"kind":"Status","status":"Failure","message":"shoots.core.gardener.cloud \"n-1\" already exists","reason":"AlreadyExists","code":409}`, Conflict, "AlreadyExists", 0},
		{"too many requests", `{"kind":"Status","status":"Failure","message":"Too many requests, please try again later.","reason":"TooManyRequests","details":{"retryAfterSeconds":7},"code":429}`, Throttled, "TooManyRequests", 7 * time.Second},
		{"server timeout", `{"kind":"Status","status":"Failure","message":"The list operation against nodes could not be completed at this time, please try again.","reason":"ServerTimeout","details":{"retryAfterSeconds":1},"code":500}`, Transient, "ServerTimeout", time.Second},
		{"timeout", `{"kind":"Status","status":"Failure","message":"Timeout: request did not complete within requested timeout - context deadline exceeded","reason":"Timeout","code":504}`, Transient, "Timeout", 0},
		{"aggregated server away", `{"kind":"Status","status":"Failure","message":"the server is currently unable to handle the request","reason":"ServiceUnavailable","code":503}`, Transient, "ServiceUnavailable", 0},
		{"webhook away", `{"kind":"Status","status":"Failure","message":"Internal error occurred: failed calling webhook \"validation.aws.example\": failed to call webhook: Post \"https://admission.svc:443/webhooks\": dial tcp 10.0.0.1:443: connect: connection refused","reason":"InternalError","code":500}`, Transient, "WebhookUnreachable", 0},
		{"quota", `{"kind":"Status","status":"Failure","message":"pods \"db-tikv-0\" is forbidden: exceeded quota: q, requested: cpu=8, used: cpu=40, limited: cpu=40","reason":"Forbidden","code":403}`, Quota, "Forbidden", 0},
		{"no permission", `{"kind":"Status","status":"Failure","message":"secrets is forbidden: User \"u\" cannot create resource \"secrets\" in API group \"\" in the namespace \"garden-core\"","reason":"Forbidden","code":403}`, Auth, "Forbidden", 0},
		{"admission of a wrong spec", `{"kind":"Status","status":"Failure","message":"shoots.core.gardener.cloud \"n-1\" is forbidden: [spec.provider.workers[0].zones: Unsupported value: \"us-west-2z\": supported values: \"us-west-2a\"]","reason":"Forbidden","code":403}`, Invalid, "Forbidden", 0},
		{"namespace going", `{"kind":"Status","status":"Failure","message":"services \"x\" is forbidden: unable to create new content in namespace tidb-1 because it is being terminated","reason":"Forbidden","details":{"causes":[{"reason":"NamespaceTerminating","message":"namespace tidb-1 is being terminated","field":"metadata.namespace"}]},"code":403}`, Dependency, "NamespaceTerminating", 0},
		{"unauthorized", `{"kind":"Status","status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}`, Auth, "Unauthorized", 0},
		{"invalid", `{"kind":"Status","status":"Failure","message":"Shoot.core.gardener.cloud \"n-1\" is invalid: spec.provider.workers[0].zones: Unsupported value: \"us-west-2z\"","reason":"Invalid","code":422}`, Invalid, "Invalid", 0},
		{"bad request", `{"kind":"Status","status":"Failure","message":"strict decoding error: unknown field \"spec.foo\"","reason":"BadRequest","code":400}`, Invalid, "BadRequest", 0},
		{"expired resource version", `{"kind":"Status","status":"Failure","message":"too old resource version","reason":"Expired","code":410}`, Transient, "Expired", 0},
		{"a proxy's 502", `{"kind":"Status","status":"Failure","message":"bad gateway","code":502}`, Transient, "", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var s metav1.Status
			require.NoError(t, json.Unmarshal([]byte(tc.body), &s))
			cause := &apierrors.StatusError{ErrStatus: s}
			f := As(FromKubernetes(fmt.Errorf("wrapped: %w", cause), "shoot garden-core/n-1"))
			require.NotNil(t, f)
			require.Equal(t, tc.class, f.Class)
			require.Equal(t, tc.code, f.Code)
			require.Equal(t, tc.retryAt, f.RetryAt)
			require.Equal(t, "shoot garden-core/n-1", f.Resource)
			require.ErrorIs(t, f, cause)
			require.NotEmpty(t, f.Message)
		})
	}
}

func TestFromKubernetesTransport(t *testing.T) {
	dial := func(errno syscall.Errno) error {
		return &url.Error{Op: "Get", URL: "https://10.0.0.1:6443/api", Err: &net.OpError{Op: "dial", Net: "tcp", Err: errno}}
	}
	for _, tc := range []struct {
		name string
		err  error
		code string
	}{
		{"refused", dial(syscall.ECONNREFUSED), "ConnectionRefused"},
		{"reset", dial(syscall.ECONNRESET), "ConnectionLost"},
		{"eof", &url.Error{Op: "Get", URL: "https://x", Err: io.EOF}, "ConnectionLost"},
		{"deadline", &url.Error{Op: "Get", URL: "https://x", Err: context.DeadlineExceeded}, "Timeout"},
		{"kind not served", &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "pingcap.com", Kind: "TidbCluster"}}, "KindNotServed"},
		{"anything else", errors.New("http2: client connection lost"), "Unreachable"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := As(FromKubernetes(tc.err, "r"))
			require.NotNil(t, f)
			require.Equal(t, Transient, f.Class)
			require.Equal(t, tc.code, f.Code)
		})
	}
}

func TestFromKubernetesPassesThrough(t *testing.T) {
	require.NoError(t, FromKubernetes(nil, "r"))
	own := New(Quota, "X", "other", "full")
	require.Same(t, own, FromKubernetes(own, "r"))
	require.Equal(t, context.Canceled, FromKubernetes(context.Canceled, "r"))
}
