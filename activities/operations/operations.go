// Package operations implements the activities on operation workflows
// themselves, in Temporal.
package operations

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// Workflows is the part of a Temporal client that this package needs.
type Workflows interface {
	GetWorkflow(ctx context.Context, workflowID, runID string) client.WorkflowRun
	NewWithStartWorkflowOperation(options client.StartWorkflowOptions, workflow any, args ...any) client.WithStartWorkflowOperation
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
// Temporal does not know has ended long ago, without a word.
func (a *Activities) WaitOperation(ctx context.Context, in contract.OperationRun) (contract.OperationEnd, error) {
	stop := beat(ctx, "operation "+in.WorkflowID+" runs")
	defer stop()
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
		return contract.OperationEnd{}, ctx.Err()
	case errors.As(err, &unknown):
		return contract.OperationEnd{Failure: "Temporal no longer knows it"}, nil
	case errors.As(err, &ended) && temporal.IsCanceledError(err):
		return contract.OperationEnd{Cancelled: true}, nil
	case errors.As(err, &ended):
		return contract.OperationEnd{Failure: errors.Unwrap(ended).Error()}, nil
	default:
		return contract.OperationEnd{}, faults.New(faults.Transient, "TemporalUnavailable", in.WorkflowID, "%s", err)
	}
}

// beat heartbeats the sentence until stopped, so that a dead worker is noticed.
func beat(ctx context.Context, sentence string) (stop func()) {
	if !activity.IsActivity(ctx) {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		t := time.NewTicker(3 * time.Second)
		defer t.Stop()
		for {
			activity.RecordHeartbeat(ctx, sentence)
			select {
			case <-done:
				return
			case <-t.C:
			}
		}
	}()
	return func() { close(done) }
}
