package network_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
	"github.com/tidbcloud/infra-orchestrator/workflows/network"
	"github.com/tidbcloud/infra-orchestrator/workflows/workflowtest"
)

// The kernel's behaviour where one kind is as good as another: on the Network.

const day = 24 * time.Hour

// verb sends the update and keeps what came of it.
type verb struct {
	rejected, failed error
	reply            temporal.VerbReply
	done             bool
}

func (v *verb) send(e *workflowtest.Env, req temporal.VerbRequest) *verb {
	e.UpdateWorkflow(temporal.UpdateVerb, e.Now().String()+req.Verb, v, req)
	return v
}

func (v *verb) Accept()          {}
func (v *verb) Reject(err error) { v.rejected, v.done = err, true }
func (v *verb) Complete(success any, err error) {
	v.failed, v.done = err, true
	if reply, ok := success.(temporal.VerbReply); ok {
		v.reply = reply
	}
}

func TestVerbByUpdate(t *testing.T) {
	e := workflowtest.NewEnv(t, network.Kind())
	var early, nonsense verb
	stalled := false
	e.Before = func(name string, times int) error {
		if name == contract.AWS.EnsureBucket.Name && times == 1 {
			stalled = true
			return faults.New(faults.Quota, "TooManyBuckets", "bucket x", "no more")
		}
		return nil
	}
	e.RegisterDelayedCallback(func() {
		require.True(t, stalled)
		nonsense.send(e, temporal.VerbRequest{Verb: "explode", By: "alice"})
		early.send(e, temporal.VerbRequest{Verb: temporal.VerbRetry, Step: "EnsureBucket", By: "alice"})
	}, time.Minute)
	e.Rest(10 * time.Minute) // the slow timer of Quota is 24 minutes and more
	e.RunObject()
	require.Equal(t, v1.PhaseNormal, e.Current().Phase)
	require.NoError(t, early.failed)
	require.Equal(t, "step EnsureBucket runs again", early.reply.Text)
	require.ErrorContains(t, nonsense.rejected, "there are retry, skip", "before anything is written into the history")
}

func TestVerbsOfAnIdleObject(t *testing.T) {
	e := ready(t)
	var retry, reconcile verb
	e.RegisterDelayedCallback(func() { retry.send(e, temporal.VerbRequest{Verb: temporal.VerbRetry, By: "alice"}) }, time.Minute)
	e.RegisterDelayedCallback(func() { reconcile.send(e, temporal.VerbRequest{Verb: temporal.VerbReconcile, By: "alice"}) }, 2*time.Minute)
	e.Rest(day)
	e.RunObject()
	require.ErrorContains(t, retry.failed, "nothing that stalled", "a refused update says why")
	require.NoError(t, reconcile.failed)
	require.Equal(t, "network/infra/x1/update/1.2", e.Current().Operation.ID)
	require.Equal(t, v1.PhaseNormal, e.Current().Phase)
}

// An operation that is terminated by hand leaves an object that says so, and
// goes on when asked.
func TestTerminatedOperation(t *testing.T) {
	e := workflowtest.NewEnv(t, network.Kind())
	e.State = e.Current()
	op := v1.OperationStatus{ID: "network/infra/x1/create/1.1", Type: "Create", Generation: 1, State: v1.OperationRunning, Step: "EnsureShoot"}
	e.Change(func(s *contract.ObjectState) { s.Operation, s.Phase = &op, v1.PhaseCreating })
	e.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, mock.Anything, mock.Anything).Return(nil)
	var told contract.ObjectState
	e.RegisterDelayedCallback(func() {
		told = e.Current()
		e.Ask(temporal.VerbRetry)
	}, time.Hour)
	e.Rest(day)
	e.RunObject() // attaches to the operation, which is terminated
	require.Equal(t, v1.OperationFailed, told.Operation.State)
	require.Equal(t, v1.PhaseFailed, told.Phase)
	require.Contains(t, told.Ready.Message, "Create was ended at step EnsureShoot: somebody terminated the workflow network/infra/x1/create/1.1 in Temporal")
	require.Contains(t, told.Ready.Message, "retry")
	for _, c := range told.Conditions {
		require.NotContains(t, c.Message, "nothing to mend", c.Type)
	}
	require.Equal(t, v1.PhaseNormal, e.Current().Phase, "retry starts it again")
	require.Equal(t, "network/infra/x1/create/1.2", e.Current().Operation.ID)
}

