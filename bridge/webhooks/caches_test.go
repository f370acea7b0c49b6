package webhooks

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// The caches list and watch one namespace, every kind once, and keep what rules
// read.
func TestCachesAreFilled(t *testing.T) {
	listed := make(chan string, 64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "true" && r.URL.Query().Get("sendInitialEvents") == "true" {
			http.Error(w, "an API server of before streaming lists", http.StatusBadRequest)
			return
		}
		if r.URL.Query().Get("watch") == "true" {
			w.Header().Set("Content-Type", "application/json")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		listed <- r.URL.Path
		kind, items := "", []any{}
		for _, k := range Kinds() {
			if strings.HasSuffix(r.URL.Path, "/"+plural(k)) {
				kind = k
			}
		}
		if kind == v1.KindNetwork {
			items = append(items, &v1.Network{
				TypeMeta: metav1.TypeMeta{APIVersion: "cloud.pingcap.com/v1", Kind: kind},
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "infra", Name: "n1", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
					Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}", v1.AnnotationID: "0123456789abcdef"},
				},
				Spec: v1.NetworkSpec{Provider: "core-aws"},
				Status: v1.NetworkStatus{
					CommonStatus: v1.CommonStatus{Phase: v1.PhaseNormal, Operation: &v1.OperationStatus{ID: "x"}, Resources: []v1.Resource{{Key: "vpc"}}},
				},
			})
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "cloud.pingcap.com/v1", "kind": kind + "List", "metadata": map[string]any{"resourceVersion": "1"}, "items": items})
	}))
	defer server.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop() // ends the watches, which the server waits for

	c := NewCaches(&liveReader{})
	require.ErrorContains(t, c.Start(t.Context()), "Start without Watch")
	require.NoError(t, c.Watch(&rest.Config{Host: server.URL}, server.Client(), testScheme, "infra"))
	require.False(t, c.Synced())
	require.False(t, c.NeedLeaderElection(), "the standby serves, too")
	go func() { _ = c.Start(ctx) }()
	require.NoError(t, c.WaitForSync(ctx))
	require.True(t, c.Synced())

	seen := map[string]int{}
	for range Kinds() {
		seen[<-listed]++
	}
	for _, kind := range Kinds() {
		require.Equal(t, 1, seen["/apis/cloud.pingcap.com/v1/namespaces/infra/"+plural(kind)], kind)
	}
	n, ok := c.networks.cached("infra", "n1")
	require.True(t, ok)
	require.Equal(t, map[string]string{v1.AnnotationID: "0123456789abcdef"}, n.Annotations)
	require.Equal(t, v1.PhaseNormal, n.Status.Phase)
	require.Nil(t, n.ManagedFields)
	require.Nil(t, n.Status.Operation)
	require.Nil(t, n.Status.Resources)
	require.EqualValues(t, 1, c.tally.of("infra", "core-aws").Networks, "the tally has heard of it")
}

// A bridge that has not read everything yet judges nothing, and says so.
func TestNotSynced(t *testing.T) {
	world, k := tableOf(t, v1.KindNetwork)
	w := newWorld(t, world.Objects...)
	require.NoError(t, w.caches.Watch(&rest.Config{Host: "http://127.0.0.1:1"}, http.DefaultClient, testScheme, "infra"))
	o := object(t, k, nil)
	for _, path := range []string{MutatePath(v1.KindNetwork), ValidatePath(v1.KindNetwork)} {
		r := w.handlers[path].Handle(t.Context(), request(t, "CREATE", nil, o))
		require.False(t, r.Allowed)
		require.EqualValues(t, http.StatusServiceUnavailable, r.Result.Code)
		require.Contains(t, r.Result.Message, "try again in a moment")
	}
	require.True(t, w.handlers[ValidatePath(v1.KindNetwork)].Handle(t.Context(), request(t, "DELETE", o, nil)).Allowed)
}
