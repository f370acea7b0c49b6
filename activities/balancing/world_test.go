package balancing

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tidbcloud/infra-orchestrator/api/balancer/v1alpha1"
)

var start = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// memoryCache is a Cache of what a test puts into it.
type memoryCache struct {
	balancers []*v1alpha1.Balancer
	pods      map[string][]*corev1.Pod
	workloads map[string]client.Object
}

func newMemoryCache() *memoryCache {
	return &memoryCache{pods: map[string][]*corev1.Pod{}, workloads: map[string]client.Object{}}
}

func (m *memoryCache) Balancers() []*v1alpha1.Balancer {
	return append([]*v1alpha1.Balancer(nil), m.balancers...)
}

func (m *memoryCache) Balancer(namespace, name string) *v1alpha1.Balancer {
	for _, b := range m.balancers {
		if b.Namespace == namespace && b.Name == name {
			return b
		}
	}
	return nil
}

func (m *memoryCache) Pods(namespace string) []*corev1.Pod { return m.pods[namespace] }

func (m *memoryCache) Workload(kind, namespace, name string) client.Object {
	return m.workloads[kind+"/"+namespace+"/"+name]
}

// deployment puts a Deployment with its ReplicaSet and n ready pods into the
// cache.
func (m *memoryCache) deployment(namespace, name string, replicas, n int32) {
	d := &appsv1.Deployment{ObjectMeta: named(namespace, name), Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: selects(name)}}
	rs := &appsv1.ReplicaSet{ObjectMeta: named(namespace, name+"-1"), Spec: appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: selects(name)}}
	own(d, "Deployment", rs)
	m.workloads["Deployment/"+namespace+"/"+name], m.workloads["ReplicaSet/"+namespace+"/"+rs.Name] = d, rs
	for i := range n {
		m.pod(rs, "ReplicaSet", fmt.Sprintf("%s-%d", rs.Name, i), name, nil)
	}
}

// pod puts a ready pod with the labels app and srv=web into the cache.
func (m *memoryCache) pod(owner client.Object, kind, name, app string, change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: named("default", name)}
	p.Labels, p.CreationTimestamp = map[string]string{"app": app, "srv": "web"}, metav1.NewTime(start.Add(-time.Hour))
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	if owner != nil {
		p.Namespace = owner.GetNamespace()
		own(owner, kind, p)
	}
	if change != nil {
		change(p)
	}
	m.pods[p.Namespace] = append(m.pods[p.Namespace], p)
	return p
}

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + namespace + "-" + name), Generation: 1}
}

func selects(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
}

func own(owner client.Object, kind string, o client.Object) {
	yes, group := true, "apps/v1"
	if strings.Contains(kind, ".") {
		kind, group, _ = strings.Cut(kind, ".")
	}
	o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: group, Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: &yes}})
}

func pending(age time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.CreationTimestamp = metav1.NewTime(start.Add(-age))
		p.Status = corev1.PodStatus{Phase: corev1.PodPending}
	}
}

// memoryScales are the scales as they are live. Writes are recorded in order.
type memoryScales struct {
	mu     sync.Mutex
	scales map[string]Scale
	writes []string
	reads  int
	hangs  string // reads of this object never end
	get    func(name string) error
	set    func(name string, attempt int) error
	sets   map[string]int
	// managers is who wrote each scale last; others write by it, too.
	managers map[string]string
	scalers  []autoscalingv2.HorizontalPodAutoscaler
	lists    int // of autoscalers
	unlisted error
}

