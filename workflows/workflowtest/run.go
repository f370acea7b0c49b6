package workflowtest

import (
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
	"github.com/tidbcloud/infra-orchestrator/workflows/object"
)

// Env is a world with the workflows of one kind in the SDK's test environment,
// where time is skipped.
type Env struct {
	*testsuite.TestWorkflowEnvironment
	*World
	Kind lifecycle.Kind
}

// NewEnv returns an environment with a fresh object of the kind.
func NewEnv(t *testing.T, k lifecycle.Kind) *Env {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))
	e := &Env{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), World: New(k.Name), Kind: k}
	e.SetTestTimeout(30 * time.Second)
	e.SetDetachedChildWait(false) // an operation may outlive its object's workflow
	// The first test of a process runs a second and more on a busy machine.
	e.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: 20 * time.Second})
	e.RegisterWorkflowWithOptions(object.Of(k), workflow.RegisterOptions{Name: k.Name})
	for verb, run := range k.Operations {
		e.RegisterWorkflowWithOptions(run, workflow.RegisterOptions{Name: k.OperationType(verb)})
	}
	e.World.Register(e)
	id := temporal.ObjectID(k.Name, e.Object.Namespace, e.Object.Name)
	e.SetStartWorkflowOptions(startOptions(id))
	return e
}

// RunObject runs the object workflow until it ends or rests.
func (e *Env) RunObject() {
	e.ExecuteWorkflow(e.Kind.Name, object.Input{
		Kind: e.Object.Kind, Namespace: e.Object.Namespace, Name: e.Object.Name, ID: e.Object.ID,
	})
}

// Nudge signals the object workflow, as the bridge does after a change.
func (e *Env) Nudge() {
	e.SignalWorkflow(temporal.SignalChanged, temporal.Changed{Generation: e.Current().Generation})
}

// Rest ends a test run at a time when the object should rest.
func (e *Env) Rest(after time.Duration) {
	e.RegisterDelayedCallback(func() { e.CancelWorkflow() }, after)
}

// happy returns the activities of an undisturbed creation, each once.
func happy(t *testing.T, k lifecycle.Kind) []string {
	e := NewEnv(t, k)
	e.Rest(time.Hour)
	e.RunObject()
	requireReady(t, e)
	return slices.Compact(e.Journal())
}

func requireReady(t *testing.T, e *Env) {
	t.Helper()
	var cancelled *sdk.CanceledError
	if err := e.GetWorkflowError(); err != nil && !errors.As(err, &cancelled) { // by Rest
		var fresh *workflow.ContinueAsNewError
		require.ErrorAs(t, err, &fresh, "an object workflow never fails")
	}
	s := e.Current()
	require.Equal(t, e.Kind.Well, s.Phase)
	require.Equal(t, s.Generation, s.ObservedGeneration)
	require.NotNil(t, s.Ready)
	require.Equal(t, metav1.ConditionTrue, s.Ready.Status)
	require.Equal(t, v1.OperationSucceeded, s.Operation.State)
	require.EqualValues(t, 100, s.Operation.Progress)
}

// EveryStep generates the tests that every kind must pass: for each activity
// of its creation, a fault that stalls and is mended, a failure that is only
// passing, a deletion in the middle, a crash's second attempt, and something
// that is missing for a moment, for ever, or until it is made again; and for
// each activity of its deletion a fault that stalls, and something missing.
func EveryStep(t *testing.T, k lifecycle.Kind) {
	seen := map[string]int{}
	for _, activity := range happy(t, k) {
		seen[activity]++
		t.Run("stall/"+activity, func(t *testing.T) { stallOnce(t, k, activity) })
		t.Run("transient/"+activity, func(t *testing.T) { transientOnce(t, k, activity) })
		t.Run("delete/"+activity, func(t *testing.T) { deleteDuring(t, k, activity) })
		t.Run("change/"+activity, func(t *testing.T) { changeDuring(t, k, activity) })
		verbsAt(t, k, activity)
		goneAt(t, k, activity, seen[activity])
	}
	t.Run("retain", func(t *testing.T) {
		keepsAll(t, k, "Retained", func(s *contract.ObjectState) { s.DeletionPolicy = v1.DeletionPolicyRetain })
	})
	t.Run("force-delete", func(t *testing.T) {
		keepsAll(t, k, "LeftBehind", func(s *contract.ObjectState) { s.ForceDelete = true })
	})
	for _, activity := range deletion(t, k) {
		t.Run("stalled deletion/"+activity, func(t *testing.T) { stallDeletion(t, k, activity) })
		t.Run("gone in a deletion/"+activity, func(t *testing.T) { goneInDeletion(t, k, activity) })
	}
}

func stallOnce(t *testing.T, k lifecycle.Kind, activity string) {
	e := NewEnv(t, k)
	e.Before = func(name string, times int) error {
		if name == activity && times == 1 {
			return faults.New(faults.Quota, "LimitExceeded", "the thing", "no more of them")
		}
		return nil
	}
	e.Rest(24 * time.Hour)
	e.RunObject()
	requireStallTold(t, e, "Quota")
	requireReady(t, e)
	require.Equal(t, metav1.ConditionFalse, e.Condition(v1.ConditionStalled).Status)
	requireMonotonic(t, e)
}

