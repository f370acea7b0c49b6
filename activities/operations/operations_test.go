package operations

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	api "github.com/tidbcloud/infra-orchestrator/api/temporal"
)

// server is a Temporal in which everything waits until its context ends.
type server struct {
	uid     string // of the memo; empty: no memo
	missing bool
	updates []contract.LeaseRequest
	waiting chan struct{} // gets one when an update waits
}

func (s *server) GetWorkflow(context.Context, string, string) client.WorkflowRun { return run{} }

func (s *server) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if s.missing {
		return nil, serviceerror.NewNotFound("no such workflow")
	}
	info := &workflowpb.WorkflowExecutionInfo{}
	if s.uid != "" {
		p, err := converter.GetDefaultDataConverter().ToPayload(s.uid)
		if err != nil {
			return nil, err
		}
		info.Memo = &commonpb.Memo{Fields: map[string]*commonpb.Payload{contract.MemoUID: p}}
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: info}, nil
}

func (s *server) NewWithStartWorkflowOperation(client.StartWorkflowOptions, any, ...any) client.WithStartWorkflowOperation {
	return nil
}

func (s *server) UpdateWithStartWorkflow(ctx context.Context, in client.UpdateWithStartWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	req := in.UpdateOptions.Args[0].(contract.LeaseRequest)
	if in.UpdateOptions.UpdateName == api.UpdateRelease {
		s.updates = append(s.updates, req)
		return nil, errors.New("who asks has gone")
	}
	s.waiting <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

// run is a workflow run that has ended well.
type run struct{ client.WorkflowRun }

func (run) Get(context.Context, any) error { return nil }

func TestWaitOperationOfAFormerObject(t *testing.T) {
	for name, c := range map[string]struct {
		server server
		uid    string
		former bool
	}{
		"the object's own":     {server{uid: "uid-1"}, "uid-1", false},
		"a former object's":    {server{uid: "uid-0"}, "uid-1", true},
		"whoever's it is":      {server{uid: "uid-0"}, "", false},
		"without a memo":       {server{}, "uid-1", false},
		"Temporal has no such": {server{missing: true}, "uid-1", false},
	} {
		t.Run(name, func(t *testing.T) {
			a := &Activities{Temporal: &c.server}
			end, err := a.WaitOperation(t.Context(), contract.OperationRun{WorkflowID: "network/infra/n1/create/1.1", UID: c.uid})
			require.NoError(t, err)
			require.Equal(t, c.former, end.Former)
		})
	}
}

// Whoever is cancelled in the queue leaves it.
func TestCancelledRequestForALeaseIsWithdrawn(t *testing.T) {
	s := &server{waiting: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-s.waiting
		cancel(temporal.NewCanceledError())
	}()
	_, err := (&Activities{Temporal: s}).AcquireLease(ctx, contract.LeaseRequest{Name: contract.LockShoot})
	require.True(t, temporal.IsCanceledError(err))
	require.Len(t, s.updates, 1)
	require.True(t, s.updates[0].Withdraw, "what is granted already stays")
}

// An attempt that has been given up, since it was not heard of, leaves its
// place in the queue to the next.
func TestAnAttemptGivenUpKeepsItsPlaceInTheQueue(t *testing.T) {
	s := &server{waiting: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-s.waiting
		cancel(serviceerror.NewNotFound("activity task not found"))
	}()
	_, err := (&Activities{Temporal: s}).AcquireLease(ctx, contract.LeaseRequest{Name: contract.LockShoot})
	require.Error(t, err)
	require.Empty(t, s.updates)
}

// A worker that stops hands its waits on at once, rather than being killed over
// them.
func TestAWorkerThatStopsKeepsItsPlaceInTheQueue(t *testing.T) {
	s := &server{waiting: make(chan struct{}, 1)}
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	stop := make(chan struct{})
	env.SetWorkerStopChannel(stop)
	a := &Activities{Temporal: s}
	env.RegisterActivity(a.AcquireLease)
	go func() {
		<-s.waiting
		close(stop)
	}()
	_, err := env.ExecuteActivity(a.AcquireLease, contract.LeaseRequest{Name: contract.LockShoot})
	require.ErrorContains(t, err, "WorkerStopping")
	require.Empty(t, s.updates)
}
