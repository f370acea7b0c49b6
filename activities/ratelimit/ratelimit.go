// Package ratelimit keeps the calls to a cloud within what it grants each
// account: a token bucket for each account, service and region.
//
// A bucket slows down when the cloud throttles: its rate halves with each
// throttled answer, and comes back over Options.Recovery. So whatever else
// spends the account's allowance (Gardener, people, other workers), the calls
// settle near what is left of it.
//
// An empty bucket holds nobody's slot for long: an attempt that has achieved
// nothing yet waits a moment, then ends with a Throttled fault that says when
// to come again, and its slot goes to another account. One that has got through
// waits longer, since it would have to begin anew. That also bounds how many
// attempts share a slow bucket, so that some of them finish.
//
// The AWS SDK has the like (retry.AdaptiveMode), but it knows no rates before
// the first throttled answer, waits without bound or fails without a time to
// come again, and counts each client for itself. The buckets are those of
// golang.org/x/time/rate.
package ratelimit

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/tidbcloud/infra-orchestrator/faults"
)

// Limit is what a bucket grants: Rate calls a second, after a rest up to Burst
// at once.
type Limit struct {
	Rate  float64
	Burst int
}

func (l Limit) times(share float64) Limit {
	return Limit{Rate: l.Rate * share, Burst: max(int(float64(l.Burst)*share), 1)}
}

// Key names a bucket.
type Key struct {
	// Account as the cloud counts: an AWS account, a GCP project.
	Account string
	// Service, as the cloud calls it, with the sort of call where the cloud
	// counts sorts apart.
	Service string
	// Region is empty for what is global.
	Region string
}

// Options of a Pool. The zero value of each field is its default.
type Options struct {
	// MaxWait is how long the first call of an attempt waits for its token.
	// Default 2 s.
	MaxWait time.Duration
	// Patience is how long later calls wait, once one has got through. Default
	// 10 s.
	Patience time.Duration
	// MaxDelay is the longest time after which a refused attempt comes again.
	// Default 1 min, as the retry policy of activities.
	MaxDelay time.Duration
	// Floor is the rate below which no bucket falls. Default 0.2 calls a second.
	Floor float64
	// Share is the part of every limit that this process takes: 0.5 where two
	// share the accounts evenly. More than 1 is for accounts with raised limits.
	// Default 1.
	Share float64
	// Recovery is the time in which a bucket would regain its whole rate.
	// Default 2 min.
	Recovery time.Duration
	// Metrics may be nil; see NewMetrics.
	Metrics *Metrics

	now func() time.Time
}

func (o Options) withDefaults() Options {
	setDefault(&o.MaxWait, 2*time.Second)
	setDefault(&o.Patience, 10*time.Second)
	setDefault(&o.MaxDelay, time.Minute)
	setDefault(&o.Floor, 0.2)
	setDefault(&o.Share, 1)
	setDefault(&o.Recovery, 2*time.Minute)
	if o.now == nil {
		o.now = time.Now
	}
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Pool holds the buckets of one worker process. It is safe for concurrent use.
type Pool struct {
	options Options

	mu      sync.Mutex
	buckets map[Key]*bucket
}

// NewPool returns a pool without buckets.
func NewPool(o Options) *Pool {
	return &Pool{options: o.withDefaults(), buckets: map[Key]*bucket{}}
}

// bucket returns the bucket of a key; the first caller's limit makes it.
func (p *Pool) bucket(k Key, l Limit) *bucket {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, ok := p.buckets[k]
	if !ok {
		b = newBucket(l.times(p.options.Share), p.options)
		p.buckets[k] = b
	}
	return b
}

// Take takes a token for one call, and waits for it within MaxWait or Patience.
// After the call the caller says by done whether the cloud throttled it.
//
// Errors are a Throttled fault, with RetryAt, when the token would come too
// late, or before it the end of ctx.
func (p *Pool) Take(ctx context.Context, k Key, l Limit) (done func(throttled bool), err error) {
	b, try := p.bucket(k, l), attemptOf(ctx)
	patience := p.options.MaxWait
	if try.through(b) {
		patience = p.options.Patience
	}
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(deadline))
	}
	now := p.options.now()
	r := b.reserve(now, patience)
	if !r.granted {
		after := min(r.after, p.spread(p.options.MaxDelay))
		p.options.Metrics.refused(k)
		return nil, refusal(k, after)
	}
	if err := sleep(ctx, r.after); err != nil {
		r.give(p.options.now())
		return nil, err
	}
	p.options.Metrics.taken(k, r.after, b.rate(now))
	sent := p.options.now()
	return func(throttled bool) {
		if !throttled {
			try.got(b)
			return
		}
		b.cut(sent, p.options.now())
		p.options.Metrics.throttled(k, b.rate(p.options.now()))
	}, nil
}

// spread is d less up to a half, so that those who all wait longest do not all
// come at once.
func (p *Pool) spread(d time.Duration) time.Duration {
	return d/2 + rand.N(d/2+1)
}

func refusal(k Key, after time.Duration) error {
	after = max(after.Round(time.Millisecond), time.Millisecond)
	f := faults.New(faults.Throttled, "RateLimited", "account "+k.Account,
		"its allowance of calls to %s is in use by its other operations; this one has its turn in about %s", k.Service, after.Round(time.Second))
	f.RetryAt = after
	return f
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
