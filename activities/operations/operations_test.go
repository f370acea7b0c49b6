package operations

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/activities/wait"
	api "github.com/tidbcloud/infra-orchestrator/api/temporal"
)

// server is a Temporal that knows one workflow.
type server struct {
	uid     string // of the memo; empty: no memo
	missing bool
	crowded int // how many updates are turned away
	asked   int // how many came
	answer  contract.LeaseAnswer
	signals []string
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

func (s *server) UpdateWithStartWorkflow(context.Context, client.UpdateWithStartWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	s.asked++
	if s.asked <= s.crowded {
		return nil, serviceerror.NewResourceExhausted(enumspb.RESOURCE_EXHAUSTED_CAUSE_CONCURRENT_LIMIT, "limit on number of concurrent in-flight updates has been reached (10)")
	}
	return handle{answer: s.answer}, nil
}

func (s *server) SignalWithStartWorkflow(_ context.Context, _, name string, _ any, _ client.StartWorkflowOptions, _ any, _ ...any) (client.WorkflowRun, error) {
	s.signals = append(s.signals, name)
	return run{}, nil
}

// handle is an update that has its answer.
type handle struct {
	client.WorkflowUpdateHandle
	answer contract.LeaseAnswer
}

func (h handle) Get(_ context.Context, into any) error {
	*into.(*contract.LeaseAnswer) = h.answer
	return nil
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

// Ten others ask at the same moment: that is nobody's business.
func TestARequestThatIsTurnedAwayIsMadeAgain(t *testing.T) {
	s := &server{crowded: 3, answer: contract.LeaseAnswer{Place: 7, Behind: "Cluster c13"}}
	told := &board{}
	in := contract.LeaseRequest{Keeper: contract.ObjectRef{Kind: "Network", Namespace: "infra", Name: "n1"}, Name: contract.LockShoot,
		Holder: contract.Holder{Object: contract.ObjectRef{Kind: "Cluster", Namespace: "infra", Name: "c1"}}}
	a := &Activities{Temporal: s}
	answer, err := a.AcquireLease(wait.WithTeller(t.Context(), told), in)
	require.NoError(t, err)
	require.Equal(t, 7, answer.Place)
	require.Equal(t, 4, s.asked)
	require.Equal(t, []string{"7th for the Shoot of Network infra/n1, behind Cluster c13"}, told.said)

	s.answer, in.Queued = contract.LeaseAnswer{}, true
	answer, err = a.AcquireLease(wait.WithTeller(t.Context(), told), in)
	require.NoError(t, err)
	require.Zero(t, answer.Place)
	require.Empty(t, told.said[1], "it waits no more")
}

// What is given back is never refused, so it is no update.
func TestALeaseIsGivenBackBySignal(t *testing.T) {
	s := &server{crowded: 1000}
	_, err := (&Activities{Temporal: s}).ReleaseLease(t.Context(), contract.LeaseRequest{Name: contract.LockShoot})
	require.NoError(t, err)
	require.Equal(t, []string{api.SignalRelease}, s.signals)
	require.Zero(t, s.asked)
}

// Of an attempt that ends, nothing is withdrawn: the next one goes on with the
// same request, or has it by now.
func TestAnAttemptGivenUpKeepsItsPlaceInTheQueue(t *testing.T) {
	s := &server{crowded: 1000}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(serviceerror.NewNotFound("activity task not found"))
	_, err := (&Activities{Temporal: s}).AcquireLease(ctx, contract.LeaseRequest{Name: contract.LockShoot})
	require.Error(t, err)
	require.Empty(t, s.signals)
}

// board keeps what is told.
type board struct{ said []string }

func (b *board) Tell(_ context.Context, _ contract.ObjectRef, sentence string) {
	b.said = append(b.said, sentence)
}
