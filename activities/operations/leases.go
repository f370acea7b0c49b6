package operations

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/activities/wait"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// crowded is for how long an attempt repeats a request that is turned away
// since ten others are under way: each takes milliseconds.
const crowded = 30 * time.Second

// AcquireLease asks the keeper's object workflow, which is started if it does
// not run, and shows on the holder's object what it waits for. Repeating the
// request changes nothing: the keeper knows the holder.
func (a *Activities) AcquireLease(ctx context.Context, in contract.LeaseRequest) (contract.LeaseAnswer, error) {
	answer, err := a.ask(ctx, in)
	for until := time.Now().Add(crowded); isCrowded(err) && time.Now().Before(until); answer, err = a.ask(ctx, in) {
		select {
		case <-ctx.Done():
			return answer, context.Cause(ctx)
		case <-time.After(50*time.Millisecond + rand.N(450*time.Millisecond)):
		}
	}
	if err != nil {
		return contract.LeaseAnswer{}, leaseFault(err, in.Keeper.String())
	}
	if in.Queued || answer.Place > 0 {
		wait.Tell(ctx, in.Holder.Object, answer.Sentence(in))
	}
	return answer, nil
}

// ReleaseLease gives a lease back, or withdraws the request for it. A keeper
// that is no more needs nothing: its workflow ends when it has looked.
func (a *Activities) ReleaseLease(ctx context.Context, in contract.LeaseRequest) (contract.None, error) {
	keeper := temporal.StartObject(in.Keeper.Kind, in.Keeper.Namespace, in.Keeper.Name)
	_, err := a.Temporal.SignalWithStartWorkflow(ctx, keeper.ID, temporal.SignalRelease, in, keeper, in.Keeper.Kind, object(in.Keeper))
	if err != nil {
		return contract.None{}, leaseFault(err, in.Keeper.String())
	}
	if in.Queued {
		wait.Tell(ctx, in.Holder.Object, "")
	}
	return contract.None{}, nil
}

// ask sends a request to the keeper's object workflow and returns its answer.
// The update's id is this activity's, so that an attempt whose answer was lost
// is not a second update.
func (a *Activities) ask(ctx context.Context, in contract.LeaseRequest) (answer contract.LeaseAnswer, err error) {
	keeper := temporal.StartObject(in.Keeper.Kind, in.Keeper.Namespace, in.Keeper.Name)
	start := a.Temporal.NewWithStartWorkflowOperation(keeper, in.Keeper.Kind, object(in.Keeper))
	opts := client.UpdateWorkflowOptions{WorkflowID: keeper.ID, UpdateName: temporal.UpdateAcquire, Args: []any{in}, WaitForStage: client.WorkflowUpdateStageCompleted}
	if activity.IsActivity(ctx) {
		info := activity.GetInfo(ctx)
		opts.UpdateID = info.WorkflowExecution.RunID + "/" + info.ActivityID + "/" + temporal.UpdateAcquire
	}
	handle, err := a.Temporal.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{StartWorkflowOperation: start, UpdateOptions: opts})
	if err == nil {
		err = handle.Get(ctx, &answer)
	}
	return answer, err
}

func object(ref contract.ObjectRef) temporal.Object {
	return temporal.Object{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, ID: ref.ID}
}

// isCrowded: the workflow has as many updates under way as Temporal allows.
func isCrowded(err error) bool {
	var full *serviceerror.ResourceExhausted
	return errors.As(err, &full)
}

// leaseFault classifies what came of a request. A refusal of the keeper is a
// fault of ours already; all else passes.
func leaseFault(err error, keeper string) error {
	var app *sdk.ApplicationError
	var missing *serviceerror.NotFound
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &app):
		if f := faults.FromTemporal(err); f.Code != "Unclassified" {
			return f
		}
	case errors.As(err, &missing): // it continued as new, or ended, meanwhile
		f := faults.New(faults.Transient, "KeeperMoved", keeper, "the workflow that grants leases has just continued as new")
		f.RetryAt = time.Second
		return f
	}
	return faults.New(faults.Transient, "NotGranted", keeper, "the workflow that grants leases did not answer: %s", err)
}
