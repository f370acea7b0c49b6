package balancing

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// simulation is a small model of Deployments with a Balancer over them: every second pods start while their target
// has capacity, every period there is a round.
type simulation struct {
	t        *testing.T
	spec     Spec
	limits   Limits
	counting Counting
	capacity []int32 // how many pods of each target can run
	targets  []simulated
	second   int
	// history of the scales, one entry a round in which something changed.
	history [][]int32
	// watch is called every second with the number of ready pods and of pods wanted by all scales.
	watch func(ready, scaled int64)
}

type simulated struct {
	scale int32
	pods  []Pod
	held  bool
}

const (
	period  = 15
	timeout = 60 * time.Second
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newSimulation(t *testing.T, spec Spec) *simulation {
	after := timeout
	s := &simulation{t: t, spec: spec, counting: Counting{StartupTimeout: &after}, targets: make([]simulated, len(spec.Targets))}
	for range spec.Targets {
		s.capacity = append(s.capacity, 1_000_000)
	}
	return s
}

func (s *simulation) now() time.Time { return epoch.Add(time.Duration(s.second) * time.Second) }

// until runs to a time in seconds.
func (s *simulation) until(second int) {
	for ; s.second < second; s.second++ {
		for i := range s.targets {
			s.targets[i].run(s.capacity[i], s.now())
		}
		if s.second%period == 0 {
			s.round()
		}
		if s.watch != nil {
			var ready, scaled int64
			for _, target := range s.targets {
				ready += int64(target.ready())
				scaled += int64(target.scale)
			}
			s.watch(ready, scaled)
		}
	}
}

// run is what the controller and the scheduler of a target do within a second.
func (d *simulated) run(capacity int32, now time.Time) {
	for int32(len(d.pods)) < d.scale {
		d.pods = append(d.pods, Pod{Phase: PodPending, Created: now, Ordinal: -1})
	}
	slices.SortStableFunc(d.pods, func(a, b Pod) int { // unready ones go first, so they are last
		switch {
		case a.Ready == b.Ready:
			return 0
		case a.Ready:
			return -1
		}
		return 1
	})
	d.pods = d.pods[:d.scale]
	for i := range d.pods {
		if d.ready() < capacity && !d.pods[i].Ready && now.Sub(d.pods[i].Created) >= time.Second {
			d.pods[i].Phase, d.pods[i].Ready = PodRunning, true
		}
	}
}

func (d *simulated) ready() (n int32) {
	for _, p := range d.pods {
		if p.Ready {
			n++
		}
	}
	return n
}

func (s *simulation) round() {
	summaries := make([]Summary, len(s.targets))
	for i := range s.targets {
		summaries[i] = Count(s.targets[i].pods, s.now(), s.counting)
		summaries[i].Desired, summaries[i].Held = s.targets[i].scale, s.targets[i].held
	}
	placement := place(s.t, s.spec, summaries, Options{})
	wanted, err := Wanted(s.spec, Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	changes := Step(placement.Replicas, wanted, summaries, s.limits)
	for _, c := range changes {
		s.targets[c.Target].scale = c.To
	}
	for i := range s.targets {
		s.targets[i].held = placement.Fallback[i] > 0
	}
	if len(changes) > 0 {
		s.history = append(s.history, s.scales())
	}
}

func (s *simulation) scales() (scales []int32) {
	for _, target := range s.targets {
		scales = append(scales, target.scale)
	}
	return scales
}

func (s *simulation) expect(ready int64, scales ...int32) {
	s.t.Helper()
	var got int64
	for _, target := range s.targets {
		got += int64(target.ready())
	}
	if got != ready || !slices.Equal(s.scales(), scales) {
		s.t.Errorf("at %d s: scales %v with %d ready, want %v with %d\nhistory %v", s.second, s.scales(), got, scales, ready, s.history)
	}
}

func byPriority(replicas int32, order ...string) Spec {
	spec := Spec{Replicas: replicas, Policy: Policy{Name: PolicyPriority, Priorities: &Priorities{TargetOrder: order}}}
	for _, name := range slices.Sorted(slices.Values(order)) {
		spec.Targets = append(spec.Targets, Target{Name: name})
	}
	return spec
}

func byWeight(replicas int32, names []string, weights ...int32) Spec {
	spec := Spec{Replicas: replicas, Policy: Policy{Name: PolicyProportional, Proportions: &Proportions{TargetProportions: map[string]int32{}}}}
	for i, name := range names {
		spec.Targets = append(spec.Targets, Target{Name: name})
		spec.Policy.Proportions.TargetProportions[name] = weights[i]
	}
	return spec
}

func pointer(n int32) *int32 { return &n }

// A blocked target falls back, and gets its replicas back once they run.
func TestFallbackAndRecovery(t *testing.T) {
	s := newSimulation(t, byPriority(10, "a", "b"))
	s.capacity[0] = 3
	s.until(74)
	s.expect(3, 10, 0)
	s.until(240)
	s.expect(10, 10, 7)
	s.capacity[0] = 10
	s.until(300)
	s.expect(10, 10, 0)
}

// Growth while a target is blocked moves the fallback up once and never down.
func TestNoFlapping(t *testing.T) {
	for name, limits := range map[string]Limits{
		"unlimited": {}, "wide": {MaxSurge: pointer(20), MaxUnavailable: pointer(0)}, "narrow": {MaxSurge: pointer(1), MaxUnavailable: pointer(0)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSimulation(t, byPriority(10, "a", "b"))
			s.limits = limits
			s.capacity[0] = 3
			s.until(300)
			s.spec.Replicas = 14
			low := s.targets[1].scale
			s.watch = func(int64, int64) {
				if s.targets[1].scale < low {
					t.Fatalf("at %d s: b fell from %d to %d", s.second, low, s.targets[1].scale)
				}
				low = s.targets[1].scale
			}
			s.until(600)
			if got := s.targets[0].ready() + s.targets[1].ready(); got != 14 || s.targets[1].scale != 11 {
				t.Fatalf("scales %v with %d ready, want 11 in b and 14 ready\nhistory %v", s.scales(), got, s.history)
			}

			s.capacity[0] = 1000
			s.watch = func(ready, _ int64) {
				if ready < 14 {
					t.Fatalf("at %d s: %d ready: b shrank before a's pods were", s.second, ready)
				}
			}
			s.until(1000)
			s.expect(14, 14, 0)
		})
	}
}

// The same with weights.
func TestProportionalFallback(t *testing.T) {
	s := newSimulation(t, byWeight(10, []string{"a", "b"}, 50, 50))
	s.capacity[0] = 2
	s.until(300)
	s.expect(10, 5, 8)
	if len(s.history) != 2 {
		t.Errorf("history %v, want the split and one fallback", s.history)
	}
}

// What cannot run anywhere is reported as overflow or blocked and does not oscillate.
func TestNowhereToFallBack(t *testing.T) {
	s := newSimulation(t, byPriority(10, "a", "b"))
	s.capacity = []int32{3, 4}
	s.until(600)
	s.expect(7, 10, 7)
	if len(s.history) != 2 {
		t.Errorf("history %v, want the split and one fallback", s.history)
	}
}

// Flipping the order moves 100 replicas to a target whose nodes need two minutes. The running ones
// never go below the limit, and never more than the surge exist.
func TestEasedFlip(t *testing.T) {
	for _, c := range []struct {
		name                     string
		maxSurge, maxUnavailable int32
	}{{"both", 10, 10}, {"surge only", 10, 0}, {"one by one", 1, 0}, {"unavailable only", 0, 5}, {"all at once", 100, 0}} {
		t.Run(c.name, func(t *testing.T) {
			s := newSimulation(t, byPriority(100, "a", "b"))
			s.until(60)
			s.expect(100, 100, 0)
			s.limits = Limits{MaxSurge: &c.maxSurge, MaxUnavailable: &c.maxUnavailable}
			s.spec.Policy.Priorities.TargetOrder = []string{"b", "a"}
			s.capacity[1] = 0
			s.watch = func(ready, scaled int64) {
				if ready < 100-int64(c.maxUnavailable) || scaled > 100+int64(c.maxSurge) {
					t.Fatalf("at %d s: %d ready of %d\nhistory %v", s.second, ready, scaled, s.history)
				}
			}
			s.until(180)
			s.capacity[1] = 1_000_000
			s.until(180 + 4000)
			s.expect(100, 0, 100)
		})
	}
}

// Without limits the flip is the original's: everything in one round.
func TestUnlimitedFlipIsOneRound(t *testing.T) {
	s := newSimulation(t, byPriority(100, "a", "b"))
	s.until(60)
	s.capacity[1] = 0
	s.spec.Policy.Priorities.TargetOrder = []string{"b", "a"}
	s.until(76)
	s.expect(0, 0, 100)
}

// Pods that run and never become ready, by option.
func TestUnavailablePods(t *testing.T) {
	after, hour := timeout, epoch.Add(-time.Hour)
	broken := Pod{Phase: PodRunning, Created: hour, NotReadySince: hour, Ordinal: -1}
	for scope, want := range map[BlockedScope][]int32{"": {1, 3}, BlockedUnavailable: {4, 3}} {
		b := Count([]Pod{broken, broken, broken}, epoch, Counting{StartupTimeout: &after, Scope: scope})
		if got := place(t, byWeight(4, []string{"a", "b"}, 30, 70), []Summary{{}, b}, Options{}); !slices.Equal(got.Replicas, want) {
			t.Errorf("scope %q: %v, want %v", scope, got.Replicas, want)
		}
	}
}

// Ties are spread over many Balancers.
func TestHashedTies(t *testing.T) {
	first := 0
	for i := range 100 {
		o := Options{TieBreak: TieBreakHash, Seed: "default/web-" + string(rune('0'+i/10)) + string(rune('0'+i%10))}
		p := place(t, byWeight(1, []string{"a", "b"}, 50, 50), nil, o)
		first += int(p.Replicas[0])
	}
	if first < 30 || first > 70 {
		t.Errorf("%d of 100 Balancers chose the first target", first)
	}
}

// Shares that D'Hondt gives, and those that it does not.
func TestRoundings(t *testing.T) {
	for _, c := range []struct {
		replicas int32
		weights  []int32
		want     map[Rounding][]int32
	}{
		{5, []int32{60, 30, 10}, map[Rounding][]int32{DHondt: {4, 1, 0}, SainteLague: {3, 2, 0}, LargestRemainder: {3, 2, 0}}},
		{2, []int32{30, 70}, map[Rounding][]int32{DHondt: {0, 2}, SainteLague: {1, 1}, LargestRemainder: {1, 1}}},
		{2, []int32{2, 1}, map[Rounding][]int32{DHondt: {2, 0}, SainteLague: {1, 1}, LargestRemainder: {1, 1}}},
		{6, []int32{170, 110, 60}, map[Rounding][]int32{DHondt: {3, 2, 1}, SainteLague: {3, 2, 1}, LargestRemainder: {3, 2, 1}}},
		{32, []int32{18, 10, 5, 3}, map[Rounding][]int32{DHondt: {17, 9, 4, 2}, SainteLague: {16, 9, 4, 3}, LargestRemainder: {16, 9, 4, 3}}},
	} {
		for rounding, want := range c.want {
			spec := byWeight(c.replicas, []string{"a", "b", "c", "d"}[:len(c.weights)], c.weights...)
			if got := place(t, spec, nil, Options{Rounding: rounding}); !slices.Equal(got.Replicas, want) {
				t.Errorf("%s of %v with %d: %v, want %v", rounding, c.weights, c.replicas, got.Replicas, want)
			}
		}
	}
}

// From any split to any other of the same total, over targets that are slow to start: the steps end at the goal, and
// neither limit is broken on the way; replicas that stand in for blocked ones come on top of the surge.
func TestStepsConverge(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		spec, _ := random(r, PolicyProportional, false)
		spec.Replicas %= 40
		s := newSimulation(t, spec)
		s.until(45)
		surge, unavailable := r.Int32N(4), r.Int32N(4)
		if surge+unavailable == 0 {
			surge = 1
		}
		s.limits = Limits{MaxSurge: &surge, MaxUnavailable: &unavailable}
		weights := map[string]int32{}
		for name := range spec.Policy.Proportions.TargetProportions {
			weights[name] = 1 + r.Int32N(100)
		}
		s.spec.Policy.Proportions = &Proportions{TargetProportions: weights}
		slow := r.IntN(len(s.capacity))
		s.capacity[slow] = s.targets[slow].scale
		blocked := int64(0) // at most, so far
		s.watch = func(ready, scaled int64) {
			now := int64(0)
			for _, target := range s.targets {
				now += int64(Count(target.pods, s.now(), s.counting).Blocked)
			}
			blocked = max(blocked, now)
			if ready < int64(spec.Replicas-unavailable) || scaled > int64(spec.Replicas+surge)+blocked {
				t.Fatalf("at %d s: %d ready of %d, %d wanted, surge %d, unavailable %d\nhistory %v",
					s.second, ready, scaled, spec.Replicas, surge, unavailable, s.history)
			}
		}
		s.until(45 + r.IntN(200))
		s.capacity[slow] = 1_000_000
		s.until(45 + 200 + 100*period)
		s.expect(int64(spec.Replicas), place(t, s.spec, nil, Options{}).Replicas...)
		if t.Failed() {
			return
		}
	}
}
