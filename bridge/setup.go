package bridge

import (
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// DefaultResync is the time after which an unchanged object is signalled again.
const DefaultResync = 10 * time.Minute

// concurrency of each kind's controller. Signals are short; this is what keeps
// a few slow ones from delaying the rest.
const concurrency = 8

// Setup adds a controller for every kind to the manager. resync is the mean
// time between two signals of an unchanged object; it is jittered by 20 %.
func Setup(mgr manager.Manager, signaller *Signaller, resync time.Duration) error {
	warm := true // a standby keeps its caches synced, so that taking over takes no time
	for _, gvk := range Kinds() {
		obj := &metav1.PartialObjectMetadata{}
		obj.SetGroupVersionKind(gvk)
		err := builder.ControllerManagedBy(mgr).
			Named(strings.ToLower(gvk.Kind)).
			For(obj, builder.WithPredicates(Relevant())).
			WithOptions(controller.Options{MaxConcurrentReconciles: concurrency, EnableWarmup: &warm}).
			Complete(&Reconciler{
				Kind: gvk, Client: mgr.GetClient(), Signaller: signaller, Resync: Jittered(resync, nil),
			})
		if err != nil {
			return err
		}
	}
	return setupNotices(mgr)
}

// Relevant lets those changes pass that a workflow should hear of: a new
// generation, a deletion, the annotations that users write, and a finalizer of
// ours that somebody took away. Our own writes of status, identity and finalizer
// pass by.
func Relevant() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld, e.ObjectNew
			return before.GetGeneration() != after.GetGeneration() ||
				before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() ||
				!maps.Equal(verbs(before.GetAnnotations()), verbs(after.GetAnnotations())) ||
				stripped(before.GetFinalizers(), after.GetFinalizers())
		},
		// A deletion is told, too: the finalizer may have been removed by force,
		// and its workflow must not go on with what is no more.
	}
}

// stripped reports whether a finalizer of ours is gone.
func stripped(before, after []string) bool {
	return slices.ContainsFunc(before, func(f string) bool {
		return strings.HasPrefix(f, v1.FinalizerPrefix) && !slices.Contains(after, f)
	})
}

// verbs are the annotations by which users speak to an object's workflow.
func verbs(annotations map[string]string) map[string]string {
	found := map[string]string{}
	for _, key := range []string{
		v1.AnnotationOperation, v1.AnnotationPaused, v1.AnnotationMigrated, v1.AnnotationForceDelete,
	} {
		if value, ok := annotations[key]; ok {
			found[key] = value
		}
	}
	return found
}
