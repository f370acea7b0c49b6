package balancing

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What is cached decides as what is not trimmed would.
func TestTrim(t *testing.T) {
	w := newWorld(t, 10, 5, 5, nil)
	set := &appsv1.StatefulSet{ObjectMeta: named("default", "db"), Spec: appsv1.StatefulSetSpec{
		Selector: selects("web-a"), Ordinals: &appsv1.StatefulSetOrdinals{Start: 3},
	}}
	w.cache.workloads["StatefulSet/default/db"] = set
	w.cache.pod(set, "StatefulSet", "db-3", "web-a", func(p *corev1.Pod) {
		p.Spec.NodeName, p.Annotations = "node-1", map[string]string{"a": "b"}
		p.Status.Conditions = append([]corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}, p.Status.Conditions...)
	})
	// A second Balancer, over the StatefulSet.
	b := web("default", 10)
	b.Name = "db"
	b.Spec.Targets[0].ScaleTargetRef.Kind, b.Spec.Targets[0].ScaleTargetRef.Name = "StatefulSet", "db"
	w.cache.balancers = append(w.cache.balancers, b)
	before := w.planned(t)
	require.Len(t, before.Changes, 2)
	ordinals := indexPods(w.cache, "default", []string{"StatefulSet.apps/db"}).owned["StatefulSet.apps/db"]

	for _, o := range w.cache.workloads {
		_, err := Trim(o)
		require.NoError(t, err)
	}
	for _, p := range w.cache.pods["default"] {
		_, err := Trim(p)
		require.NoError(t, err)
		require.Empty(t, p.Spec.NodeName)
		require.Empty(t, p.Annotations)
	}
	require.Equal(t, before, w.planned(t))
	require.Equal(t, ordinals, indexPods(w.cache, "default", []string{"StatefulSet.apps/db"}).owned["StatefulSet.apps/db"])
	require.EqualValues(t, 0, ordinals[0].Ordinal)

	b.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	_, err := Trim(b)
	require.NoError(t, err)
	require.Nil(t, b.ManagedFields)
}
