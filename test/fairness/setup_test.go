package fairness

import (
	"context"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/test/stack"
)

// providers makes the samples' tenant and Provider, and a second tenant with a
// Provider in another AWS account, and waits until both Providers are Ready.
func (l *lab) providers(ctx context.Context) {
	samples, err := stack.Samples()
	require.NoError(l.t, err)
	id, secret, err := l.AccessKey(ctx, throttledAccount)
	require.NoError(l.t, err)
	for _, o := range samples {
		switch o.GetKind() {
		case "ProviderType":
			require.NoError(l.t, l.Apply(ctx, o))
		case "Account":
			l.set(o, int64(crowd+10), "spec", "quotas", "networks")
			require.NoError(l.t, l.Apply(ctx, o.DeepCopy()))
			l.again(ctx, o, map[string]any{"spec.tenantID": "2222222222"})
		case "Secret":
			require.NoError(l.t, l.Apply(ctx, o.DeepCopy()))
			l.again(ctx, o, map[string]any{"stringData.accessKeyID": id, "stringData.secretAccessKey": secret})
		case "Provider":
			require.NoError(l.t, l.Apply(ctx, o.DeepCopy()))
			l.again(ctx, o, map[string]any{
				"spec.account": throttled, "spec.credentials.secretRef.name": throttled, "spec.aws.accountID": throttledAccount,
			})
		}
	}
	for _, name := range []string{calm, throttled} {
		p := &v1.Provider{}
		require.Eventually(l.t, func() bool {
			return l.Kube.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, p) == nil && isReady(p)
		}, time.Minute, 100*time.Millisecond, "Provider %s is not Ready", name)
	}
}

// again applies the object once more, named throttled and with other fields.
func (l *lab) again(ctx context.Context, o *unstructured.Unstructured, fields map[string]any) {
	o = o.DeepCopy()
	o.SetName(throttled)
	for path, value := range fields {
		l.set(o, value, strings.Split(path, ".")...)
	}
	require.NoError(l.t, l.Apply(ctx, o))
}

func (l *lab) set(o *unstructured.Unstructured, value any, path ...string) {
	require.NoError(l.t, unstructured.SetNestedField(o.Object, value, path...))
}
