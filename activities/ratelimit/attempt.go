package ratelimit

import (
	"context"
	"sync"
)

// attempt remembers from which buckets an attempt of an activity has had calls
// that got through. A nil attempt remembers nothing.
type attempt struct {
	mu   sync.Mutex
	have map[*bucket]bool
}

type attemptKey struct{}

// WithAttempt begins an attempt: its first call waits shortly, later ones
// longer. Without it every call is a first one.
func WithAttempt(ctx context.Context) context.Context {
	return context.WithValue(ctx, attemptKey{}, &attempt{have: map[*bucket]bool{}})
}

func attemptOf(ctx context.Context) *attempt {
	a, _ := ctx.Value(attemptKey{}).(*attempt)
	return a
}

func (a *attempt) got(b *bucket) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.have[b] = true
}

func (a *attempt) through(b *bucket) bool {
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.have[b]
}
