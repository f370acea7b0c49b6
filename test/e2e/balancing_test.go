package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/converter"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/api/balancer/v1alpha1"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
)

// TestBalancing: Balancers on a real API server with real controllers; nodes
// and the metric of the autoscaler are simulated.
func TestBalancing(t *testing.T) {
	t.Run("stories", func(t *testing.T) {
		for name, story := range map[string]func(*testing.T){
			"a Deployment and a StatefulSet, 70 to 30": split,
			"an autoscaler on the scale subresource":   autoscaled,
			"a blocked target falls back and recovers": fallsBack,
			"an order flipped in steps":                flipped,
			"a target that does not exist":             brokenTarget,
			"an autoscaler on a target":                contested,
			"the shipped roles, and any other kind":    rights,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				story(t)
			})
		}
	})
	sweepsAreReadable(t)
}

func split(t *testing.T) {
	s := newShop(t, "split")
	s.node("a", 100)
	s.node("b", 100)
	s.deployment("a", 0)
	s.statefulSet("b")
	s.balancer(10, func(b *v1alpha1.Balancer) {
		b.Spec.Policy = proportions(70, 30)
		b.Spec.Targets[1].ScaleTargetRef.Kind = "StatefulSet"
	})
	s.settled(7, 3)
	s.patch(`{"spec":{"replicas":20}}`)
	s.settled(14, 6)
	s.patch(`{"spec":{"replicas":5}}`)
	s.settled(4, 1)
	// The original's rights end at Deployments, and it tells of failures only.
	var events corev1.EventList
	require.NoError(t, s.kube.List(within(t, time.Minute), &events, client.InNamespace(s.namespace)))
	told := map[string]bool{}
	for _, e := range events.Items {
		if e.InvolvedObject.Kind == "Balancer" {
			require.Equal(t, corev1.EventTypeNormal, e.Type, e.Message)
			require.Equal(t, "balancer-controller", e.Source.Component)
			told[e.Message] = true
		}
	}
	require.Contains(t, told, "replicas changed: a 0→7, b 0→3")
	require.Contains(t, told, "replicas changed: a 14→4, b 6→1")
}

// load sets the CPU that the pods of the namespace use together.
func (s *shop) load(cpu string) {
	s.t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	body := fmt.Sprintf(`{"metadata":{"annotations":{"devstack.cloud.pingcap.com/cpu-load":%q}}}`, cpu)
	require.NoError(s.t, s.kube.Patch(within(s.t, 30*time.Second), ns, client.RawPatch("application/merge-patch+json", []byte(body))))
}

// autoscaled: spec.replicas is absent and the selector is empty, the two things
// that no autoscaler can use with the original.
func autoscaled(t *testing.T) {
	s := newShop(t, "autoscaled")
	s.load("1000m")
	s.node("a", 100)
	s.node("b", 100)
	s.deployment("a", 0)
	s.deployment("b", 0)
	s.balancer(0, func(b *v1alpha1.Balancer) {
		b.Spec.Replicas, b.Spec.Selector, b.Spec.Policy = nil, metav1.LabelSelector{}, proportions(70, 30)
	})
	two, now, percent := int32(2), int32(0), int32(1000)
	fast := &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: &now, Policies: []autoscalingv2.HPAScalingPolicy{
		{Type: autoscalingv2.PercentScalingPolicy, Value: percent, PeriodSeconds: 1},
	}}
	each := resource.MustParse("100m")
	s.create(&autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "balancer.x-k8s.io/v1alpha1", Kind: "Balancer", Name: "web"},
			MinReplicas:    &two, MaxReplicas: 30,
			Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: fast, ScaleDown: fast},
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
				Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: &each},
			}}},
		},
	})
	s.settled(7, 3) // 1000m at 100m each
	scale := &autoscalingv1.Scale{}
	require.NoError(t, s.kube.SubResource("scale").Get(within(t, 30*time.Second), s.get(), scale))
	require.EqualValues(t, 10, scale.Spec.Replicas)
	require.EqualValues(t, 10, scale.Status.Replicas)
	selector, err := labels.Parse(scale.Status.Selector)
	require.NoError(t, err)
	require.True(t, selector.Matches(labels.Set{"workload": "a"}))

	// A manifest without replicas that is applied again takes nothing back.
	s.patch(`{"spec":{"policy":{"proportions":{"targetProportions":{"a":50,"b":50}}}}}`)
	s.settled(5, 5)
	s.load("400m")
	s.settled(2, 2)
}

