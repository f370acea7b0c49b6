package workers

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/tidbcloud/infra-orchestrator/faults"
)

// beatEvery keeps quick activities inside lifecycle's heartbeat timeout (15 s).
const beatEvery = 5 * time.Second

// keepAlive heartbeats for a quick activity, so that the death of its worker is
// noticed in seconds. The call that it returns a context for does not see that
// its workflow is cancelled: it is short, and its outcome is wanted.
//
// It does see that its attempt is lost: Temporal says so, or has not answered
// for the heartbeat timeout and by then starts another attempt elsewhere, or
// lets a deletion go on. A worker that is cut off from Temporal, but not from a
// cloud, must not go on beside that.
//
// The heartbeat is the client's own: activity.RecordHeartbeat keeps its error
// to itself, and ends the context at the first one that fails, 10 s after the
// last one that did not.
func keepAlive(ctx context.Context, timeout time.Duration, beat func(context.Context) error) (context.Context, func()) {
	call, end := context.WithCancelCause(context.WithoutCancel(ctx))
	cancel := func() {}
	if deadline, ok := ctx.Deadline(); ok {
		call, cancel = context.WithDeadline(call, deadline)
	}
	unhook := context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), worker.ErrWorkerShutdown) { // nobody takes the outcome any more
			end(lostAttempt("the worker has stopped"))
		}
	})
	go func() {
		if err := beats(call, timeout, beat); err != nil {
			end(err)
		}
	}()
	return call, func() { unhook(); end(nil); cancel() }
}

// beats heartbeats until ctx ends, or until the attempt is lost: that is its
// error.
func beats(ctx context.Context, timeout time.Duration, beat func(context.Context) error) error {
	every := beatEvery
	if timeout > 0 {
		every = min(every, timeout/3)
	}
	t := time.NewTicker(every)
	defer t.Stop()
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		// Temporal counts from when a heartbeat arrives, so from its sending on
		// we are never later than Temporal.
		sent := time.Now()
		one, cancel := ctx, context.CancelFunc(func() {})
		if timeout > 0 {
			one, cancel = context.WithDeadline(ctx, last.Add(timeout))
		}
		err := beat(one)
		late := one.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case answered(err):
			last = sent
		case refused(err):
			return lostAttempt("Temporal does not know it any more: " + err.Error())
		case late, timeout > 0 && time.Since(last) >= timeout:
			return lostAttempt("no heartbeat has reached Temporal for " + timeout.String() + ": " + err.Error())
		}
	}
}

// answered: the heartbeat is recorded; also where Temporal asks for something
// in return that a quick activity does not listen to.
func answered(err error) bool {
	var cancelled *temporal.CanceledError
	return err == nil || errors.As(err, &cancelled) || errors.Is(err, activity.ErrActivityPaused) || errors.Is(err, activity.ErrActivityReset)
}

// refused: the attempt has timed out, or its workflow has ended.
func refused(err error) bool {
	var attempt *serviceerror.NotFound
	var namespace *serviceerror.NamespaceNotFound
	return errors.As(err, &attempt) || errors.As(err, &namespace)
}

// codeLost is the code of the fault of an attempt that is lost.
const codeLost = "AttemptLost"

func lostAttempt(why string) *faults.Fault {
	return faults.New(faults.Transient, codeLost, "this attempt", "%s; it was ended, another one goes on", why)
}

// lostIn is the fault of an attempt that was lost, nil for any other.
func lostIn(call context.Context) *faults.Fault {
	if f := faults.As(context.Cause(call)); f != nil && f.Code == codeLost {
		return f
	}
	return nil
}
