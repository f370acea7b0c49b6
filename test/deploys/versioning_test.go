// Package deploys shows what happens to workflows when the workers' version
// changes, against a real Temporal and with activities from memory.
package deploys

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	sdk "go.temporal.io/sdk/client"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/test/stack"
	"github.com/tidbcloud/infra-orchestrator/workers"
	"github.com/tidbcloud/infra-orchestrator/workflows/object"
	"github.com/tidbcloud/infra-orchestrator/workflows/workflowtest"
)

const (
	deployment = "infra-worker"
	// patience bounds one expectation.
	patience = time.Minute
)

// startTemporal runs a Temporal server in memory.
func startTemporal(t *testing.T) sdk.Client {
	t.Helper()
	c, stop, err := stack.StartTemporal()
	require.NoError(t, err)
	t.Cleanup(stop)
	return c
}

// startWorkers runs workers of a version, until the test ends.
func startWorkers(t *testing.T, c sdk.Client, world *workflowtest.World, buildID string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- workers.Run(ctx, workers.Options{
			Client: c, Activities: []workers.Registrar{world}, Log: slog.New(slog.DiscardHandler),
			Versioning: workers.Versioning{On: true, DeploymentName: deployment, BuildID: buildID},
		})
	}()
	t.Cleanup(func() { stop(); require.NoError(t, <-ended) })
}

// release makes a version the current one, as deploy/temporal/release.sh does,
// and waits until all queues route to it.
func release(t *testing.T, c sdk.Client, buildID string) {
	t.Helper()
	h := c.WorkerDeploymentClient().GetHandle(deployment)
	eventually(t, "version "+buildID+" is current", func(ctx context.Context) error {
		// Refused until its workers have polled every queue.
		_, err := h.SetCurrentVersion(ctx, sdk.WorkerDeploymentSetCurrentVersionOptions{BuildID: buildID})
		return err
	})
	eventually(t, "all queues know of version "+buildID, func(ctx context.Context) error {
		d, err := c.WorkflowService().DescribeWorkerDeployment(ctx, &workflowservice.DescribeWorkerDeploymentRequest{Namespace: "infra", DeploymentName: deployment})
		if err != nil {
			return err
		}
		info := d.GetWorkerDeploymentInfo()
		if state := info.GetRoutingConfigUpdateState(); state != enumspb.ROUTING_CONFIG_UPDATE_STATE_COMPLETED {
			return fmt.Errorf("routing is %s", state)
		}
		if got := info.GetRoutingConfig().GetCurrentDeploymentVersion().GetBuildId(); got != buildID {
			return fmt.Errorf("current is %q", got)
		}
		return nil
	})
}

// nudge signals the object workflow, as the bridge does, and starts it where
// there is none.
func nudge(t *testing.T, c sdk.Client, world *workflowtest.World) string {
	t.Helper()
	o := world.Object
	id := temporal.ObjectID(o.Kind, o.Namespace, o.Name)
	_, err := c.SignalWithStartWorkflow(t.Context(), id, temporal.SignalChanged, temporal.Changed{Generation: world.Current().Generation},
		sdk.StartWorkflowOptions{TaskQueue: temporal.TaskQueue}, o.Kind, object.Input{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, ID: o.ID})
	require.NoError(t, err)
	return id
}

func describe(ctx context.Context, c sdk.Client, id string) (*workflowpb.WorkflowExecutionInfo, error) {
	d, err := c.DescribeWorkflowExecution(ctx, id, "")
	return d.GetWorkflowExecutionInfo(), err
}

// versionOf is the version that the workflow is pinned to.
func versionOf(info *workflowpb.WorkflowExecutionInfo) string {
	return info.GetVersioningInfo().GetDeploymentVersion().GetBuildId()
}

// versionsIn lists the versions that have completed tasks of a run, in order.
func versionsIn(t *testing.T, c sdk.Client, id, run string) (versions []string) {
	t.Helper()
	it := c.GetWorkflowHistory(t.Context(), id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		e, err := it.Next()
		require.NoError(t, err)
		if a := e.GetWorkflowTaskCompletedEventAttributes(); a != nil {
			versions = append(versions, a.GetDeploymentVersion().GetBuildId())
		}
	}
	require.NotEmpty(t, versions)
	return versions
}

