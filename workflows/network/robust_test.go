package network_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
	"github.com/tidbcloud/infra-orchestrator/workflows/network"
	"github.com/tidbcloud/infra-orchestrator/workflows/workflowtest"
)

// countOf is how often an activity has run.
func countOf(e *workflowtest.Env, name string) (n int) {
	for _, a := range e.Journal() {
		if a == name {
			n++
		}
	}
	return n
}

// A Cluster's request starts the workflow of a Network whose name a new object
// has that the bridge has not claimed yet: that one is none of its business.
func TestAnObjectThatIsNotClaimedIsLeftAlone(t *testing.T) {
	e := workflowtest.NewEnv(t, network.Kind())
	e.Change(func(s *contract.ObjectState) { s.ID, s.UID, s.Minted = "", "uid-2", false })
	var v verb
	e.RegisterDelayedCallback(func() { v.send(e, temporal.VerbRequest{Verb: temporal.VerbReconcile, By: "alice"}) }, 0)
	e.Rest(time.Minute)
	e.RunObject()
	require.NoError(t, e.GetWorkflowError())
	require.ErrorContains(t, v.failed, "ask again in a moment")
	require.Zero(t, countOf(e, contract.PlanNetwork.Name))
	require.Empty(t, e.Reports())
}

// An identity that is taken away from an object, also from one that is being
// deleted, is waited for.
func TestAnIdentityThatIsTakenAwayIsWaitedFor(t *testing.T) {
	e := workflowtest.NewEnv(t, network.Kind())
	e.Change(func(s *contract.ObjectState) {
		s.ID, s.Deleting, s.Generation, s.ObservedGeneration = "", true, 2, 1
	})
	e.RegisterDelayedCallback(func() {
		require.Equal(t, "IdentityMissing", e.Current().Ready.Reason)
		require.Contains(t, e.Current().Ready.Message, e.Object.ID)
		require.Empty(t, e.Journal())
		e.Change(func(s *contract.ObjectState) { s.ID = e.Object.ID })
		e.Nudge()
	}, time.Hour)
	e.RunObject()
	require.False(t, e.Current().Exists)
}

// Whatever has each operation give way at once does not fill Temporal.
func TestOperationsThatGiveWayArePaced(t *testing.T) {
	e := workflowtest.NewEnv(t, network.Kind())
	e.Before = func(name string, _ int) error {
		if name == contract.PlanNetwork.Name {
			return faults.New(faults.Gone, "Replaced", e.Object.String(), "another object has its name now")
		}
		return nil
	}
	// Whoever calls meanwhile does not keep it from going on.
	for at := time.Second; at < time.Hour; at += 20 * time.Second {
		e.RegisterDelayedCallback(e.Nudge, at)
	}
	e.Rest(time.Hour)
	e.RunObject()
	plans := countOf(e, contract.PlanNetwork.Name)
	require.Greater(t, plans, 8)
	require.Less(t, plans, 20)
}

// A Network that a backup brought back with its identity, but without status (as
// Velero does by default), and that is deleted before its creation has run.
func TestARestoredObjectIsDeletedWithWhatItHas(t *testing.T) {
	e := workflowtest.NewEnv(t, network.Kind())
	e.Change(func(s *contract.ObjectState) { s.UID, s.Minted, s.Deleting, s.Generation = "uid-2", false, true, 2 })
	e.RunObject()
	require.Contains(t, e.Journal(), contract.DeleteShoot.Name, "its identity is older than the object: what carries it exists")
	require.Contains(t, e.Journal(), contract.AWS.Sweep.Name)
	require.False(t, e.Current().Exists)
}

// The same when its Provider is not restored yet: nobody knows what it has.
func TestARestoredObjectDoesNotGoWithoutItsProvider(t *testing.T) {
	e := workflowtest.NewEnv(t, network.Kind())
	e.Change(func(s *contract.ObjectState) { s.UID, s.Minted = "uid-2", false })
	e.Before = func(name string, _ int) error {
		if name == contract.PlanNetwork.Name {
			return faults.New(faults.Dependency, "ReferenceNotFound", "provider infra/p", "it does not exist")
		}
		return nil
	}
	e.RegisterDelayedCallback(func() {
		e.Change(func(s *contract.ObjectState) { s.Deleting, s.Generation = true, 2 })
		e.Nudge()
	}, time.Minute)
	e.Rest(24 * time.Hour)
	e.RunObject()
	require.True(t, e.Current().Exists)
	require.Equal(t, v1.OperationBlocked, e.Current().Operation.State)
	require.Equal(t, "Delete", e.Current().Operation.Type)
}

