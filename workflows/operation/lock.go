package operation

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
)

// WithLock runs do while the keeper's lock is held by this operation, so that
// no other operation does the like at the same time. What do does must be right
// without it, too: a lock can be lost with its keeper's workflow.
func WithLock(ctx workflow.Context, keeper contract.ObjectRef, name string, do func(workflow.Context) error) error {
	o := operationOf(ctx)
	in := contract.LeaseRequest{Keeper: keeper, Name: name, Holder: contract.Holder{
		Object: o.in.Object, UID: o.in.UID, Operation: o.report.Operation.ID}}
	if err := o.hold(ctx, stepOf(ctx)); err != nil {
		return err
	}
	// A pause that comes now waits until the lock is given back: whoever holds
	// one for days holds up everybody else's changes.
	locked := workflow.WithValue(ctx, lockedKey, true)
	err := o.acquire(locked, &in)
	if err == nil {
		err = do(locked)
	}
	// Also when it was not granted: the answer may be what was lost.
	if rerr := giveBack(locked, in); err == nil {
		err = rerr
	}
	return err
}

// Acquire returns when the keeper has granted the lease; see Lease.
func Acquire(ctx workflow.Context, in contract.LeaseRequest) error {
	err := operationOf(ctx).acquire(ctx, &in)
	if err != nil && isCancelled(ctx, err) { // what is granted already stays, for whoever undoes it
		in.Withdraw = true
		_ = giveBack(ctx, in)
	}
	return err
}

// Lease is the lease that keeps the keeper awake for as long as the object of
// this operation has it.
func Lease(in lifecycle.Input, keeper contract.ObjectRef) contract.LeaseRequest {
	return contract.LeaseRequest{Keeper: keeper, Name: contract.LeaseRunning, Shared: true,
		Holder: contract.Holder{Object: in.Object, UID: in.UID}}
}

// Acquire asks the keeper until it grants the lease. A request that waits has
// a place in the keeper's queue, and keeps it: over retries, over restarts and
// when it is asked again. It waits here, in the workflow, for the keeper to
// signal that its turn has come, for as long as that takes: an activity that
// waited would hold a slot, and an update that waited would be one of the ten
// that the keeper's workflow may have under way.
func (o *operation) acquire(ctx workflow.Context, in *contract.LeaseRequest) error {
	s := stepOf(ctx)
	in.Waiter = o.report.Operation.ID
	o.aboutToWait(ctx, s)
	for began := workflow.Now(ctx); ; {
		turns := o.turns
		answer, err := Do(ctx, contract.AcquireLease, *in)
		if err != nil {
			return err
		}
		o.queue(ctx, answer.Sentence(*in))
		switch {
		case answer.Place == 0 && in.Queued:
			o.quietSince[s.Name] = workflow.Now(ctx) // the queue's time is not the step's
			return nil
		case answer.Place == 0:
			return nil
		}
		in.Queued = true
		pause := askAgain(answer.Place, workflow.Now(ctx).Sub(began))
		_, err = workflow.AwaitWithTimeout(ctx, pause, func() bool { return o.turns > turns || o.paused })
		if err == nil && o.paused {
			err = o.stepAside(ctx, *in)
		}
		if err != nil {
			o.queue(ctx, "")
			return err
		}
	}
}

// askAgain is when a request that waits is made again, in case that the signal
// of its turn is lost, as when somebody terminates the keeper's workflow. The
// keeper then also looks whether those before it still exist, so the first one
// asks each minute at first, and more seldom the longer it has waited: a queue of
// weeks must not fill the history.
func askAgain(place int, waited time.Duration) time.Duration {
	return min(time.Hour, max(time.Duration(min(place, 10))*time.Minute, waited/10))
}

// stepAside leaves the queue during a pause: whose turn comes meanwhile would
// hold up everybody behind it.
func (o *operation) stepAside(ctx workflow.Context, in contract.LeaseRequest) error {
	if err := giveBack(ctx, in); err != nil {
		return err
	}
	return o.hold(ctx, stepOf(ctx))
}

// giveBack gives a lease back, or withdraws the request for it, also when the
// step was cancelled.
func giveBack(ctx workflow.Context, in contract.LeaseRequest) error {
	back, _ := workflow.NewDisconnectedContext(ctx)
	_, err := Do(workflow.WithValue(back, lockedKey, true), contract.ReleaseLease, in)
	return err
}

// queue shows on the operation's page what the request waits for; the activity
// has told the object.
func (o *operation) queue(ctx workflow.Context, sentence string) {
	if op := &o.report.Operation; op.WaitingFor != sentence {
		op.WaitingFor = sentence
		o.details(ctx)
	}
}

// aboutToWait tells the step before it waits: it may take long.
func (o *operation) aboutToWait(ctx workflow.Context, s Step) {
	o.waited[s.Name] = true
	if o.untold {
		o.publish(ctx, false)
	}
}
