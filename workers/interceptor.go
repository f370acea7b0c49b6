package workers

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/activities/ratelimit"
	"github.com/tidbcloud/infra-orchestrator/activities/reads"
	"github.com/tidbcloud/infra-orchestrator/activities/wait"
	"github.com/tidbcloud/infra-orchestrator/faults"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
)

// activities surrounds every activity: it turns faults into Temporal errors,
// counts, and keeps quick activities alive.
type activities struct {
	interceptor.WorkerInterceptorBase
	metrics *Metrics
	teller  wait.Teller
}

// InterceptActivity implements interceptor.WorkerInterceptor.
func (a *activities) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	i := &inbound{metrics: a.metrics, teller: a.teller}
	i.Next = next
	return i
}

type inbound struct {
	interceptor.ActivityInboundInterceptorBase
	metrics *Metrics
	teller  wait.Teller
}

// ExecuteActivity implements interceptor.ActivityInboundInterceptor.
func (i *inbound) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	info := activity.GetInfo(ctx)
	start := time.Now()
	ctx = reads.Note(ratelimit.WithAttempt(ctx))
	var stop func()
	switch {
	case info.IsLocalActivity:
	case contract.IsWaits(info.TaskQueue): // its looks end when it is cancelled or lost
		ctx, stop = wait.Beat(ctx, max(beatEvery, info.HeartbeatTimeout/3))
		defer stop()
	default:
		ctx, stop = keepAlive(ctx, info.HeartbeatTimeout, func(ctx context.Context) error {
			return activity.GetClient(ctx).RecordActivityHeartbeat(ctx, info.TaskToken)
		})
		defer stop()
	}
	answered := i.tellSlow(ctx, info)
	out, err := i.Next.ExecuteActivity(ctx, in)
	answered()
	if lost := lostIn(ctx); err != nil && lost != nil {
		i.metrics.observe(info.ActivityType.Name, lost, time.Since(start))
		return nil, faults.ToTemporal(lost) // another attempt speaks for the step now
	}
	i.metrics.observe(info.ActivityType.Name, err, time.Since(start))
	i.tell(ctx, info, err)
	return out, faults.ToTemporal(used(ctx, err))
}

// used adds to a fault what the attempt has read, so that a stall notices what
// was mended since, however soon.
func used(ctx context.Context, err error) error {
	f := faults.As(err)
	if f == nil || f.Class.Retryable() {
		return err
	}
	with := *f
	with.Used = reads.Of(ctx)
	return &with
}

// tellTimeout bounds a telling: the outcome of a call must not be lost because
// an API server that is only to show it does not answer.
const tellTimeout = 5 * time.Second

// slowAfter is when a call that should be quick is told of.
const slowAfter = 5 * time.Second

// tellSlow shows on the object that a quick activity has not ended for a while:
// its step may be too young to have been told by the operation, and then status
// shows the one before it. Whatever is quick costs a timer. Call answered once
// it has ended.
func (i *inbound) tellSlow(ctx context.Context, info activity.Info) (answered func()) {
	caller, ok := lifecycle.CallerOf(ctx)
	name := info.ActivityType.Name
	switch {
	case i.teller == nil || !ok || info.IsLocalActivity || contract.IsWaits(info.TaskQueue):
		return func() {}
	case name == contract.AcquireLease.Name, strings.HasPrefix(name, "management."):
		// The one says itself what it waits for; the others wait for the API server
		// that this would be written to.
		return func() {}
	}
	say := func(sentence string) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellTimeout)
		defer cancel()
		i.teller.Tell(ctx, caller.Object, sentence)
	}
	told := make(chan struct{})
	timer := time.AfterFunc(slowAfter, func() {
		defer close(told)
		say(fmt.Sprintf("step %s: %s has not answered for %s", caller.Step, name, slowAfter))
	})
	return func() {
		if !timer.Stop() {
			<-told // in this order
			say("")
		}
	}
}

// tell shows on the object that a quick activity is tried again, and why: its
// step may be too young to have been told by the operation.
func (i *inbound) tell(ctx context.Context, info activity.Info, err error) {
	caller, ok := lifecycle.CallerOf(ctx)
	if i.teller == nil || !ok || info.IsLocalActivity || contract.IsWaits(info.TaskQueue) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	f := faults.As(err)
	switch {
	case f != nil && f.Class.Retryable():
		i.teller.Tell(ctx, caller.Object, fmt.Sprintf("%s is tried again after attempt %d: %s", caller.Step, info.Attempt, f.Error()))
	case info.Attempt > 1:
		i.teller.Tell(ctx, caller.Object, "")
	}
}
