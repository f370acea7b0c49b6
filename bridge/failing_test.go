package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// failingTemporal lists workflows that fail, all for the same reason. What a
// real server does is in test/deploys.
type failingTemporal struct {
	ids   []string
	more  bool
	err   error
	reads int // of histories
}

func (f *failingTemporal) ListWorkflowExecutions(_ context.Context, in *workflowservice.ListWorkflowExecutionsRequest, _ ...grpc.CallOption) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	out := &workflowservice.ListWorkflowExecutionsResponse{}
	for _, id := range f.ids {
		out.Executions = append(out.Executions, &workflowpb.WorkflowExecutionInfo{Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: "r"}})
	}
	if f.more {
		out.NextPageToken = []byte("more")
	}
	return out, f.err
}

func (f *failingTemporal) GetWorkflowExecutionHistoryReverse(context.Context, *workflowservice.GetWorkflowExecutionHistoryReverseRequest, ...grpc.CallOption) (*workflowservice.GetWorkflowExecutionHistoryReverseResponse, error) {
	f.reads++
	return &workflowservice.GetWorkflowExecutionHistoryReverseResponse{History: &historypb.History{Events: []*historypb.HistoryEvent{{
		EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED,
		Attributes: &historypb.HistoryEvent_WorkflowTaskFailedEventAttributes{WorkflowTaskFailedEventAttributes: &historypb.WorkflowTaskFailedEventAttributes{
			Cause:   enumspb.WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR,
			Failure: &failurepb.Failure{Message: "[TMPRL1100] nondeterministic workflow"},
		}},
	}}}}, nil
}

func TestFailing(t *testing.T) {
	told := []metav1.Condition{{Type: v1.ConditionWorkflowFailing, Status: metav1.ConditionTrue, Reason: ReasonWorkflowFailing, Message: "workers fail to go on with workflow network/infra/n1 (x)"}}
	for name, tc := range map[string]struct {
		temporal failingTemporal
		has      []metav1.Condition
		says     string // the condition that is applied; "" for none
		removes  bool
		fails    bool
	}{
		"nothing fails":                          {},
		"its workflow fails":                     {temporal: failingTemporal{ids: []string{"network/infra/n1"}}, says: "workflow network/infra/n1 (NonDeterministicError: [TMPRL1100] nondeterministic workflow). For the operator: the workers' code cannot continue this history, roll the workers back"},
		"its operation fails":                    {temporal: failingTemporal{ids: []string{"network/infra/n1/create/1.1"}}, says: "workflow network/infra/n1/create/1.1 ("},
		"both fail":                              {temporal: failingTemporal{ids: []string{"network/infra/n1/create/1.1", "network/infra/n1", "network/infra/n1/create/1.2"}}, says: "workflow network/infra/n1 ("},
		"it is told already":                     {temporal: failingTemporal{ids: []string{"network/infra/n1"}}, has: told},
		"another workflow of its fails now":      {temporal: failingTemporal{ids: []string{"network/infra/n1/create/1.1"}}, has: told, says: "workflow network/infra/n1/create/1.1 ("},
		"mended, told by a bridge before":        {has: told, removes: true},
		"more fail than one look tells":          {temporal: failingTemporal{ids: []string{"network/infra/n2"}, more: true}, has: told},
		"others fail":                            {temporal: failingTemporal{ids: []string{"network/elsewhere/n1", "balancer-sweep", "cluster/infra/n1", "network/infra/n1-other"}}},
		"Temporal is away: what is told remains": {temporal: failingTemporal{err: errors.New("unavailable")}, has: told, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			require.NoError(t, v1.AddToScheme(scheme))
			var applied []v1.CommonStatus
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(network(func(n *v1.Network) { n.Status.Conditions = tc.has })).
				WithInterceptorFuncs(interceptor.Funcs{SubResourceApply: func(_ context.Context, _ client.Client, _ string, what runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
					require.Equal(t, "infra-bridge-failing", (&client.SubResourceApplyOptions{}).ApplyOpts(opts).FieldManager)
					raw, err := json.Marshal(what)
					require.NoError(t, err)
					var o struct {
						Metadata metav1.ObjectMeta `json:"metadata"`
						Status   v1.CommonStatus   `json:"status"`
					}
					require.NoError(t, json.Unmarshal(raw, &o))
					require.Equal(t, "n1", o.Metadata.Name)
					applied = append(applied, o.Status)
					return nil
				}}).Build()
			recorder := events.NewFakeRecorder(10)
			f := &Failing{Temporal: &tc.temporal, TemporalNamespace: "infra", Namespace: "infra", Reader: c, Client: c, Events: recorder, Log: slog.New(slog.DiscardHandler)}
			require.Equal(t, tc.fails, f.look(t.Context()) != nil)
			switch {
			case tc.says != "":
				require.Len(t, applied, 1)
				require.Len(t, applied[0].Conditions, 1)
				require.Equal(t, []string{v1.ConditionWorkflowFailing, "True"}, []string{applied[0].Conditions[0].Type, string(applied[0].Conditions[0].Status)})
				require.Contains(t, applied[0].Conditions[0].Message, tc.says)
				require.Contains(t, <-recorder.Events, tc.says)
			case tc.removes:
				require.Equal(t, []v1.CommonStatus{{}}, applied)
				require.NoError(t, f.look(t.Context()))
				require.Len(t, applied, 1, "once")
			default:
				require.Empty(t, applied)
			}
			require.LessOrEqual(t, tc.temporal.reads, 1, "one history for what is new")
		})
	}
}
