package operation

import (
	"go.temporal.io/sdk/workflow"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
)

// Do runs an activity as the work of the current step: within the step's
// budget, retried while its faults are retryable, on the queue of its sort.
func Do[In, Out any](ctx workflow.Context, a contract.Activity[In, Out], in In) (Out, error) {
	s := stepOf(ctx)
	var out Out
	if a.Name == "" { // the cloud has nothing of the kind
		return out, nil
	}
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
		StartToCloseTimeout: lifecycle.QuickTimeout,
		// Throttling and passing failures are repeated for as long as nobody
		// shall hear of them: a stall would run the whole step again.
		ScheduleToCloseTimeout: max(s.budget(), quiet),
		HeartbeatTimeout:       lifecycle.HeartbeatTimeout,
		WaitForCancellation:    true, // the outcome of a running call is always awaited
		RetryPolicy:            lifecycle.RetryPolicy(),
	}
	if a.Wait {
		o.StartToCloseTimeout, o.ScheduleToCloseTimeout = s.budget(), s.budget()
	}
	if a.Long {
		o.HeartbeatTimeout = lifecycle.LongHeartbeat
	}
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, o), a.Name, in).Get(ctx, &out)
	return out, err
}

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
