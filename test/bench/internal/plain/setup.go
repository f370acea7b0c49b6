package plain

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/bridge"
	"github.com/tidbcloud/infra-orchestrator/test/bench/internal/nullcloud"
)

// indexNetwork finds the Clusters of a Network in the cache.
const indexNetwork = "spec.network"

// concurrency of each controller, as the bridge's.
const concurrency = 8

// Resync are the channels by which an object is reconciled anew although
// nothing changed.
type Resync struct {
	Networks, Clusters chan event.GenericEvent
}

// Setup adds the controllers to the manager.
func Setup(ctx context.Context, mgr manager.Manager, cloud *nullcloud.Cloud, every time.Duration) (Resync, error) {
	again := Resync{make(chan event.GenericEvent), make(chan event.GenericEvent)}
	b := base{Client: mgr.GetClient(), cloud: cloud, events: mgr.GetEventRecorder("plain"), resync: bridge.Jittered(every, nil)}
	err := mgr.GetFieldIndexer().IndexField(ctx, &v1.Cluster{}, indexNetwork, func(o client.Object) []string {
		return []string{string(o.(*v1.Cluster).Spec.Network)}
	})
	if err != nil {
		return again, err
	}
	options := controller.Options{MaxConcurrentReconciles: concurrency}
	err = builder.ControllerManagedBy(mgr).For(&v1.Network{}, builder.WithPredicates(bridge.Relevant())).
		Watches(&v1.Cluster{}, handler.EnqueueRequestsFromMapFunc(networkOf), builder.WithPredicates(gone())).
		WatchesRawSource(source.Channel(again.Networks, &handler.EnqueueRequestForObject{})).
		WithOptions(options).Complete(&networkReconciler{b})
	if err != nil {
		return again, err
	}
	return again, builder.ControllerManagedBy(mgr).For(&v1.Cluster{}, builder.WithPredicates(bridge.Relevant())).
		Watches(&v1.Network{}, handler.EnqueueRequestsFromMapFunc(b.clustersOf), builder.WithPredicates(becameReady())).
		WatchesRawSource(source.Channel(again.Clusters, &handler.EnqueueRequestForObject{})).
		WithOptions(options).Complete(&clusterReconciler{b})
}

func networkOf(_ context.Context, o client.Object) []reconcile.Request {
	name := string(o.(*v1.Cluster).Spec.Network)
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
}

func (b *base) clustersOf(ctx context.Context, o client.Object) (requests []reconcile.Request) {
	var list v1.ClusterList
	if err := b.List(ctx, &list, client.InNamespace(o.GetNamespace()), client.MatchingFields{indexNetwork: o.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil // a Cluster that is not woken looks again by itself
	}
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

// becameReady passes the event after which Clusters can be built.
func becameReady() predicate.Predicate {
	ready := func(o client.Object) bool {
		return meta.IsStatusConditionTrue(o.(*v1.Network).Status.Conditions, v1.ConditionReady)
	}
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc:  func(e event.UpdateEvent) bool { return !ready(e.ObjectOld) && ready(e.ObjectNew) },
	}
}

// gone passes deletions only.
func gone() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
	}
}
