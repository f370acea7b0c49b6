package balancing

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

// random makes a valid specification and summaries. Without bounds, targets have neither Min nor Max.
func random(r *rand.Rand, policy string, bounds bool) (Spec, []Summary) {
	n := 1 + r.IntN(7)
	spec := Spec{Replicas: r.Int32N([]int32{3, 20, 1000, 2_000_000}[r.IntN(4)]), Policy: Policy{Name: policy}}
	weights, order := map[string]int32{}, []string{}
	summaries := make([]Summary, n)
	for i := range n {
		t := Target{Name: fmt.Sprintf("t%d", i)}
		if bounds && r.IntN(2) == 0 {
			t.Min = r.Int32N(spec.Replicas/int32(n) + 3)
		}
		if bounds && r.IntN(2) == 0 {
			limit := t.Min + r.Int32N(spec.Replicas+2)
			t.Max = &limit
		}
		spec.Targets = append(spec.Targets, t)
		weights[t.Name] = 1 + r.Int32N([]int32{3, 100, 1 << 20}[r.IntN(3)])
		order = append(order, t.Name)
		total := r.Int32N(spec.Replicas + 5)
		summaries[i] = Summary{Total: total, Ready: total}
		if r.IntN(3) == 0 {
			summaries[i].Blocked = r.Int32N(total + 1)
			summaries[i].Ready = total - summaries[i].Blocked
		}
	}
	r.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
	spec.Policy.Priorities = &Priorities{TargetOrder: order}
	spec.Policy.Proportions = &Proportions{TargetProportions: weights}
	return spec, summaries
}

func place(t testing.TB, spec Spec, summaries []Summary, o Options) Placement {
	t.Helper()
	p, err := Place(spec, summaries, o)
	if err != nil {
		t.Fatalf("%+v: %v", spec, err)
	}
	return p
}

func sum(replicas []int32) (total int64) {
	for _, n := range replicas {
		total += int64(n)
	}
	return total
}

var roundings = []Rounding{DHondt, SainteLague, LargestRemainder}

// each calls check with many random inputs under every policy, rounding and tie-break.
func each(t *testing.T, bounds bool, check func(t *testing.T, r *rand.Rand, spec Spec, summaries []Summary, o Options)) {
	for _, policy := range []string{PolicyPriority, PolicyProportional} {
		for _, rounding := range roundings {
			for _, tie := range []TieBreak{TieBreakName, TieBreakHash} {
				if policy == PolicyPriority && (rounding != DHondt || tie != TieBreakName) {
					continue
				}
				t.Run(fmt.Sprint(policy, rounding, tie), func(t *testing.T) {
					r := rand.New(rand.NewPCG(1, 2))
					for range 2000 {
						spec, summaries := random(r, policy, bounds)
						if t.Failed() {
							return
						}
						check(t, r, spec, summaries, Options{Rounding: rounding, TieBreak: tie, Seed: "ns/b"})
					}
				})
			}
		}
	}
}

// The bounds hold, also with fallback.
func TestPropertyBounds(t *testing.T) {
	each(t, true, func(t *testing.T, _ *rand.Rand, spec Spec, summaries []Summary, o Options) {
		p := place(t, spec, summaries, o)
		for i, target := range spec.Targets {
			if p.Replicas[i] < target.Min || target.Max != nil && p.Replicas[i] > *target.Max {
				t.Errorf("%+v: target %d has %d", spec, i, p.Replicas[i])
			}
		}
	})
}

// Without blocked pods nothing is lost and nothing invented.
func TestPropertySum(t *testing.T) {
	each(t, true, func(t *testing.T, _ *rand.Rand, spec Spec, _ []Summary, o Options) {
		p := place(t, spec, nil, o)
		if sum(p.Replicas) != int64(spec.Replicas)+int64(p.Missing)-int64(p.Overflow) {
			t.Errorf("%+v: %+v", spec, p)
		}
	})
}

// A target never loses a replica because the total grows. Largest remainder does not promise it.
func TestPropertyHouseMonotone(t *testing.T) {
	each(t, true, func(t *testing.T, _ *rand.Rand, spec Spec, _ []Summary, o Options) {
		if o.Rounding == LargestRemainder {
			return
		}
		before := place(t, spec, nil, o)
		spec.Replicas++
		after := place(t, spec, nil, o)
		for i := range spec.Targets {
			if after.Replicas[i] < before.Replicas[i] {
				t.Errorf("%+v: %v then %v", spec, before.Replicas, after.Replicas)
			}
		}
	})
}