func (m *memoryScales) Get(ctx context.Context, namespace string, ref autoscalingv2.CrossVersionObjectReference) (Scale, error) {
	if m.hangs != "" && ref.Name == m.hangs {
		<-ctx.Done()
		return Scale{}, scaleError(namespace, ref, ctx.Err())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	if m.get != nil {
		if err := m.get(ref.Name); err != nil {
			return Scale{}, err
		}
	}
	s, ok := m.scales[namespace+"/"+ref.Name]
	if !ok {
		return s, scaleError(namespace, ref, apierrors.NewNotFound(schema.GroupResource{Group: "apps", Resource: "deployments"}, ref.Name))
	}
	return s, nil
}

func (m *memoryScales) Set(_ context.Context, s Scale, replicas int32, manager string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sets[s.Name]++
	if m.set != nil {
		if err := m.set(s.Name, m.sets[s.Name]); err != nil {
			return err
		}
	}
	m.writes = append(m.writes, fmt.Sprintf("%s %d", s.Name, replicas))
	m.managers[s.Namespace+"/"+s.Name] = manager
	s.Spec.Replicas = replicas
	m.scales[s.Namespace+"/"+s.Name] = s
	return nil
}

func (m *memoryScales) add(kind schema.GroupVersionKind, namespace, name, app string, replicas int32) {
	s := Scale{Kind: kind}
	s.ObjectMeta, s.Spec.Replicas, s.Status.Selector = named(namespace, name), replicas, "app="+app
	m.scales[namespace+"/"+name] = s
}

// Managers implements Writers.
func (m *memoryScales) Managers(_ context.Context, s Scale) ([]metav1.ManagedFieldsEntry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	by := m.managers[s.Namespace+"/"+s.Name]
	if by == "" {
		return nil, errors.New("forbidden")
	}
	return []metav1.ManagedFieldsEntry{{Manager: by, Operation: "Update", Subresource: "scale", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`)}}, nil
}

// Autoscalers implements Writers.
func (m *memoryScales) Autoscalers(context.Context, string) ([]autoscalingv2.HorizontalPodAutoscaler, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lists++
	return m.scalers, m.unlisted
}

var conflict = apierrors.NewConflict(schema.GroupResource{Resource: "deployments"}, "a", nil)

// world is everything around the activities.
type world struct {
	*Activities
	cache  *memoryCache
	scales *memoryScales
	client client.Client
	events *record.FakeRecorder
	at     time.Time // now
	// status fails writes of the status.
	status func(attempt int) error
	writes int // of statuses
}

// newWorld has a Balancer default/web, 30 to 70, over Deployments web-a and
// web-b of n and m replicas, all ready. change changes the Balancer.
func newWorld(t *testing.T, replicas, n, m int32, change func(*v1alpha1.Balancer)) *world {
	t.Helper()
	w := &world{at: start, cache: newMemoryCache(), scales: &memoryScales{scales: map[string]Scale{}, sets: map[string]int{}, managers: map[string]string{}}, events: record.NewFakeRecorder(100_000)}
	b := web("default", replicas)
	if change != nil {
		change(b)
	}
	for name, k := range map[string]int32{"web-a": n, "web-b": m} {
		w.cache.deployment("default", name, k, k)
		w.scales.add(appsv1.SchemeGroupVersion.WithKind("Deployment"), "default", name, name, k)
	}
	scheme := runtime.NewScheme()
	require.NoError(t, AddToScheme(scheme))
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(b).WithStatusSubresource(b).WithInterceptorFuncs(interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			w.writes++
			if w.status != nil {
				if err := w.status(w.writes); err != nil {
					return err
				}
			}
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
	}).Build()
	w.Activities = &Activities{Cache: w.cache, Client: w.client, Scales: w.scales, Writers: w.scales, Events: w.events, Now: func() time.Time { return w.at }}
	w.sync(t)
	return w
}

func web(namespace string, replicas int32) *v1alpha1.Balancer {
	b := &v1alpha1.Balancer{ObjectMeta: named(namespace, "web")}
	b.Spec = v1alpha1.BalancerSpec{
		Replicas: &replicas, Selector: metav1.LabelSelector{MatchLabels: map[string]string{"srv": "web"}},
		Targets: []v1alpha1.BalancerTarget{deploymentTarget("a", "web-a"), deploymentTarget("b", "web-b")},
		Policy: v1alpha1.BalancerPolicy{PolicyName: "proportional",
			Proportions: &v1alpha1.ProportionalPolicy{TargetProportions: map[string]int32{"a": 30, "b": 70}}},
	}
	return b
}

func deploymentTarget(name, deployment string) v1alpha1.BalancerTarget {
	return v1alpha1.BalancerTarget{Name: name, ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: deployment}}
}

// sync brings the cache's Balancers up to date.
func (w *world) sync(t *testing.T) {
	t.Helper()
	var list v1alpha1.BalancerList
	require.NoError(t, w.client.List(t.Context(), &list))
	w.cache.balancers = nil
	for i := range list.Items {
		w.cache.balancers = append(w.cache.balancers, &list.Items[i])
	}
}

func (w *world) balancer(t *testing.T) *v1alpha1.Balancer {
	t.Helper()
	b := &v1alpha1.Balancer{}
	require.NoError(t, w.client.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "web"}, b))
	return b
}

func (w *world) told() []string {
	var all []string
	for len(w.events.Events) > 0 {
		all = append(all, <-w.events.Events)
	}
	return all
}
