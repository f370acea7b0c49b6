// Package operations implements the activities on operation workflows
// themselves, in Temporal.
package operations

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/activities/wait"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// Workflows is the part of a Temporal client that this package needs.
type Workflows interface {
	GetWorkflow(ctx context.Context, workflowID, runID string) client.WorkflowRun
	DescribeWorkflowExecution(ctx context.Context, workflowID, runID string) (*workflowservice.DescribeWorkflowExecutionResponse, error)
	NewWithStartWorkflowOperation(options client.StartWorkflowOptions, workflow any, args ...any) client.WithStartWorkflowOperation
	SignalWithStartWorkflow(ctx context.Context, workflowID, signalName string, signalArg any,
		options client.StartWorkflowOptions, workflow any, workflowArgs ...any) (client.WorkflowRun, error)
	UpdateWithStartWorkflow(ctx context.Context, options client.UpdateWithStartWorkflowOptions) (client.WorkflowUpdateHandle, error)
}

// Activities implements the contract's operation activities.
type Activities struct {
	Temporal Workflows
}

// Register registers all activities of this package.
func (a *Activities) Register(r contract.Registry) {
	contract.Register(r, contract.WaitOperation, a.WaitOperation)
	contract.Register(r, contract.AcquireLease, a.AcquireLease)
	contract.Register(r, contract.ReleaseLease, a.ReleaseLease)
}

// WaitOperation waits until the operation has ended and says how. One that
// Temporal does not know has ended long ago, without a word. One of a former
// object of the same name is not waited for.
func (a *Activities) WaitOperation(ctx context.Context, in contract.OperationRun) (contract.OperationEnd, error) {
	ctx, stop := beat(ctx, "operation "+in.WorkflowID+" runs")
	defer stop()
	if in.UID != "" {
		end, err := a.former(ctx, in)
		if end.Former || err != nil {
			return end, err
		}
	}
	var result struct {
		State string `json:"state"`
	}
	err := a.Temporal.GetWorkflow(ctx, in.WorkflowID, "").Get(ctx, &result)
	var ended *temporal.WorkflowExecutionError
	var unknown *serviceerror.NotFound
	switch {
	case err == nil:
		return contract.OperationEnd{State: result.State}, nil
	case ctx.Err() != nil:
		return contract.OperationEnd{}, context.Cause(ctx)
	case errors.As(err, &unknown):
		return contract.OperationEnd{Unknown: true, Failure: "Temporal no longer knows it"}, nil
	case errors.As(err, &ended) && temporal.IsCanceledError(err):
		return contract.OperationEnd{Cancelled: true}, nil
	case errors.As(err, &ended):
		return contract.OperationEnd{Failure: errors.Unwrap(ended).Error()}, nil
	default:
		return contract.OperationEnd{}, faults.New(faults.Transient, "TemporalUnavailable", in.WorkflowID, "%s", err)
	}
}

// former says whether the operation was started for another object than the one
// that has its name now. An object workflow writes into the memo for whom.
func (a *Activities) former(ctx context.Context, in contract.OperationRun) (contract.OperationEnd, error) {
	d, err := a.Temporal.DescribeWorkflowExecution(ctx, in.WorkflowID, "")
	var unknown *serviceerror.NotFound
	switch {
	case errors.As(err, &unknown):
		return contract.OperationEnd{}, nil
	case err != nil && ctx.Err() != nil:
		return contract.OperationEnd{}, context.Cause(ctx)
	case err != nil:
		return contract.OperationEnd{}, faults.New(faults.Transient, "TemporalUnavailable", in.WorkflowID, "%s", err)
	}
	memo := func(name string) (value string) {
		p := d.GetWorkflowExecutionInfo().GetMemo().GetFields()[name]
		if p != nil && converter.GetDefaultDataConverter().FromPayload(p, &value) != nil {
			return "" // not ours to judge
		}
		return value
	}
	uid := memo(contract.MemoUID)
	return contract.OperationEnd{Former: uid != "" && uid != in.UID, Identity: memo(contract.MemoIdentity)}, nil
}

// beat heartbeats the sentence until stopped, so that a dead worker is noticed.
// The context that it returns ends with the activity's; or when the worker
// stops, with a cause that lets another worker go on at once.
func beat(ctx context.Context, sentence string) (_ context.Context, stop func()) {
	if !activity.IsActivity(ctx) {
		return ctx, func() {}
	}
	working, end := context.WithCancelCause(ctx)
	go func() {
		t := time.NewTicker(3 * time.Second)
		defer t.Stop()
		for {
			activity.RecordHeartbeat(ctx, sentence)
			select {
			case <-working.Done():
				return
			case <-activity.GetWorkerStopChannel(ctx):
				end(wait.Stopping(sentence))
			case <-t.C:
			}
		}
	}()
	return working, func() { end(nil) }
}
