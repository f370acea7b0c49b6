package network_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
	"github.com/tidbcloud/infra-orchestrator/workflows/network"
	"github.com/tidbcloud/infra-orchestrator/workflows/object"
	"github.com/tidbcloud/infra-orchestrator/workflows/workflowtest"
)

// What an audit of the kernel found, as tests.

// A creation that was superseded has made things; the next one is cancelled
// before it knows them. They are undone all the same.
func TestCancelUndoesWhatASupersededCreationMade(t *testing.T) {
	e := workflowtest.NewEnv(t, network.Kind())
	second := false
	e.Before = func(name string, _ int) error {
		switch {
		case name == contract.BootstrapShoot.Name && !second, name == contract.EnsureBinding.Name && second:
			return faults.New(faults.Quota, "LimitExceeded", "the thing", "no more")
		}
		return nil
	}
	e.RegisterDelayedCallback(func() {
		second = true
		e.Change(func(s *contract.ObjectState) { s.Generation++ })
		e.Nudge()
	}, time.Minute)
	e.RegisterDelayedCallback(func() { e.Ask(temporal.VerbCancel) }, 2*time.Minute)
	e.Rest(time.Hour)
	e.RunObject()
	require.Equal(t, v1.OperationCancelled, e.Current().Operation.State)
	undone := e.Journal()[slices.Index(e.Journal(), contract.AWS.DeleteIssuer.Name):]
	require.Contains(t, undone, contract.DeleteShoot.Name)
	require.Empty(t, e.Current().Resources)
	require.Contains(t, e.Condition(v1.ConditionProgressing).Message, "what it made is undone")
}

// Two steps side by side are stalled; one goes on. The other one is still what
// everybody must see.
func TestOfTwoStallsOneStays(t *testing.T) {
	e := workflowtest.NewEnv(t, network.Kind())
	e.Before = func(name string, times int) error {
		switch {
		case name == contract.AWS.EnsureBucket.Name:
			return faults.New(faults.Quota, "TooManyBuckets", "bucket x", "no more").WithHint(faults.OwnerOperator, "raise the limit")
		case name == contract.EnsureShoot.Name && times == 1:
			return faults.New(faults.Dependency, "NotYet", "shoot x", "the project is not there")
		}
		return nil
	}
	e.Rest(20 * time.Minute) // the Dependency's slow timer is 2 minutes, the Quota's 30
	e.RunObject()
	require.Contains(t, e.Journal(), contract.EnsureShoot.Name)
	require.Equal(t, v1.PhaseFailed, e.Current().Phase)
	require.Equal(t, "Quota", e.Current().Ready.Reason)
	require.Equal(t, "EnsureBucket", e.Current().Operation.Step)
	stalled := e.Condition(v1.ConditionStalled)
	require.Equal(t, metav1.ConditionTrue, stalled.Status)
	require.Contains(t, stalled.Message, "For the operator: raise the limit")
	require.Equal(t, metav1.ConditionFalse, e.Condition(v1.ConditionProgressing).Status)
	requireNeverBoth(t, e)
}

func requireNeverBoth(t *testing.T, e *workflowtest.Env) {
	t.Helper()
	for _, r := range e.Reports() {
		on := 0
		for _, c := range r.Conditions {
			if (c.Type == v1.ConditionStalled || c.Type == v1.ConditionProgressing) && c.Status == metav1.ConditionTrue {
				on++
			}
		}
		require.Less(t, on, 2, "Progressing and Stalled at once, in step %s", r.Operation.Step)
	}
}

// A reconcile that is cancelled leaves what is known of the object open: it
// says so until somebody asks for retry.
func TestCancelledReconcile(t *testing.T) {
	e := ready(t)
	full := true
	e.Before = func(name string, _ int) error {
		if name == contract.AWS.EnsureZone.Name && full {
			return faults.New(faults.Quota, "TooManyHostedZones", "zone", "no more")
		}
		return nil
	}
	e.RegisterDelayedCallback(func() { e.Ask(temporal.VerbReconcile) }, time.Minute)
	e.RegisterDelayedCallback(func() { e.Ask(temporal.VerbCancel) }, 2*time.Minute)
	e.RegisterDelayedCallback(func() {
		require.Equal(t, v1.PhaseFailed, e.Current().Phase)
		require.Equal(t, metav1.ConditionFalse, e.Current().Ready.Status)
		require.Contains(t, e.Current().Ready.Message, "ask for retry")
		full = false
		e.Ask(temporal.VerbRetry)
	}, time.Hour)
	e.Rest(2 * time.Hour)
	e.RunObject()
	require.Equal(t, v1.PhaseNormal, e.Current().Phase)
	require.Equal(t, v1.OperationSucceeded, e.Current().Operation.State)
}

// "Request Cancellation" on a deletion is refused, as the verb is.
func TestCancellationOfADeletionInTheTemporalUI(t *testing.T) {
	e := ready(t)
	e.Change(func(s *contract.ObjectState) { s.Deleting = true; s.Generation++ })
	e.Before = func(name string, times int) error {
		if name == contract.AWS.DeleteBucket.Name && times == 1 {
			return faults.New(faults.Dependency, "BucketNotEmpty", "bucket", "not yet")
		}
		return nil
	}
	e.RegisterDelayedCallback(e.CancelWorkflow, time.Minute)
	e.ExecuteWorkflow("DeleteNetwork", lifecycle.Input{Object: e.Object, UID: "uid-1", Verb: lifecycle.Delete, Generation: 2})
	require.NoError(t, e.GetWorkflowError())
	require.False(t, e.Current().Exists)
	refused := events(e, "CancelRefused")
	require.Len(t, refused, 1)
	require.Contains(t, refused[0].Message, "a deletion cannot be cancelled")
}

