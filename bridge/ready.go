package bridge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
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

// Readiness is red until the caches of all kinds are synced and while Temporal's
// namespace does not answer. The leader and the standby answer alike.
type Readiness struct {
	// Temporal is asked for Namespace.
	Temporal  NamespaceDescriber
	Namespace string
	// Cache holds the kinds.
	Cache cache.Cache
	// Now is time.Now when nil.
	Now func() time.Time

	synced  atomic.Bool
	mu      sync.Mutex
	checked time.Time
	last    error
}

// Start waits until the caches of all kinds are synced; it is a
// manager.Runnable that needs no leadership.
func (r *Readiness) Start(ctx context.Context) error {
	for _, gvk := range Kinds() {
		obj := &metav1.PartialObjectMetadata{}
		obj.SetGroupVersionKind(gvk)
		if _, err := r.Cache.GetInformer(ctx, obj); err != nil {
			if ctx.Err() != nil {
				return nil //nolint:nilerr // stopping is no failure
			}
			return fmt.Errorf("watch %s: %w. For the operator: are the CRDs installed, and may the bridge list them?", gvk.Kind, err)
		}
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
	r.checked, r.last = now(), err
	return err
}
