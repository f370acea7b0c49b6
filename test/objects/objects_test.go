// Package objects shows what an object's workflow does for many at once and over
// a long time, against a real Temporal and with activities from memory: what its
// test environment does not have are the server's limits.
package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	sdk "go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/activities/operations"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
	"github.com/tidbcloud/infra-orchestrator/test/stack"
	"github.com/tidbcloud/infra-orchestrator/workers"
	"github.com/tidbcloud/infra-orchestrator/workflows/object"
	"github.com/tidbcloud/infra-orchestrator/workflows/workflowtest"
)

// network is a Ready Network on a Temporal of its own.
type network struct {
	*testing.T
	temporal sdk.Client
	world    *workflowtest.World
	id       string
	stop     func() // the workers
}

func newNetwork(t *testing.T) *network {
	c, stop, err := stack.StartTemporal()
	require.NoError(t, err)
	t.Cleanup(stop)
	n := &network{T: t, temporal: c, world: workflowtest.New(v1.KindNetwork), id: temporal.ObjectID(v1.KindNetwork, "infra", "x1")}
	n.work()
	t.Cleanup(func() { n.stop() })
	n.nudge()
	require.Eventually(t, func() bool { return n.world.Current().Phase == v1.PhaseNormal }, time.Minute, 50*time.Millisecond)
	return n
}

// work starts workers.
func (n *network) work() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- workers.Run(ctx, workers.Options{Client: n.temporal, Activities: []workers.Registrar{n.world}, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	}()
	n.stop = func() { cancel(); require.NoError(n, <-ended) }
}

// nudge signals the Network, as the bridge does.
func (n *network) nudge() {
	o := n.world.Object
	_, err := n.temporal.SignalWithStartWorkflow(n.Context(), n.id, temporal.SignalChanged, temporal.Changed{Generation: n.world.Current().Generation},
		temporal.StartObject(o.Kind, o.Namespace, o.Name), o.Kind, object.Input{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, ID: o.ID})
	require.NoError(n, err)
}

// verb asks for one and waits for the answer.
func (n *network) verb(ctx context.Context, name string) error {
	h, err := n.temporal.UpdateWorkflow(ctx, sdk.UpdateWorkflowOptions{WorkflowID: n.id, UpdateName: temporal.UpdateVerb,
		Args: []any{temporal.VerbRequest{Verb: name, By: "oncall"}}, WaitForStage: sdk.WorkflowUpdateStageCompleted})
	if err != nil {
		return err
	}
	return h.Get(ctx, nil)
}

// holder is the request of a Cluster that changes the Shoot under the Network's
// lock.
func (n *network) holder(i int) contract.LeaseRequest {
	id := fmt.Sprintf("cluster/infra/c%d/create/1.1", i)
	return contract.LeaseRequest{Keeper: n.world.Object, Name: contract.LockShoot, Waiter: id, Holder: contract.Holder{
		Object: contract.ObjectRef{Kind: v1.KindCluster, Namespace: "infra", Name: fmt.Sprint("c", i), ID: fmt.Sprintf("%016d", i)},
		UID:    fmt.Sprint("uid-c", i), Operation: id}}
}

// hold is what an operation does with a lock, without all else: it asks, waits to
// be called, holds the lock for a moment, and gives it back.
func hold(ctx workflow.Context, in contract.LeaseRequest) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 10 * time.Second})
	called := workflow.GetSignalChannel(ctx, "control")
	for {
		var a contract.LeaseAnswer
		if err := workflow.ExecuteActivity(ctx, contract.AcquireLease.Name, in).Get(ctx, &a); err != nil {
			return err
		}
		if a.Place == 0 {
			break
		}
		called.ReceiveWithTimeout(ctx, 10*time.Second, nil) // an operation asks again after a minute
		in.Queued = true
	}
	if err := workflow.ExecuteActivity(ctx, "change").Get(ctx, nil); err != nil {
		return err
	}
	return workflow.ExecuteActivity(ctx, contract.ReleaseLease.Name, in).Get(ctx, nil)
}

