package balancing

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/balancer/v1alpha1"
)

var webRef = contract.BalancerRef{Namespace: "default", Name: "web"}

func (w *world) planned(t *testing.T) contract.BalancersPlan {
	t.Helper()
	plan, err := w.PlanBalancers(t.Context(), contract.PlanBalancersInput{})
	require.NoError(t, err)
	return plan
}

func TestPlanBalancers(t *testing.T) {
	for name, c := range map[string]struct {
		n, m   int32
		change func(*v1alpha1.Balancer)
		want   contract.BalancersPlan
		event  string
	}{
		"a change": {n: 5, m: 5, want: contract.BalancersPlan{Looked: 1,
			Changes: []contract.BalancerChange{{BalancerRef: webRef, Summary: "b 5→7, a 5→3"}}}},
		"only the status is new": {n: 3, m: 7, want: contract.BalancersPlan{Looked: 1, Reports: []contract.BalancerRef{webRef}}},
		"no replicas yet": {n: 1, m: 0, change: func(b *v1alpha1.Balancer) { b.Spec.Replicas = nil },
			want: contract.BalancersPlan{Looked: 1, Changes: []contract.BalancerChange{{BalancerRef: webRef, Summary: "replicas 1"}}}},
		"a target is missing": {n: 5, m: 5, change: func(b *v1alpha1.Balancer) { b.Spec.Targets[0].ScaleTargetRef.Name = "gone" },
			want:  contract.BalancersPlan{Looked: 1, Failing: 1, Reports: []contract.BalancerRef{webRef}},
			event: `Warning UnableToBalance ScaleSubresourcePolling: failed to query scale subresource for Deployment/default/gone: deployments.apps "gone" not found`},
		"an invalid specification": {n: 5, m: 5, change: func(b *v1alpha1.Balancer) { b.Spec.Policy.Proportions.TargetProportions["ghost"] = 1 },
			want:  contract.BalancersPlan{Looked: 1, Failing: 1, Reports: []contract.BalancerRef{webRef}},
			event: `Warning UnableToBalance SpecValidation: targetProportions names "ghost", which is not a target: remove it or add the target.`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 10, c.n, c.m, c.change)
			require.Equal(t, c.want, w.planned(t))
			if c.event == "" {
				require.Empty(t, w.told())
			} else {
				require.Equal(t, []string{c.event}, w.told())
			}
			require.Empty(t, w.scales.writes, "a plan changes nothing")
		})
	}
}

// Once the status is written there is nothing left to do, and nothing is asked
// live: the caches have all.
func TestNothingToDo(t *testing.T) {
	w := newWorld(t, 10, 3, 7, nil)
	_, err := w.ApplyBalancerStatuses(t.Context(), contract.BalancerStatusesInput{Balancers: []contract.BalancerRef{webRef}})
	require.NoError(t, err)
	w.sync(t)
	require.Equal(t, contract.BalancersPlan{Looked: 1}, w.planned(t))
	require.Zero(t, w.scales.reads)
	require.Equal(t, 1, w.writes)
}

func counted(t *testing.T, c prometheus.Counter) float64 {
	t.Helper()
	var m dto.Metric
	require.NoError(t, c.Write(&m))
	return m.GetCounter().GetValue()
}

// A panic at one Balancer, in our code or below, is its own failure.
func TestPanicIsIsolated(t *testing.T) {
	w := newWorld(t, 10, 5, 5, nil)
	w.Metrics, _ = NewMetrics(prometheus.NewRegistry())
	bad := web("aaa", 10) // before the other one, and with a kind that is read live
	bad.Spec.Targets[0].ScaleTargetRef.APIVersion, bad.Spec.Targets[0].ScaleTargetRef.Name = "example.com/v1", "boom"
	w.scales.get = func(name string) error {
		if name == "boom" {
			panic("nil map")
		}
		return nil
	}
	broken := web("bbb", 10)
	broken.Spec.Targets = nil // against the schema
	w.cache.balancers = append(w.cache.balancers, bad, broken)
	plan := w.planned(t)
	require.Equal(t, 2, plan.Failing)
	require.Equal(t, []contract.BalancerChange{{BalancerRef: webRef, Summary: "b 5→7, a 5→3"}}, plan.Changes)
	require.Contains(t, fmt.Sprint(w.told()), "this is a defect of the balancer, report it: nil map")
	require.EqualValues(t, 1, counted(t, w.Metrics.failures.WithLabelValues("ScaleSubresourcePolling")))
	require.EqualValues(t, 3, counted(t, w.Metrics.looked))
}

