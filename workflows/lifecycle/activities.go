package lifecycle

import (
	"time"

	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

const (
	// QuickTimeout is the time that one attempt of a quick activity has.
	QuickTimeout = 2 * time.Minute
	// HeartbeatTimeout is how soon a dead worker is noticed. Waits beat every
	// 3 s (activities/wait); the worker's interceptor beats for all others.
	HeartbeatTimeout = 15 * time.Second
	// LongHeartbeat is that of a wait of days that an operation goes on after.
	LongHeartbeat = 30 * time.Second
	// IdleHeartbeat is that of a wait beside which a timer stands, or that
	// somebody's hand has made necessary: there may be thousands, and each
	// heartbeat costs a request.
	IdleHeartbeat = 90 * time.Second
)

// RetryPolicy repeats after 1 s, 2 s, 4 s, up to once a minute.
func RetryPolicy() *sdk.RetryPolicy {
	return &sdk.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute}
}

// tellTimeout bounds the telling of a step that is still to end: the next
// telling carries the whole state again, so a lost one costs freshness only.
const tellTimeout = 10 * time.Second

// Try runs a short local activity; a failure is not repeated, only reported.
func Try[In any](ctx workflow.Context, a contract.Activity[In, contract.None], in In) error {
	o := workflow.LocalActivityOptions{ScheduleToCloseTimeout: tellTimeout, RetryPolicy: RetryPolicy()}
	err := workflow.ExecuteLocalActivity(workflow.WithLocalActivityOptions(ctx, o), a.Name, in).Get(ctx, nil)
	if err != nil && !sdk.IsCanceledError(err) {
		workflow.GetLogger(ctx).Warn("status not told, the next report carries it", "error", err)
	}
	return err
}

// Must runs a short activity until it works: locally at first, since that is
// cheap, then as an activity that waits out any outage. It fails only when it
// is cancelled, or for a fault that no repetition mends.
func Must[In, Out any](ctx workflow.Context, a contract.Activity[In, Out], in In) (Out, error) {
	var out Out
	lo := workflow.LocalActivityOptions{ScheduleToCloseTimeout: tellTimeout, RetryPolicy: RetryPolicy()}
	err := workflow.ExecuteLocalActivity(workflow.WithLocalActivityOptions(ctx, lo), a.Name, in).Get(ctx, &out)
	if err == nil || sdk.IsCanceledError(err) || !faults.FromTemporal(err).Class.Retryable() {
		return out, err
	}
	o := workflow.ActivityOptions{
		TaskQueue: contract.QueueInfra, Summary: "waiting for the management API server",
		StartToCloseTimeout: QuickTimeout, HeartbeatTimeout: HeartbeatTimeout, RetryPolicy: RetryPolicy(),
	}
	err = workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, o), a.Name, in).Get(ctx, &out)
	return out, err
}

// AttachTimeout bounds one attempt of waiting for an operation that another
// object workflow started; the wait is repeated after it.
const AttachTimeout = 24 * time.Hour

// ReadObject reads an object until that works; it fails only when it is
// cancelled. A refusal, too, is repeated: it says more about an API server or
// its roles than about the object, and must end nothing.
func ReadObject(ctx workflow.Context, in contract.ReadObjectInput) (contract.ObjectState, error) {
	for {
		s, err := Must(ctx, contract.ReadObject, in)
		if err == nil || sdk.IsCanceledError(err) {
			return s, err
		}
		workflow.GetLogger(ctx).Error("cannot read the object, trying again in a minute", "object", in.Ref.String(), "error", err)
		if err := workflow.Sleep(ctx, time.Minute); err != nil {
			return s, err
		}
	}
}
