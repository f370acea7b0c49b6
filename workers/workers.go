// Package workers puts the pieces into Temporal workers: task queues, what is
// registered on them, and what surrounds every activity.
package workers

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/activities/wait"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	"github.com/tidbcloud/infra-orchestrator/workflows/balancing"
	"github.com/tidbcloud/infra-orchestrator/workflows/cluster"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
	"github.com/tidbcloud/infra-orchestrator/workflows/network"
	"github.com/tidbcloud/infra-orchestrator/workflows/object"
	"github.com/tidbcloud/infra-orchestrator/workflows/provider"
)

// Kinds are all kinds that have a lifecycle.
func Kinds() []lifecycle.Kind {
	return []lifecycle.Kind{provider.TypeKind(), provider.Kind(), network.Kind(), cluster.Kind()}
}

// Queues are the task queues that a worker may serve.
func Queues() []string {
	return []string{contract.QueueInfra, contract.QueueWaits, contract.QueueLongWaits, contract.QueueBalancing}
}

// Registrar is a folder of activities.
type Registrar interface {
	Register(r contract.Registry)
}

// Options say what Run serves.
type Options struct {
	// Client of the Temporal namespace.
	Client client.Client
	// Queues to serve; Queues() when empty.
	Queues []string
	// Activities of every system.
	Activities []Registrar
	// Teller shows on the custom resources what they wait for.
	Teller wait.Teller
	// Limits bound what goes on at once.
	Limits Limits
	// Metrics counts activities; see NewMetrics.
	Metrics *Metrics
	// Audit writes down what activities change; see audit.NewInterceptor. Nil
	// for no audit.
	Audit interceptor.WorkerInterceptor
	// Interceptors of a test's worker; they stand inside our own.
	Interceptors []interceptor.WorkerInterceptor
	// Versioning of workflows over deploys.
	Versioning Versioning
	Log        *slog.Logger
}

const (
	// maxQuick bounds the quick activities at a time in one process.
	maxQuick = 200
	// maxWaits bounds the waits: each is a goroutine and a heartbeat. Those of days
	// beat a sixth as often, and do nothing else before an event of theirs.
	maxWaits, maxLongWaits = 5000, 20000
	// stopTimeout is the time that running activities have at shutdown. Waits
	// return at once; quick ones finish, or are repeated elsewhere.
	stopTimeout = 20 * time.Second
	// heartbeatThrottle bounds how late an activity hears that it is cancelled.
	heartbeatThrottle = 5 * time.Second
	// longThrottle is that of waits of days.
	longThrottle = 10 * time.Second
)

// Run serves the queues until ctx ends.
func Run(ctx context.Context, o Options) error {
	queues := o.Queues
	if len(queues) == 0 {
		queues = Queues()
	}
	started := make([]worker.Worker, 0, len(queues))
	defer func() { stopAll(started) }()
	for _, q := range queues {
		w, err := o.newWorker(ctx, q)
		if err != nil {
			return err
		}
		if err := w.Start(); err != nil {
			return fmt.Errorf("worker of task queue %s: %w", q, err)
		}
		started = append(started, w)
		o.Log.Info("worker serves", "taskQueue", q)
	}
	<-ctx.Done()
	return nil
}

// stopAll stops the workers at the same time: each gives its activities
// stopTimeout, and the process has little more than that in all.
func stopAll[W interface{ Stop() }](started []W) {
	var all sync.WaitGroup
	for _, w := range started {
		all.Go(w.Stop)
	}
	all.Wait()
}

func (o Options) newWorker(ctx context.Context, queue string) (worker.Worker, error) {
	if !slices.Contains(Queues(), queue) {
		return nil, fmt.Errorf("task queue %q is not one of %v", queue, Queues())
	}
	background := context.WithoutCancel(ctx)
	if o.Teller != nil {
		background = wait.WithTeller(background, o.Teller)
	}
	wo := worker.Options{
		BackgroundActivityContext:        background,
		Interceptors:                     o.interceptors(),
		DeploymentOptions:                o.Versioning.options(),
		WorkerStopTimeout:                stopTimeout,
		MaxHeartbeatThrottleInterval:     heartbeatThrottle,
		DefaultHeartbeatThrottleInterval: heartbeatThrottle,
		DisableWorkflowWorker:            contract.IsWaits(queue),
	}
	if queue == contract.QueueLongWaits {
		wo.MaxHeartbeatThrottleInterval = longThrottle
	}
	o.Limits.apply(queue, &wo)
	w := worker.New(o.Client, queue, wo)
	switch queue {
	case contract.QueueInfra:
		RegisterWorkflows(w)
	case contract.QueueBalancing:
		RegisterBalancing(w)
	}
	for _, a := range o.Activities {
		a.Register(w)
	}
	return w, nil
}

// interceptors from the outermost on: what turns faults into Temporal errors
// and keeps activities alive, the audit, a test's.
func (o Options) interceptors() []interceptor.WorkerInterceptor {
	all := []interceptor.WorkerInterceptor{&activities{metrics: o.Metrics, teller: o.Teller}}
	if o.Audit != nil {
		all = append(all, o.Audit)
	}
	return append(all, o.Interceptors...)
}

// RegisterBalancing registers the workflow of the Balancers.
func RegisterBalancing(r worker.WorkflowRegistry) {
	r.RegisterWorkflowWithOptions(balancing.BalanceReplicas, workflow.RegisterOptions{
		Name: temporal.WorkflowBalanceReplicas, VersioningBehavior: workflow.VersioningBehaviorPinned,
	})
}

// RegisterWorkflows registers the object and operation workflows of all kinds.
// With versioning each run ends on the version of the workers on which it
// began; an object workflow begins its next run on the current one
// (workflows/object, version.go).
func RegisterWorkflows(r worker.WorkflowRegistry) {
	for _, k := range Kinds() {
		r.RegisterWorkflowWithOptions(object.Of(k), workflow.RegisterOptions{Name: k.Name, VersioningBehavior: workflow.VersioningBehaviorPinned})
		for verb, run := range k.Operations {
			r.RegisterWorkflowWithOptions(run, workflow.RegisterOptions{Name: k.OperationType(verb), VersioningBehavior: workflow.VersioningBehaviorPinned})
		}
	}
}
