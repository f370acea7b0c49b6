package bridge

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// Reasons of the conditions that the bridge writes.
const (
	// ReasonNotImplemented: nothing acts on objects of the kind yet.
	ReasonNotImplemented = "NotImplemented"
	// ReasonRecorded: objects of the kind are only read, so there is nothing to
	// wait for.
	ReasonRecorded = "Recorded"
)

// Notice is what the bridge writes into the status of an object whose kind has
// no workflow, so that nobody waits in vain. Such an object gets no finalizer
// and no identity: it can be deleted at any time.
type Notice struct {
	Phase v1.Phase
	// Object and Operation are the conditions that the object workflow and the
	// operation workflow own where a kind has them. They are written under the
	// names of these two, so that the first report of a workflow takes them over,
	// or away, when the kind gets one.
	Object, Operation []metav1.Condition
	// Finished tells that there is nothing left to do for the generation.
	Finished bool
}

// field managers of the workflows.
const (
	ownerObject    = client.FieldOwner("infra-provider-object")
	ownerOperation = client.FieldOwner("infra-provider-operation")
)

// notImplemented is the notice of kinds whose lifecycle is yet to come. The
// condition Stalled is for those who wait by machine: they give up at once.
func notImplemented(kind string) Notice {
	says := fmt.Sprintf("%s is accepted and kept, but nothing acts on it in this version; delete it, or keep it for a version that does", kind)
	condition := func(name string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: name, Status: status, Reason: ReasonNotImplemented, Message: says}
	}
	return Notice{
		Phase:  v1.PhasePending,
		Object: []metav1.Condition{condition(v1.ConditionReady, metav1.ConditionFalse)},
		Operation: []metav1.Condition{
			condition(v1.ConditionProgressing, metav1.ConditionFalse), condition(v1.ConditionStalled, metav1.ConditionTrue),
		},
	}
}

// recorded is the notice of kinds that are only read.
func recorded(kind string) Notice {
	return Notice{
		Phase:    v1.PhaseNormal,
		Finished: true,
		Object: []metav1.Condition{{
			Type: v1.ConditionReady, Status: metav1.ConditionTrue, Reason: ReasonRecorded,
			Message: fmt.Sprintf("Nothing is made for %s; others refer to it", kind),
		}},
	}
}

// notices of the kinds that have no workflow.
var notices = map[string]Notice{
	v1.KindAccount:     recorded("an Account"),
	v1.KindNetworkPeer: notImplemented("A NetworkPeer"),
	v1.KindBackup:      notImplemented("A Backup"),
	v1.KindRestore:     notImplemented("A Restore"),
	v1.KindImport:      notImplemented("An Import"),
	v1.KindTiCDC:       notImplemented("A TiCDC"),
}

// noticed returns the kinds of notices, in order.
func noticed() []schema.GroupVersionKind {
	gvks := make([]schema.GroupVersionKind, 0, len(notices))
	for kind := range notices {
		gvks = append(gvks, v1.GroupVersion.WithKind(kind))
	}
	slices.SortFunc(gvks, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.Kind, b.Kind) })
	return gvks
}

// Noticer writes the notice of one kind.
type Noticer struct {
	// Kind that this value reconciles.
	Kind schema.GroupVersionKind
	// Notice of the kind.
	Notice Notice
	// Reader reads objects; it need not be a cache, as there is one read for
	// each generation.
	Reader client.Reader
	// Client writes status.
	Client client.Client
}

// Reconcile writes the notice for the object's generation unless it is there.
func (n *Noticer) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(n.Kind)
	if err := n.Reader.Get(ctx, req.NamespacedName, u); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !u.GetDeletionTimestamp().IsZero() {
		return reconcile.Result{}, nil
	}
	var have v1.CommonStatus
	if status, ok := u.Object["status"].(map[string]any); ok {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(status, &have); err != nil {
			return reconcile.Result{}, fmt.Errorf("status of %s %s: %w", n.Kind.Kind, req.NamespacedName, err)
		}
	}
	object := map[string]any{"phase": string(n.Notice.Phase)}
	if n.Notice.Finished {
		object["observedGeneration"] = u.GetGeneration()
	}
	written, stale := stamp(n.Notice.Object, have.Conditions, u.GetGeneration())
	object["conditions"] = written
	if stale || have.Phase != n.Notice.Phase {
		if err := n.apply(ctx, u, ownerObject, object); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
	}
	written, stale = stamp(n.Notice.Operation, have.Conditions, u.GetGeneration())
	if !stale {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(n.apply(ctx, u, ownerOperation, map[string]any{"conditions": written}))
}

// stamp returns the conditions for a generation, and whether one of them is not
// there like that. A condition keeps the time of its last transition.
func stamp(want, have []metav1.Condition, generation int64) (written []any, stale bool) {
	for _, c := range want {
		c.ObservedGeneration, c.LastTransitionTime = generation, metav1.Now()
		if old := meta.FindStatusCondition(have, c.Type); old == nil {
			stale = true
		} else {
			if old.Status == c.Status {
				c.LastTransitionTime = old.LastTransitionTime
			}
			stale = stale || old.Status != c.Status || old.Reason != c.Reason || old.Message != c.Message || old.ObservedGeneration != generation
		}
		m, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(&c) // a condition always converts
		written = append(written, m)
	}
	return written, stale
}

// apply applies the whole of what an owner has in the status of the object that
// was read. Should another object have the name by now, it gets the same notice
// with an older generation, and then its own.
func (n *Noticer) apply(ctx context.Context, read *unstructured.Unstructured, owner client.FieldOwner, status map[string]any) error {
	u := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	u.SetGroupVersionKind(n.Kind)
	u.SetNamespace(read.GetNamespace())
	u.SetName(read.GetName())
	return n.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), owner, client.ForceOwnership)
}

// setupNotices adds a controller for every kind that has a notice.
func setupNotices(mgr manager.Manager) error {
	for _, gvk := range noticed() {
		obj := &metav1.PartialObjectMetadata{}
		obj.SetGroupVersionKind(gvk)
		err := builder.ControllerManagedBy(mgr).
			Named("notice-"+strings.ToLower(gvk.Kind)).
			For(obj, builder.WithPredicates(Relevant())).
			WithOptions(controller.Options{MaxConcurrentReconciles: 2}).
			Complete(&Noticer{Kind: gvk, Notice: notices[gvk.Kind], Reader: mgr.GetAPIReader(), Client: mgr.GetClient()})
		if err != nil {
			return err
		}
	}
	return nil
}