func transientOnce(t *testing.T, k lifecycle.Kind, activity string) {
	e := NewEnv(t, k)
	e.Before = func(name string, times int) error {
		if name == activity && times <= 3 {
			return faults.New(faults.Throttled, "RequestLimitExceeded", "the thing", "slow down")
		}
		return nil
	}
	e.Rest(24 * time.Hour)
	e.RunObject()
	requireReady(t, e)
	for _, r := range e.Reports() {
		require.Nil(t, r.LastError, "throttling is not a failure")
	}
}

func deleteDuring(t *testing.T, k lifecycle.Kind, activity string) {
	e := NewEnv(t, k)
	asked := false
	e.Before = func(name string, _ int) error {
		if name == activity && !asked {
			asked = true
			e.Change(func(s *contract.ObjectState) { s.Deleting = true; s.Generation++ })
			e.RegisterDelayedCallback(e.Nudge, 0)
		}
		return nil
	}
	e.RunObject()
	require.True(t, e.IsWorkflowCompleted())
	require.NoError(t, e.GetWorkflowError())
	require.False(t, e.Current().Exists, "the finalizer must be gone at the end")
	require.Equal(t, contract.RemoveFinalizer.Name, last(e.Journal()))
}

func changeDuring(t *testing.T, k lifecycle.Kind, activity string) {
	e := NewEnv(t, k)
	asked := false
	e.Before = func(name string, _ int) error {
		if name == activity && !asked {
			asked = true
			e.Change(func(s *contract.ObjectState) { s.Generation++ })
			e.RegisterDelayedCallback(e.Nudge, 0)
		}
		return nil
	}
	e.Rest(24 * time.Hour)
	e.RunObject()
	requireReady(t, e)
	for _, s := range e.Statuses() {
		if s.Ready.Status == metav1.ConditionTrue {
			require.EqualValues(t, 2, s.ObservedGeneration, "Ready must not be told for an older generation")
		}
	}
}

// deletion returns the activities of the deletion of a finished object.
func deletion(t *testing.T, k lifecycle.Kind) []string {
	e, from := created(t, k)
	e.Change(func(s *contract.ObjectState) { s.Deleting = true })
	e.RunObject()
	require.NoError(t, e.GetWorkflowError())
	return slices.Compact(e.Journal()[from:])
}

func stallDeletion(t *testing.T, k lifecycle.Kind, activity string) {
	e, _ := created(t, k)
	seen := 0
	e.Before = func(name string, _ int) error {
		if name != activity {
			return nil
		}
		if seen++; seen == 1 {
			return faults.New(faults.Dependency, "DependencyViolation", "the thing", "still in use")
		}
		return nil
	}
	e.Change(func(s *contract.ObjectState) { s.Deleting = true })
	e.RunObject()
	require.NoError(t, e.GetWorkflowError())
	require.False(t, e.Current().Exists)
	require.GreaterOrEqual(t, seen, 2)
}

// keepsAll deletes an object that shall go without what it has: nothing outside
// is touched, and Events list all of it.
func keepsAll(t *testing.T, k lifecycle.Kind, reason string, how func(*contract.ObjectState)) {
	e, _ := created(t, k)
	has := e.Current().Resources
	e.Change(func(s *contract.ObjectState) { s.Deleting = true; how(s) })
	e.RunObject()
	require.NoError(t, e.GetWorkflowError())
	require.False(t, e.Current().Exists)
	for _, activity := range e.Journal() {
		require.Contains(t, []string{contract.WaitUnused.Name, contract.RemoveFinalizer.Name}, activity)
	}
	var told strings.Builder
	for _, r := range e.Reports() {
		for _, event := range r.Events {
			if event.Reason == reason {
				told.WriteString(event.Message + "\n")
			}
		}
	}
	for _, r := range has {
		require.Contains(t, told.String(), r.ID)
	}
	require.Contains(t, told.String(), e.Object.ID, "what else there may be is found by this")
}

// created returns an environment whose object was created by another run.
func created(t *testing.T, k lifecycle.Kind) (e *Env, journal int) {
	first := NewEnv(t, k)
	first.Rest(time.Hour)
	first.RunObject()
	requireReady(t, first)
	e = NewEnv(t, k)
	e.State = first.Current()
	return e, 0
}

// requireMonotonic asserts that progress never goes backwards in an operation.
func requireMonotonic(t *testing.T, e *Env) {
	t.Helper()
	var id string
	var progress int32
	for _, r := range e.Reports() {
		if r.Operation.ID != id {
			id, progress = r.Operation.ID, 0
		}
		require.GreaterOrEqual(t, r.Operation.Progress, progress)
		progress = r.Operation.Progress
	}
}

func last(s []string) string {
	if len(s) == 0 {
		return ""
	}
	return s[len(s)-1]
}

func startOptions(id string) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{ID: id, TaskQueue: temporal.TaskQueue}
}

// requireStallTold asserts that a stall was shown by both writers of status.
func requireStallTold(t *testing.T, e *Env, class string) {
	t.Helper()
	require.True(t, slices.ContainsFunc(e.Reports(), func(r contract.OperationReport) bool {
		return r.Operation.State == v1.OperationBlocked && r.LastError != nil && r.LastError.Class == class && r.LastError.Hint != "" &&
			slices.ContainsFunc(r.Conditions, func(c metav1.Condition) bool {
				return c.Type == v1.ConditionStalled && c.Status == metav1.ConditionTrue && c.Reason == class
			})
	}), "the operation must tell its stall")
	require.True(t, slices.ContainsFunc(e.Statuses(), func(s contract.ObjectStatus) bool {
		return s.Phase == v1.PhaseFailed && s.Ready.Reason == class
	}), "the object must show the stall")
}
