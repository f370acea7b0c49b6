package balancing

import (
	"cmp"
	"math/bits"
	"slices"
)

// largestRemainder gives every share the whole part of its exact share and the rest to the largest fractions.
//
// What shares had before counts as part of their exact share. Shares that had more than theirs keep it, and those
// that reach their limit stop there; the others divide what remains. So the exact share is clamp(weight·u, placed,
// limit) for the u at which all of them add up to the total, and u is found by walking over the places where a
// share begins or ends to grow.
func largestRemainder(shares []share, n int64) {
	total := uint64(n)
	for i := range shares {
		total += uint64(shares[i].placed)
	}
	phases, numerator, denominator := exactShares(shares, total)
	type candidate struct {
		*share
		fraction uint64 // in units of 1/denominator
	}
	candidates := make([]candidate, 0, len(shares))
	for i := range shares {
		s, before := &shares[i], shares[i].placed
		switch phases[i] {
		case growing:
			high, low := bits.Mul64(s.weight, numerator)
			whole, fraction := bits.Div64(high, low, denominator)
			s.placed = int64(whole)
			candidates = append(candidates, candidate{s, fraction})
		case full:
			s.placed = s.limit
		}
		n -= s.placed - before
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.fraction, a.fraction), cmp.Compare(a.rank, b.rank))
	})
	// The fractions add up to n, so at least n of them are above zero, and none of those is at its limit.
	for _, c := range candidates[:n] {
		c.placed++
	}
}

// phase of a share at a given u.
type phase uint8

const (
	waiting phase = iota // its exact share is below what it had before
	growing
	full
)

// event is a place u = value/weight where a share changes its phase.
type event struct {
	share int
	value uint64
	to    phase
}

// exactShares returns u as a fraction, and the phase of each share there.
func exactShares(shares []share, total uint64) (phases []phase, numerator, denominator uint64) {
	events := make([]event, 0, 2*len(shares))
	fixed := uint64(0) // sum of the shares that do not grow
	for i := range shares {
		fixed += uint64(shares[i].placed)
		events = append(events,
			event{share: i, value: uint64(shares[i].placed), to: growing},
			event{share: i, value: uint64(shares[i].limit), to: full})
	}
	slices.SortFunc(events, func(a, b event) int {
		return cmp.Compare(a.value*shares[b.share].weight, b.value*shares[a.share].weight)
	})
	phases = make([]phase, len(shares))
	weights := uint64(0) // sum of the weights that grow
	for _, e := range events {
		s := &shares[e.share]
		if weights > 0 && !less(weights, e.value, total-fixed, s.weight) {
			break // the total is reached at or before this event
		}
		phases[e.share] = e.to
		if e.to == growing {
			weights += s.weight
			fixed -= e.value
		} else {
			weights -= s.weight
			fixed += e.value
		}
	}
	return phases, total - fixed, weights
}

// less compares a·b with c·d in 128 bits.
func less(a, b, c, d uint64) bool {
	h1, l1 := bits.Mul64(a, b)
	h2, l2 := bits.Mul64(c, d)
	return h1 < h2 || h1 == h2 && l1 < l2
}
