package balancing

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/balancer/v1alpha1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// setReplicas changes a Deployment behind the Balancer's back, live and in the
// cache.
func setReplicas(w *world, name string, n int32) {
	w.cache.workloads["Deployment/default/"+name].(*appsv1.Deployment).Spec.Replicas = &n
	w.scales.add(appsv1.SchemeGroupVersion.WithKind("Deployment"), "default", name, name, n)
}

func TestEnsureBalanced(t *testing.T) {
	w := newWorld(t, 10, 5, 5, nil)
	out, err := w.EnsureBalanced(t.Context(), webRef)
	require.NoError(t, err)
	require.Equal(t, contract.BalancerOutcome{Changed: "b 5→7, a 5→3"}, out)
	require.Equal(t, []string{"web-b 7", "web-a 3"}, w.scales.writes, "grows before it shrinks")
	require.Equal(t, []string{"Normal ReplicasChanged replicas changed: b 5→7, a 5→3"}, w.told())
	b := w.balancer(t)
	require.Equal(t, v1alpha1.BalancerStatus{
		Replicas: 10, Selector: "srv=web", ObservedGeneration: 1,
		Targets: []v1alpha1.BalancerTargetStatus{
			{Name: "a", Desired: 3, Observed: 5, Ready: 5, LastSet: b.Status.Targets[0].LastSet},
			{Name: "b", Desired: 7, Observed: 5, Ready: 5, LastSet: b.Status.Targets[1].LastSet},
		},
		Conditions: []metav1.Condition{{Type: "Balancing", Status: "True", Reason: "Completed", Message: "Balancer running OK",
			ObservedGeneration: 1, LastTransitionTime: b.Status.Conditions[0].LastTransitionTime}},
	}, b.Status)
	require.EqualValues(t, 7, b.Status.Targets[1].LastSet.Replicas)
	require.EqualValues(t, "uid-default-web-b", b.Status.Targets[1].LastSet.UID)
}

// An attempt whose answer was lost did its work: the next one finds it done.
func TestEnsureBalancedTwice(t *testing.T) {
	w := newWorld(t, 10, 5, 5, nil)
	_, err := w.EnsureBalanced(t.Context(), webRef)
	require.NoError(t, err)
	out, err := w.EnsureBalanced(t.Context(), webRef) // the cache still shows 5 and 5
	require.NoError(t, err)
	require.Empty(t, out.Changed)
	require.Len(t, w.scales.writes, 2)
}

const conflicted = `ReplicaCountSetting: Operation cannot be fulfilled on deployments "a"`

// writes are ways in which writing a scale may fail.
var writes = map[string]struct {
	set     func(w *world) func(name string, attempt int) error
	writes  []string
	failure string
}{
	"one fails, the others go on": {
		set: func(*world) func(string, int) error {
			return func(name string, _ int) error {
				if name == "web-b" {
					return errors.New("admission webhook denied the request")
				}
				return nil
			}
		},
		writes: []string{"web-a 3"}, failure: "ReplicaCountSetting: admission webhook denied the request",
	},
	"a conflict with somebody who changed something else": {
		set: func(*world) func(string, int) error {
			return func(_ string, attempt int) error {
				if attempt == 1 {
					return conflict
				}
				return nil
			}
		},
		writes: []string{"web-b 7", "web-a 3"},
	},
	"a conflict with somebody who scaled": {
		set: func(w *world) func(string, int) error {
			return func(name string, attempt int) error {
				if name == "web-b" && attempt == 1 {
					w.scales.add(appsv1.SchemeGroupVersion.WithKind("Deployment"), "default", "web-b", "web-b", 6)
					return conflict
				}
				return nil
			}
		},
		writes: []string{"web-a 3"}, failure: conflicted,
	},
	"a conflict that never ends": {
		set:    func(*world) func(string, int) error { return func(string, int) error { return conflict } },
		writes: nil, failure: conflicted,
	},
	"a panic": {
		set: func(*world) func(string, int) error {
			return func(name string, _ int) error {
				if name == "web-b" {
					panic("boom")
				}
				return nil
			}
		},
		writes: []string{"web-a 3"}, failure: "ReplicaCountSetting: this is a defect of the balancer, report it: boom",
	},
}

func TestWrites(t *testing.T) {
	for name, c := range writes {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 10, 5, 5, nil)
			w.scales.set = c.set(w)
			out, err := w.EnsureBalanced(t.Context(), webRef)
			require.NoError(t, err, "it is the Balancer's failure, not the activity's")
			require.Equal(t, c.writes, w.scales.writes)
			condition := w.balancer(t).Status.Conditions[0]
			if c.failure == "" {
				require.Empty(t, out.Failure)
				require.EqualValues(t, "True", condition.Status)
				return
			}
			require.Contains(t, out.Failure, c.failure)
			require.EqualValues(t, "False", condition.Status)
			require.Equal(t, "ReplicaCountSetting", condition.Reason)
			require.Equal(t, out.Failure, condition.Message)
			require.Contains(t, w.told(), "Warning UnableToBalance "+out.Failure)
		})
	}
}

