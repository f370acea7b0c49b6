package balancing

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/api/balancer/v1alpha1"
)

// widget is an object of a kind that is not cached.
func widget(name string) client.Object {
	return &metav1.PartialObjectMetadata{ObjectMeta: named("default", name)}
}

// Who owns which pod. The targets are Deployments web-a and web-b; what is
// counted for them is given as a/b.
func TestPodsByOwner(t *testing.T) {
	widgets := func(b *v1alpha1.Balancer) {
		for i := range b.Spec.Targets {
			b.Spec.Targets[i].ScaleTargetRef.APIVersion, b.Spec.Targets[i].ScaleTargetRef.Kind = "example.com/v1", "Widget"
		}
	}
	for name, c := range map[string]struct {
		change func(*v1alpha1.Balancer)
		pods   func(m *memoryCache)
		a, b   int32
	}{
		"their own": {pods: func(m *memoryCache) {}, a: 1, b: 1},
		"labels of a, but of another Deployment": {pods: func(m *memoryCache) {
			m.deployment("default", "other", 1, 0)
			m.pod(m.workloads["ReplicaSet/default/other-1"], "ReplicaSet", "p", "web-a", nil)
		}, a: 1, b: 1},
		"labels of a, but nobody's": {pods: func(m *memoryCache) { m.pod(nil, "", "p", "web-a", nil) }, a: 1, b: 1},
		"labels of a, but of a Job": {pods: func(m *memoryCache) { m.pod(widget("j"), "Job.batch/v1", "p", "web-a", nil) }, a: 1, b: 1},
		"its ReplicaSet is not in the cache yet: labels decide": {pods: func(m *memoryCache) {
			m.pod(&appsv1.ReplicaSet{ObjectMeta: named("default", "young")}, "ReplicaSet", "p", "web-a", nil)
		}, a: 2, b: 1},
		"of an earlier Deployment of that name: labels decide": {pods: func(m *memoryCache) {
			old := &appsv1.ReplicaSet{ObjectMeta: named("default", "old")}
			before := &appsv1.Deployment{ObjectMeta: named("default", "web-a")}
			before.UID = "before"
			own(before, "Deployment", old)
			m.workloads["ReplicaSet/default/old"] = old
			m.pod(old, "ReplicaSet", "p", "web-a", nil)
		}, a: 2, b: 1},
		"of a target of another kind": {change: widgets, pods: func(m *memoryCache) {
			m.pod(widget("web-a"), "Widget.example.com/v1", "p", "web-a", nil)
		}, a: 1},
		"of another object of that kind": {change: widgets, pods: func(m *memoryCache) {
			m.pod(widget("web-c"), "Widget.example.com/v1", "p", "web-a", nil)
		}},
		"that kind owns its pods in a way of its own: labels decide": {change: widgets, pods: func(m *memoryCache) {
			m.pod(widget("part"), "WidgetPart.example.com/v1", "p", "web-a", nil)
			m.pod(nil, "", "q", "web-b", nil)
		}, a: 1, b: 1},
		"that kind owns them through a StatefulSet": {change: widgets, pods: func(m *memoryCache) {
			set := &appsv1.StatefulSet{ObjectMeta: named("default", "set")}
			own(widget("web-b"), "Widget.example.com/v1", set)
			m.workloads["StatefulSet/default/set"] = set
			m.pod(set, "StatefulSet", "set-0", "web-b", nil)
		}, b: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 10, 1, 1, c.change)
			if c.change != nil {
				kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
				w.scales.add(kind, "default", "web-a", "web-a", 1)
				w.scales.add(kind, "default", "web-b", "web-b", 1)
			}
			c.pods(w.cache)
			plan := w.look(t.Context(), w.cache.balancers).plan(w.cache.balancers[0])
			require.Nil(t, plan.Failure)
			require.Equal(t, [2]int32{c.a, c.b}, [2]int32{plan.Targets[0].Observed, plan.Targets[1].Observed})
		})
	}
}

// A StatefulSet loses its highest ordinals first, wherever they begin.
func TestOrdinals(t *testing.T) {
	for name, want := range map[string]int32{"db-0": -1, "db-5": 0, "db-7": 2, "db": -1, "db-x": -1, "db-99999999999": -1} {
		require.Equal(t, want, ordinal(name, 5), name)
	}
	m := newMemoryCache()
	set := &appsv1.StatefulSet{ObjectMeta: named("default", "db"), Spec: appsv1.StatefulSetSpec{Ordinals: &appsv1.StatefulSetOrdinals{Start: 5}}}
	m.workloads["StatefulSet/default/db"] = set
	m.pod(set, "StatefulSet", "db-6", "db", func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse })
	pods := indexPods(m, "default", []string{"StatefulSet.apps/db"}).owned["StatefulSet.apps/db"]
	require.Len(t, pods, 1)
	require.EqualValues(t, 1, pods[0].Ordinal)
	require.False(t, pods[0].Ready)
	target, ok := (&targetReader{cache: m}).cached("default", deploymentTarget("a", "db").ScaleTargetRef)
	require.False(t, ok, "%v", target)
}