func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within %s: %v", what, patience, err)
		case <-tick.C:
		}
	}
}

// ended waits for the end of the operation that status tells of.
func ended(t *testing.T, c sdk.Client, world *workflowtest.World, generation int64) *workflowpb.WorkflowExecutionInfo {
	t.Helper()
	var info *workflowpb.WorkflowExecutionInfo
	eventually(t, fmt.Sprintf("the operation of generation %d has ended", generation), func(ctx context.Context) (err error) {
		s := world.Current()
		if s.ObservedGeneration != generation || s.Operation == nil || s.Operation.State != v1.OperationSucceeded {
			return fmt.Errorf("phase %s, operation %+v", s.Phase, s.Operation)
		}
		if info, err = describe(ctx, c, s.Operation.ID); err != nil {
			return err
		}
		if info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED {
			return fmt.Errorf("it is %s", info.GetStatus())
		}
		return nil
	})
	return info
}

// idleOn waits until the object workflow is pinned to a version. It is nudged
// meanwhile as by the bridge's resync.
func idleOn(t *testing.T, c sdk.Client, world *workflowtest.World, buildID string) {
	t.Helper()
	var last string
	eventually(t, "the idle object is on "+buildID, func(ctx context.Context) error {
		info, err := describe(ctx, c, nudge(t, c, world))
		if err != nil {
			return err
		}
		if last = versionOf(info); last != buildID {
			return fmt.Errorf("it is on %q", last)
		}
		return nil
	})
}

// TestDeploy is a deploy in the middle of an operation, the next operation, and
// a rollback.
func TestDeploy(t *testing.T) {
	c := startTemporal(t)
	world := workflowtest.New(v1.KindNetwork)
	reached, goOn := make(chan struct{}), make(chan struct{})
	world.Before = func(activity string, times int) error {
		if activity == contract.EnsureShoot.Name && times == 1 {
			close(reached)
			<-goOn
		}
		return nil
	}

	startWorkers(t, c, world, "v1")
	release(t, c, "v1")
	object := nudge(t, c, world)
	select {
	case <-reached:
	case <-time.After(patience):
		t.Fatal("the creation does not come to its Shoot")
	}
	begun, err := describe(t.Context(), c, object)
	require.NoError(t, err)

	startWorkers(t, c, world, "v2")
	release(t, c, "v2")
	// The object hears of the deploy while its operation runs, and stays with it.
	nudge(t, c, world)
	close(goOn)
	create := ended(t, c, world, 1)
	require.Equal(t, "v1", versionOf(create))
	for _, v := range versionsIn(t, c, create.GetExecution().GetWorkflowId(), create.GetExecution().GetRunId()) {
		require.Equal(t, "v1", v, "an operation ends on the version on which it began")
	}
	for _, v := range versionsIn(t, c, object, begun.GetExecution().GetRunId()) {
		require.Equal(t, "v1", v, "a run of an object workflow does, too")
	}

	idleOn(t, c, world, "v2")
	world.Change(func(s *contract.ObjectState) { s.Generation = 2 })
	nudge(t, c, world)
	update := ended(t, c, world, 2)
	for _, v := range versionsIn(t, c, update.GetExecution().GetWorkflowId(), update.GetExecution().GetRunId()) {
		require.Equal(t, "v2", v, "the next operation begins on the current version")
	}

	release(t, c, "v1") // a rollback
	world.Change(func(s *contract.ObjectState) { s.Generation = 3 })
	nudge(t, c, world)
	again := ended(t, c, world, 3)
	for _, v := range versionsIn(t, c, again.GetExecution().GetWorkflowId(), again.GetExecution().GetRunId()) {
		require.Equal(t, "v1", v, "an object that wakes moves before it begins anything")
	}
	idleOn(t, c, world, "v1")

	world.Change(func(s *contract.ObjectState) { s.Deleting = true; s.Generation = 4 })
	nudge(t, c, world)
	eventually(t, "the object is gone", func(ctx context.Context) error {
		info, err := describe(ctx, c, object)
		if err == nil && info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED {
			err = fmt.Errorf("its workflow is %s", info.GetStatus())
		}
		return err
	})
	require.False(t, world.Current().Exists)
}
