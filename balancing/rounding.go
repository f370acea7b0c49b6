package balancing

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
)

// share is the claim of one target to some of the replicas that are being spread.
type share struct {
	target int // index in Spec.Targets
	name   string
	weight uint64 // at least 1, less than 2^31
	rank   int    // decides ties, lower first
	placed int64
	limit  int64 // the most that it may get now, above placed
}

// rounding adds n replicas to the shares. n is less than what they have room for, so that all can be given.
type rounding func(shares []share, n int64)

func roundingOf(name Rounding) (rounding, error) {
	switch name {
	case "", DHondt:
		return dHondt.give, nil
	case SainteLague:
		return sainteLague.give, nil
	case LargestRemainder:
		return largestRemainder, nil
	}
	return nil, fmt.Errorf("rounding not supported: %s", name)
}

// rank sorts shares by the tie-break rule and numbers them.
func rank(shares []share, options Options) error {
	byName := func(a, b share) int { return cmp.Compare(a.name, b.name) }
	switch options.TieBreak {
	case "", TieBreakName:
		slices.SortStableFunc(shares, byName)
	case TieBreakHash:
		hashes := make(map[string]uint64, len(shares))
		for _, s := range shares {
			hashes[s.name] = hash(options.Seed, s.name)
		}
		slices.SortStableFunc(shares, func(a, b share) int {
			return cmp.Or(cmp.Compare(hashes[a.name], hashes[b.name]), byName(a, b))
		})
	default:
		return fmt.Errorf("tie-break not supported: %s", options.TieBreak)
	}
	for i := range shares {
		shares[i].rank = i
	}
	return nil
}

func hash(seed, name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(seed))
	h.Write([]byte{0})
	h.Write([]byte(name))
	// FNV changes the high bits little between short names; the multiplication spreads them (Fibonacci hashing).
	x := h.Sum64()
	x ^= x >> 32
	return x * 0x9E3779B97F4A7C15
}