// The order of the targets does not matter.
func TestPropertyOrderOfTargets(t *testing.T) {
	each(t, true, func(t *testing.T, r *rand.Rand, spec Spec, summaries []Summary, o Options) {
		before := place(t, spec, summaries, o)
		shuffled, other := spec, make([]Summary, len(summaries))
		shuffled.Targets = slices.Clone(spec.Targets)
		permutation := r.Perm(len(spec.Targets))
		for to, from := range permutation {
			shuffled.Targets[to], other[to] = spec.Targets[from], summaries[from]
		}
		after := place(t, shuffled, other, o)
		for to, from := range permutation {
			if after.Replicas[to] != before.Replicas[from] {
				t.Errorf("%+v: %v, shuffled %v: %v", spec, before.Replicas, permutation, after.Replicas)
			}
		}
	})
}

// Only the ratio of the weights matters.
func TestPropertyScaledWeights(t *testing.T) {
	each(t, true, func(t *testing.T, r *rand.Rand, spec Spec, summaries []Summary, o Options) {
		before := place(t, spec, summaries, o)
		factor, scaled := 1+r.Int32N(1000), map[string]int32{}
		for name, w := range spec.Policy.Proportions.TargetProportions {
			scaled[name] = w * factor
		}
		spec.Policy.Proportions = &Proportions{TargetProportions: scaled}
		if after := place(t, spec, summaries, o); !slices.Equal(before.Replicas, after.Replicas) {
			t.Errorf("%+v: %v, times %d: %v", spec, before.Replicas, factor, after.Replicas)
		}
	})
}

// Fallback only adds.
func TestPropertyFallbackOnlyAdds(t *testing.T) {
	each(t, true, func(t *testing.T, _ *rand.Rand, spec Spec, summaries []Summary, o Options) {
		with, without := place(t, spec, summaries, o), place(t, spec, nil, o)
		for i := range spec.Targets {
			if with.Replicas[i] < without.Replicas[i] {
				t.Errorf("%+v %+v: %v, without blocked pods %v", spec, summaries, with.Replicas, without.Replicas)
			}
		}
	})
}

// Without bounds nobody gets less than the whole part of its share; largest remainder also keeps the upper
// bound. Sainte-Laguë promises neither.
func TestPropertyQuota(t *testing.T) {
	each(t, false, func(t *testing.T, _ *rand.Rand, spec Spec, _ []Summary, o Options) {
		if spec.Policy.Name != PolicyProportional || o.Rounding == SainteLague {
			return
		}
		weights := spec.Policy.Proportions.TargetProportions
		total := big.NewInt(0)
		for _, w := range weights {
			total.Add(total, big.NewInt(int64(w)))
		}
		p := place(t, spec, nil, o)
		for i, target := range spec.Targets {
			share, rest := new(big.Int).QuoRem(
				new(big.Int).Mul(big.NewInt(int64(spec.Replicas)), big.NewInt(int64(weights[target.Name]))), total, new(big.Int))
			got := int64(p.Replicas[i])
			if got < share.Int64() || o.Rounding == LargestRemainder && got > share.Int64()+int64(rest.Sign()) {
				t.Errorf("%+v: target %d has %d, its share is %v and %v/%v", spec, i, got, share, rest, total)
			}
		}
	})
}

// The fast methods agree with their definition, one replica at a time.
func TestDivisorsAgreeWithDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for name, d := range map[Rounding]divisor{DHondt: dHondt, SainteLague: sainteLague} {
		for range 3000 {
			n := 1 + r.IntN(8)
			fast, room := make([]share, n), int64(0)
			for i := range fast {
				placed := r.Int64N(50)
				fast[i] = share{target: i, weight: 1 + r.Uint64N([]uint64{3, 100, 1<<31 - 2}[r.IntN(3)]), rank: i, placed: placed, limit: placed + 1 + r.Int64N(200)}
				room += fast[i].limit - placed
			}
			slow, count := slices.Clone(fast), r.Int64N(room)
			d.give(fast, count)
			for range count {
				best := -1
				for i := range slow {
					if slow[i].placed < slow[i].limit && (best < 0 || d.before(&slow[i], &slow[best])) {
						best = i
					}
				}
				slow[best].placed++
			}
			if !slices.Equal(fast, slow) {
				t.Fatalf("%s of %d:\n%+v\nwant\n%+v", name, count, fast, slow)
			}
		}
	}
}

