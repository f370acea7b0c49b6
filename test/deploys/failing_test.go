package deploys

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/bridge"
	"github.com/tidbcloud/infra-orchestrator/workflows/workflowtest"
)

// TestFailingWorkflowIsTold takes a search attribute from the Temporal namespace
// while an object rests. Its workflow cannot go on after the next change, and
// can say nothing; the bridge says it on the object, and takes it back once the
// attribute is there again.
func TestFailingWorkflowIsTold(t *testing.T) {
	c := startTemporal(t)
	world := workflowtest.New(v1.KindNetwork)
	startWorkers(t, c, world, "v1")
	release(t, c, "v1")
	nudge(t, c, world)
	ended(t, c, world, 1)

	kube, recorder := networkIn(t, world.Object.Name), events.NewFakeRecorder(10)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	failing := &bridge.Failing{Temporal: c.WorkflowService(), TemporalNamespace: "infra", Namespace: "infra", Reader: kube, Client: kube,
		Events: recorder, Log: slog.New(slog.DiscardHandler), Every: 500 * time.Millisecond}
	go func() { done <- failing.Start(ctx) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-done) })

	_, err := c.OperatorService().RemoveSearchAttributes(ctx, &operatorservice.RemoveSearchAttributesRequest{
		Namespace: "infra", SearchAttributes: []string{temporal.AttrPhase.GetName()}})
	require.NoError(t, err)
	world.Change(func(s *contract.ObjectState) { s.Generation = 2 })
	id := nudge(t, c, world)
	begun := time.Now()
	eventually(t, "the object says that its workflow fails", func(ctx context.Context) error {
		n := &v1.Network{}
		if err := kube.Get(ctx, client.ObjectKey{Namespace: "infra", Name: world.Object.Name}, n); err != nil {
			return err
		}
		told := meta.FindStatusCondition(n.Status.Conditions, v1.ConditionWorkflowFailing)
		if told == nil {
			return errors.New("it says nothing")
		}
		require.Equal(t, metav1.ConditionTrue, told.Status)
		require.Contains(t, told.Message, "workers fail to go on with workflow "+id)
		require.Contains(t, told.Message, "BadSearchAttributes")
		require.Contains(t, told.Message, temporal.AttrPhase.GetName())
		require.Contains(t, told.Message, "For the operator: run deploy/temporal/setup.sh")
		return nil
	})
	t.Logf("told %s after the change", time.Since(begun).Round(time.Second))
	require.Contains(t, <-recorder.Events, "Warning WorkflowTaskFailed workers fail to go on")
	require.Empty(t, recorder.Events, "once")

	_, err = c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: "infra", SearchAttributes: map[string]enumspb.IndexedValueType{temporal.AttrPhase.GetName(): enumspb.INDEXED_VALUE_TYPE_KEYWORD}})
	require.NoError(t, err)
	ended(t, c, world, 2)
	eventually(t, "the object says so no more", func(ctx context.Context) error {
		n := &v1.Network{}
		if err := kube.Get(ctx, client.ObjectKey{Namespace: "infra", Name: world.Object.Name}, n); err != nil {
			return err
		}
		if told := meta.FindStatusCondition(n.Status.Conditions, v1.ConditionWorkflowFailing); told != nil {
			return fmt.Errorf("%+v", told)
		}
		return nil
	})
}

// networkIn is an API server with a Network, which keeps of what is applied to
// its status the condition that this is about.
func networkIn(t *testing.T, name string) client.Client {
	t.Helper()
	s := runtime.NewScheme()
	require.NoError(t, v1.AddToScheme(s))
	n := &v1.Network{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: name, UID: "uid-1", Generation: 2}}
	n.Status.Conditions = []metav1.Condition{{Type: v1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Ready", LastTransitionTime: metav1.Now()}}
	return fake.NewClientBuilder().WithScheme(s).WithObjects(n).WithStatusSubresource(n).WithInterceptorFuncs(interceptor.Funcs{
		SubResourceApply: func(ctx context.Context, c client.Client, _ string, what runtime.ApplyConfiguration, _ ...client.SubResourceApplyOption) error {
			raw, err := json.Marshal(what)
			if err != nil {
				return err
			}
			applied, stored := &v1.Network{}, &v1.Network{}
			if err := json.Unmarshal(raw, applied); err != nil {
				return err
			}
			if err := c.Get(ctx, client.ObjectKeyFromObject(applied), stored); err != nil {
				return err
			}
			stored.Status.Conditions = slices.DeleteFunc(stored.Status.Conditions, func(c metav1.Condition) bool { return c.Type == v1.ConditionWorkflowFailing })
			stored.Status.Conditions = append(stored.Status.Conditions, applied.Status.Conditions...)
			return c.Status().Update(ctx, stored)
		},
	}).Build()
}