// holders starts so many at once and returns what waits for them all. most says
// how many had the lock at the same time.
func (n *network) holders(ctx context.Context, clusters int) (wait func(), most *atomic.Int32) {
	var inside atomic.Int32
	most = &atomic.Int32{}
	w := worker.New(n.temporal, "holders", worker.Options{})
	w.RegisterWorkflowWithOptions(hold, workflow.RegisterOptions{Name: "hold"})
	w.RegisterActivityWithOptions(func(context.Context) error {
		if now := inside.Add(1); now > most.Load() {
			most.Store(now)
		}
		time.Sleep(20 * time.Millisecond) // a patch of the Shoot
		inside.Add(-1)
		return nil
	}, activity.RegisterOptions{Name: "change"})
	ops := &operations.Activities{Temporal: n.temporal}
	contract.Register(w, contract.AcquireLease, ops.AcquireLease)
	contract.Register(w, contract.ReleaseLease, ops.ReleaseLease)
	require.NoError(n, w.Start())
	var all []sdk.WorkflowRun
	for i := range clusters {
		in := n.holder(i)
		run, err := n.temporal.ExecuteWorkflow(ctx, sdk.StartWorkflowOptions{ID: in.Waiter, TaskQueue: "holders"}, "hold", in)
		require.NoError(n, err)
		all = append(all, run)
	}
	return func() {
		var errs []error
		for _, run := range all {
			if err := run.Get(ctx, nil); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", run.GetID(), err))
			}
		}
		require.NoError(n, errors.Join(errs...))
		w.Stop()
	}, most
}

// TestManyHolders: more Clusters of one Network than Temporal lets a workflow
// have updates under way. Each has its turn, and the Network hears verbs.
func TestManyHolders(t *testing.T) {
	for _, clusters := range []int{12, 60} {
		t.Run(fmt.Sprint(clusters), func(t *testing.T) {
			n := newNetwork(t)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			began := time.Now()
			wait, most := n.holders(ctx, clusters)
			for _, verb := range []string{temporal.VerbPause, temporal.VerbResume} {
				require.Eventually(t, func() bool { return n.verb(ctx, verb) == nil }, 30*time.Second, 100*time.Millisecond, "it answers %s", verb)
			}
			wait()
			require.EqualValues(t, 1, most.Load(), "one at a time")
			d, err := n.temporal.DescribeWorkflowExecution(t.Context(), n.id, "")
			require.NoError(t, err)
			t.Logf("%d Clusters had the lock one after the other within %s; history of the Network: %d events, %d bytes",
				clusters, time.Since(began).Round(100*time.Millisecond), d.GetWorkflowExecutionInfo().GetHistoryLength(), d.GetWorkflowExecutionInfo().GetHistorySizeBytes())
			require.Less(t, d.GetWorkflowExecutionInfo().GetHistoryLength(), int64(5000))
		})
	}
}

