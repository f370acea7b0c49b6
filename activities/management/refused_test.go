package management

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// What a stalled step waits for has not changed, but the cache of the worker
// that waits is behind what the attempt has used.
func TestALaggingCacheIsNoChange(t *testing.T) {
	provider := func(generation int64) *v1.Provider {
		return &v1.Provider{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "core-aws", UID: "p", Generation: generation},
			Spec: v1.ProviderSpec{Type: "aws", Credentials: v1.ProviderCredentials{SecretRef: &v1.SecretReference{Name: "key"}}}}
	}
	later := metav1.NewTime(time.Now().Add(time.Hour))
	for name, c := range map[string]struct {
		was, is []client.Object
	}{
		"another Secret of the name": {
			was: []client.Object{provider(1), keySecret("old")}, is: []client.Object{provider(1), keySecret("new")}},
		"a Secret that is gone":            {was: []client.Object{provider(1), keySecret("old")}, is: []client.Object{provider(1)}},
		"a Secret that has come":           {was: []client.Object{provider(1)}, is: []client.Object{provider(1), keySecret("new")}},
		"a Provider that has come":         {is: []client.Object{provider(7), keySecret("old")}},
		"a Provider of another generation": {was: []client.Object{provider(7), keySecret("old")}, is: []client.Object{provider(8), keySecret("old")}},
	} {
		t.Run(name, func(t *testing.T) {
			a := lagging(t, with(c.was, network()), with(c.is, network()))
			now, err := a.dependencies(t.Context(), a.Live, networkRef)
			require.NoError(t, err)
			used := map[string]string{}
			for _, d := range now {
				used[d.used] = d.version
			}
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			change, _ := a.WaitDependencies(ctx, contract.DependenciesInput{Ref: networkRef, Since: later, Used: used})
			require.Empty(t, change.What)

			used["Provider/core-aws"] = "p/0"
			change, err = a.WaitDependencies(t.Context(), contract.DependenciesInput{Ref: networkRef, Since: later, Used: used})
			require.NoError(t, err)
			require.Contains(t, change.What, "has changed")
		})
	}
}

func keySecret(uid types.UID) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "key", UID: uid}}
}

// Somebody's ValidatingAdmissionPolicy refuses updates of the object, with the
// reason Invalid, which is its default: that is said, and is no conflict.
func TestAPolicyRefusesAnAnswer(t *testing.T) {
	patches := 0
	n := network()
	n.Annotations[v1.AnnotationOperation] = "retry"
	n.Finalizers = []string{v1.Finalizer(v1.KindNetwork)}
	a, _ := activities(t, interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
		patches++
		return apierrors.NewInvalid(v1.GroupVersion.WithKind("Network").GroupKind(), "n1",
			field.ErrorList{field.Invalid(field.NewPath(""), "", "ValidatingAdmissionPolicy 'cost-center' denied request: label cost-center is required")})
	}}, n)
	_, answer := a.AnswerVerb(t.Context(), contract.VerbAnswer{Ref: networkRef, UID: string(n.UID), Consume: "retry"})
	_, finalizer := a.RemoveFinalizer(t.Context(), networkRef)
	for _, err := range []error{answer, finalizer} {
		require.ErrorContains(t, err, "cost-center")
		require.False(t, faults.As(err).Class.Retryable())
	}
	require.Equal(t, 2, patches)
}

// The finalizer of an object whose identity was taken away stays, and that is
// no success: nobody would ever come back to it.
func TestRemoveFinalizerWithoutIdentity(t *testing.T) {
	n := network()
	n.Annotations, n.Finalizers = nil, []string{v1.Finalizer(v1.KindNetwork)}
	n.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	a, _ := activities(t, interceptor.Funcs{}, n)
	_, err := a.RemoveFinalizer(t.Context(), networkRef)
	require.True(t, faults.Is(err, faults.Dependency), "%v", err)
	require.Contains(t, faults.As(err).Hint, networkRef.ID)
}
