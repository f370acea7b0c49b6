package command

import (
	"context"
	"log/slog"
	"time"

	temporalclient "go.temporal.io/sdk/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

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
	return workers.Run(ctx, workers.Options{
		Client: s.temporal, Queues: s.options.queues, Metrics: m, Log: s.log, Interceptors: s.options.interceptors,
		Audit: auditor, Versioning: s.options.versioning,
		Activities: append(s.systems.registrars(), &operations.Activities{Temporal: s.temporal}),
		Teller:     management.Teller{Activities: s.systems.management},
	})
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
