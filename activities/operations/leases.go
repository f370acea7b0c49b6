package operations

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// AcquireLease asks the keeper's object workflow, and starts it if it does not
// run, until it grants the lease. Repeating the request changes nothing: the
// keeper knows the holder.
func (a *Activities) AcquireLease(ctx context.Context, in contract.LeaseRequest) (contract.None, error) {
	waiting, stop := beat(ctx, fmt.Sprintf("waiting for %s to grant %q", in.Keeper, in.Name))
	defer stop()
	err := a.update(waiting, temporal.UpdateAcquire, in)
	if waiting.Err() == nil {
		return contract.None{}, err
	}
	// Only who was cancelled withdraws. After any other end, as that of this
	// worker, another attempt waits on with the same request, or has it by now.
	cause := context.Cause(waiting)
	if sdk.IsCanceledError(cause) {
		a.withdraw(ctx, in)
	}
	return contract.None{}, cause
}

// withdraw takes back a request that waits in the queue: it must not be granted
// later to somebody who is no longer there.
func (a *Activities) withdraw(ctx context.Context, in contract.LeaseRequest) {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer done()
	in.Withdraw = true
	if err := a.update(ctx, temporal.UpdateRelease, in); err != nil {
		slog.WarnContext(ctx, "request for a lease not withdrawn, the keeper sweeps it", "keeper", in.Keeper.String(), "lease", in.Name, "error", err)
	}
}

// ReleaseLease gives a lease back. A keeper that is no more needs nothing.
func (a *Activities) ReleaseLease(ctx context.Context, in contract.LeaseRequest) (contract.None, error) {
	return contract.None{}, a.update(ctx, temporal.UpdateRelease, in)
}

// update sends an update to the keeper's object workflow and waits for its
// answer. Its id is this activity's, so that an attempt whose answer was lost
// is not a second update.
func (a *Activities) update(ctx context.Context, name string, in contract.LeaseRequest) error {
	id := temporal.ObjectID(in.Keeper.Kind, in.Keeper.Namespace, in.Keeper.Name)
	start := a.Temporal.NewWithStartWorkflowOperation(temporal.StartObject(in.Keeper.Kind, in.Keeper.Namespace, in.Keeper.Name), in.Keeper.Kind,
		temporal.Object{Kind: in.Keeper.Kind, Namespace: in.Keeper.Namespace, Name: in.Keeper.Name, ID: in.Keeper.ID})
	opts := client.UpdateWorkflowOptions{WorkflowID: id, UpdateName: name, Args: []any{in}, WaitForStage: client.WorkflowUpdateStageCompleted}
	if activity.IsActivity(ctx) {
		info := activity.GetInfo(ctx)
		opts.UpdateID = info.WorkflowExecution.RunID + "/" + info.ActivityID + "/" + name
	}
	handle, err := a.Temporal.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{StartWorkflowOperation: start, UpdateOptions: opts})
	if err == nil {
		err = handle.Get(ctx, nil)
	}
	return leaseFault(err, id)
}

// leaseFault classifies what came of an update. A refusal of the keeper is a
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