// ready is what is left by a creation: the start of tests of what comes after.
func ready(t *testing.T) *workflowtest.Env {
	first := workflowtest.NewEnv(t, network.Kind())
	first.Rest(time.Hour)
	first.RunObject()
	e := workflowtest.NewEnv(t, network.Kind())
	e.State = first.Current()
	return e
}

// A last report that the API server refuses must not leave an operation that
// status calls active for ever: it would be attached to again and again.
func TestRefusedLastReportIsClosedByTheObject(t *testing.T) {
	e := workflowtest.NewEnv(t, network.Kind())
	refused := 0
	e.BeforeReport = func(r contract.OperationReport) error {
		if r.Operation.State == v1.OperationSucceeded && r.Operation.Progress == 100 && refused == 0 {
			refused++
			return faults.New(faults.Invalid, "Invalid", "status", "observed in body must be of type object")
		}
		return nil
	}
	e.Rest(day)
	e.RunObject()
	require.Equal(t, 1, refused)
	require.Equal(t, v1.OperationSucceeded, e.Current().Operation.State)
	require.Equal(t, v1.PhaseNormal, e.Current().Phase)
}

func TestForcedDeletionOvertakesAStalledOne(t *testing.T) {
	e := ready(t)
	has := 0 // in its ledger
	e.Before = func(name string, _ int) error {
		if name == contract.DeleteShoot.Name {
			return faults.New(faults.Dependency, "DependencyViolation", "shoot", "still in use")
		}
		return nil
	}
	e.Change(func(s *contract.ObjectState) { s.Deleting = true })
	e.RegisterDelayedCallback(func() {
		require.Equal(t, v1.OperationBlocked, e.Current().Operation.State)
		has = len(e.Current().Resources)
		e.Change(func(s *contract.ObjectState) { s.ForceDelete = true })
		e.Nudge()
	}, time.Minute)
	e.RunObject()
	require.NoError(t, e.GetWorkflowError())
	require.False(t, e.Current().Exists)
	require.NotContains(t, e.Journal(), contract.WaitShootGone.Name)
	left := events(e, "LeftBehind")
	require.Len(t, left, 2)
	require.Contains(t, left[0].Message, "id-of-garden.EnsureShoot", "it lists what somebody must remove")
	require.Contains(t, left[1].Message, "infra.cloud.pingcap.com/id="+e.Object.ID, "and how to find the rest")
	require.Contains(t, left[0].Message, "id-of-garden.EnsureBinding (other Networks of the Provider use it, too", "nobody takes the credentials from others' Shoots")
	require.NotContains(t, left[0].Message, "id-of-garden.EnsureShoot (")
	require.Empty(t, events(e, "DeleteSucceeded"))
	end := events(e, "DeleteForced")
	require.Len(t, end, 1)
	require.True(t, end[0].Warning)
	require.Contains(t, end[0].Message, fmt.Sprintf("let go by force; %d resources of its ledger are left behind", has))
	for _, r := range e.Current().Resources {
		require.NotContains(t, r.ID, "use it, too", "the ledger has the ids alone")
	}
}

// Who cancels asks afterwards where that was, not which step undid the last.
func TestCancelledCreationNamesTheStepInWhichItWas(t *testing.T) {
	e := workflowtest.NewEnv(t, network.Kind())
	e.Before = func(name string, times int) error {
		if name == contract.WaitShootReady.Name && times == 1 {
			return faults.New(faults.Capacity, "Full", "shoot", "no machines")
		}
		return nil
	}
	e.RegisterDelayedCallback(func() { e.Ask(temporal.VerbCancel) }, time.Minute)
	e.Rest(day)
	e.RunObject()
	s := e.Current()
	require.Equal(t, v1.OperationCancelled, s.Operation.State)
	require.Contains(t, e.Journal(), contract.DeleteBinding.Name, "it was undone")
	require.Equal(t, "WaitShootReady", s.Operation.Step)
	require.Contains(t, s.Ready.Message, "Create was cancelled at step WaitShootReady")
	require.Contains(t, e.Condition(v1.ConditionProgressing).Message, "in step WaitShootReady; what it made is undone")
	told := events(e, "CreateCancelled")
	require.Len(t, told, 1)
	require.Contains(t, told[0].Message, "in step WaitShootReady; what it made is undone")
}

