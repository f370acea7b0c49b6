package lifecycle

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// TestAllow has every verb in every state of an object.
func TestAllow(t *testing.T) {
	idle := View{Object: "Network infra/n1", Settled: true}
	running := View{Object: "Network infra/n1", Active: true, Verb: Create, Step: "EnsureShoot", Cancellable: true}
	stalled := running
	stalled.Stalled = true
	skippable := stalled
	skippable.Skippable = true
	deleting := View{Object: "Network infra/n1", Active: true, Verb: Delete, Step: "WaitShootGone", Deleting: true}
	updating := running
	updating.Verb = Update
	undoing := running
	undoing.Cancelling = true
	undoingStalled := undoing
	undoingStalled.Stalled = true
	cancelled := View{Object: "Network infra/n1", Verb: Create, Ended: v1.OperationCancelled}
	terminated := View{Object: "Network infra/n1", Verb: Delete, Ended: v1.OperationFailed, Deleting: true}
	paused := running
	paused.Paused = true
	yes, no := true, false
	for _, c := range []struct {
		verb  string
		state string
		view  View
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
		{"skip", "deleting", deleting, no, "mend what it waits for, or pause it"},
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
			reply, refused := Allow(temporal.VerbRequest{Verb: c.verb}, c.view)
			if c.ok {
				assert.Empty(t, refused)
				assert.Contains(t, reply, c.says)
			} else {
				assert.Empty(t, reply)
				assert.Contains(t, refused, c.says)
			}
		})
	}
	_, refused := Allow(temporal.VerbRequest{Verb: "retry", Step: "WaitShootReady"}, stalled)
	assert.Contains(t, refused, `is not in step WaitShootReady (it is in "EnsureShoot")`)
}

func TestViewOf(t *testing.T) {
	ref := contract.ObjectRef{Kind: "Network", Namespace: "infra", Name: "n1"}
	of := func(op v1.OperationStatus) View {
		return ViewOf(contract.ObjectState{Exists: true, Generation: 2, ObservedGeneration: 1, Operation: &op}, ref)
	}
	assert.Equal(t, View{Object: "Network infra/n1", Settled: true}, ViewOf(contract.ObjectState{Generation: 1, ObservedGeneration: 1}, ref))
	assert.True(t, of(v1.OperationStatus{State: v1.OperationRunning}).Active)
	assert.True(t, of(v1.OperationStatus{State: v1.OperationBlocked}).Stalled)
	assert.False(t, of(v1.OperationStatus{State: v1.OperationCancelling}).Stalled)
	assert.True(t, of(v1.OperationStatus{State: v1.OperationCancelling, Steps: []v1.StepStatus{{State: v1.StepStalled}}}).Stalled)
	assert.Equal(t, v1.OperationFailed, of(v1.OperationStatus{State: v1.OperationFailed, Generation: 2}).Ended)
	assert.Empty(t, of(v1.OperationStatus{State: v1.OperationFailed, Generation: 1}).Ended, "a newer generation is due anyway")
	assert.False(t, of(v1.OperationStatus{State: v1.OperationSucceeded}).Active)
}
