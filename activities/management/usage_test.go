package management

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// InUse is true at all times, and costs a write when it changes only: not one
// for each Network that comes or goes.
func TestInUseIsToldAtAllTimes(t *testing.T) {
	ctx := t.Context()
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "core-aws", UID: "p", Annotations: map[string]string{v1.AnnotationID: id}}}
	a, log := activities(t, interceptor.Funcs{}, p)
	u := &Usage{Activities: a}
	ref := contract.ObjectRef{Kind: v1.KindProvider, Namespace: "infra", Name: "core-aws"}
	told := func() metav1.Condition { // and the API server shows it
		before := len(*log)
		require.NoError(t, u.tell(ctx, ref))
		have := &v1.Provider{}
		require.NoError(t, a.Client.Get(ctx, client.ObjectKeyFromObject(p), have))
		for _, one := range (*log)[before:] {
			require.Equal(t, string(ownerUsage), one.manager)
			conditions, _, err := unstructured.NestedSlice(one.object, "status", "conditions")
			require.NoError(t, err)
			var c metav1.Condition
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(conditions[0].(map[string]any), &c))
			have.Status.Conditions = []metav1.Condition{c}
			require.NoError(t, a.Client.Update(ctx, have))
		}
		return *meta.FindStatusCondition(have.Status.Conditions, v1.ConditionInUse)
	}
	require.Equal(t, metav1.ConditionFalse, told().Status)
	one, two := network(), network()
	two.Name, two.UID = "n2", "uid-2"
	require.NoError(t, a.Client.Create(ctx, one))
	require.Equal(t, metav1.ConditionTrue, told().Status)
	require.Equal(t, "networks refer to it", told().Message)
	require.NoError(t, a.Client.Create(ctx, two))
	require.Equal(t, metav1.ConditionTrue, told().Status)
	require.Len(t, *log, 2)

	// A deletion that waits says who is in the way, and leaves InUse alone.
	require.NoError(t, a.tellUsers(ctx, contract.ObjectRef{Kind: v1.KindProvider, Namespace: "infra", Name: "core-aws", ID: id}, []string{"Network n1"}))
	conditions, _, err := unstructured.NestedSlice((*log)[2].object, "status", "conditions")
	require.NoError(t, err)
	require.Len(t, conditions, 1)
	require.Equal(t, v1.ConditionDeletionBlocked, conditions[0].(map[string]any)["type"])

	for _, n := range []*v1.Network{one, two} {
		n.Finalizers = nil
		require.NoError(t, a.Client.Update(ctx, n))
		require.NoError(t, a.Client.Delete(ctx, n))
	}
	require.Equal(t, metav1.ConditionFalse, told().Status)
	require.NoError(t, u.tell(ctx, contract.ObjectRef{Kind: v1.KindProvider, Namespace: "infra", Name: "gone"}))
}

func TestUsageAsksForWhatIsReferredTo(t *testing.T) {
	for kind, o := range map[string]client.Object{
		v1.KindProvider:     network(),
		v1.KindProviderType: &v1.Provider{ObjectMeta: metav1.ObjectMeta{Namespace: "infra"}, Spec: v1.ProviderSpec{Type: "core-aws"}},
	} {
		requests := namesOf(kind)(t.Context(), o)
		require.Len(t, requests, 1, kind)
		require.Equal(t, "infra/core-aws", requests[0].String())
	}
}
