package temporal

import (
	"context"
	"fmt"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

// QueryFailing finds running workflows that workers fail to go on with: Temporal
// sets the attribute after five attempts, and takes it away when one succeeds.
const QueryFailing = `ExecutionStatus = "Running" AND TemporalReportedProblems IS NOT NULL`

// TaskFailure is why workers fail to go on with a workflow. Nothing of that is
// in the history of what the workflow does, so nothing of ours can tell it.
type TaskFailure struct {
	// Cause in Temporal's words, such as BadSearchAttributes.
	Cause string
	// Message of the failure; may be empty.
	Message string
}

// Sentence says what is wrong with the workflow, whose it is and what to do.
func (f TaskFailure) Sentence(workflowID string) string {
	why := f.Cause
	if f.Message != "" {
		why = strings.TrimPrefix(f.Cause+": ", ": ") + strings.TrimPrefix(f.Message, f.Cause+": ")
	}
	if why == "" {
		why = "for a reason that is in the workers' logs only"
	}
	return fmt.Sprintf("workers fail to go on with workflow %s (%s). For the operator: %s; it then goes on by itself", workflowID, why, f.hint())
}

func (f TaskFailure) hint() string {
	cause := strings.ToLower(f.Cause)
	switch {
	case strings.Contains(cause, "searchattributes"):
		return "run deploy/temporal/setup.sh, which adds the search attributes that the Temporal namespace lacks"
	case strings.Contains(cause, "nondeterminis"):
		return "the workers' code cannot continue this history, roll the workers back"
	case strings.Contains(cause, "timeout"), strings.Contains(cause, "starttoclose"):
		return "workers take a task and do not finish it, look at their logs, memory and CPU"
	case strings.Contains(cause, "unhandledfailure"):
		return "the workers' code panics, see their logs, and roll the workers back"
	}
	return "see the latest WorkflowTaskFailed in the Temporal UI, and the workers' logs"
}

// Histories is what LatestFailure asks; a Temporal client's WorkflowService is
// one.
type Histories interface {
	GetWorkflowExecutionHistoryReverse(ctx context.Context, in *workflowservice.GetWorkflowExecutionHistoryReverseRequest,
		opts ...grpc.CallOption) (*workflowservice.GetWorkflowExecutionHistoryReverseResponse, error)
}

// LatestFailure reads, from the end of the history, why the latest workflow task
// failed. It is empty when the history does not say.
func LatestFailure(ctx context.Context, temporal Histories, namespace, workflowID, runID string) (TaskFailure, error) {
	resp, err := temporal.GetWorkflowExecutionHistoryReverse(ctx, &workflowservice.GetWorkflowExecutionHistoryReverseRequest{
		Namespace: namespace, Execution: &commonpb.WorkflowExecution{WorkflowId: workflowID, RunId: runID}, MaximumPageSize: 20,
	})
	if err != nil {
		return TaskFailure{}, err
	}
	for _, e := range resp.GetHistory().GetEvents() {
		switch e.GetEventType() {
		case enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED:
			a := e.GetWorkflowTaskFailedEventAttributes()
			return TaskFailure{Cause: a.GetCause().String(), Message: a.GetFailure().GetMessage()}, nil
		case enumspb.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
			return TaskFailure{Cause: e.GetWorkflowTaskTimedOutEventAttributes().GetTimeoutType().String() + "Timeout"}, nil
		case enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
			return TaskFailure{}, nil
		}
	}
	return TaskFailure{}, nil
}

// OwnerOf is the object whose workflow, or whose operation, has an id.
func OwnerOf(workflowID string) (kind, namespace, name string, ok bool) {
	parts := strings.Split(workflowID, "/")
	if len(parts) < 3 || parts[2] == "" {
		return "", "", "", false
	}
	return parts[0], parts[1], parts[2], true
}
