package lifecycle

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// TestAllow has every verb in every state of an object.
func TestAllow(t *testing.T) {
	idle := view{object: "Network infra/n1", settled: true}
	running := view{object: "Network infra/n1", active: true, verb: Create, step: "EnsureShoot", cancellable: true}
	stalled := running
	stalled.stalled = true
	skippable := stalled
	skippable.skippable = true
	deleting := view{object: "Network infra/n1", active: true, verb: Delete, step: "WaitShootGone", deleting: true}
	updating := running
	updating.verb = Update
	undoing := running
	undoing.cancelling = true
	undoingStalled := undoing
	undoingStalled.stalled = true
	cancelled := view{object: "Network infra/n1", verb: Create, ended: v1.OperationCancelled}
	terminated := view{object: "Network infra/n1", verb: Delete, ended: v1.OperationFailed, deleting: true}
	paused := running
	paused.paused = true
	yes, no := true, false
	for _, c := range []struct {
		verb  string
		state string
		view  view
		ok    bool
		says  string
	}{
		{"retry", "idle", idle, no, "reconcile runs its steps again"},
		{"retry", "running", running, no, "has not stalled"},
		{"retry", "stalled", stalled, yes, "step EnsureShoot runs again"},
		{"retry", "undoing", undoing, no, "has not stalled"},
		{"retry", "undoing stalled", undoingStalled, yes, "runs again"},
		{"retry", "cancelled", cancelled, yes, "Create starts again from what exists"},
		{"retry", "terminated deletion", terminated, yes, "Delete starts again"},
		{"retry", "paused", paused, no, "ask for resume first"},
		{"skip", "idle", idle, no, "runs no operation"},
		{"skip", "stalled", stalled, no, "cannot be skipped"},
		{"skip", "skippable", skippable, yes, "left out"},
		{"skip", "undoing", undoing, no, "is undoing"},
		{"skip", "paused", paused, no, "ask for resume first"},
		{"pause", "idle", idle, yes, "until it is resumed"},
		{"pause", "running", running, yes, "what runs is finished"},
		{"pause", "deleting", deleting, yes, "until it is resumed"},
		{"pause", "paused", paused, no, "is paused already"},
		{"resume", "paused", paused, yes, "goes on"},
		{"resume", "running", running, no, "is not paused"},
		{"cancel", "idle", idle, no, "nothing to cancel"},
		{"cancel", "running", running, yes, "what it made is undone"},
		{"cancel", "stalled", stalled, yes, "what it made is undone"},
		{"cancel", "update", updating, yes, "what it did stays"},
		{"cancel", "undoing", undoing, yes, "the undoing ends here"},
		{"cancel", "deleting", deleting, no, "cannot be cancelled"},
		{"cancel", "cancelled", cancelled, no, "nothing to cancel"},
		{"cancel", "paused", paused, no, "ask for resume first"},
		{"reconcile", "idle", idle, yes, "run again"},
		{"reconcile", "running", running, no, "runs already"},
		{"reconcile", "cancelled", cancelled, yes, "run again"},
		{"reconcile", "terminated deletion", terminated, no, "being deleted"},
		{"reconcile", "paused", paused, no, "ask for resume first"},
		{"explode", "idle", idle, no, "there are retry, skip, pause, resume, cancel, reconcile"},
	} {
		t.Run(c.verb+"/"+c.state, func(t *testing.T) {
			reply, refused := allow(temporal.VerbRequest{Verb: c.verb}, c.view)
			if c.ok {
				assert.Empty(t, refused)
				assert.Contains(t, reply, c.says)
			} else {
				assert.Empty(t, reply)
				assert.Contains(t, refused, c.says)
			}
		})
	}
	_, refused := allow(temporal.VerbRequest{Verb: "retry", Step: "WaitShootReady"}, stalled)
	assert.Contains(t, refused, `is not in step WaitShootReady (it is in "EnsureShoot")`)
}

func TestViewOf(t *testing.T) {
	ref := contract.ObjectRef{Kind: "Network", Namespace: "infra", Name: "n1"}
	of := func(op v1.OperationStatus) view {
		return viewOf(contract.ObjectState{Exists: true, Generation: 2, ObservedGeneration: 1, Operation: &op}, ref)
	}
	assert.Equal(t, view{object: "Network infra/n1", settled: true}, viewOf(contract.ObjectState{Generation: 1, ObservedGeneration: 1}, ref))
	assert.True(t, of(v1.OperationStatus{State: v1.OperationRunning}).active)
	assert.True(t, of(v1.OperationStatus{State: v1.OperationBlocked}).stalled)
	assert.False(t, of(v1.OperationStatus{State: v1.OperationCancelling}).stalled)
	assert.True(t, of(v1.OperationStatus{State: v1.OperationCancelling, Steps: []v1.StepStatus{{State: v1.StepStalled}}}).stalled)
	assert.Equal(t, v1.OperationFailed, of(v1.OperationStatus{State: v1.OperationFailed, Generation: 2}).ended)
	assert.Empty(t, of(v1.OperationStatus{State: v1.OperationFailed, Generation: 1}).ended, "a newer generation is due anyway")
	assert.False(t, of(v1.OperationStatus{State: v1.OperationSucceeded}).active)
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
