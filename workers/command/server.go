package command

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	temporalclient "go.temporal.io/sdk/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/activities/management"
	"github.com/tidbcloud/infra-orchestrator/activities/operations"
	"github.com/tidbcloud/infra-orchestrator/workers"
	"github.com/tidbcloud/infra-orchestrator/workers/audit"
)

// server is the manager's runnable that serves the task queues.
type server struct {
	options   *options
	systems   *systems
	temporal  temporalclient.Client
	namespace string
	audit     *audit.Log // nil: none
	log       *slog.Logger
}

// NeedLeaderElection lets every worker serve: Temporal is the mutual exclusion.
func (s *server) NeedLeaderElection() bool { return false }

// Start waits for what the activities need and serves until ctx ends.
func (s *server) Start(ctx context.Context) error {
	if err := s.systems.sync(ctx); err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // stopping is no failure
		}
		return err
	}
	if !s.prepareTemporal(ctx) {
		return nil
	}
	m, err := workers.NewMetrics(metrics.Registry)
	if err != nil {
		return err
	}
	auditor, err := audit.NewInterceptor(s.audit, metrics.Registry)
	if err != nil {
		return err
	}
	common := workers.Options{
		Client: s.temporal, Metrics: m, Log: s.log, Interceptors: s.options.interceptors,
		Audit: auditor, Versioning: s.options.versioning, Limits: s.options.limits,
	}
	return errors.Join(both(ctx,
		func(ctx context.Context) error { return s.serveBalancing(ctx, common) },
		func(ctx context.Context) error { return s.serveOperations(ctx, common) },
	)...)
}

// serveOperations serves all queues but that of the Balancers.
func (s *server) serveOperations(ctx context.Context, o workers.Options) error {
	for _, q := range s.options.queues {
		if q != contract.QueueBalancing {
			o.Queues = append(o.Queues, q)
		}
	}
	if len(o.Queues) == 0 {
		<-ctx.Done()
		return nil
	}
	o.Activities = append(s.systems.registrars(), &operations.Activities{Temporal: s.temporal})
	o.Teller = management.Teller{Activities: s.systems.management}
	return workers.Run(ctx, o)
}

// serveBalancing serves the queue of the Balancers.
func (s *server) serveBalancing(ctx context.Context, o workers.Options) error {
	if s.systems.balancer == nil {
		<-ctx.Done()
		return nil
	}
	return s.systems.balancer.serve(ctx, o)
}

// both runs two functions until the first one ends, and then waits for the
// other, whose context has ended.
func both(ctx context.Context, one, other func(context.Context) error) []error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i, f := range []func(context.Context) error{one, other} {
		wg.Go(func() {
			defer cancel()
			errs[i] = f(ctx)
		})
	}
	wg.Wait()
	return errs
}

// prepareTemporal registers the search attributes. It waits for as long as
// Temporal is away; false means that the worker stops.
func (s *server) prepareTemporal(ctx context.Context) bool {
	for {
		try, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := workers.EnsureSearchAttributes(try, s.temporal, s.namespace)
		cancel()
		if err == nil {
			return true
		}
		s.log.Warn("Temporal is not ready, trying again in 2 s", "error", err)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(2 * time.Second):
		}
	}
}