// Scales of kinds that are not cached are read live, each once.
func TestLiveReadsAreBatched(t *testing.T) {
	w := newWorld(t, 10, 0, 0, func(b *v1alpha1.Balancer) {
		for i := range b.Spec.Targets {
			b.Spec.Targets[i].ScaleTargetRef.APIVersion, b.Spec.Targets[i].ScaleTargetRef.Kind = "example.com/v1", "Widget"
		}
	})
	widget := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	w.scales.add(widget, "default", "web-a", "web-a", 1)
	w.scales.add(widget, "default", "web-b", "web-b", 1)
	second := w.cache.balancers[0].DeepCopy()
	second.Name = "web2"
	w.cache.balancers = append(w.cache.balancers, second)
	require.Len(t, w.planned(t).Changes, 2)
	require.Equal(t, 2, w.scales.reads)
}

// Kinds whose API hangs are the failure of those who use them.
func TestHangingReadsAreBounded(t *testing.T) {
	w := newWorld(t, 10, 5, 5, nil)
	bad := web("aaa", 10)
	bad.Spec.Targets[0].ScaleTargetRef.APIVersion, bad.Spec.Targets[0].ScaleTargetRef.Name = "example.com/v1", "stuck"
	w.scales.hangs = "stuck"
	w.cache.balancers = append(w.cache.balancers, bad)
	s := w.look(t.Context(), w.cache.balancers[:1])
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond) // in the place of prefetchTimeout
	defer cancel()
	s.targets.prefetch(ctx, w.scales, w.cache.balancers)
	var out contract.BalancersPlan
	for _, b := range w.cache.balancers {
		w.consider(s, b, &out)
	}
	require.Equal(t, 1, out.Failing)
	require.Equal(t, []contract.BalancerChange{{BalancerRef: webRef, Summary: "b 5→7, a 5→3"}}, out.Changes)
	require.Contains(t, fmt.Sprint(w.told()), "Deployment/aaa/stuck: context deadline exceeded")
}

// More than fits into one plan goes on where it ended; nobody is left out.
func TestPlanPages(t *testing.T) {
	w := newWorld(t, 10, 5, 5, nil)
	w.cache.balancers = nil
	for i := range 2*contract.MaxPlannedChanges + 1 {
		b := web("default", 10)
		b.Name = fmt.Sprintf("web-%04d", i)
		w.cache.balancers = append(w.cache.balancers, b)
	}
	seen := map[string]bool{}
	in, pages := contract.PlanBalancersInput{}, 0
	for {
		plan, err := w.PlanBalancers(t.Context(), in)
		require.NoError(t, err)
		require.LessOrEqual(t, len(plan.Changes), contract.MaxPlannedChanges)
		for _, c := range plan.Changes {
			require.False(t, seen[c.String()], "twice: %s", c)
			seen[c.String()] = true
		}
		pages++
		if in.After = plan.Next; in.After == "" {
			break
		}
	}
	require.Len(t, seen, 2*contract.MaxPlannedChanges+1)
	require.Equal(t, 3, pages)
}

// The memory of who is held goes through the status, and survives a round that
// cannot see.
func TestHeldByTheStatus(t *testing.T) {
	timeout := func(b *v1alpha1.Balancer) {
		b.Spec.Policy.PolicyName = "priority"
		b.Spec.Policy.Priorities = &v1alpha1.PriorityPolicy{TargetOrder: []string{"a", "b"}}
		b.Spec.Policy.Fallback = &v1alpha1.Fallback{StartupTimeoutSeconds: 60}
	}
	w := newWorld(t, 10, 3, 0, timeout)
	// a wants 10 and has 3: 7 pods are pending for too long.
	rs := w.cache.workloads["ReplicaSet/default/web-a-1"]
	ten := int32(10)
	setReplicas(w, "web-a", ten)
	for i := range 7 {
		w.cache.pod(rs, "ReplicaSet", fmt.Sprintf("late-%d", i), "web-a", pending(2*time.Minute))
	}
	out, err := w.EnsureBalanced(t.Context(), webRef)
	require.NoError(t, err)
	require.Equal(t, "b 0→7", out.Changed)
	status := w.balancer(t).Status
	require.Equal(t, v1alpha1.BalancerTargetStatus{Name: "a", Desired: 10, Observed: 10, Ready: 3, Blocked: 7, Fallback: 7}, status.Targets[0])

	// The pods are replaced: young, hence not blocked. Only the memory knows.
	for _, p := range w.cache.pods["default"] {
		p.CreationTimestamp = metav1.NewTime(start)
	}
	w.cache.deployment("default", "web-b", 7, 7)
	w.sync(t)
	require.Empty(t, w.planned(t).Changes, "b keeps its duplicates")

	w.scales.get = func(string) error { return errors.New("away") }
	out, err = w.EnsureBalanced(t.Context(), webRef)
	require.NoError(t, err)
	require.Contains(t, out.Failure, "ScaleSubresourcePolling: away")
	require.EqualValues(t, 7, w.balancer(t).Status.Targets[0].Fallback)
}