// fallsBack is what the original does, too: a can run 3 pods only.
func fallsBack(t *testing.T) {
	s := newShop(t, "fallback")
	s.node("a", 3)
	s.node("b", 100)
	s.deployment("a", 0)
	s.deployment("b", 0)
	m := s.follow()
	s.balancer(10, func(b *v1alpha1.Balancer) { b.Spec.Policy = priorities(3, "a", "b") })
	s.ready(m, "a", 3)
	s.ready(m, "b", 7)
	s.patch(`{"spec":{"replicas":14}}`)
	s.ready(m, "b", 11)
	// The pods that came last are older than the timeout: where the original
	// flaps, it has flapped by now.
	eventually(t, time.Minute, "the youngest pods of a are blocked, too", func() error {
		if got := s.get().Status.Targets; got[0].Blocked != 11 || got[0].Fallback != 11 || got[1].Ready != 11 {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
	// Pods that were created in different seconds may become blocked in two
	// rounds; whatever the steps are, none goes down.
	var up int
	m.look(func(m *movement) {
		b := m.sequence["b"]
		require.True(t, slices.IsSorted(b), "no flapping: %v", b)
		require.EqualValues(t, 11, b[len(b)-1])
		up = len(b)
	})

	s.node("a", 100)
	s.settled(14, 0)
	m.look(func(m *movement) {
		require.Equal(t, []int32{0, 10, 14}, m.sequence["a"])
		b := m.sequence["b"]
		require.Zero(t, b[len(b)-1])
		for i := up; i < len(b); i++ {
			require.Less(t, b[i], b[i-1], "once a recovers, b only shrinks: %v", b)
		}
		for _, shrunk := range m.atShrink {
			require.GreaterOrEqual(t, shrunk.ready["a"]+int(shrunk.to), 14, "b shrinks only as far as a is ready: %+v", shrunk)
		}
	})
}

// ready waits for the number of ready pods of a workload.
func (s *shop) ready(m *movement, workload string, want int) {
	s.t.Helper()
	eventually(s.t, time.Minute, fmt.Sprintf("%s: %d ready pods of %s", s.namespace, want, workload), func() (err error) {
		m.look(func(m *movement) {
			if got := len(m.ready[workload]); got != want {
				err = fmt.Errorf("%d are ready, sizes %v", got, m.sequence)
			}
		})
		return err
	})
}

// flipped is an order that is turned round: everything runs on a, and shall run on b, which has no nodes.
// With the original nothing runs for a while.
func flipped(t *testing.T) {
	const replicas, surge, unavailable = 20, 5, 2
	s := newShop(t, "flip")
	s.node("a", 100)
	s.deployment("a", replicas)
	s.deployment("b", 0)
	m := s.follow()
	s.balancer(replicas, func(b *v1alpha1.Balancer) {
		up, down := intstr.FromString("25%"), intstr.FromString("10%")
		b.Spec.Policy, b.Spec.Rebalancing = priorities(3, "a", "b"), &v1alpha1.Rebalancing{MaxSurge: &up, MaxUnavailable: &down}
	})
	s.settled(replicas, 0)
	m.fresh()
	s.patch(`{"spec":{"policy":{"priorities":{"targetOrder":["b","a"]}}}}`)
	eventually(t, time.Minute, "the move is stuck, and is said to be", func() error {
		if got := s.get().Status.Targets; got[1].Blocked == 0 {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
	s.node("b", 100)
	s.settled(0, replicas)
	m.look(func(m *movement) {
		require.GreaterOrEqual(t, m.leastSeen, replicas-unavailable, "ready pods at every moment")
		require.LessOrEqual(t, m.mostSeen, int32(replicas+surge), "replicas at every moment")
		require.Greater(t, len(m.sequence["a"]), 3, "in steps: %v", m.sequence)
	})
}

// brokenTarget: the original's condition and Event, and the others are not
// touched by it.
func brokenTarget(t *testing.T) {
	s := newShop(t, "broken")
	s.node("a", 100)
	s.deployment("a", 2)
	s.balancer(10, func(b *v1alpha1.Balancer) { b.Spec.Policy = proportions(70, 30) })
	const sentence = `ScaleSubresourcePolling: failed to query scale subresource for Deployment/balancing-broken/b: deployments.apps "b" not found`
	eventually(t, time.Minute, "the condition says it", func() error {
		for _, c := range s.get().Status.Conditions {
			if c.Status == metav1.ConditionFalse && c.Reason == "ScaleSubresourcePolling" && c.Message == sentence {
				return nil
			}
		}
		return fmt.Errorf("%+v", s.get().Status)
	})
	eventually(t, time.Minute, "an Event says it", func() error {
		var events corev1.EventList
		if err := s.kube.List(within(t, time.Minute), &events, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Type == corev1.EventTypeWarning && e.Reason == "UnableToBalance" && e.Message == sentence {
				return nil
			}
		}
		return fmt.Errorf("%d events", len(events.Items))
	})
	s.deployment("b", 0)
	s.node("b", 100)
	s.settled(7, 3)
}

// sweepsAreReadable looks at Temporal: what a sweep did stands in its history,
// and one with nothing to do is short.
func sweepsAreReadable(t *testing.T) {
	ctx := within(t, 2*time.Minute)
	var changing, idle *historypb.History
	eventually(t, time.Minute, "sweeps with and without changes", func() error {
		list, err := world.Workflows(ctx, fmt.Sprintf("WorkflowType = %q AND ExecutionStatus = 'Completed'", temporal.WorkflowBalanceReplicas))
		if err != nil {
			return err
		}
		for _, w := range list {
			h, err := world.History(ctx, w.GetExecution().GetWorkflowId(), w.GetExecution().GetRunId())
			if err != nil {
				return err
			}
			if sums := summaries(t, h); len(sums) == 0 {
				idle = h
			} else if changing == nil && strings.Contains(strings.Join(sums, "\n"), "balancing-split/web: a 0→7, b 0→3") {
				changing = h
			}
		}
		if changing == nil || idle == nil {
			return fmt.Errorf("%d sweeps, with changes: %v, idle: %v", len(list), changing != nil, idle != nil)
		}
		return nil
	})
	require.Less(t, len(idle.GetEvents()), 15, "an idle sweep")
	t.Logf("an idle sweep has %d events", len(idle.GetEvents()))
	exportSweep(t, "Idle", idle)
	exportSweep(t, "Changes", changing)
}

// summaries of the activities of a sweep, as the UI shows them.
func summaries(t *testing.T, h *historypb.History) (list []string) {
	t.Helper()
	for _, e := range h.GetEvents() {
		if e.GetEventType() != enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED {
			continue
		}
		var text string
		require.NoError(t, converter.GetDefaultDataConverter().FromPayload(e.GetUserMetadata().GetSummary(), &text))
		list = append(list, text)
	}
	return list
}

// exportSweep writes a golden history for the replay test of
// workflows/balancing into the folder named by BALANCING_GOLDEN.
func exportSweep(t *testing.T, name string, h *historypb.History) {
	dir := os.Getenv("BALANCING_GOLDEN")
	if dir == "" {
		return
	}
	raw, err := temporalproto.CustomJSONMarshalOptions{Indent: " "}.Marshal(h)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, name+"BalanceReplicas.json"), raw, 0o644))
}
