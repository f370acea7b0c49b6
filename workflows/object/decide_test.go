package object

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
)

func TestDecide(t *testing.T) {
	op := func(kind string, generation int64, state v1.OperationState) *v1.OperationStatus {
		return &v1.OperationStatus{Type: kind, Generation: generation, State: state}
	}
	of := func(uid string, op *v1.OperationStatus) *v1.OperationStatus {
		op.UID = uid
		return op
	}
	for _, c := range []struct {
		name   string
		state  contract.ObjectState
		asked  string
		action action
		verb   lifecycle.Verb
		reason string
	}{
		{name: "gone", action: actEnd},
		{name: "new", state: contract.ObjectState{Exists: true, Generation: 1}, action: actRun, verb: lifecycle.Create},
		{name: "done", state: contract.ObjectState{Exists: true, Generation: 3, ObservedGeneration: 3}, action: actSettle, reason: "Ready"},
		{name: "changed", state: contract.ObjectState{Exists: true, Generation: 4, ObservedGeneration: 3}, action: actRun, verb: lifecycle.Update},
		{name: "deleted", state: contract.ObjectState{Exists: true, Generation: 4, ObservedGeneration: 3, Deleting: true}, action: actRun, verb: lifecycle.Delete},
		{name: "deleted when new", state: contract.ObjectState{Exists: true, Generation: 2, Deleting: true}, action: actRun, verb: lifecycle.Delete},
		{name: "another object of that name", state: contract.ObjectState{Exists: true, Generation: 1, ID: "other", UID: "new"}, action: actReplace},
		{name: "another object of that name, not claimed yet", state: contract.ObjectState{Exists: true, Generation: 1, UID: "new"}, action: actYield},
		{name: "identity taken away in place", state: contract.ObjectState{Exists: true, Generation: 1, UID: "known"}, action: actWait, reason: "IdentityMissing"},
		{name: "identity changed in place", state: contract.ObjectState{Exists: true, Generation: 1, ID: "other", UID: "known"}, action: actWait, reason: "IdentityChanged"},
		{name: "paused", state: contract.ObjectState{Exists: true, Generation: 1, Paused: true}, action: actWait, reason: "Paused"},
		{name: "creation was cancelled", state: contract.ObjectState{Exists: true, Generation: 1, Operation: op("Create", 1, v1.OperationCancelled)},
			action: actWait, verb: lifecycle.Create, reason: "Cancelled"},
		{name: "creation was terminated", state: contract.ObjectState{Exists: true, Generation: 1, Operation: op("Create", 1, v1.OperationFailed)},
			action: actWait, verb: lifecycle.Create, reason: "Failed"},
		{name: "creation was cancelled, spec changed since", state: contract.ObjectState{Exists: true, Generation: 2, Operation: op("Create", 1, v1.OperationCancelled)},
			action: actRun, verb: lifecycle.Create},
		{name: "creation was cancelled, deleted since", state: contract.ObjectState{Exists: true, Generation: 2, Deleting: true, Operation: op("Create", 1, v1.OperationCancelled)},
			action: actRun, verb: lifecycle.Delete},
		{name: "creation was cancelled, retry asked", asked: "retry", state: contract.ObjectState{Exists: true, Generation: 1, Operation: op("Create", 1, v1.OperationCancelled)},
			action: actRun, verb: lifecycle.Create},
		{name: "deletion was terminated", state: contract.ObjectState{Exists: true, Generation: 2, Deleting: true, Operation: op("Delete", 2, v1.OperationFailed)},
			action: actWait, verb: lifecycle.Delete, reason: "Failed"},
		{name: "deletion gave way to a forced one", state: contract.ObjectState{Exists: true, Generation: 2, Deleting: true, Operation: op("Delete", 2, v1.OperationCancelled),
			Conditions: []metav1.Condition{{Type: v1.ConditionProgressing, Reason: "Preempted"}}}, action: actRun, verb: lifecycle.Delete},
		{name: "reconcile asked", asked: "reconcile", state: contract.ObjectState{Exists: true, Generation: 3, ObservedGeneration: 3}, action: actRun, verb: lifecycle.Update},
		{name: "reconcile asked of a paused object", asked: "reconcile", state: contract.ObjectState{Exists: true, Generation: 3, ObservedGeneration: 3, Paused: true}, action: actSettle, reason: "Ready"},
		{name: "reconcile was cancelled", state: contract.ObjectState{Exists: true, Generation: 3, ObservedGeneration: 3, Operation: op("Update", 3, v1.OperationCancelled)},
			action: actWait, verb: lifecycle.Update, reason: "Cancelled"},
		{name: "reconcile with a long history gave way to the next", state: contract.ObjectState{Exists: true, Generation: 3, ObservedGeneration: 3, Operation: op("Update", 3, v1.OperationCancelled),
			Conditions: []metav1.Condition{{Type: v1.ConditionProgressing, Reason: "Superseded"}}}, action: actRun, verb: lifecycle.Update},
		{name: "update was cancelled, a later generation is there", state: contract.ObjectState{Exists: true, Generation: 4, ObservedGeneration: 4, Operation: op("Update", 3, v1.OperationCancelled)},
			action: actSettle, reason: "Ready"},
		{name: "creation ended while no object workflow ran", state: contract.ObjectState{Exists: true, Generation: 1, Operation: op("Create", 1, v1.OperationSucceeded)},
			action: actSettle, reason: "Ready"},
		{name: "creation ended while no object workflow ran, changed since", state: contract.ObjectState{Exists: true, Generation: 2, Operation: op("Create", 1, v1.OperationSucceeded)},
			action: actRun, verb: lifecycle.Update},
		{name: "restored", state: contract.ObjectState{Exists: true, UID: "known", Generation: 1, ObservedGeneration: 4, Operation: of("former", op("Update", 4, v1.OperationSucceeded))},
			action: actRun, verb: lifecycle.Create},
		{name: "restored after its creation was cancelled", state: contract.ObjectState{Exists: true, UID: "known", Generation: 1, Operation: of("former", op("Create", 1, v1.OperationCancelled))},
			action: actRun, verb: lifecycle.Create},
		{name: "restored after its deletion, and deleted", state: contract.ObjectState{Exists: true, UID: "known", Generation: 2, Deleting: true, Operation: of("former", op("Delete", 2, v1.OperationSucceeded))},
			action: actRun, verb: lifecycle.Delete},
		{name: "restored and paused", state: contract.ObjectState{Exists: true, UID: "known", Generation: 1, ObservedGeneration: 4, Paused: true, Operation: of("former", op("Update", 4, v1.OperationSucceeded))},
			action: actWait, reason: "Paused"},
		{name: "not restored", state: contract.ObjectState{Exists: true, UID: "known", Generation: 1, ObservedGeneration: 1, Operation: of("known", op("Create", 1, v1.OperationSucceeded))},
			action: actSettle, reason: "Ready"},
		{name: "changed while paused", state: contract.ObjectState{Exists: true, Generation: 4, ObservedGeneration: 3, Paused: true}, action: actWait, reason: "Paused"},
		{name: "paused and deleted", state: contract.ObjectState{Exists: true, Generation: 2, Deleting: true, Paused: true}, action: actWait, reason: "Paused"},
		{name: "deletion done, another finalizer is left", state: contract.ObjectState{Exists: true, Generation: 2, Deleting: true, Operation: op("Delete", 2, v1.OperationSucceeded)},
			action: actEnd},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.state.UID == "known" && c.reason != "IdentityMissing" && c.state.ID == "" {
				c.state.ID = "mine"
			}
			d := decide("mine", "known", c.state, c.asked)
			assert.Equal(t, c.action, d.action)
			assert.Equal(t, c.verb, d.verb)
			assert.Equal(t, c.reason, d.reason)
			if d.action == actWait {
				assert.NotEmpty(t, d.text, "who waits must be told what to do")
			}
		})
	}
}

