package lifecycle

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

const (
	// quickTimeout is the time that one attempt of a quick activity has.
	quickTimeout = 2 * time.Minute
	// heartbeatTimeout is how soon a dead worker is noticed. Waits beat every
	// 3 s (activities/wait); the worker's interceptor beats for all others.
	heartbeatTimeout = 15 * time.Second
	// longHeartbeat is that of a wait of days that an operation goes on after, and
	// idleHeartbeat of one beside which a timer stands, or that somebody's hand has
	// made necessary: there may be thousands, and each heartbeat costs a request.
	longHeartbeat, idleHeartbeat = 30 * time.Second, 90 * time.Second
	// defaultBudget is a step's time before it stalls, when it names none.
	defaultBudget = 5 * time.Minute
)

// Do runs an activity as the work of the current step: within the step's
// budget, retried while its faults are retryable, on the queue of its sort.
func Do[In, Out any](ctx workflow.Context, a contract.Activity[In, Out], in In) (Out, error) {
	s := stepOf(ctx)
	var out Out
	op := operationOf(ctx)
	if locked, _ := ctx.Value(lockedKey).(bool); !locked { // who holds a lock finishes, others wait for it
		if err := op.hold(ctx, s); err != nil {
			return out, err
		}
	}
	if a.Wait {
		op.aboutToWait(ctx, s)
	}
	o := workflow.ActivityOptions{
		TaskQueue:           a.Queue(),
		Summary:             s.Doc,
		StartToCloseTimeout: quickTimeout,
		// Throttling and passing failures are repeated for as long as nobody
		// shall hear of them: a stall would run the whole step again.
		ScheduleToCloseTimeout: max(s.budget(), quiet),
		HeartbeatTimeout:       heartbeatTimeout,
		WaitForCancellation:    true, // the outcome of a running call is always awaited
		RetryPolicy:            retryPolicy(),
	}
	if a.Wait {
		o.StartToCloseTimeout, o.ScheduleToCloseTimeout = s.budget(), s.budget()
	}
	if a.Long {
		o.HeartbeatTimeout = longHeartbeat
	}
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, o), a.Name, in).Get(ctx, &out)
	return out, err
}

func retryPolicy() *temporal.RetryPolicy {
	return &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute}
}

// tellTimeout bounds the telling of a step that is still to end: the next
// telling carries the whole state again, so a lost one costs freshness only.
const tellTimeout = 10 * time.Second

// tell runs a short local activity; a failure is not repeated, only reported.
func tell[In any](ctx workflow.Context, a contract.Activity[In, contract.None], in In) error {
	o := workflow.LocalActivityOptions{ScheduleToCloseTimeout: tellTimeout, RetryPolicy: retryPolicy()}
	err := workflow.ExecuteLocalActivity(workflow.WithLocalActivityOptions(ctx, o), a.Name, in).Get(ctx, nil)
	if err != nil && !temporal.IsCanceledError(err) {
		workflow.GetLogger(ctx).Warn("status not told, the next report carries it", "error", err)
	}
	return err
}

// must runs a short activity until it works: locally at first, since that is
// cheap, then as an activity that waits out any outage. It fails only when it
// is cancelled, or for a fault that no repetition mends.
func must[In, Out any](ctx workflow.Context, a contract.Activity[In, Out], in In) (Out, error) {
	var out Out
	lo := workflow.LocalActivityOptions{ScheduleToCloseTimeout: tellTimeout, RetryPolicy: retryPolicy()}
	err := workflow.ExecuteLocalActivity(workflow.WithLocalActivityOptions(ctx, lo), a.Name, in).Get(ctx, &out)
	if err == nil || temporal.IsCanceledError(err) || !faults.FromTemporal(err).Class.Retryable() {
		return out, err
	}
	o := workflow.ActivityOptions{
		TaskQueue: contract.QueueInfra, Summary: "waiting for the management API server",
		StartToCloseTimeout: quickTimeout, HeartbeatTimeout: heartbeatTimeout, RetryPolicy: retryPolicy(),
	}
	err = workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, o), a.Name, in).Get(ctx, &out)
	return out, err
}

// attachTimeout bounds one attempt of waiting for an operation that another
// object workflow started; the wait is repeated after it.
const attachTimeout = 24 * time.Hour

// WaitShoot waits for a Shoot. When the step runs again after a stall it first
// has the credentials refreshed and asks Gardener to retry: a Failed Shoot stays
// so until somebody does. On a Shoot in any other state the latter does nothing.
func WaitShoot[Out any](ctx workflow.Context, a contract.Activity[contract.ShootInput, Out], in contract.ShootInput) (out Out, err error) {
	if operationOf(ctx).stalls[stepOf(ctx).Name] > 0 {
		if _, err = Do(ctx, contract.RetryShoot, in); err != nil {
			return out, err
		}
	}
	return Do(ctx, a, in)
}
