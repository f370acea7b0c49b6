package network_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/workflows/network"
	"github.com/tidbcloud/infra-orchestrator/workflows/workflowtest"
)

// What a review of the kernel found, as tests.

// A creation that was ended before it told what it had made: its deletion still
// looks for it.
func TestDeletionOfACreationThatToldNothing(t *testing.T) {
	e := workflowtest.NewEnv(t, network.Kind())
	e.Change(func(s *contract.ObjectState) {
		s.Deleting = true
		s.Operation = &v1.OperationStatus{ID: "network/infra/x1/create/1.1", Type: "Create", Generation: 1, State: v1.OperationFailed, Step: "Preflight"}
	})
	e.RunObject()
	require.False(t, e.Current().Exists)
	require.Contains(t, e.Journal(), contract.DeleteShoot.Name)
	require.Contains(t, e.Journal(), contract.AWS.Sweep.Name, "absence is proven")

	fresh := workflowtest.NewEnv(t, network.Kind())
	fresh.Change(func(s *contract.ObjectState) { s.Deleting = true })
	fresh.RunObject()
	require.False(t, fresh.Current().Exists)
	require.NotContains(t, fresh.Journal(), contract.PlanNetwork.Name, "one that no creation ever ran for has nothing")
}

// The object's workflow was ended by hand while its operation runs. What is
// asked meanwhile is for that operation, so it is attached to first.
func TestVerbsAfterTheObjectWorkflowWasEnded(t *testing.T) {
	for _, want := range []string{temporal.VerbCancel, temporal.VerbPause} {
		t.Run(want, func(t *testing.T) {
			e := workflowtest.NewEnv(t, network.Kind())
			var sent []string
			e.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, mock.Anything, mock.Anything).Return(
				func(_, workflow, _, _ string, arg any) error {
					raw, err := json.Marshal(arg)
					require.NoError(t, err)
					sent = append(sent, workflow+" "+string(raw))
					return nil
				})
			e.Change(func(s *contract.ObjectState) {
				s.Operation = &v1.OperationStatus{ID: "network/infra/x1/create/1.1", Type: "Create", Generation: 1, State: v1.OperationRunning, Step: "EnsureShoot", Cancellable: true}
				s.Verb, s.VerbManager = want, "alice"
			})
			e.Rest(time.Hour)
			e.RunObject()
			require.NotEmpty(t, sent)
			require.Contains(t, sent[0], "network/infra/x1/create/1.1")
			require.Contains(t, sent[0], `"do":"`+want+`"`)
			require.Len(t, e.Answers(), 1)
			require.Equal(t, "VerbAccepted", e.Answers()[0].Events[0].Reason)
		})
	}
}

// A verb for an object whose name another one has taken is refused, once.
func TestVerbForAFormerObject(t *testing.T) {
	e := ready(t)
	var retry verb
	e.Change(func(s *contract.ObjectState) { s.Deleting = true; s.Generation++ })
	e.Before = func(name string, _ int) error {
		if name == contract.DeleteShoot.Name {
			e.Change(func(s *contract.ObjectState) { s.ID, s.UID, s.Deleting = "fedcba9876543210", "uid-2", false })
		}
		return nil
	}
	e.RegisterDelayedCallback(func() { retry.send(e, temporal.VerbRequest{Verb: temporal.VerbReconcile, By: "alice"}) }, 0)
	e.RunObject()
	require.Less(t, len(e.Statuses()), 20, "nothing spins")
}

// A pause does not keep the Network's lock, for which others wait.
func TestPauseGivesTheLockBackFirst(t *testing.T) {
	e := ready(t)
	e.Change(func(s *contract.ObjectState) { s.Generation = 2 })
	e.During(contract.EnsureShoot.Name, temporal.VerbPause)
	frozen := false
	e.RegisterDelayedCallback(func() {
		frozen = true
		journal := e.Journal()
		require.Equal(t, contract.ReleaseLease.Name, journal[len(journal)-1], "what holds a lock is finished")
		e.Ask(temporal.VerbResume)
	}, time.Hour)
	e.Rest(day)
	e.RunObject()
	require.True(t, frozen)
	require.EqualValues(t, 2, e.Current().ObservedGeneration)
}
