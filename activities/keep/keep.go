// Package keep keeps what is costly to make, such as clients with an access key
// in them: made once at a time, and forgotten when nobody asks any more.
package keep

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/tidbcloud/infra-orchestrator/faults"
)

// makeTimeout bounds the making of a value: it goes on when the caller that
// began it is cancelled, since others may wait for the same.
const makeTimeout = time.Minute

// Cache keeps values by key. The zero value forgets a value one hour after it
// was last asked for. It is safe for concurrent use.
type Cache[K comparable, V any] struct {
	// Idle is the time without a question after which a value is forgotten; one
	// hour when 0.
	Idle time.Duration

	mu      sync.Mutex
	entries map[K]*entry[V]
	flights singleflight.Group
}

type entry[V any] struct {
	value  V
	forget *time.Timer
}

// Get returns the value of a key if it is fresh, and makes it otherwise. Callers
// that ask for the same key and version at the same time share one making, and
// its error; each waits no longer than its own ctx. A failure is not kept.
func (c *Cache[K, V]) Get(ctx context.Context, key K, version string, fresh func(V) bool, produce func(context.Context) (V, error)) (V, error) {
	if v, ok := c.find(key); ok && fresh(v) {
		return v, nil
	}
	return Once(ctx, &c.flights, fmt.Sprintf("%v %s", key, version), func(ctx context.Context) (V, error) {
		if v, ok := c.find(key); ok && fresh(v) { // another making has ended since
			return v, nil
		}
		v, err := produce(ctx)
		if err == nil {
			c.put(key, v)
		}
		return v, err
	})
}

func (c *Cache[K, V]) find(key K) (v V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	if !ok {
		return v, false
	}
	e.forget.Reset(c.idle())
	return e.value, true
}

func (c *Cache[K, V]) put(key K, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = map[K]*entry[V]{}
	}
	if old, ok := c.entries[key]; ok {
		old.forget.Stop()
	}
	e := &entry[V]{value: v}
	e.forget = time.AfterFunc(c.idle(), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.entries[key] == e {
			delete(c.entries, key)
		}
	})
	c.entries[key] = e
}

func (c *Cache[K, V]) idle() time.Duration {
	if c.Idle == 0 {
		return time.Hour
	}
	return c.Idle
}

// Forget forgets the values whose keys match: what they belong to is gone, or
// they were refused.
func (c *Cache[K, V]) Forget(match func(K) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, e := range c.entries {
		if match(key) {
			e.forget.Stop()
			delete(c.entries, key)
		}
	}
}

// Len is the number of values that are kept.
func (c *Cache[K, V]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.entries)
}

// Once makes a call that others make at the same time as well once for all of
// them. It has a minute; a caller whose ctx ends gets the error of that, and
// leaves the call to the others.
func Once[V any](ctx context.Context, flights *singleflight.Group, key string, call func(context.Context) (V, error)) (V, error) {
	result := flights.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), makeTimeout)
		defer cancel()
		return call(ctx)
	})
	var none V
	select {
	case <-ctx.Done():
		return none, ctx.Err()
	case r := <-result:
		if r.Err == nil {
			return r.Val.(V), nil
		}
		if f := faults.As(r.Err); f != nil && r.Shared { // who adds a hint adds it to its own
			mine := *f
			return none, &mine
		}
		if errors.Is(r.Err, context.Canceled) || errors.Is(r.Err, context.DeadlineExceeded) { // not of this caller
			return none, faults.New(faults.Transient, "Timeout", "", "a call did not end within %s", makeTimeout)
		}
		return none, r.Err
	}
}
