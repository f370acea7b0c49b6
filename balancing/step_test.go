package balancing

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestStep(t *testing.T) {
	ready := func(n int32) Summary { return Summary{Desired: n, Total: n, Ready: n} }
	for _, c := range []struct {
		name      string
		goal      []int32
		wanted    int64
		summaries []Summary
		limits    Limits
		want      []Change
	}{
		{"nothing to do", []int32{3, 7}, 10, []Summary{ready(3), ready(7)}, Limits{}, nil},
		{"grows before it shrinks", []int32{1, 9, 0, 5}, 15, []Summary{ready(5), ready(5), ready(4), ready(1)}, Limits{},
			[]Change{{1, 5, 9}, {3, 1, 5}, {0, 5, 1}, {2, 4, 0}}},
		{"surge is shared in order", []int32{0, 5, 5}, 10, []Summary{ready(10), {}, {}}, Limits{MaxSurge: pointer(6), MaxUnavailable: pointer(0)},
			[]Change{{1, 0, 5}, {2, 0, 1}}},
		{"a larger total is no move", []int32{10, 10}, 20, []Summary{ready(5), ready(5)}, Limits{MaxSurge: pointer(1), MaxUnavailable: pointer(0)},
			[]Change{{0, 5, 10}, {1, 5, 10}}},
		{"a smaller total is no move", []int32{2, 2}, 4, []Summary{ready(5), ready(5)}, Limits{MaxSurge: pointer(1), MaxUnavailable: pointer(0)},
			[]Change{{0, 5, 2}, {1, 5, 2}}},
		{"shrinks by what is ready elsewhere", []int32{0, 10}, 10, []Summary{ready(10), {Desired: 10, Total: 10, Ready: 4}}, Limits{MaxUnavailable: pointer(1)},
			[]Change{{0, 10, 5}}},
		{"unready ones may always go", []int32{3, 7}, 10, []Summary{{Desired: 10, Total: 10, Ready: 3}, {Desired: 7, Total: 7, Ready: 2}}, Limits{MaxUnavailable: pointer(0)},
			[]Change{{0, 10, 3}}},
		{"but not if ready ones are above them", []int32{3, 7}, 10,
			[]Summary{{Desired: 10, Total: 10, Ready: 9, UnreadyOrdinals: []int32{0}, Ordered: true}, {Desired: 7, Total: 7, Ready: 2}}, Limits{MaxUnavailable: pointer(0)},
			[]Change{{0, 10, 9}}},
		{"the highest ordinals are unready", []int32{3, 7}, 10,
			[]Summary{{Desired: 10, Total: 10, Ready: 7, UnreadyOrdinals: []int32{7, 8, 9}, Ordered: true}, {Desired: 7, Total: 7, Ready: 3}}, Limits{MaxUnavailable: pointer(0)},
			[]Change{{0, 10, 7}}},
		{"a blocked target is probed", []int32{10, 10}, 10, []Summary{ready(10), {Desired: 2, Total: 2, Blocked: 2}}, Limits{MaxSurge: pointer(3), MaxUnavailable: pointer(0)},
			[]Change{{1, 2, 3}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Step(c.goal, c.wanted, c.summaries, c.limits)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCount(t *testing.T) {
	after := time.Minute
	old := Pod{Phase: PodPending, Created: epoch.Add(-time.Hour), Ordinal: -1}
	pods := []Pod{
		{Phase: PodRunning, Ready: true, Ordinal: 0},
		{Phase: PodRunning, Ordinal: 2},
		{Phase: PodRunning, Ready: true, Terminating: true, Ordinal: 1},
		old,
		{Phase: PodPending, Created: epoch.Add(-time.Minute), Ordinal: -1}, // exactly the timeout: not yet
		{Phase: PodPending, Created: epoch.Add(-time.Hour), Terminating: true, Ordinal: -1},
		{Phase: "Succeeded", Ordinal: -1}, {Phase: "Failed", Ordinal: -1}, {Phase: "Unknown", Ordinal: -1},
	}
	want := Summary{Total: 6, Running: 3, Ready: 1, Blocked: 1, UnreadyOrdinals: []int32{1, 2}}
	if diff := cmp.Diff(want, Count(pods, epoch, Counting{StartupTimeout: &after})); diff != "" {
		t.Error(diff)
	}
	if s := Count([]Pod{old}, epoch, Counting{}); s.Blocked != 0 {
		t.Error("a pod is blocked without a startup timeout")
	}
}

func TestValidate(t *testing.T) {
	valid := func() (Spec, Limits, Options) {
		spec := byWeight(10, []string{"a", "b"}, 30, 70)
		spec.Policy.Priorities = &Priorities{TargetOrder: []string{"a", "b"}}
		return spec, Limits{MaxSurge: pointer(1), MaxUnavailable: pointer(0)}, Options{Rounding: SainteLague, TieBreak: TieBreakHash}
	}
	for _, c := range []struct {
		code, names string
		spoil       func(*Spec, *Limits, *Options)
	}{
		{"", "", func(*Spec, *Limits, *Options) {}},
		{"", "", func(s *Spec, _ *Limits, _ *Options) { s.Policy.Proportions = nil }},
		{DuplicateTarget, `"a"`, func(s *Spec, _ *Limits, _ *Options) { s.Targets = append(s.Targets, Target{Name: "a"}) }},
		{MinExceedsMax, `"a"`, func(s *Spec, _ *Limits, _ *Options) { s.Targets[0].Min, s.Targets[0].Max = 5, pointer(3) }},
		{NegativeReplicas, `"a"`, func(s *Spec, _ *Limits, _ *Options) { s.Targets[0].Min = -1 }},
		{NegativeReplicas, "-1", func(s *Spec, _ *Limits, _ *Options) { s.Replicas = -1 }},
		{TooManyReplicas, "4294967294", func(s *Spec, _ *Limits, _ *Options) { s.Targets[0].Min, s.Targets[1].Min = 1<<31-1, 1<<31-1 }},
		{UnknownTarget, `"ghost"`, func(s *Spec, _ *Limits, _ *Options) { s.Policy.Proportions.TargetProportions["ghost"] = 1 }},
		{NegativeWeight, `"a"`, func(s *Spec, _ *Limits, _ *Options) { s.Policy.Proportions.TargetProportions["a"] = -1 }},
		{NoPositiveWeight, "", func(s *Spec, _ *Limits, _ *Options) {
			s.Policy.Proportions.TargetProportions = map[string]int32{"a": 0}
		}},
		{UnknownTarget, `"ghost"`, func(s *Spec, _ *Limits, _ *Options) {
			s.Policy.Name, s.Policy.Priorities.TargetOrder = PolicyPriority, []string{"a", "ghost"}
		}},
		{DuplicateOrder, `"a"`, func(s *Spec, _ *Limits, _ *Options) {
			s.Policy.Name, s.Policy.Priorities.TargetOrder = PolicyPriority, []string{"a", "a"}
		}},
		{NoProgress, "", func(_ *Spec, l *Limits, _ *Options) { l.MaxSurge = pointer(0) }},
		{UnknownOption, "banzhaf", func(_ *Spec, _ *Limits, o *Options) { o.Rounding = "banzhaf" }},
		{UnknownOption, "coin", func(_ *Spec, _ *Limits, o *Options) { o.TieBreak = "coin" }},
	} {
		t.Run(c.code+c.names, func(t *testing.T) {
			spec, limits, options := valid()
			c.spoil(&spec, &limits, &options)
			problems := Validate(spec, limits, options)
			switch {
			case c.code == "" && len(problems) > 0:
				t.Errorf("found %+v in a valid Balancer", problems)
			case c.code != "" && (len(problems) != 1 || problems[0].Code != c.code || !strings.Contains(Sentences(problems), c.names)):
				t.Errorf("found %+v, want one %s that tells %s", problems, c.code, c.names)
			}
		})
	}
}

func TestDefaultReplicas(t *testing.T) {
	for want, targets := range map[int32][]Target{3: {{Name: "a", Min: 2}, {Name: "b", Min: 1}}, 1: {{Name: "a"}, {Name: "b"}}} {
		if got := DefaultReplicas(targets); got != want {
			t.Errorf("DefaultReplicas(%+v) = %d, want %d", targets, got, want)
		}
	}
}
