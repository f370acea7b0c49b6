package balancing

import "math"

// Limits bound how a changed split is reached. They are absolute numbers over the sum of all targets; percentages
// are resolved by the caller. The zero value has no limits: everything changes at once, as in the original.
type Limits struct {
	// MaxSurge is how many replicas may exist beyond the wanted total while replicas move; nil means any number.
	// Replicas that stand in for blocked ones come on top.
	MaxSurge *int32
	// MaxUnavailable is how many of the wanted total may be not ready because of a move; nil means any number.
	MaxUnavailable *int32
}

// Change sets the replicas of one target.
type Change struct {
	// Target is an index in Spec.Targets.
	Target int
	// From is the present number of replicas in the target's scale, To the new one.
	From, To int32
}

// Step returns the changes to make now so that the targets get from where they are, summaries, to goal. wanted is
// how many replicas the Balancer wants to run, without duplicates that stand in for blocked ones (see Wanted).
//
// Growth comes first, then reduction, each in the order of the targets. With limits, a target grows only as far as
// MaxSurge allows, a target with blocked replicas is probed with at most MaxSurge + MaxUnavailable unready ones, and
// a target shrinks only as far as the replicas that are ready now stay above wanted − MaxUnavailable; removing unready ones is always
// allowed. Called at each round with fresh summaries, the steps end at the goal once everything can start.
func Step(goal []int32, wanted int64, summaries []Summary, limits Limits) []Change {
	changes := grow(goal, wanted, summaries, limits)
	return append(changes, shrink(goal, wanted, summaries, limits)...)
}

// Wanted is the number of replicas that a Balancer wants to run: what Place gives without blocked pods.
func Wanted(spec Spec, options Options) (int64, error) {
	p, err := Place(spec, nil, options)
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, n := range p.Replicas {
		sum += int64(n)
	}
	return sum, nil
}

func grow(goal []int32, wanted int64, summaries []Summary, limits Limits) []Change {
	var changes []Change
	room := limits.room(goal, wanted, summaries)
	for i, s := range summaries {
		to := goal[i]
		if to <= s.Desired {
			continue
		}
		if limits.MaxSurge != nil {
			if s.fallback(int64(to)) > 0 {
				to = min(to, max(s.Desired, saturate(int64(s.Ready)+limits.moving())))
			}
			to = min(to, saturate(int64(s.Desired)+max(room, 0)))
			room -= int64(to - s.Desired)
		}
		if to > s.Desired {
			changes = append(changes, Change{Target: i, From: s.Desired, To: to})
		}
	}
	return changes
}

// room is how many replicas may be added now.
//
// Blocked replicas of a target that has all that it should get are not counted: others stand in for them. In a
// target that is still being filled they are the first of a move that has got stuck, which the limits allow for
// already; counting those keeps the total under wanted + MaxSurge when the move is taken back.
func (l Limits) room(goal []int32, wanted int64, summaries []Summary) int64 {
	if l.MaxSurge == nil {
		return 0
	}
	room, stuck := wanted+int64(*l.MaxSurge), int64(0)
	for i, s := range summaries {
		room -= int64(s.Desired)
		if blocked := int64(min(s.Blocked, s.Desired)); s.Desired >= goal[i] {
			room += blocked
		} else {
			stuck += blocked
		}
	}
	return room + max(stuck-l.moving(), 0)
}

// moving is how many replicas can be on the move at once: shrunk in one target and not ready in the other.
func (l Limits) moving() int64 {
	if l.MaxSurge == nil || l.MaxUnavailable == nil {
		return math.MaxInt32
	}
	return int64(*l.MaxSurge) + int64(*l.MaxUnavailable)
}

func shrink(goal []int32, wanted int64, summaries []Summary, limits Limits) []Change {
	var changes []Change
	var spare int64 // ready replicas that may go
	if limits.MaxUnavailable != nil {
		spare = int64(*limits.MaxUnavailable) - wanted
		for _, s := range summaries {
			spare += int64(s.readyAt(s.Desired))
		}
	}
	for i, s := range summaries {
		to := goal[i]
		if to >= s.Desired {
			continue
		}
		if limits.MaxUnavailable != nil {
			to = max(to, s.lowest(saturate(max(spare, 0))))
			spare -= int64(s.readyAt(s.Desired) - s.readyAt(to))
		}
		if to < s.Desired {
			changes = append(changes, Change{Target: i, From: s.Desired, To: to})
		}
	}
	return changes
}

// readyAt is how many ready replicas the target keeps when it is reduced to n.
func (s Summary) readyAt(n int32) int32 {
	if !s.Ordered {
		return min(s.Ready, n)
	}
	ready := min(s.Total, n)
	for _, o := range s.UnreadyOrdinals {
		if o < n {
			ready--
		}
	}
	return min(max(ready, 0), s.Ready)
}

// lowest is the smallest number of replicas to which the target can be reduced at the cost of spare ready ones.
func (s Summary) lowest(spare int32) int32 {
	kept := max(s.readyAt(s.Desired)-spare, 0)
	if !s.Ordered {
		return kept
	}
	// readyAt does not fall with n, so the smallest n that keeps enough is found by bisection.
	low, high := int32(0), s.Desired
	for low < high {
		if middle := low + (high-low)/2; s.readyAt(middle) >= kept {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}
