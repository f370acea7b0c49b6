package network_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
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

// Our deletion is done, and what held the object was somebody else's finalizer.
func TestAnObjectThatAnotherFinalizerHeldIsNotCalledRemoved(t *testing.T) {
	e := ready(t)
	e.Change(func(s *contract.ObjectState) {
		s.Deleting, s.Paused = true, true
		s.Operation = &v1.OperationStatus{ID: "network/infra/x1/delete/2.1", Type: "Delete", Generation: 2, State: v1.OperationSucceeded}
	})
	e.RegisterDelayedCallback(func() {
		e.Change(func(s *contract.ObjectState) { *s = contract.ObjectState{} })
		e.Nudge()
	}, time.Hour)
	e.RunObject()
	require.Empty(t, reasons(e))
}

// What a creation was stalled by is over when it is cancelled.
func TestCancelledStallIsNotShownWhileItIsUndone(t *testing.T) {
	e := workflowtest.NewEnv(t, network.Kind())
	e.Before = func(name string, _ int) error {
		if name == contract.AWS.EnsureBucket.Name {
			return faults.New(faults.Quota, "TooManyBuckets", "bucket x", "no more")
		}
		return nil
	}
	e.RegisterDelayedCallback(func() { e.Ask(temporal.VerbCancel) }, time.Minute)
	e.Rest(time.Hour)
	e.RunObject()
	undoing := 0
	for _, r := range e.Reports() {
		if r.Operation.State != v1.OperationCancelling {
			continue
		}
		undoing++
		require.Nil(t, r.LastError)
		for _, c := range r.Conditions {
			require.False(t, c.Type == v1.ConditionStalled && c.Status == metav1.ConditionTrue, c.Message)
		}
	}
	require.Positive(t, undoing)
	require.Equal(t, v1.OperationCancelled, e.Current().Operation.State)
}

// A deletion that has not begun cannot go on without its object; one that knows
// what exists is the only one that will ever remove it.
func TestDeletionOfAnObjectThatIsTakenAway(t *testing.T) {
	for name, c := range map[string]struct {
		at   string // the activity that runs then
		want []string
	}{
		"while it waits for others":  {contract.WaitUnused.Name, []string{"uid-1 RemovedByForce"}},
		"before it is known what is": {contract.PlanNetwork.Name, []string{"uid-1 RemovedByForce"}},
		"in its midst":               {contract.DeleteShoot.Name, nil},
	} {
		t.Run(name, func(t *testing.T) {
			e := ready(t)
			e.Change(func(s *contract.ObjectState) { s.Deleting = true; s.Generation++ })
			e.Before = func(activity string, times int) error {
				if activity != c.at {
					return nil
				}
				if times == 1 {
					e.RegisterDelayedCallback(func() {
						e.Change(func(s *contract.ObjectState) { *s = contract.ObjectState{} })
						e.Nudge()
					}, 0)
				}
				switch {
				case activity == contract.PlanNetwork.Name:
					return faults.New(faults.Gone, "NotFound", e.Object.String(), "it does not exist any more")
				case times < 5:
					return faults.New(faults.Transient, "Timeout", "", "not yet")
				}
				return nil
			}
			e.RunObject()
			require.Equal(t, c.want, reasons(e))
			if c.want == nil {
				require.Contains(t, e.Journal(), contract.AWS.Sweep.Name, "absence is proven all the same")
			} else {
				require.NotContains(t, e.Journal(), contract.DeleteShoot.Name)
			}
		})
	}
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

// A restore that brings status back, too, may call an operation active that was
// the former object's. It is stopped, and whatever status says, this object is
// brought to its spec at once: what the former one had may be there or not.
func TestAnOperationThatARestoredStatusCallsActive(t *testing.T) {
	ends := map[string]struct{ first, then contract.OperationEnd }{
		"runs until it is stopped": {contract.OperationEnd{Former: true, Identity: "0123456789abcdef"}, contract.OperationEnd{Cancelled: true}},
		"has ended well":           {contract.OperationEnd{Former: true, Identity: "0123456789abcdef"}, contract.OperationEnd{State: string(lifecycle.Succeeded)}},
		"nobody knows":             {contract.OperationEnd{Failure: "Temporal no longer knows it"}, contract.OperationEnd{}},
	}
	for name, end := range ends {
		for _, op := range []v1.OperationStatus{
			{ID: "network/infra/x1/create/1.1", Type: "Create", Generation: 1},
			{ID: "network/infra/x1/update/4.1", Type: "Update", Generation: 4},
			{ID: "network/infra/x1/delete/5.1", Type: "Delete", Generation: 5},
		} {
			t.Run(name+"/"+op.Type, func(t *testing.T) {
				e := workflowtest.NewEnv(t, network.Kind())
				var asked []string
				e.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, mock.Anything, mock.Anything).Return(
					func(_, workflow, _, _ string, arg any) error {
						raw, err := json.Marshal(arg)
						require.NoError(t, err)
						if workflow == op.ID {
							asked = append(asked, string(raw))
						}
						return nil
					})
				op.UID, op.State, op.Step = "uid-1", v1.OperationRunning, "EnsureBucket"
				e.Change(func(s *contract.ObjectState) {
					s.UID, s.Operation = "uid-2", &op
					s.ObservedGeneration = op.Generation - 1
					s.Verb, s.VerbManager = temporal.VerbCancel, "alice" // of what she sees, and nothing is undone by it
				})
				e.Attached = func(in contract.OperationRun) contract.OperationEnd {
					if in.UID == "uid-2" {
						return end.first
					}
					return end.then
				}
				e.Rest(time.Hour)
				e.RunObject()
				require.NotContains(t, strings.Join(asked, " "), temporal.VerbCancel)
				require.Contains(t, e.Journal(), contract.EnsureShoot.Name)
				require.NotContains(t, e.Journal(), contract.DeleteShoot.Name)
				s := e.Current()
				require.Equal(t, "Create", s.Operation.Type)
				require.Equal(t, "uid-2", s.Operation.UID)
				require.NotEqual(t, op.ID, s.Operation.ID)
				require.Equal(t, v1.PhaseNormal, s.Phase)
				require.Equal(t, s.Generation, s.ObservedGeneration)
			})
		}
	}
}

// The object's workflow was cancelled, and its operation has ended meanwhile:
// what is done is not done again.
func TestAnOperationThatEndedWhileNobodyLooked(t *testing.T) {
	e := ready(t)
	e.Change(func(s *contract.ObjectState) {
		s.ObservedGeneration, s.Phase, s.Ready = 0, v1.PhaseFailed, nil
		require.Equal(t, v1.OperationSucceeded, s.Operation.State)
	})
	e.Rest(time.Hour)
	e.RunObject()
	require.Equal(t, v1.PhaseNormal, e.Current().Phase)
	require.EqualValues(t, 1, e.Current().ObservedGeneration)
	require.NotContains(t, e.Journal(), contract.EnsureShoot.Name)
}