// TestHoldersSurvive: the workers restart and somebody terminates the Network's
// workflow while Clusters wait for its lock.
func TestHoldersSurvive(t *testing.T) {
	n := newNetwork(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	wait, _ := n.holders(ctx, 20) // a lock is lost with its keeper's workflow, so two may have it
	n.stop()
	n.work()
	time.Sleep(500 * time.Millisecond)
	require.NoError(t, n.temporal.TerminateWorkflow(ctx, n.id, "", "by somebody on call"))
	wait()
}

// TestFullRun: a Network that is asked so often that it never rests begins a new
// run before the server refuses more updates of this one.
func TestFullRun(t *testing.T) {
	n := newNetwork(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	ops := &operations.Activities{Temporal: n.temporal}
	first, second := n.holder(1), n.holder(2)
	_, err := ops.AcquireLease(ctx, first)
	require.NoError(t, err)
	second.Queued = true // has the Network look at the holders each time
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 320 { // 2,560: Temporal allows 2,000 a run
				if a, err := ops.AcquireLease(ctx, second); err != nil || a.Place != 1 {
					t.Errorf("place %d, %v", a.Place, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// TestVerbsOverContinueAsNew: a verb that was accepted is answered, also when the
// run that accepted it ends right then.
func TestVerbsOverContinueAsNew(t *testing.T) {
	n := newNetwork(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var answered, turnedAway atomic.Int32
	var lost sync.Map
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			for range 20 {
				name := temporal.VerbReconcile // an operation, and a run that ends after it
				err := n.verb(ctx, name)
				switch {
				case err == nil:
					answered.Add(1)
				case isRefusal(err):
					turnedAway.Add(1) // with a sentence
				default:
					lost.Store(fmt.Sprint(i, err), err)
				}
			}
		})
	}
	wg.Wait()
	lost.Range(func(_, err any) bool { t.Error(err); return true })
	t.Logf("%d granted, %d refused", answered.Load(), turnedAway.Load())
	require.Positive(t, answered.Load())
}

// TestIdleRuns counts the runs that an object at rest leaves behind.
func TestIdleRuns(t *testing.T) {
	n := newNetwork(t)
	const resyncs = 150
	for range resyncs {
		n.nudge()
		time.Sleep(20 * time.Millisecond)
	}
	time.Sleep(2 * time.Second) // visibility
	resp, err := n.temporal.WorkflowService().ListWorkflowExecutions(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: "infra", Query: "WorkflowType = 'Network' AND ExecutionStatus = 'ContinuedAsNew'", PageSize: 1000})
	require.NoError(t, err)
	d, err := n.temporal.DescribeWorkflowExecution(t.Context(), n.id, "")
	require.NoError(t, err)
	bytes := d.GetWorkflowExecutionInfo().GetHistorySizeBytes()
	for _, e := range resp.GetExecutions() {
		bytes += e.GetHistorySizeBytes()
	}
	closed := len(resp.GetExecutions())
	t.Logf("%d resyncs of an object at rest: %d closed runs, %d bytes of history a resync; at one every 10 min a day: %.1f runs, %d KB",
		resyncs, closed, bytes/resyncs, float64(closed-1)/resyncs*144, bytes/resyncs*144/1024)
	require.LessOrEqual(t, closed, 3, "one of its creation, and one each hundred resyncs")
}

// isRefusal: the verb was answered, with a reason why not.
func isRefusal(err error) bool {
	var app *sdktemporal.ApplicationError
	return errors.As(err, &app) && app.Type() == "Refused"
}

// TestStallsHoldNoSlotOfOtherWaits: what waits for people is on a queue of its
// own, and what an operation goes on after in minutes goes on beside it.
func TestStallsHoldNoSlotOfOtherWaits(t *testing.T) {
	n := newNetwork(t)
	var refused atomic.Bool
	n.world.SetBefore(func(activity string, _ int) error {
		if activity == contract.AWS.EnsureBucket.Name && refused.Load() {
			return faults.New(faults.Quota, "TooManyBuckets", "bucket", "no more buckets")
		}
		return nil
	})
	refused.Store(true)
	require.NoError(t, n.verb(t.Context(), temporal.VerbReconcile))
	operation := temporal.OperationID(n.id, "Update", 1, 2) // the creation was the first
	queues := map[string]string{}
	require.Eventually(t, func() bool {
		for it := n.temporal.GetWorkflowHistory(t.Context(), operation, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); it.HasNext(); {
			e, err := it.Next()
			if err != nil {
				return false
			}
			if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
				queues[a.GetActivityType().GetName()] = a.GetTaskQueue().GetName()
			}
		}
		return queues[contract.WaitDependencies.Name] != ""
	}, 30*time.Second, 100*time.Millisecond, "%v", queues)
	require.Equal(t, contract.QueueLongWaits, queues[contract.WaitDependencies.Name])
	require.Equal(t, contract.QueueInfra, queues[contract.AWS.EnsureBucket.Name])
	refused.Store(false)
	require.NoError(t, n.verb(t.Context(), temporal.VerbRetry))
	require.Eventually(t, func() bool { return n.world.Current().Phase == v1.PhaseNormal }, 30*time.Second, 100*time.Millisecond)
}
