package balancing

import "math/bits"

// divisor is a highest averages method: each replica goes to the share with the largest weight/next(placed).
// next(n) = factor·n + offset.
type divisor struct {
	factor, offset uint64
}

var (
	dHondt      = divisor{factor: 1, offset: 1}
	sainteLague = divisor{factor: 2, offset: 1}
)

// fraction is the number of fractional bits of a threshold. With 30 of them, the largest threshold that is ever
// needed (the 2^32nd replica of weight 1 under Sainte-Laguë: 2^33) fits an uint64, and between two neighbouring
// thresholds a share gains at most 2 replicas.
const (
	fraction     = 30
	maxThreshold = uint64(1) << (33 + fraction)
)

// give places most replicas at once and the rest one by one.
//
// All replicas with weight/next ≥ 1/x are placed before any other, whatever x is, and how many those are is simple
// to compute for every share. So x is searched for which as many as possible fit into n (63 steps, each linear in
// the shares), and at most 2 a share are left for the heap.
func (d divisor) give(shares []share, n int64) {
	low, high := uint64(0), maxThreshold // low always fits
	for low < high {
		middle := low + (high-low)/2 + 1
		if !d.fits(shares, middle, n) {
			high = middle - 1
		} else {
			low = middle
		}
	}
	for i := range shares {
		at := d.at(&shares[i], low)
		n -= at - shares[i].placed
		shares[i].placed = at
	}
	d.giveOneByOne(shares, n)
}

func (d divisor) fits(shares []share, threshold uint64, n int64) bool {
	for i := range shares {
		if n -= d.at(&shares[i], threshold) - shares[i].placed; n < 0 {
			return false
		}
	}
	return true
}

// at is the number of replicas that the share has when all with next(placed) ≤ weight·threshold are given.
func (d divisor) at(s *share, threshold uint64) int64 {
	high, low := bits.Mul64(s.weight, threshold)
	if high >= 1<<fraction {
		return s.limit
	}
	x := high<<(64-fraction) | low>>fraction
	if x < d.offset {
		return s.placed
	}
	// x-offset may exceed int64 for large thresholds; the limit does not.
	replicas := min((x-d.offset)/d.factor+1, uint64(s.limit))
	return max(int64(replicas), s.placed)
}

// giveOneByOne is the definition of the method, on a heap with the best claim at the root.
func (d divisor) giveOneByOne(shares []share, n int64) {
	heap := make([]*share, 0, len(shares))
	for i := range shares {
		if shares[i].placed < shares[i].limit {
			heap = append(heap, &shares[i])
		}
	}
	for i := len(heap)/2 - 1; i >= 0; i-- {
		d.sink(heap, i)
	}
	for ; n > 0 && len(heap) > 0; n-- {
		best := heap[0]
		if best.placed++; best.placed == best.limit {
			heap[0] = heap[len(heap)-1]
			heap = heap[:len(heap)-1]
		}
		d.sink(heap, 0)
	}
}

func (d divisor) sink(heap []*share, i int) {
	for {
		child := 2*i + 1
		if child >= len(heap) {
			return
		}
		if child+1 < len(heap) && d.before(heap[child+1], heap[child]) {
			child++
		}
		if !d.before(heap[child], heap[i]) {
			return
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}

// before compares weight/next exactly: weights are below 2^31 and next is below 2^33.
func (d divisor) before(a, b *share) bool {
	left := a.weight * (d.factor*uint64(b.placed) + d.offset)
	right := b.weight * (d.factor*uint64(a.placed) + d.offset)
	if left != right {
		return left > right
	}
	return a.rank < b.rank
}
