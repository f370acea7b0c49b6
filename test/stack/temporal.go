package stack

import (
	"context"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
)

// Workflows lists workflows by a visibility query, the running and the closed.
func (s *Stack) Workflows(ctx context.Context, query string) ([]*workflowpb.WorkflowExecutionInfo, error) {
	var all []*workflowpb.WorkflowExecutionInfo
	var next []byte
	for {
		page, err := s.Temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query, NextPageToken: next})
		if err != nil {
			return nil, err
		}
		all = append(all, page.GetExecutions()...)
		if next = page.GetNextPageToken(); len(next) == 0 {
			return all, nil
		}
	}
}

// History reads the whole history of one run.
func (s *Stack) History(ctx context.Context, workflowID, runID string) (*historypb.History, error) {
	h := &historypb.History{}
	it := s.Temporal.GetWorkflowHistory(ctx, workflowID, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		e, err := it.Next()
		if err != nil {
			return nil, err
		}
		h.Events = append(h.Events, e)
	}
	return h, nil
}
