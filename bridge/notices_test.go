package bridge

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// Nobody waits in vain: an object has a workflow, or a notice that says that it
// has none.
func TestEveryKindHasAWorkflowOrANotice(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, v1.AddToScheme(scheme))
	var all, got []string
	for kind, goType := range scheme.KnownTypes(v1.GroupVersion) {
		if goType.PkgPath() == "github.com/tidbcloud/infra-orchestrator/api/v1" && !strings.HasSuffix(kind, "List") {
			all = append(all, kind)
		}
	}
	for _, gvk := range append(Kinds(), noticed()...) {
		got = append(got, gvk.Kind)
	}
	require.ElementsMatch(t, all, got)
}

// applied is what a Noticer applied, by field manager.
type applied map[string]v1.CommonStatus

// noticeBench reconciles one object. The fake client takes lists for atomic, so
// what is applied is only recorded, and put into the object by hand.
func noticeBench(t *testing.T, obj client.Object, kind string) applied {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, v1.AddToScheme(scheme))
	got := applied{}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(obj).WithInterceptorFuncs(interceptor.Funcs{
		SubResourceApply: func(_ context.Context, _ client.Client, sub string, what runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			require.Equal(t, "status", sub)
			o := (&client.SubResourceApplyOptions{}).ApplyOpts(opts)
			require.True(t, *o.Force)
			raw, err := json.Marshal(what)
			require.NoError(t, err)
			var decoded struct {
				Metadata metav1.ObjectMeta `json:"metadata"`
				Status   v1.CommonStatus   `json:"status"`
			}
			require.NoError(t, json.Unmarshal(raw, &decoded))
			require.Equal(t, obj.GetName(), decoded.Metadata.Name)
			got[o.FieldManager] = decoded.Status
			return nil
		},
	}).Build()
	n := &Noticer{Kind: v1.GroupVersion.WithKind(kind), Notice: notices[kind], Reader: c, Client: c}
	res, err := n.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "infra", Name: obj.GetName()}})
	require.NoError(t, err)
	require.Zero(t, res, "nothing to come back for")
	return got
}

func TestNoticeOfAKindWithoutLifecycle(t *testing.T) {
	b := &v1.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "b1", Generation: 2}}
	got := noticeBench(t, b, v1.KindBackup)
	require.Len(t, got, 2)

	object := got["infra-provider-object"]
	require.Equal(t, v1.PhasePending, object.Phase)
	require.Zero(t, object.ObservedGeneration, "nothing has been done for any generation")
	require.Len(t, object.Conditions, 1)
	ready := object.Conditions[0]
	require.Equal(t, []any{"Ready", metav1.ConditionFalse, "NotImplemented", int64(2)}, []any{ready.Type, ready.Status, ready.Reason, ready.ObservedGeneration})
	require.Equal(t, "A Backup is accepted and kept, but nothing acts on it in this version; delete it, or keep it for a version that does", ready.Message)

	operation := got["infra-provider-operation"]
	require.Empty(t, operation.Phase)
	require.Len(t, operation.Conditions, 2)
	for i, want := range []struct {
		name   string
		status metav1.ConditionStatus
	}{{"Progressing", metav1.ConditionFalse}, {"Stalled", metav1.ConditionTrue}} {
		c := operation.Conditions[i]
		require.Equal(t, []any{want.name, want.status, "NotImplemented"}, []any{c.Type, c.Status, c.Reason})
	}
}

func TestNoticeIsWrittenOncePerGeneration(t *testing.T) {
	then := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	peer := &v1.NetworkPeer{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "p1", Generation: 1}}
	first := noticeBench(t, peer, v1.KindNetworkPeer)
	peer.Status.CommonStatus = first["infra-provider-object"]
	peer.Status.Conditions = append(peer.Status.Conditions, first["infra-provider-operation"].Conditions...)
	for i := range peer.Status.Conditions {
		peer.Status.Conditions[i].LastTransitionTime = then
	}
	require.Empty(t, noticeBench(t, peer, v1.KindNetworkPeer), "it is there already")

	peer.Generation = 2
	second := noticeBench(t, peer, v1.KindNetworkPeer)
	require.Len(t, second, 2)
	for _, status := range second {
		for _, c := range status.Conditions {
			require.EqualValues(t, 2, c.ObservedGeneration)
			require.True(t, then.Equal(&c.LastTransitionTime), "%s has not changed", c.Type)
		}
	}
}

// Ready of an Account comes at once: others may wait for it.
func TestNoticeOfAnAccount(t *testing.T) {
	a := &v1.Account{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "acme", Generation: 3}}
	got := noticeBench(t, a, v1.KindAccount)
	require.Len(t, got, 1)
	object := got["infra-provider-object"]
	require.Equal(t, v1.PhaseNormal, object.Phase)
	require.EqualValues(t, 3, object.ObservedGeneration)
	require.Equal(t, metav1.ConditionTrue, object.Conditions[0].Status)
}

func TestNoNoticeOfWhatGoes(t *testing.T) {
	now := metav1.Now()
	b := &v1.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "b1", DeletionTimestamp: &now, Finalizers: []string{"example.com/a"}}}
	require.Empty(t, noticeBench(t, b, v1.KindBackup))
	other := &v1.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "b1"}}
	require.Empty(t, noticeBench(t, other, v1.KindBackup), "gone")
}
