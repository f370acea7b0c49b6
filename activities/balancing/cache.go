package balancing

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/api/balancer/v1alpha1"
)

// Cache is what a sweep reads. Objects are shared: nobody may change them.
type Cache interface {
	// Balancers returns all Balancers, in any order.
	Balancers() []*v1alpha1.Balancer
	// Balancer returns one, nil if there is none.
	Balancer(namespace, name string) *v1alpha1.Balancer
	// Pods returns the pods of a namespace.
	Pods(namespace string) []*corev1.Pod
	// Workload returns a Deployment, StatefulSet or ReplicaSet, nil if there is
	// none. Kind is one of these.
	Workload(kind, namespace, name string) client.Object
}

// Kinds of group apps that are cached.
const (
	kindDeployment  = "Deployment"
	kindStatefulSet = "StatefulSet"
	kindReplicaSet  = "ReplicaSet"
)

// InformerCache is a Cache of all namespaces, kept up to date by watches.
type InformerCache struct {
	cache     cache.Cache
	balancers toolscache.Indexer
	pods      toolscache.Indexer
	workloads map[string]toolscache.Indexer // by kind
}

// NewInformerCache returns a cache that is empty until Run.
func NewInformerCache(config *rest.Config, scheme *runtime.Scheme) (*InformerCache, error) {
	c, err := cache.New(config, cache.Options{Scheme: scheme, DefaultTransform: Trim})
	if err != nil {
		return nil, fmt.Errorf("cache of Balancers: %w", err)
	}
	return &InformerCache{cache: c, workloads: map[string]toolscache.Indexer{}}, nil
}

// retryKinds is how often Run looks for a kind that the API server lacks.
const retryKinds = 10 * time.Second

// Run fills the cache, calls synced once, and keeps it up to date until ctx
// ends. It waits for as long as the kind Balancer is not installed, or must not
// be listed: whatever else the process does goes on.
func (c *InformerCache) Run(ctx context.Context, log *slog.Logger, synced func()) error {
	ended := make(chan error, 1)
	go func() { ended <- c.cache.Start(ctx) }()
	for {
		err := c.watch(ctx)
		if err == nil {
			break
		}
		log.Warn("Balancers are not looked at yet, trying again in 10 s", "error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retryKinds):
		}
	}
	if !c.cache.WaitForCacheSync(ctx) {
		return nil // stopping
	}
	synced()
	return <-ended
}

// watch starts the informers.
func (c *InformerCache) watch(ctx context.Context) (err error) {
	if c.balancers, err = c.indexer(ctx, &v1alpha1.Balancer{}); err != nil {
		return err
	}
	if c.pods, err = c.indexer(ctx, &corev1.Pod{}); err != nil {
		return err
	}
	for kind, obj := range map[string]client.Object{
		kindDeployment: &appsv1.Deployment{}, kindStatefulSet: &appsv1.StatefulSet{}, kindReplicaSet: &appsv1.ReplicaSet{},
	} {
		if c.workloads[kind], err = c.indexer(ctx, obj); err != nil {
			return err
		}
	}
	return nil
}

// indexer is the informer's store. It is read directly: copies of every pod in
// every sweep would cost more than the sweep.
func (c *InformerCache) indexer(ctx context.Context, obj client.Object) (toolscache.Indexer, error) {
	informer, err := c.cache.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watch %T: %w", obj, err)
	}
	shared, ok := informer.(toolscache.SharedIndexInformer)
	if !ok {
		return nil, fmt.Errorf("watch %T: %T has no store", obj, informer)
	}
	return shared.GetIndexer(), nil
}

// Balancers implements Cache.
func (c *InformerCache) Balancers() []*v1alpha1.Balancer {
	all := c.balancers.List()
	out := make([]*v1alpha1.Balancer, 0, len(all))
	for _, o := range all {
		if b, ok := o.(*v1alpha1.Balancer); ok {
			out = append(out, b)
		}
	}
	return out
}

// Balancer implements Cache.
func (c *InformerCache) Balancer(namespace, name string) *v1alpha1.Balancer {
	b, _ := lookup(c.balancers, namespace, name).(*v1alpha1.Balancer)
	return b
}

// Pods implements Cache.
func (c *InformerCache) Pods(namespace string) []*corev1.Pod {
	all, err := c.pods.ByIndex(toolscache.NamespaceIndex, namespace)
	if err != nil {
		return nil // the index is there
	}
	out := make([]*corev1.Pod, 0, len(all))
	for _, o := range all {
		if p, ok := o.(*corev1.Pod); ok {
			out = append(out, p)
		}
	}
	return out
}

// Workload implements Cache.
func (c *InformerCache) Workload(kind, namespace, name string) client.Object {
	o, _ := lookup(c.workloads[kind], namespace, name).(client.Object)
	return o
}

func lookup(store toolscache.Indexer, namespace, name string) any {
	o, found, err := store.GetByKey(namespace + "/" + name)
	if err != nil || !found {
		return nil
	}
	return o
}

// Trim drops from cached objects what no decision needs; in a large cluster
// that is most of the memory.
func Trim(in any) (any, error) {
	switch o := in.(type) {
	case *corev1.Pod:
		trimMeta(&o.ObjectMeta)
		o.Spec = corev1.PodSpec{}
		o.Status = corev1.PodStatus{Phase: o.Status.Phase, Conditions: readyOnly(o.Status.Conditions)}
	case *appsv1.Deployment:
		trimMeta(&o.ObjectMeta)
		o.Spec = appsv1.DeploymentSpec{Replicas: o.Spec.Replicas, Selector: o.Spec.Selector}
		o.Status = appsv1.DeploymentStatus{}
	case *appsv1.StatefulSet:
		trimMeta(&o.ObjectMeta)
		o.Spec = appsv1.StatefulSetSpec{Replicas: o.Spec.Replicas, Selector: o.Spec.Selector, Ordinals: o.Spec.Ordinals}
		o.Status = appsv1.StatefulSetStatus{}
	case *appsv1.ReplicaSet:
		trimMeta(&o.ObjectMeta)
		o.Spec = appsv1.ReplicaSetSpec{Replicas: o.Spec.Replicas, Selector: o.Spec.Selector}
		o.Status = appsv1.ReplicaSetStatus{}
	case *v1alpha1.Balancer:
		o.ManagedFields = nil
	}
	return in, nil
}

func trimMeta(m *metav1.ObjectMeta) { m.ManagedFields, m.Annotations = nil, nil }

func readyOnly(conditions []corev1.PodCondition) []corev1.PodCondition {
	for _, c := range conditions {
		if c.Type == corev1.PodReady {
			return []corev1.PodCondition{{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime}}
		}
	}
	return nil
}
