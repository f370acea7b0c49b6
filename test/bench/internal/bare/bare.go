// Package bare is the ceiling: as many workflows and activities as the product
// runs, with empty bodies. What the product costs above it is its own.
package bare

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"golang.org/x/sync/errgroup"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
)

// Shape is how many activities an operation of a kind has.
type Shape struct {
	Quick int `json:"quick"` // on the workflows' queue
	Waits int `json:"waits"` // on the queue of waits
}

const (
	objectType    = "Object"
	operationType = "Operation"
	emptyActivity = "Empty"
	signalName    = "changed"
	// starters is how many workflows are started at a time: the bridge's
	// concurrency of two kinds.
	starters = 16
)

// Start serves both queues until ctx ends.
func Start(ctx context.Context, c client.Client) error {
	for _, queue := range []string{contract.QueueInfra, contract.QueueWaits} {
		o := worker.Options{MaxConcurrentActivityExecutionSize: 200}
		if queue == contract.QueueWaits {
			o.MaxConcurrentActivityExecutionSize, o.DisableWorkflowWorker = 5000, true
		}
		w := worker.New(c, queue, o)
		if queue == contract.QueueInfra {
			w.RegisterWorkflowWithOptions(object, workflow.RegisterOptions{Name: objectType})
			w.RegisterWorkflowWithOptions(operation, workflow.RegisterOptions{Name: operationType})
		}
		w.RegisterActivityWithOptions(empty, activity.RegisterOptions{Name: emptyActivity})
		if err := w.Start(); err != nil {
			return err
		}
		context.AfterFunc(ctx, w.Stop)
	}
	return nil
}

// Run starts n object workflows of each shape.
func Run(ctx context.Context, c client.Client, n int, shapes map[string]Shape) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(starters)
	for kind, shape := range shapes {
		for i := range n {
			g.Go(func() error {
				id := fmt.Sprintf("%s/bench/%d", kind, i)
				_, err := c.SignalWithStartWorkflow(ctx, id, signalName, nil, client.StartWorkflowOptions{
					ID: id, TaskQueue: contract.QueueInfra, WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
				}, objectType, shape, false)
				return err
			})
		}
	}
	return g.Wait()
}

// object takes its signal, runs one operation, continues as new and rests.
func object(ctx workflow.Context, shape Shape, resting bool) error {
	workflow.GetSignalChannel(ctx, signalName).Receive(ctx, nil)
	if resting {
		return errors.New("nobody signals twice here")
	}
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: workflow.GetInfo(ctx).WorkflowExecution.ID + "/create"})
	if err := workflow.ExecuteChildWorkflow(ctx, operationType, shape).Get(ctx, nil); err != nil {
		return err
	}
	return workflow.NewContinueAsNewError(ctx, objectType, shape, true)
}

// operation runs its activities one after the other.
func operation(ctx workflow.Context, shape Shape) error {
	for queue, times := range []int{shape.Quick, shape.Waits} {
		name := contract.QueueInfra
		if queue == 1 {
			name = contract.QueueWaits
		}
		actx := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{TaskQueue: name, StartToCloseTimeout: time.Minute})
		for range times {
			if err := workflow.ExecuteActivity(actx, emptyActivity).Get(actx, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

func empty(context.Context) error { return nil }