// Somebody sees what the deletion would take, and saves it while it waits.
func TestRetainIsHeardWhileADeletionWaits(t *testing.T) {
	e := ready(t)
	e.Change(func(s *contract.ObjectState) { s.Deleting = true; s.Generation++ })
	e.Before = func(name string, times int) error {
		if name == contract.WaitUnused.Name && times == 1 {
			e.Change(func(s *contract.ObjectState) { s.DeletionPolicy = v1.DeletionPolicyRetain; s.Generation++ })
			e.RegisterDelayedCallback(e.Nudge, 0)
			return faults.New(faults.Transient, "Timeout", "", "it waits on")
		}
		return nil
	}
	e.RunObject()
	require.NoError(t, e.GetWorkflowError())
	require.False(t, e.Current().Exists)
	require.NotContains(t, e.Journal(), contract.DeleteShoot.Name)
	require.NotEmpty(t, events(e, "Retained"))
}

// Whoever cancels the object's workflow ends that alone.
func TestCancellationOfTheObjectWorkflow(t *testing.T) {
	e := workflowtest.NewEnv(t, network.Kind())
	e.SetDetachedChildWait(true)
	e.Before = func(name string, times int) error {
		if name == contract.WaitShootReady.Name && times == 1 {
			return faults.New(faults.Capacity, "Full", "shoot", "no machines")
		}
		return nil
	}
	e.RegisterDelayedCallback(e.CancelWorkflow, time.Minute)
	e.RunObject()
	require.NotContains(t, e.Journal(), contract.DeleteShoot.Name)
	require.Equal(t, v1.OperationSucceeded, e.Current().Operation.State)
}

// Passing failures after a stall have their quarter of an hour, too.
func TestPassingFailuresAfterAStallAreQuiet(t *testing.T) {
	e := workflowtest.NewEnv(t, network.Kind())
	began, failures := time.Time{}, 0
	e.Before = func(name string, times int) error {
		switch {
		case name != contract.EnsureShoot.Name:
			return nil
		case times == 1:
			return faults.New(faults.Quota, "LimitExceeded", "shoot", "no more")
		case began.IsZero():
			began = e.Now()
		}
		if e.Now().Sub(began) < 14*time.Minute {
			failures++
			return faults.New(faults.Transient, "NotGranted", "lock", "somebody has it")
		}
		return nil
	}
	e.Rest(day)
	e.RunObject()
	require.Positive(t, failures)
	require.Len(t, events(e, "Stalled"), 1, "that of the quota")
	require.Equal(t, v1.PhaseNormal, e.Current().Phase)
}

// An operation that was reset in Temporal, while a later one runs, is told so
// by its own report, and ends without undoing what the later one makes.
func TestAnOperationThatALaterOneHasFollowedEnds(t *testing.T) {
	e := workflowtest.NewEnv(t, network.Kind())
	e.BeforeReport = func(r contract.OperationReport) error {
		if r.Operation.Step == "WaitShootReady" {
			return faults.New(faults.Gone, "Outdated", e.Object.String(), "operation create/1.1 has been followed by create/1.2")
		}
		return nil
	}
	e.ExecuteWorkflow("CreateNetwork", lifecycle.Input{Object: e.Object, UID: "uid-1", Verb: lifecycle.Create, Generation: 1, Minted: true})
	require.Error(t, e.GetWorkflowError())
	require.NotContains(t, e.Journal(), contract.AWS.EnsureIssuer.Name)
	require.NotContains(t, e.Journal(), contract.DeleteShoot.Name, "what exists is the later one's")
}

// An operation that waits for weeks must not fill its object's history: locks
// would be lost with it. The next run attaches.
func TestALongWaitStartsTheObjectsHistoryAnew(t *testing.T) {
	e := workflowtest.NewEnv(t, network.Kind())
	e.Before = func(name string, _ int) error {
		if name == contract.AWS.EnsureBucket.Name {
			return faults.New(faults.Quota, "TooManyBuckets", "bucket x", "no more")
		}
		return nil
	}
	e.RegisterDelayedCallback(func() { e.SetContinueAsNewSuggested(true); e.Nudge() }, time.Minute)
	e.RunObject()
	var fresh *workflow.ContinueAsNewError
	require.ErrorAs(t, e.GetWorkflowError(), &fresh)
	require.True(t, e.Current().Operation.Active())
	require.NotContains(t, e.Journal(), contract.DeleteShoot.Name)

	next := workflowtest.NewEnv(t, network.Kind())
	next.State = e.Current()
	attached := ""
	next.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, mock.Anything, mock.Anything).Return(nil)
	next.Attached = func(in contract.OperationRun) contract.OperationEnd {
		attached = in.WorkflowID
		return contract.OperationEnd{Cancelled: true}
	}
	next.Rest(time.Hour)
	next.ExecuteWorkflow("Network", input(t, fresh))
	require.Equal(t, e.Current().Operation.ID, attached)
}

// input is what the next run starts with.
func input(t *testing.T, fresh *workflow.ContinueAsNewError) (in object.Input) {
	t.Helper()
	require.NoError(t, json.Unmarshal(fresh.Input.GetPayloads()[0].GetData(), &in))
	return in
}