// Extreme numbers neither overflow nor take long.
func TestExtremes(t *testing.T) {
	for _, rounding := range roundings {
		spec := Spec{Replicas: 1<<31 - 1, Policy: Policy{Name: PolicyProportional, Proportions: &Proportions{
			TargetProportions: map[string]int32{"a": 1<<31 - 1, "b": 1, "c": 1<<31 - 1}}}}
		limit := int32(1<<31 - 1)
		for _, name := range []string{"a", "b", "c"} {
			spec.Targets = append(spec.Targets, Target{Name: name, Max: &limit})
		}
		p := place(t, spec, nil, Options{Rounding: rounding})
		if sum(p.Replicas) != 1<<31-1 || p.Replicas[0]-p.Replicas[2] > 1 || p.Replicas[2]-p.Replicas[0] > 1 || p.Replicas[1] > 1 {
			t.Errorf("%s: %v", rounding, p.Replicas)
		}
		blocked := []Summary{{Total: 1<<31 - 1, Blocked: 1<<31 - 1}, {Total: 0, Blocked: 1<<31 - 1}, {}}
		if p := place(t, spec, blocked, Options{Rounding: rounding}); p.Replicas[2] != limit {
			t.Errorf("%s with blocked pods: %v", rounding, p.Replicas)
		}
	}
}

func FuzzPlace(f *testing.F) {
	f.Add(int32(10), []byte{50, 0, 0, 0, 0, 50, 3, 0, 9, 2}, uint8(0))
	f.Add(int32(2_000_000_000), []byte{1, 200, 100, 1, 1, 255, 0, 0, 0, 0, 7, 1, 255, 3, 2}, uint8(4))
	f.Add(int32(-1), []byte{}, uint8(7))
	f.Fuzz(func(t *testing.T, replicas int32, data []byte, mode uint8) {
		spec := Spec{Replicas: replicas, Policy: Policy{Name: []string{PolicyPriority, PolicyProportional}[mode%2]}}
		weights, order, summaries := map[string]int32{}, []string{}, []Summary{}
		for ; len(data) >= 5 && len(spec.Targets) < 20; data = data[5:] {
			target := Target{Name: fmt.Sprintf("t%d", len(spec.Targets)), Min: int32(data[1]) << (data[1] % 8)}
			if data[2] > 0 {
				limit := int32(data[2]) << (data[2] % 16)
				target.Max = &limit
			}
			spec.Targets = append(spec.Targets, target)
			weights[target.Name] = int32(int8(data[0])) << (data[0] % 20)
			order = append(order, target.Name)
			summaries = append(summaries, Summary{Total: int32(data[3]), Blocked: int32(data[4]), Held: data[4]%3 == 0})
		}
		spec.Policy.Priorities = &Priorities{TargetOrder: order}
		spec.Policy.Proportions = &Proportions{TargetProportions: weights}
		o := Options{Rounding: roundings[mode/2%3], TieBreak: []TieBreak{TieBreakName, TieBreakHash}[mode/8%2]}
		with, without := place(t, spec, summaries, o), place(t, spec, nil, o)
		if replicas >= 0 && sum(without.Replicas) != int64(replicas)+int64(without.Missing)-int64(without.Overflow) {
			t.Errorf("%+v: %+v", spec, without)
		}
		for i, target := range spec.Targets {
			if with.Replicas[i] < without.Replicas[i] {
				t.Errorf("%+v: %v with blocked pods, %v without", spec, with.Replicas, without.Replicas)
			}
			if target.Max == nil || target.Min <= *target.Max {
				if with.Replicas[i] < target.Min || target.Max != nil && with.Replicas[i] > *target.Max {
					t.Errorf("%+v: target %d has %d", spec, i, with.Replicas[i])
				}
			}
		}
	})
}

func BenchmarkPlace(b *testing.B) {
	for _, policy := range []string{PolicyPriority, PolicyProportional} {
		for _, rounding := range roundings {
			if policy == PolicyPriority && rounding != DHondt {
				continue
			}
			for _, n := range []int{2, 100, 1000} {
				for _, replicas := range []int32{1000, 1_000_000_000} {
					spec := Spec{Replicas: replicas, Policy: Policy{Name: policy}}
					weights, order := map[string]int32{}, []string{}
					for i := range n {
						name := fmt.Sprintf("target-%03d", i)
						spec.Targets = append(spec.Targets, Target{Name: name})
						weights[name], order = int32(1+i*37%101), append(order, name)
					}
					spec.Policy.Priorities = &Priorities{TargetOrder: order}
					spec.Policy.Proportions = &Proportions{TargetProportions: weights}
					b.Run(fmt.Sprintf("%s/%s/targets=%d/replicas=%d", policy, rounding, n, replicas), func(b *testing.B) {
						b.ReportAllocs()
						for b.Loop() {
							place(b, spec, nil, Options{Rounding: rounding})
						}
					})
				}
			}
		}
	}
}
