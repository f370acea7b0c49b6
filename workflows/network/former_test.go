package network_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/workflows/network"
	"github.com/tidbcloud/infra-orchestrator/workflows/workflowtest"
)

// reasons lists the Events that were told outside of operations.
func reasons(e *workflowtest.Env) (all []string) {
	for _, a := range e.Answers() {
		for _, event := range a.Events {
			all = append(all, a.UID+" "+event.Reason)
		}
	}
	return all
}

// An object whose finalizer somebody took away goes with its ledger: all that
// can be said is what its things are tagged with.
func TestRemovalByForceIsReported(t *testing.T) {
	for name, taken := range map[string]func(*contract.ObjectState){
		"gone":             func(s *contract.ObjectState) { *s = contract.ObjectState{} },
		"another has name": func(s *contract.ObjectState) { s.ID, s.UID = "fedcba9876543210", "uid-2" },
	} {
		t.Run(name, func(t *testing.T) {
			e := ready(t)
			e.RegisterDelayedCallback(e.Nudge, time.Minute)
			e.RegisterDelayedCallback(func() { e.Change(taken); e.Nudge() }, time.Hour)
			e.Rest(day)
			e.RunObject()
			require.Equal(t, []string{"uid-1 RemovedByForce"}, reasons(e))
			require.Contains(t, e.Answers()[0].Events[0].Message, e.Object.ID, "what to look for")
		})
	}
}

func TestADeletionOfOursIsNoRemovalByForce(t *testing.T) {
	e := ready(t)
	e.Change(func(s *contract.ObjectState) { s.Deleting = true; s.Generation++ })
	e.RunObject()
	require.False(t, e.Current().Exists)
	require.Empty(t, reasons(e))
}

// A Velero restore makes the object anew, with the identity that it had.
func TestARestoredObjectIsNotCalledRemoved(t *testing.T) {
	e := ready(t)
	e.RegisterDelayedCallback(e.Nudge, time.Minute)
	e.RegisterDelayedCallback(func() {
		e.Change(func(s *contract.ObjectState) { s.UID = "uid-2" })
		e.Nudge()
	}, time.Hour)
	e.Rest(day)
	e.RunObject()
	require.Empty(t, reasons(e))
}

// The object's workflow was ended by hand while its operation is stalled: the
// next one shows the stall, not "Create runs".
func TestAStallIsStillShownByTheNextObjectWorkflow(t *testing.T) {
	e := workflowtest.NewEnv(t, network.Kind())
	e.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, mock.Anything, mock.Anything).Return(nil)
	e.Change(func(s *contract.ObjectState) {
		s.Operation = &v1.OperationStatus{ID: "network/infra/x1/create/1.1", Type: "Create", Generation: 1, State: v1.OperationBlocked, Step: "EnsureBucket"}
		s.Conditions = []metav1.Condition{{Type: v1.ConditionStalled, Status: metav1.ConditionTrue, Reason: "Quota", Message: "step EnsureBucket: too many buckets"}}
	})
	e.Rest(time.Hour)
	e.RunObject()
	first := e.Statuses()[0]
	require.Equal(t, v1.PhaseFailed, first.Phase)
	require.Equal(t, []string{"Quota", "step EnsureBucket: too many buckets"}, []string{first.Ready.Reason, first.Ready.Message})
}
