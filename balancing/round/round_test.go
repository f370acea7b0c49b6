package round

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tidbcloud/infra-orchestrator/balancing"
)

// web is a Balancer 30/70 over two Deployments with n and m running pods.
func web(replicas, n, m int32) Input {
	timeout := time.Minute
	in := Input{
		Now: time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC),
		Spec: balancing.Spec{
			Replicas: replicas,
			Targets:  []balancing.Target{{Name: "a"}, {Name: "b"}},
			Policy: balancing.Policy{Name: balancing.PolicyProportional, Proportions: &balancing.Proportions{
				TargetProportions: map[string]int32{"a": 30, "b": 70}}},
		},
		Counting: balancing.Counting{StartupTimeout: &timeout},
		Selector: metav1.LabelSelector{MatchLabels: map[string]string{"srv": "web"}},
		Targets: []Target{
			{Replicas: n, Selector: "app=a", Owner: "Deployment/a"}, {Replicas: m, Selector: "app=b", Owner: "Deployment/b"},
		},
	}
	for range n {
		in.Pods = append(in.Pods, pod("a"))
	}
	for range m {
		in.Pods = append(in.Pods, pod("b"))
	}
	return in
}

func pod(app string) Pod {
	return Pod{
		Labels: map[string]string{"app": app, "srv": "web"}, Owner: "Deployment/" + app,
		Pod: balancing.Pod{Phase: balancing.PodRunning, Ready: true, Ordinal: -1},
	}
}

func TestPlanTellsEachTarget(t *testing.T) {
	in := web(10, 5, 5)
	in.Pods[9].Phase, in.Pods[9].Ready = balancing.PodPending, false
	plan := Make(in)
	// b's blocked pod, and the two that it does not have yet, are placed in a, too.
	want := Plan{
		Observed: true, Replicas: 10, Selector: "srv=web",
		Changes: []balancing.Change{{Target: 0, From: 5, To: 6}, {Target: 1, From: 5, To: 7}},
		Targets: []TargetStatus{
			{Name: "a", Desired: 6, Observed: 5, Ready: 5},
			{Name: "b", Desired: 7, Fallback: 3, Observed: 5, Ready: 4, Blocked: 1},
		},
	}
	if diff := cmp.Diff(want, plan); diff != "" {
		t.Error(diff)
	}
}

func TestSelectorCanAlwaysBeParsed(t *testing.T) {
	web := labels.Set{"srv": "web"}
	for name, c := range map[string]struct {
		selector metav1.LabelSelector
		matches  bool
	}{
		"empty":   {metav1.LabelSelector{}, true},
		"labels":  {metav1.LabelSelector{MatchLabels: web}, true},
		"invalid": {metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "srv", Operator: "Bogus"}}}, false},
	} {
		in := Input{Selector: c.selector}
		selector, err := labels.Parse(Make(in).Selector)
		if err != nil || selector.Empty() || selector.Matches(web) != c.matches {
			t.Errorf("%s: status.selector %q, error %v", name, selector, err)
		}
	}
}

// kubernetes/kubernetes 124307: labels also match pods of somebody else.
func TestPodsAreCountedByOwner(t *testing.T) {
	in := web(2, 1, 1)
	stranger := pod("a")
	stranger.Owner, stranger.Labels = "Deployment/other", map[string]string{"app": "a"}
	in.Pods = append(in.Pods, stranger, pod("b"))
	in.Targets[1].Selector = "" // as a target without a selector: every pod of the namespace
	plan := Make(in)
	if plan.Failure != nil || plan.Replicas != 3 || plan.Targets[0].Observed != 1 || plan.Targets[1].Observed != 2 {
		t.Errorf("plan %+v, failure %v", plan, plan.Failure)
	}
}

func TestInvalidSpecificationChangesNothing(t *testing.T) {
	in := web(10, 1, 1)
	in.Spec.Policy.Proportions.TargetProportions["ghost"] = 5
	plan := Make(in)
	condition := plan.Condition(nil)
	if len(plan.Changes) > 0 || plan.Replicas != 2 || condition.OK || condition.Reason != "SpecValidation" || !strings.Contains(condition.Message, `"ghost"`) {
		t.Errorf("plan %+v, condition %+v", plan, condition)
	}
}

func TestTwoTargetsOfOneObjectAreRefused(t *testing.T) {
	in := web(10, 2, 2)
	in.Targets[1] = in.Targets[0]
	plan := Make(in)
	if condition := plan.Condition(nil); len(plan.Changes) > 0 || !strings.Contains(condition.Message, "Deployment/a") {
		t.Errorf("plan %+v, condition %+v", plan, condition)
	}
}

// The memory of a blocked target holds its fallback while replacements start, and ends with spec.fallback.
func TestHeldTarget(t *testing.T) {
	for name, c := range map[string]struct {
		fallback bool
		want     int32
	}{"fallback": {true, 10}, "no fallback any more": {false, 3}} {
		in := web(10, 0, 7)
		in.Targets[0].Replicas, in.Targets[1].Held = 3, true
		for i := range in.Pods { // young replacements
			in.Pods[i].Phase, in.Pods[i].Ready, in.Pods[i].Created = balancing.PodPending, false, in.Now
		}
		if !c.fallback {
			in.Counting.StartupTimeout = nil
		}
		if got := Make(in).Targets[0].Desired; got != c.want {
			t.Errorf("%s: the other target gets %d, want %d", name, got, c.want)
		}
	}
}

func TestFailedWriteIsTold(t *testing.T) {
	plan := Make(web(10, 5, 5))
	condition := plan.Condition(map[int]error{0: errors.New("conflict on a")})
	want := Condition{Reason: "ReplicaCountSetting", Message: "ReplicaCountSetting: conflict on a"}
	if condition != want {
		t.Errorf("condition %+v, want %+v", condition, want)
	}
	if ok := plan.Condition(nil); !ok.OK || ok.Reason != ReasonCompleted || ok.Message != MessageCompleted {
		t.Errorf("condition %+v", ok)
	}
}

// A defect of ours in one Balancer's round is that Balancer's failure.
func TestPanicIsAFailure(t *testing.T) {
	in := web(10, 5, 5)
	in.Spec.Targets = in.Spec.Targets[:1] // fewer than Targets, against the contract
	in.Targets[1].Selector, in.Selector = "app=b", metav1.LabelSelector{MatchLabels: map[string]string{"srv": "other"}}
	in.Targets[0].Selector = "app=none"
	plan := Make(in)
	if plan.Failure == nil || plan.Failure.Phase != Internal || len(plan.Changes) > 0 {
		t.Errorf("plan %+v", plan)
	}
}

func BenchmarkMakeNothingToDo(b *testing.B) {
	in := web(10, 3, 7)
	b.ReportAllocs()
	for b.Loop() {
		if plan := Make(in); len(plan.Changes) > 0 || plan.Failure != nil {
			b.Fatalf("%+v", plan)
		}
	}
}
