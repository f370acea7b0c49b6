package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	temporalclient "go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/tidbcloud/infra-orchestrator/api/balancer/v1alpha1"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
)

// Defaults of the Schedule of the Balancers.
const (
	DefaultBalancerPeriod      = 15 * time.Second
	DefaultBalancerConcurrency = 100
)

const (
	// triggerPause is the least time between two triggers: changes that come
	// together cause one sweep.
	triggerPause = time.Second
	// retryBalancers is how often the kind is looked for that is not installed.
	retryBalancers = 10 * time.Second
	// sweepTimeout ends a sweep that no worker takes, since it keeps the next
	// from starting.
	sweepTimeout = 10 * time.Minute
	// catchup is how late a sweep may start: missed ones are not made up for.
	catchup = 10 * time.Second
)

// Schedules is the part of Temporal's client that the Balancers need.
type Schedules interface {
	Create(ctx context.Context, options temporalclient.ScheduleOptions) (temporalclient.ScheduleHandle, error)
	GetHandle(ctx context.Context, id string) temporalclient.ScheduleHandle
}

// Balancers keeps the Schedule of the sweeps over all Balancers, and triggers a
// sweep when a Balancer has changed. It says no more than that: the sweep reads
// for itself. A lost trigger costs one period.
type Balancers struct {
	// Schedules of the Temporal namespace.
	Schedules Schedules
	// Cache of the metadata of Balancers in all namespaces. It is started here.
	Cache cache.Cache
	// Period between two sweeps.
	Period time.Duration
	// Concurrency is how many Balancers are changed at a time.
	Concurrency int
	Log         *slog.Logger

	down bool // Temporal did not answer the last time
}

var (
	_ manager.Runnable               = (*Balancers)(nil)
	_ manager.LeaderElectionRunnable = (*Balancers)(nil)
)

// NeedLeaderElection makes the leader trigger, alone.
func (b *Balancers) NeedLeaderElection() bool { return true }

// Start runs until ctx ends. It waits for as long as Temporal is away or the
// kind is not installed: the other kinds go on meanwhile.
func (b *Balancers) Start(ctx context.Context) error {
	changed := make(chan struct{}, 1)
	go b.watch(ctx, changed)
	if !b.persist(ctx, b.ensure) {
		return nil
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
		if !b.persist(ctx, b.trigger) || !pause(ctx, triggerPause) {
			return nil
		}
	}
}

// persist calls f until it works; false means that ctx has ended.
func (b *Balancers) persist(ctx context.Context, f func(context.Context) error) bool {
	wait := 500 * time.Millisecond
	for {
		try, cancel := context.WithTimeout(ctx, signalTimeout)
		err := f(try)
		cancel()
		b.tell(err)
		if err == nil {
			return true
		}
		if !pause(ctx, wait) {
			return false
		}
		wait = min(2*wait, 30*time.Second)
	}
}

// tell logs when Temporal stops or begins to answer, once.
func (b *Balancers) tell(err error) {
	if (err != nil) == b.down {
		return
	}
	b.down = err != nil
	if b.down {
		b.Log.Warn("the Schedule of the Balancers cannot be reached, trying again", "schedule", temporal.ScheduleBalanceReplicas, "error", err)
		return
	}
	b.Log.Info("the Schedule of the Balancers answers again", "schedule", temporal.ScheduleBalanceReplicas)
}

// ensure creates the Schedule, or brings it up to date. Whether it is paused,
// and why, is the operators'.
func (b *Balancers) ensure(ctx context.Context) error {
	_, err := b.Schedules.Create(ctx, temporalclient.ScheduleOptions{
		ID: temporal.ScheduleBalanceReplicas, Spec: b.spec(), Action: b.action(),
		Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP, CatchupWindow: catchup,
		Note: "spreads the replicas of all Balancers; pause to stop balancing",
	})
	if !errors.Is(err, sdktemporal.ErrScheduleAlreadyRunning) {
		return err
	}
	return b.Schedules.GetHandle(ctx, temporal.ScheduleBalanceReplicas).Update(ctx, temporalclient.ScheduleUpdateOptions{
		DoUpdate: func(in temporalclient.ScheduleUpdateInput) (*temporalclient.ScheduleUpdate, error) {
			s := in.Description.Schedule // keeps its State
			spec := b.spec()
			s.Spec, s.Action = &spec, b.action()
			s.Policy = &temporalclient.SchedulePolicies{Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP, CatchupWindow: catchup}
			return &temporalclient.ScheduleUpdate{Schedule: &s}, nil
		},
	})
}

func (b *Balancers) spec() temporalclient.ScheduleSpec {
	return temporalclient.ScheduleSpec{Intervals: []temporalclient.ScheduleIntervalSpec{{Every: b.Period}}}
}

func (b *Balancers) action() *temporalclient.ScheduleWorkflowAction {
	return &temporalclient.ScheduleWorkflowAction{
		ID: temporal.ScheduleBalanceReplicas, Workflow: temporal.WorkflowBalanceReplicas, TaskQueue: temporal.QueueBalancing,
		Args:               []any{temporal.Sweep{Concurrency: b.Concurrency}},
		WorkflowRunTimeout: sweepTimeout, StaticSummary: "Balance replicas of all Balancers",
	}
}

// trigger starts a sweep now, or right after the one that runs: that one may
// have looked before the change. While the Schedule is paused nothing starts.
func (b *Balancers) trigger(ctx context.Context) error {
	handle := b.Schedules.GetHandle(ctx, temporal.ScheduleBalanceReplicas)
	now, err := handle.Describe(ctx)
	var gone *serviceerror.NotFound
	if errors.As(err, &gone) {
		b.Log.Warn("the Schedule of the Balancers was deleted, creating it again", "schedule", temporal.ScheduleBalanceReplicas)
		err = b.ensure(ctx)
	} else if err == nil && now.Schedule.State != nil && now.Schedule.State.Paused {
		return nil
	}
	if err != nil {
		return err
	}
	return handle.Trigger(ctx, temporalclient.ScheduleTriggerOptions{Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE})
}

// watch says on changed that some Balancer is new or has a new spec. Any number
// of changes before it is read count as one.
func (b *Balancers) watch(ctx context.Context, changed chan<- struct{}) {
	go func() {
		if err := b.Cache.Start(ctx); err != nil {
			b.Log.Error("Balancers are watched no longer, changes wait for the next sweep", "error", err)
		}
	}()
	for {
		err := b.subscribe(ctx, changed)
		if err == nil {
			return
		}
		b.Log.Warn("Balancers cannot be watched yet, trying again in 10 s", "error", err)
		if !pause(ctx, retryBalancers) {
			return
		}
	}
}

func (b *Balancers) subscribe(ctx context.Context, changed chan<- struct{}) error {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.KindBalancer))
	informer, err := b.Cache.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch Balancers: %w. For the operator: is the CRD installed, and may the bridge list them?", err)
	}
	notify := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { notify() },
		UpdateFunc: func(before, after any) {
			if generation(before) != generation(after) {
				notify()
			}
		},
	})
	return err
}

func generation(o any) int64 {
	if m, ok := o.(metav1.Object); ok {
		return m.GetGeneration()
	}
	return -1
}

// pause waits; false means that ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