// An object that is well is in no step, and waits for nothing.
func TestIdleObjectIsInNoStep(t *testing.T) {
	op := ready(t).Current().Operation
	require.Equal(t, v1.OperationSucceeded, op.State)
	require.Empty(t, op.Step)
	require.Empty(t, op.WaitingFor)
	require.Nil(t, op.StepStartedAt)
}

// A deletion waits for whatever the API says that keeps the object.
func TestDeletionNamesAllThatItWaitsFor(t *testing.T) {
	e := ready(t)
	var doc string
	e.Before = func(name string, times int) error {
		if name == contract.WaitUnused.Name && times == 1 {
			doc = e.Condition(v1.ConditionProgressing).Message
		}
		return nil
	}
	e.Change(func(s *contract.ObjectState) { s.Deleting = true })
	e.RunObject()
	require.NoError(t, e.GetWorkflowError())
	require.Equal(t, "all that uses the Network to be gone: Cluster, NetworkPeer, TiCDC", doc)
}

func events(e *workflowtest.Env, reason string) (all []contract.Event) {
	for _, r := range e.Reports() {
		for _, ev := range r.Events {
			if ev.Reason == reason {
				all = append(all, ev)
			}
		}
	}
	return all
}

func TestDeletionOfAPausedObjectSaysHowToProceed(t *testing.T) {
	e := ready(t)
	e.Change(func(s *contract.ObjectState) { s.Deleting, s.Paused = true, true; s.Generation++ })
	e.RegisterDelayedCallback(func() {
		require.True(t, e.Current().Exists)
		require.Equal(t, "Paused", e.Current().Ready.Reason)
		require.Contains(t, e.Current().Ready.Message, "the deletion waits")
		require.Contains(t, e.Current().Ready.Message, "resume")
		e.Ask(temporal.VerbResume)
	}, time.Hour)
	e.RunObject()
	require.NoError(t, e.GetWorkflowError())
	require.False(t, e.Current().Exists)
}

// An update in flight gives way to a newer generation at the border of a step.
func TestUpdateIsPlannedAnewAtTheNextStep(t *testing.T) {
	e := ready(t)
	e.Change(func(s *contract.ObjectState) { s.Generation = 2 })
	e.Before = func(name string, times int) error {
		if name == contract.EnsureBinding.Name && times == 1 {
			e.Change(func(s *contract.ObjectState) { s.Generation = 5 })
			e.Nudge()
			e.Nudge()
		}
		return nil
	}
	e.Rest(day)
	e.RunObject()
	require.EqualValues(t, 5, e.Current().ObservedGeneration)
	bindings := 0
	for _, name := range e.Journal() {
		if name == contract.EnsureBinding.Name {
			bindings++
		}
	}
	require.Equal(t, 2, bindings, "generations in between are not built")
}

func TestObjectWithoutMintedIdentityKeepsWhatItAdopted(t *testing.T) {
	e := workflowtest.NewEnv(t, network.Kind())
	e.Change(func(s *contract.ObjectState) { s.Minted = false })
	e.Before = func(name string, times int) error {
		if name == contract.WaitShootReady.Name && times == 1 {
			return faults.New(faults.Capacity, "Full", "shoot", "no machines")
		}
		return nil
	}
	e.RegisterDelayedCallback(func() { e.Ask(temporal.VerbCancel) }, time.Minute)
	e.Rest(day)
	e.RunObject()
	require.Equal(t, v1.OperationCancelled, e.Current().Operation.State)
	require.NotContains(t, e.Journal(), contract.DeleteShoot.Name, "it may be older than the object")
	require.NotContains(t, e.Journal(), contract.AWS.DeleteBucket.Name)
	require.Contains(t, e.Condition(v1.ConditionProgressing).Message, "its identity is older than the object")
}