// spec.replicas is set once, so that GET /scale works; then it is the
// autoscaler's.
func TestDefaultReplicas(t *testing.T) {
	two, one := int32(2), int32(1)
	for name, c := range map[string]struct {
		minA, minB *int32
		want       int32
		changed    string
	}{
		"the sum of the minimums": {&two, &one, 3, "a 0→2, b 0→1"},
		"at least one":            {nil, nil, 1, "b 0→1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 0, 0, 0, func(b *v1alpha1.Balancer) {
				b.Spec.Replicas, b.Spec.Targets[0].MinReplicas, b.Spec.Targets[1].MinReplicas = nil, c.minA, c.minB
			})
			out, err := w.EnsureBalanced(t.Context(), webRef)
			require.NoError(t, err)
			require.Equal(t, c.changed, out.Changed)
			require.Equal(t, c.want, *w.balancer(t).Spec.Replicas)
			require.Zero(t, w.balancer(t).Status.MissingReplicas)
		})
	}
}

func TestGoneBalancer(t *testing.T) {
	w := newWorld(t, 10, 5, 5, nil)
	require.NoError(t, w.client.Delete(t.Context(), w.balancer(t)))
	out, err := w.EnsureBalanced(t.Context(), webRef)
	require.NoError(t, err)
	require.Empty(t, out)
	statuses, err := w.ApplyBalancerStatuses(t.Context(), contract.BalancerStatusesInput{Balancers: []contract.BalancerRef{webRef, {Namespace: "default", Name: "never"}}})
	require.NoError(t, err)
	require.Equal(t, contract.StatusesOutcome{Written: 1}, statuses, "deleted while it was reported")
	require.Empty(t, w.scales.writes)
	require.Empty(t, w.told())
}

func TestStatusWrites(t *testing.T) {
	stale := apierrors.NewConflict(schema.GroupResource{Resource: "balancers"}, "web", errors.New("changed"))
	for name, c := range map[string]struct {
		fail    func(attempt int) error
		written bool
	}{
		"a conflict":                 {func(n int) error { return map[bool]error{true: stale}[n == 1] }, true},
		"a conflict that never ends": {func(int) error { return stale }, false},
		"refused": {func(int) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "balancers"}, "web", errors.New("RBAC"))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 10, 3, 7, nil)
			w.status = c.fail
			out, err := w.ApplyBalancerStatuses(t.Context(), contract.BalancerStatusesInput{Balancers: []contract.BalancerRef{webRef}})
			require.NoError(t, err)
			if c.written {
				require.Equal(t, contract.StatusesOutcome{Written: 1}, out)
				require.Empty(t, w.told())
				return
			}
			require.Equal(t, contract.StatusesOutcome{Failed: 1}, out)
			told := w.told()
			require.Len(t, told, 1)
			require.Contains(t, told[0], "Warning StatusNotUpdated ")
		})
	}
	// Of a change the status is also the memory: the activity is repeated.
	w := newWorld(t, 10, 5, 5, nil)
	w.status = func(int) error { return apierrors.NewInternalError(errors.New("etcd")) }
	_, err := w.EnsureBalanced(t.Context(), webRef)
	require.True(t, faults.As(err).Class.Retryable(), "%v", err)
	require.Len(t, w.scales.writes, 2)
}

func TestLimits(t *testing.T) {
	number := func(n int) *intstr.IntOrString { v := intstr.FromInt(n); return &v }
	part := func(s string) *intstr.IntOrString { v := intstr.FromString(s); return &v }
	for name, c := range map[string]struct {
		r                  *v1alpha1.Rebalancing
		replicas           int32
		surge, unavailable int32 // -99: no limit
	}{
		"none":                  {nil, 10, -99, -99},
		"numbers":               {&v1alpha1.Rebalancing{MaxSurge: number(3), MaxUnavailable: number(0)}, 10, 3, 0},
		"only one":              {&v1alpha1.Rebalancing{MaxSurge: number(3)}, 10, 3, -99},
		"parts":                 {&v1alpha1.Rebalancing{MaxSurge: part("25%"), MaxUnavailable: part("25%")}, 10, 3, 2},
		"parts of few":          {&v1alpha1.Rebalancing{MaxSurge: number(0), MaxUnavailable: part("25%")}, 3, 0, 1},
		"parts of none":         {&v1alpha1.Rebalancing{MaxSurge: part("25%"), MaxUnavailable: part("25%")}, 0, 0, 1},
		"both 0 is left as is":  {&v1alpha1.Rebalancing{MaxSurge: number(0), MaxUnavailable: number(0)}, 10, 0, 0},
		"malformed is refused":  {&v1alpha1.Rebalancing{MaxSurge: part("many"), MaxUnavailable: number(-5)}, 10, -1, -1},
		"parts beyond an int32": {&v1alpha1.Rebalancing{MaxSurge: part("300%")}, 2_000_000_000, 2147483647, -99},
	} {
		t.Run(name, func(t *testing.T) {
			l := limitsOf(c.r, c.replicas)
			value := func(p *int32) int32 {
				if p == nil {
					return -99
				}
				return *p
			}
			require.Equal(t, [2]int32{c.surge, c.unavailable}, [2]int32{value(l.MaxSurge), value(l.MaxUnavailable)})
		})
	}
}
