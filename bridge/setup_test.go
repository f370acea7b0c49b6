package bridge

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// Every watched kind is a type of our API with the common status, and an
// Account, which has no lifecycle, is not watched.
func TestKinds(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, v1.AddToScheme(scheme))
	for _, gvk := range Kinds() {
		obj, err := scheme.New(gvk)
		require.NoError(t, err)
		require.Implements(t, (*v1.Object)(nil), obj, gvk.Kind)
	}
	require.NotContains(t, Kinds(), v1.GroupVersion.WithKind(v1.KindAccount))
}

func TestRelevant(t *testing.T) {
	now := metav1.Now()
	for name, tc := range map[string]struct {
		change func(*v1.Network)
		want   bool
	}{
		"status only":           {func(n *v1.Network) { n.Status.Phase = v1.PhaseNormal; n.ResourceVersion = "2" }, false},
		"our claim":             {func(n *v1.Network) { n.Finalizers = append(n.Finalizers, "x"); n.Annotations[v1.AnnotationID] = testID }, false},
		"somebody's annotation": {func(n *v1.Network) { n.Annotations["example.com/a"] = "b" }, false},
		"generation":            {func(n *v1.Network) { n.Generation++ }, true},
		"deletion":              {func(n *v1.Network) { n.DeletionTimestamp = &now }, true},
		"verb":                  {func(n *v1.Network) { n.Annotations[v1.AnnotationOperation] = "retry" }, true},
		"empty value":           {func(n *v1.Network) { n.Annotations[v1.AnnotationPaused] = "" }, true},
		"ours taken away":       {func(n *v1.Network) { n.Finalizers = nil }, true},
		"verb removed":          {func(n *v1.Network) { delete(n.Annotations, v1.AnnotationForceDelete) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			before := network(func(n *v1.Network) {
				n.Annotations, n.Finalizers = map[string]string{v1.AnnotationForceDelete: "u"}, []string{v1.Finalizer("Network")}
			})
			after := before.DeepCopy()
			tc.change(after)
			require.Equal(t, tc.want, Relevant().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}))
		})
	}
	require.True(t, Relevant().Create(event.CreateEvent{Object: network(nil)}))
	require.True(t, Relevant().Delete(event.DeleteEvent{Object: network(nil)}))
}

func TestRandomID(t *testing.T) {
	a, b := RandomID(), RandomID()
	require.Regexp(t, `^[0-9a-f]{16}$`, a)
	require.NotEqual(t, a, b)
}

func TestJittered(t *testing.T) {
	for random, want := range map[float64]time.Duration{0: 8 * time.Minute, 0.5: 10 * time.Minute, 1: 12 * time.Minute} {
		require.Equal(t, want, Jittered(10*time.Minute, func() float64 { return random })().Round(time.Second))
	}
	d := Jittered(10*time.Minute, nil)()
	require.InDelta(t, 10*time.Minute, d, float64(2*time.Minute))
}

// watched keeps the kinds for which an informer was asked.
type watched struct {
	cache.Cache
	kinds []schema.GroupVersionKind
	err   error
}

func (w *watched) GetInformer(_ context.Context, obj client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	w.kinds = append(w.kinds, obj.GetObjectKind().GroupVersionKind())
	return nil, w.err
}

func TestWaitForCaches(t *testing.T) {
	w := &watched{}
	require.NoError(t, WaitForCaches(t.Context(), w))
	require.Equal(t, Kinds(), w.kinds)

	err := WaitForCaches(t.Context(), &watched{err: errors.New("no matches for kind")})
	require.ErrorContains(t, err, "ProviderType")
	require.ErrorContains(t, err, "are the CRDs installed")
}
