package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// resetByHand resets an operation to its last workflow task, as people do in
// the Temporal UI: what it did after that is done again, in a new run.
func resetByHand(ctx context.Context, t *testing.T, id string) {
	t.Helper()
	d, err := world.Temporal.DescribeWorkflowExecution(ctx, id, "")
	require.NoError(t, err)
	run := d.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	var task int64
	for iter := world.Temporal.GetWorkflowHistory(ctx, id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); iter.HasNext(); {
		event, err := iter.Next()
		require.NoError(t, err)
		if event.GetEventType() == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			task = event.GetEventId()
		}
	}
	_, err = world.Temporal.WorkflowService().ResetWorkflowExecution(ctx, &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: world.State.TemporalNamespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: run},
		Reason: "by hand", WorkflowTaskFinishEventId: task, RequestId: fmt.Sprintf("%s/%d", run, task),
	})
	require.NoError(t, err)
}

// resetAfterTerminate brings a terminated operation back while its object rests,
// and asks for retry at the same time. Whichever of the two goes on, the other
// one ends, and everything exists once.
func resetAfterTerminate(ctx context.Context, t *testing.T, n *v1.Network) {
	t.Helper()
	operation := n.Status.Operation.ID
	resetByHand(ctx, t, operation)
	if out, err := infractl("retry", "network", n.Name); err != nil {
		require.ErrorContains(t, err, "there is nothing to retry", out)
	}
	until(ctx, t, n, func() bool { return isReady(n) })
	eventually(t, time.Minute, "the operation that was reset ends", func() error {
		d, err := world.Temporal.DescribeWorkflowExecution(ctx, operation, "")
		if err == nil && d.GetWorkflowExecutionInfo().GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
			err = fmt.Errorf("%s runs", operation)
		}
		return err
	})
	kinds := map[string]bool{}
	for _, r := range owned(ctx, t, n.Annotations[v1.AnnotationID]) {
		kind, _, _ := strings.Cut(r, " ")
		require.False(t, kinds[kind], "twice: %s", r)
		kinds[kind] = true
	}
	require.Len(t, kinds, 3, "bucket, OIDC provider, zone")
}
