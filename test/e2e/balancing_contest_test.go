package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/api/balancer/v1alpha1"
)

// contested: an autoscaler wants at least 12 replicas of a target that should
// have 7. It is set back a few times, then left alone and told; the other target
// goes on, and all does once the autoscaler is gone.
func contested(t *testing.T) {
	s := newShop(t, "contested")
	s.node("a", 100)
	s.node("b", 100)
	s.deployment("a", 0)
	s.deployment("b", 0)
	m := s.follow()
	s.balancer(10, func(b *v1alpha1.Balancer) { b.Spec.Policy = proportions(70, 30) })
	s.settled(7, 3)
	least := int32(12)
	hpa := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "eager"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "a"},
			MinReplicas:    &least, MaxReplicas: 30,
		},
	}
	s.create(hpa)
	eventually(t, 3*time.Minute, "the target is left alone, and told", func() error {
		b := s.get()
		c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionContested)
		balancing := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionBalancing)
		if c == nil || c.Reason != v1alpha1.ReasonLeftAlone || balancing.Status != metav1.ConditionFalse || balancing.Reason != "TargetContested" {
			return fmt.Errorf("%+v", b.Status.Conditions)
		}
		// The controllers of the devstack run in its own process.
		for _, who := range []string{`field manager "devstack"`, "HorizontalPodAutoscaler eager"} {
			if !strings.Contains(c.Message, who) {
				return fmt.Errorf("%s does not name %s", c.Message, who)
			}
		}
		return nil
	})
	m.look(func(m *movement) { require.Equal(t, []int32{0, 7, 12, 7, 12, 7, 12, 7, 12}, m.sequence["a"]) })

	s.patch(`{"spec":{"replicas":20}}`)
	eventually(t, time.Minute, "the other target goes on", func() error {
		if got := s.get().Status.Targets; got[1].Ready != 6 || got[0].Desired != 14 || got[0].Observed != 12 {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
	require.NoError(t, s.kube.Delete(within(t, time.Minute), hpa))
	eventually(t, time.Minute, "it goes on by itself", func() error {
		b := s.get()
		c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionContested)
		if b.Status.Targets[0].Ready != 14 || c.Reason != v1alpha1.ReasonSettled || !meta.IsStatusConditionTrue(b.Status.Conditions, v1alpha1.ConditionBalancing) {
			return fmt.Errorf("%+v", b.Status)
		}
		return nil
	})
	var events corev1.EventList
	require.NoError(t, s.kube.List(within(t, time.Minute), &events, client.InNamespace(s.namespace)))
	told := map[string]int{}
	for _, e := range events.Items {
		if e.InvolvedObject.Kind == "Balancer" {
			told[e.Type+" "+e.Reason]++
		}
	}
	require.Equal(t, 4, told["Warning TargetContested"], "each time that it was overruled: %v", told)
	require.Equal(t, 1, told["Normal TargetContested"], "when it was over: %v", told)
}
