package balancing

import (
	"errors"
	"fmt"
	"math"
)

// ErrTooManyReplicas says that the minimums of all targets together exceed the range of an int32.
var ErrTooManyReplicas = errors.New("the sum of minReplicas of all targets exceeds 2147483647")

// Place computes the goal of a Balancer. summaries tells of each target, by index, which of its pods are blocked;
// nil stands for no pods. It costs O(n log n) in the number of targets, whatever the number of replicas.
//
// Errors name the field of the policy that is missing, an unknown policy, a name in the target order that is no
// target, or one that two targets have. Any other questionable input (see Validate) is answered as the original does.
func Place(spec Spec, summaries []Summary, options Options) (Placement, error) {
	p, err := newPlacer(spec, summaries)
	if err != nil {
		return Placement{}, err
	}
	switch spec.Policy.Name {
	case PolicyPriority:
		if spec.Policy.Priorities == nil {
			return Placement{}, errors.New("incomplete policy definition: missing priorities")
		}
		if spec.Policy.Priorities.TargetOrder == nil {
			return Placement{}, errors.New("incomplete policy definition: missing targetOrder")
		}
		if err := p.byPriority(spec.Policy.Priorities.TargetOrder); err != nil {
			return Placement{}, err
		}
	case PolicyProportional:
		if spec.Policy.Proportions == nil {
			return Placement{}, errors.New("incomplete policy definition: missing proportions")
		}
		if spec.Policy.Proportions.TargetProportions == nil {
			return Placement{}, errors.New("incomplete policy definition: missing targetProportions")
		}
		if err := p.byProportion(spec.Policy.Proportions.TargetProportions, options); err != nil {
			return Placement{}, err
		}
	default:
		return Placement{}, fmt.Errorf("policy not supported: %s", spec.Policy.Name)
	}
	return p.placement(), nil
}

// DefaultReplicas is the total of a Balancer that does not tell one: the minimums, and at least 1.
func DefaultReplicas(targets []Target) int32 {
	var sum int64
	for _, t := range targets {
		sum += int64(t.Min)
	}
	return saturate(max(sum, 1))
}

// placer is a placement in the making.
type placer struct {
	targets   []Target
	summaries []Summary
	index     map[string]int // of targets, by name
	placed    []int64
	left      int64 // replicas to place
	missing   int64
}

func newPlacer(spec Spec, summaries []Summary) (*placer, error) {
	p := &placer{
		targets: spec.Targets, summaries: summaries,
		placed: make([]int64, len(spec.Targets)), index: make(map[string]int, len(spec.Targets)),
	}
	if p.summaries == nil {
		p.summaries = make([]Summary, len(spec.Targets))
	}
	if len(p.summaries) != len(spec.Targets) {
		return nil, fmt.Errorf("%d summaries for %d targets", len(p.summaries), len(spec.Targets))
	}
	var minimums int64
	for i, t := range spec.Targets {
		if _, twice := p.index[t.Name]; twice {
			return nil, fmt.Errorf("more than one target is named %q", t.Name)
		}
		p.index[t.Name] = i
		p.placed[i] = int64(t.Min)
		minimums += int64(t.Min)
	}
	if minimums > math.MaxInt32 {
		return nil, fmt.Errorf("%w: it is %d", ErrTooManyReplicas, minimums)
	}
	p.left = int64(spec.Replicas) - minimums
	if p.left < 0 {
		p.missing, p.left = -p.left, 0
	}
	return p, nil
}

func (p *placer) maximum(i int) int64 {
	if p.targets[i].Max == nil {
		return int64(UnlimitedReplicas)
	}
	return int64(*p.targets[i].Max)
}

// fallback is the part of what target i was given so far that is expected not to start.
func (p *placer) fallback(i int) int64 {
	return p.summaries[i].fallback(p.placed[i])
}

// byPriority fills the targets in order. What is expected not to start in one is added to what the later ones get.
func (p *placer) byPriority(order []string) error {
	for _, name := range order {
		i, ok := p.index[name]
		if !ok {
			return fmt.Errorf("the target order names %q, which is not a target", name)
		}
		// Room is negative if the minimum exceeds the maximum: the difference then goes on to the next targets.
		given := min(p.left, p.maximum(i)-p.placed[i])
		p.placed[i] += given
		p.left += p.fallback(i) - given
	}
	return nil
}

// byProportion first spreads the replicas over all targets by weight, and then what is expected not to start over
// those without blocked pods.
func (p *placer) byProportion(weights map[string]int32, options Options) error {
	shares := make([]share, 0, len(p.targets))
	for i, t := range p.targets {
		if w := weights[t.Name]; w > 0 {
			shares = append(shares, share{target: i, name: t.Name, weight: uint64(w)})
		}
	}
	if err := rank(shares, options); err != nil {
		return err
	}
	give, err := roundingOf(options.Rounding)
	if err != nil {
		return err
	}
	p.spread(shares, give)
	if p.left > 0 {
		// Every weighted target is full, so that nothing could stand in for blocked pods either.
		return nil
	}
	healthy := shares[:0]
	for _, s := range shares {
		if p.summaries[s.target].Blocked == 0 && p.fallback(s.target) == 0 {
			healthy = append(healthy, s)
		}
	}
	for i := range p.targets {
		p.left += p.fallback(i)
	}
	p.spread(healthy, give)
	return nil
}

// spread gives what is left to those of the shares that have room.
func (p *placer) spread(shares []share, give rounding) {
	if p.left == 0 {
		return
	}
	open, room := make([]share, 0, len(shares)), int64(0)
	for _, s := range shares {
		s.placed = p.placed[s.target]
		s.limit = min(p.maximum(s.target), s.placed+p.left)
		if s.placed < s.limit {
			open = append(open, s)
			room += s.limit - s.placed
		}
	}
	if room <= p.left {
		for i := range open {
			open[i].placed = open[i].limit
		}
		p.left -= room
	} else {
		give(open, p.left)
		p.left = 0
	}
	for _, s := range open {
		p.placed[s.target] = s.placed
	}
}

func (p *placer) placement() Placement {
	out := Placement{
		Replicas: make([]int32, len(p.placed)),
		Fallback: make([]int32, len(p.placed)),
		Missing:  saturate(p.missing),
		Overflow: saturate(p.left),
	}
	for i, n := range p.placed {
		out.Replicas[i] = saturate(n)
		out.Fallback[i] = saturate(p.fallback(i))
	}
	return out
}

func saturate(n int64) int32 {
	return int32(min(max(n, math.MinInt32), math.MaxInt32))
}
