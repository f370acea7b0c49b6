// Package command is the worker as a command. cmd/worker runs it as it is;
// tests build it with interceptors of their own (test/chaos).
package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	temporalclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tidbcloud/infra-orchestrator/internal/runtime"
	"github.com/tidbcloud/infra-orchestrator/workers"
	"github.com/tidbcloud/infra-orchestrator/workers/audit"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
)

type options struct {
	runtime.Flags
	queues       []string
	audit        audit.Options
	versioning   workers.Versioning
	limits       workers.Limits
	cloudShare   float64
	interceptors []interceptor.WorkerInterceptor
}

// New returns the command. The interceptors stand inside the worker's own: an
// activity that they keep waiting is kept alive, their errors count as faults.
func New(interceptors ...interceptor.WorkerInterceptor) *cobra.Command {
	o := options{interceptors: interceptors}
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Run the workflows and activities",
		Long: `Run the workflows and activities: everything that is done to clusters,
networks and backups is done by a worker, at the word of Temporal.

Any number of workers may run, and may come and go at any time: an operation
goes on at the step where it was. Task queues can be split over deployments:
infra has workflows and quick activities, infra-waits has the waits of an
operation's steps, which cost little but are many, infra-long-waits those for
people and for other objects, which last for days, and infra-balancing has the
Balancers of all namespaces, which need rights of their own (docs/balancing.md).

Environment:
  TEMPORAL_ADDRESS        Temporal frontend (default localhost:7233)
  TEMPORAL_NAMESPACE      Temporal namespace (default infra)
  TEMPORAL_TLS_*, TEMPORAL_API_KEY, TEMPORAL_PROFILE, TEMPORAL_CONFIG_FILE
                          as in Temporal's own tools
  GARDENER_CONFIG         kubeconfig of the garden, overrides gardener.kubeconfigPath
  CONFIG_SERVICE_URL      config-service, overrides configService.url
  AWS_ENDPOINT_URL        an AWS emulator, overrides aws.endpoint
  INFRA_ENV               value of the tag infra.cloud.pingcap.com/env

Audit: one JSON record before and one after each call that changes something
outside, to --audit-log. A worker that cannot write there does not start, and
what cannot be recorded is not done.

Probes: /healthz is about the process; /readyz is red until the caches of the
management and garden API are synced and while Temporal does not answer.
Metrics: infra_activity_attempts_total{activity,outcome},
infra_activity_duration_seconds{activity}, infra_audit_write_failures_total, and
of the calls to each cloud account infra_ratelimit_calls_total{account,service,
outcome}, infra_ratelimit_wait_seconds_total, infra_ratelimit_throttled_total,
infra_ratelimit_rate.`,
		Example: `  # on a laptop, against the devstack
  worker --kubeconfig ./kubeconfig --log-format text

  # only the waits
  worker --task-queues infra-waits,infra-long-waits

  # only the Balancers: needs neither garden nor config-service
  worker --task-queues infra-balancing`,
		Version:       runtime.Version(),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), &o) },
	}
	cmd.SetVersionTemplate(runtime.VersionLine("worker") + "\n")
	fs := cmd.Flags()
	o.AddTo(fs, ":8080", ":8081")
	o.audit.AddTo(fs)
	o.versioning.AddTo(fs, runtime.Version())
	o.limits.AddTo(fs)
	fs.Float64Var(&o.cloudShare, "cloud-share", 1, "part of each cloud account's rate limits that this process takes: 0.5 where two workers run; more than 1 where a limit has been raised")
	fs.StringSliceVar(&o.queues, "task-queues", workers.Queues(), "task queues to serve: "+strings.Join(workers.Queues(), ", "))
	return cmd
}

func shareError(share float64) error {
	if share > 0 {
		return nil
	}
	return fmt.Errorf("--cloud-share is %g: it must be more than 0", share)
}

func run(ctx context.Context, o *options) error {
	if err := errors.Join(o.Validate(), o.audit.Validate(), o.versioning.Validate(), o.limits.Validate(), shareError(o.cloudShare)); err != nil {
		return err
	}
	log, err := o.Log.NewLogger(os.Stderr)
	if err != nil {
		return err
	}
	runtime.InstallLogger(log)
	cfg, err := runtime.LoadConfig(o.ConfigFile, os.Getenv)
	if err != nil {
		return err
	}
	if cfg.ConfigService.URL == "" && !onlyBalancing(o.queues) {
		return errors.New("no config-service: set configService.url in --config, or CONFIG_SERVICE_URL")
	}
	sdkMetrics, err := runtime.TemporalMetrics(metrics.Registry)
	if err != nil {
		return err
	}
	topts, err := runtime.TemporalOptions(log, sdkMetrics)
	if err != nil {
		return err
	}
	topts.ContextPropagators = append(topts.ContextPropagators, lifecycle.Propagator())
	temporal, err := temporalclient.NewLazyClient(topts)
	if err != nil {
		return fmt.Errorf("temporal client: %w", err)
	}
	defer temporal.Close()
	// Opened after all else is known to be right, and before anything runs.
	auditLog, err := audit.Open(o.audit, identity())
	if err != nil {
		return err
	}
	defer func() { _ = auditLog.Close() }()
	s, err := newSystems(o, cfg)
	if err != nil {
		return err
	}
	readiness := &runtime.Readiness{Temporal: temporal.WorkflowService(), Namespace: topts.Namespace, Sync: s.ready}
	serve := &server{options: o, systems: s, temporal: temporal, namespace: topts.Namespace, audit: auditLog, log: log}
	if err := errors.Join(
		s.manager.Add(readiness), s.manager.Add(serve),
		s.manager.AddHealthzCheck("process", healthz.Ping),
		s.manager.AddReadyzCheck("ready", readiness.Check),
	); err != nil {
		return err
	}
	log.Info("worker starts", "version", runtime.Version(), "namespace", o.Namespace, "taskQueues", o.queues,
		"temporal", topts.HostPort, "temporalNamespace", topts.Namespace, "audit", o.audit.Path,
		"versioning", o.versioning.On, "deployment", o.versioning.DeploymentName, "buildID", o.versioning.BuildID)
	return s.manager.Start(ctx)
}

// identity of the process, as Temporal's SDK writes it: pid@host.
func identity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%d@%s", os.Getpid(), host)
}

var _ manager.Runnable = (*server)(nil)