// Request Cancellation in the Temporal UI is the verb cancel.
func TestCancellationInTheTemporalUI(t *testing.T) {
	e := workflowtest.NewEnv(t, network.Kind())
	e.Before = func(name string, times int) error {
		if name == contract.WaitShootReady.Name && times == 1 {
			return faults.New(faults.Capacity, "Full", "shoot", "no machines")
		}
		return nil
	}
	e.RegisterDelayedCallback(e.CancelWorkflow, time.Minute)
	e.ExecuteWorkflow("CreateNetwork", lifecycle.Input{Object: e.Object, UID: "uid-1", Verb: lifecycle.Create, Generation: 1, Minted: true})
	var cancelled interface{ Error() string }
	require.True(t, errors.As(e.GetWorkflowError(), &cancelled))
	require.Equal(t, v1.OperationCancelled, e.Current().Operation.State)
	require.Contains(t, e.Journal(), contract.DeleteShoot.Name)
	require.Contains(t, e.Condition(v1.ConditionProgressing).Message, "what it made is undone")
	require.Empty(t, e.Current().Resources)
}

// Verbs at the operation itself, for people who look at it in the UI.
func TestVerbsOfAnOperation(t *testing.T) {
	e := workflowtest.NewEnv(t, network.Kind())
	e.Before = func(name string, times int) error {
		if name == contract.AWS.EnsureZone.Name {
			return faults.New(faults.Quota, "TooManyHostedZones", "zone", "no more")
		}
		return nil
	}
	var retry, pause, skipEarly, skip, resume, cancel verb
	at := func(after time.Duration, v *verb, what string) {
		e.RegisterDelayedCallback(func() { v.send(e, temporal.VerbRequest{Verb: what, By: "bob"}) }, after)
	}
	at(1*time.Minute, &retry, temporal.VerbRetry)
	at(2*time.Minute, &pause, temporal.VerbPause)
	at(3*time.Minute, &skipEarly, temporal.VerbSkip)
	at(4*time.Minute, &resume, temporal.VerbResume)
	at(5*time.Minute, &skip, temporal.VerbSkip)
	at(6*time.Minute, &cancel, temporal.VerbCancel)
	e.ExecuteWorkflow("CreateNetwork", lifecycle.Input{Object: e.Object, UID: "uid-1", Verb: lifecycle.Create, Generation: 1, Minted: true})
	require.NoError(t, e.GetWorkflowError())
	require.NoError(t, retry.failed)
	require.NoError(t, pause.failed)
	require.ErrorContains(t, skipEarly.rejected, "ask for resume first")
	require.NoError(t, resume.failed)
	require.NoError(t, skip.failed)
	require.Equal(t, "step EnsureDNSZone is left out", skip.reply.Text)
	require.False(t, cancel.done, "it had ended")
	for _, s := range e.Current().Operation.Steps {
		want := v1.StepSucceeded
		if s.Name == "EnsureDNSZone" {
			want = v1.StepSkipped
		}
		require.Equal(t, want, s.State, s.Name)
	}
}

// A failure that passes within 15 minutes is nobody's business, even where the
// step's budget is shorter.
func TestPassingFailuresAreQuietFor15Minutes(t *testing.T) {
	e := workflowtest.NewEnv(t, network.Kind())
	start := e.Now()
	e.Before = func(name string, _ int) error {
		if name == contract.AWS.VerifyCredentials.Name && e.Now().Sub(start) < 14*time.Minute { // Preflight has 2 minutes
			return faults.New(faults.Throttled, "Throttling", "sts", "slow down")
		}
		return nil
	}
	e.Rest(day)
	e.RunObject()
	require.Equal(t, v1.PhaseNormal, e.Current().Phase)
	for _, r := range e.Reports() {
		require.Nil(t, r.LastError)
	}
	require.GreaterOrEqual(t, e.Now().Sub(start), 14*time.Minute)
}
