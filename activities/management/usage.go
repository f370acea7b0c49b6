package management

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// Usage keeps the condition InUse of Providers and ProviderTypes: whether
// anything refers to them. It is written when that changes, and not with each
// object that comes or goes: who they are is said by DeletionBlocked.
type Usage struct {
	Activities *Activities
}

// Setup adds it to a manager, once for each kind.
func (u *Usage) Setup(mgr manager.Manager) error {
	for kind, user := range map[string]client.Object{v1.KindProviderType: &v1.Provider{}, v1.KindProvider: &v1.Network{}} {
		k, _ := v1.KindOf(kind)
		err := builder.ControllerManagedBy(mgr).
			Named("usage-of-"+k.Plural).
			For(k.New()).
			Watches(user, handler.EnqueueRequestsFromMapFunc(namesOf(kind))).
			Complete(reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
				return reconcile.Result{}, u.tell(ctx, contract.ObjectRef{Kind: kind, Namespace: req.Namespace, Name: req.Name})
			}))
		if err != nil {
			return err
		}
	}
	return nil
}

// namesOf are the objects of a kind that an object refers to. Of an update the
// controller asks for both sides, so one that is let go is among them.
func namesOf(kind string) handler.MapFunc {
	return func(_ context.Context, o client.Object) (out []reconcile.Request) {
		for _, name := range refersTo(kind, o) {
			out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}})
		}
		return out
	}
}

// tell writes the condition, unless status says so already.
func (u *Usage) tell(ctx context.Context, ref contract.ObjectRef) error {
	a := u.Activities
	o, err := newObject(ref.Kind)
	if err != nil {
		return err
	}
	if _, err := get(ctx, a.Client, ref.Namespace, ref.Name, o); err != nil {
		return faults.IgnoreGone(err)
	}
	users, err := a.cachedUsers(ctx, ref)
	if err != nil {
		return err
	}
	c := metav1.Condition{Type: v1.ConditionInUse, Status: metav1.ConditionFalse, Reason: "Unreferenced", Message: "nothing refers to it",
		ObservedGeneration: o.GetGeneration(), LastTransitionTime: metav1.Now()}
	if len(users) > 0 {
		k, _ := v1.KindOf(v1.KeptBy(ref.Kind)[0])
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, "Referenced", k.Plural+" refer to it"
	}
	if was := meta.FindStatusCondition(o.Common().Conditions, c.Type); was != nil && was.Status == c.Status && was.Reason == c.Reason {
		return nil
	}
	return a.applyStatus(ctx, ref, string(o.GetUID()), ownerUsage, map[string]any{"conditions": []metav1.Condition{c}}, nil)
}
