package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

const (
	// readyTimeout bounds the question to Temporal; kubelet's probes wait 1 s
	// by default, deploy/ gives them 5 s.
	readyTimeout = 3 * time.Second
	// readyTTL is how long an answer counts, so that probes from many sides do
	// not become load.
	readyTTL = 5 * time.Second
)

// NamespaceDescriber is the part of Temporal's API that readiness needs.
type NamespaceDescriber interface {
	DescribeNamespace(ctx context.Context, in *workflowservice.DescribeNamespaceRequest,
		opts ...grpc.CallOption) (*workflowservice.DescribeNamespaceResponse, error)
}

// Readiness is red until Sync has returned, and while Temporal's namespace
// does not answer. The leader and the standby answer alike.
type Readiness struct {
	// Temporal is asked for Namespace.
	Temporal  NamespaceDescriber
	Namespace string
	// Sync returns when all caches are synced; its error stops the process.
	Sync func(context.Context) error
	// Now is time.Now when nil.
	Now func() time.Time

	synced  atomic.Bool
	seen    atomic.Bool // Check has been green once
	mu      sync.Mutex
	checked time.Time
	last    error
}

// Start waits for the caches; it is a manager.Runnable.
func (r *Readiness) Start(ctx context.Context) error {
	if err := r.Sync(ctx); err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // stopping is no failure
		}
		return err
	}
	r.synced.Store(true)
	<-ctx.Done()
	return nil
}

// NeedLeaderElection tells the manager to start it on the standby, too.
func (r *Readiness) NeedLeaderElection() bool { return false }

// Check is a healthz.Checker.
func (r *Readiness) Check(req *http.Request) error {
	if !r.synced.Load() {
		return errors.New("caches are not synced yet")
	}
	now := time.Now
	if r.Now != nil {
		now = r.Now
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.checked.IsZero() && now().Sub(r.checked) < readyTTL {
		return r.last
	}
	// Not the request's context: a probe that gives up must not be remembered
	// as Temporal's failure.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), readyTimeout)
	defer cancel()
	_, err := r.Temporal.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: r.Namespace})
	if err != nil {
		err = fmt.Errorf("temporal namespace %q does not answer: %w", r.Namespace, err)
	}
	r.tell(err)
	r.checked, r.last = now(), err
	if err == nil {
		r.seen.Store(true)
	}
	return err
}

// CheckOnce is a healthz.Checker that is green for good once Check was. What
// does not need Temporal goes on being served while it is away, and a process
// that could never reach it does not replace one that could.
func (r *Readiness) CheckOnce(req *http.Request) error {
	if r.seen.Load() {
		return nil
	}
	return r.Check(req)
}

// tell logs changes: the HTTP answer withholds the reason.
func (r *Readiness) tell(err error) {
	switch {
	case err != nil && (r.last == nil || r.checked.IsZero()):
		slog.Warn("not ready", "reason", err)
	case err == nil && (r.last != nil || r.checked.IsZero()):
		slog.Info("ready")
	}
}
