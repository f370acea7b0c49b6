// Package nullcloud is a cloud, a garden and shoots in which everything exists
// at once: every activity of the contract that calls another system, answering
// from memory. What a benchmark on it measures is our own cost and nothing else.
package nullcloud

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
)

// Cloud counts the calls and remembers when each object made its first one.
type Cloud struct {
	calls map[string]any // func(context.Context, In) (Out, error), by activity

	mu    sync.Mutex
	count int64
	first map[string]time.Time
}

// New returns a cloud.
func New() *Cloud {
	c := &Cloud{calls: map[string]any{}, first: map[string]time.Time{}}
	c.aws()
	c.garden()
	c.shoot()
	return c
}

// RegisterActivityWithOptions makes Cloud a contract.Registry, so that the
// compiler checks each answer against the contract.
func (c *Cloud) RegisterActivityWithOptions(f any, o activity.RegisterOptions) { c.calls[o.Name] = f }

// Register registers every call as the activity of the same name.
func (c *Cloud) Register(r contract.Registry) {
	for name, f := range c.calls {
		r.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
}

// Call makes a call without Temporal, as a plain reconciler does.
func Call[In, Out any](ctx context.Context, c *Cloud, a contract.Activity[In, Out], in In) (Out, error) {
	f, ok := c.calls[a.Name].(func(context.Context, In) (Out, error))
	if !ok {
		panic("nullcloud: no answer for " + a.Name)
	}
	return f(ctx, in)
}

type objectKey struct{}

// WithObject names the object that the calls of ctx are made for:
// "network/<namespace>/<name>". Inside an activity nobody needs to: it is part
// of the workflow's id.
func WithObject(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, objectKey{}, id)
}

func objectOf(ctx context.Context) string {
	if id, ok := ctx.Value(objectKey{}).(string); ok {
		return id
	}
	if !activity.IsActivity(ctx) {
		return ""
	}
	// network/<namespace>/<name>/<operation>/<generation>.<attempt>
	parts := strings.SplitN(activity.GetInfo(ctx).WorkflowExecution.ID, "/", 4)
	return strings.Join(parts[:min(3, len(parts))], "/")
}

// Calls is the number of calls so far.
func (c *Cloud) Calls() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

// First tells when each object made its first call.
func (c *Cloud) First() map[string]time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.first)
}

func (c *Cloud) note(ctx context.Context) {
	id, now := objectOf(ctx), time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	if _, seen := c.first[id]; !seen {
		c.first[id] = now
	}
}

// answer adds an activity that is noted and answers at once.
func answer[In, Out any](c *Cloud, a contract.Activity[In, Out], f func(In) Out) {
	contract.Register(c, a, func(ctx context.Context, in In) (Out, error) {
		c.note(ctx)
		return f(in), nil
	})
}

// nothing adds an activity that answers with nothing.
func nothing[In any](c *Cloud, a contract.Activity[In, contract.None]) {
	answer(c, a, func(In) contract.None { return contract.None{} })
}

// id is an id that looks like a cloud's: a real one's length is part of what
// is stored and sent.
func id(prefix, of string) string { return fmt.Sprintf("%s-%016x", prefix, hash(of)) }

// hash is FNV-1a.
func hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}