// Somebody has cancelled the creation, and Temporal loses its data while it is
// undone: it is not begun again.
func TestACancelledCreationThatTemporalLostStaysCancelled(t *testing.T) {
	e := workflowtest.NewEnv(t, network.Kind())
	e.Change(func(s *contract.ObjectState) {
		s.Operation = &v1.OperationStatus{ID: "network/infra/x1/create/1.1", UID: s.UID, Type: "Create", Generation: 1, State: v1.OperationCancelling}
	})
	e.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, mock.Anything, mock.Anything).Return(nil)
	e.Attached = func(contract.OperationRun) contract.OperationEnd {
		return contract.OperationEnd{Unknown: true, Failure: "Temporal no longer knows it"}
	}
	e.Rest(time.Hour)
	e.RunObject()
	require.NotContains(t, e.Journal(), contract.EnsureShoot.Name)
	require.Equal(t, v1.OperationCancelled, e.Current().Operation.State)
	require.Equal(t, v1.PhaseFailed, e.Current().Phase)
	require.Equal(t, "Cancelled", e.Current().Ready.Reason)
	require.Contains(t, e.Current().Ready.Message, "ask for retry")
}

// Under another identity nothing of what it has would be found: it is told also
// by an object's workflow that remembers nothing of the first.
func TestASecondIdentityIsNoticedByStatus(t *testing.T) {
	first := ready(t)
	require.Equal(t, first.Object.ID, first.Current().Operation.Identity)
	require.NotEmpty(t, first.Current().Resources)
	e := workflowtest.NewEnv(t, network.Kind())
	e.State = first.Current()
	e.Object.ID = "fedcba9876543210"
	e.Change(func(s *contract.ObjectState) { s.ID = e.Object.ID })
	e.RegisterDelayedCallback(func() {
		e.Change(func(s *contract.ObjectState) { s.Deleting = true; s.Generation++ })
		e.Nudge()
	}, time.Hour)
	e.Rest(24 * time.Hour)
	e.RunObject()
	require.True(t, e.Current().Exists)
	require.Empty(t, e.Journal())
	require.Equal(t, "IdentityChanged", e.Current().Ready.Reason)
	require.Contains(t, e.Current().Ready.Message, first.Object.ID)
}

// What says at each look that something has changed, as a cache that has
// stopped, does not have a step spin.
func TestChangesThatMendNothingArePaced(t *testing.T) {
	e := workflowtest.NewEnv(t, network.Kind())
	e.Mended = "network infra/n1 has changed"
	e.Before = func(name string, _ int) error {
		if name == contract.AWS.EnsureBucket.Name {
			return faults.New(faults.Quota, "TooManyBuckets", "bucket", "no more buckets")
		}
		return nil
	}
	e.Rest(time.Hour)
	e.RunObject()
	tries := countOf(e, contract.AWS.EnsureBucket.Name)
	require.Greater(t, tries, 5, "a change is seen")
	require.Less(t, tries, 25)
}

// An answer to a verb that cannot be written holds up neither the object nor
// its deletion.
func TestAnAnswerThatIsRefusedHoldsUpNothing(t *testing.T) {
	e := ready(t)
	e.OnActivity(contract.AnswerVerb.Name, mock.Anything, mock.Anything).Return(contract.None{},
		faults.ToTemporal(faults.New(faults.Throttled, "Conflict", "Network infra/x1", "others keep writing it")))
	e.Change(func(s *contract.ObjectState) { s.Verb = "reconcile" })
	e.RegisterDelayedCallback(func() {
		e.Change(func(s *contract.ObjectState) { s.Deleting = true; s.Generation++ })
		e.Nudge()
	}, time.Second)
	e.RunObject()
	require.False(t, e.Current().Exists)
}

// A newer generation that comes during such a pause takes over: the stalled
// step does not run again for the old one.
func TestANewGenerationIsHeardInAPauseBetweenChanges(t *testing.T) {
	e := workflowtest.NewEnv(t, network.Kind())
	e.Mended = "network infra/n1 has changed"
	late := 0
	e.Before = func(name string, _ int) error {
		if name != contract.AWS.EnsureBucket.Name {
			return nil
		}
		if e.Current().Generation > 1 {
			late++
		}
		if late > 0 && e.Current().Operation.Generation > 1 {
			return nil
		}
		return faults.New(faults.Quota, "TooManyBuckets", "bucket", "no more buckets")
	}
	e.RegisterDelayedCallback(func() {
		e.Change(func(s *contract.ObjectState) { s.Generation++ })
		e.Nudge()
	}, 20*time.Minute+time.Second)
	e.Rest(time.Hour)
	e.RunObject()
	require.EqualValues(t, 2, e.Current().ObservedGeneration)
	require.Equal(t, 1, late, "once, by the operation for the newer generation")
}
