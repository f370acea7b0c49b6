package ratelimit

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// bucket is a token bucket whose rate yields to throttled answers.
type bucket struct {
	limit    Limit
	floor    float64
	recovery time.Duration
	maxDelay time.Duration

	mu     sync.Mutex
	tokens *rate.Limiter
	// low is the rate that the last throttled answer left, at lowSince; zero
	// when there was none.
	low      float64
	lowSince time.Time
	// next is the turn that the last refused attempt got.
	next time.Time
}

func newBucket(l Limit, o Options) *bucket {
	return &bucket{
		limit: l, floor: min(o.Floor, l.Rate), recovery: o.Recovery, maxDelay: o.MaxDelay,
		tokens: rate.NewLimiter(rate.Limit(l.Rate), l.Burst),
	}
}

// reserved is a token that comes after some time, or the advice when to ask
// again.
type reserved struct {
	granted bool
	after   time.Duration
	token   *rate.Reservation
}

// give puts the token back.
func (r reserved) give(now time.Time) { r.token.CancelAt(now) }

// reserve takes a token that comes within patience. To those who would wait
// longer it deals out turns, one for each call that the rate allows, and none
// later than the longest delay.
func (b *bucket) reserve(now time.Time, patience time.Duration) reserved {
	b.mu.Lock()
	defer b.mu.Unlock()
	current := b.adjust(now)
	token := b.tokens.ReserveN(now, 1)
	if delay := token.DelayFrom(now); delay <= patience {
		return reserved{granted: true, after: delay, token: token}
	}
	token.CancelAt(now)
	turn := max(b.next.Sub(now), patience) + time.Duration(float64(time.Second)/current)
	turn = min(turn, b.maxDelay)
	b.next = now.Add(turn)
	return reserved{after: turn}
}

// cut halves the rate for an answer to a call sent at a time. What was sent
// before the last cut was sent at the old rate, and says nothing of the new.
func (b *bucket) cut(sent, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if sent.Before(b.lowSince) {
		return
	}
	b.low, b.lowSince = max(b.current(now)/2, b.floor), now
	b.adjust(now)
}

// rate is the rate now, in calls a second.
func (b *bucket) rate(now time.Time) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.current(now)
}

// current grows from low to the limit, by the limit in each recovery time.
func (b *bucket) current(now time.Time) float64 {
	if b.low == 0 {
		return b.limit.Rate
	}
	grown := b.limit.Rate * float64(now.Sub(b.lowSince)) / float64(b.recovery)
	return min(b.low+grown, b.limit.Rate)
}

// adjust sets the tokens' rate to the current one, which it returns. A bucket
// that is not at its limit saves nothing up: the cloud has just said that
// nothing is saved there.
func (b *bucket) adjust(now time.Time) float64 {
	current, burst := b.current(now), 1
	if current >= b.limit.Rate {
		burst, b.low = b.limit.Burst, 0
	}
	b.tokens.SetLimitAt(now, rate.Limit(current))
	b.tokens.SetBurstAt(now, burst)
	return current
}