func TestAttemptOf(t *testing.T) {
	for previous, want := range map[string]int64{
		"":                                   0,
		"network/infra/n1/create/4.2":        2,
		"network/infra/n1/create/3.9":        0, // for another generation
		"network/infra/n1/create/something":  0,
		"network/infra/4.7/create/4.1":       1,
		"network/infra/n1/create/4.10":       10,
		"network/infra/n1/create/4":          0,
		"network/infra/n1/create/4.-":        0,
		"network/infra/n1/create/4.3.trail":  3,
		"network/infra/n1.4.5/delete/44.120": 0,
	} {
		assert.Equal(t, want, attemptOf(lifecycle.Input{Generation: 4, Previous: previous}), previous)
	}
}

func TestPausedTextSaysHowToProceed(t *testing.T) {
	assert.Contains(t, pausedText(contract.ObjectState{Deleting: true}), "the deletion waits")
	assert.Contains(t, pausedText(contract.ObjectState{}), "resume")
}

func TestPreempted(t *testing.T) {
	is := func(reason string) bool {
		return preempted(contract.ObjectState{Conditions: []metav1.Condition{{Type: v1.ConditionProgressing, Reason: reason}}})
	}
	assert.True(t, is("Preempted"))
	assert.True(t, is("Superseded"))
	assert.False(t, is("Cancelled"))
	assert.False(t, preempted(contract.ObjectState{}))
}
