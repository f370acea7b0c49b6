package operation

import (
	"slices"

	"go.temporal.io/sdk/workflow"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// register notes what undoes a step, before the step does anything: its call
// may take effect although its answer never comes.
func (o *operation) register(s Step) {
	known := slices.ContainsFunc(o.undos, func(u Step) bool { return u.Name == s.Name }) // it runs again
	if o.in.Verb.Traits().Makes && len(s.Undo) > 0 && !o.undoing && !known {
		o.undos = append(o.undos, s)
	}
}

// undo takes back what a cancelled creation has made, newest first. Its steps
// are steps like others: they are retried, they stall visibly, they can be
// retried by a verb. A second cancel, or a deletion, ends it; what is left then
// stays in the ledger for Delete.
//
// An object that was restored with its identity may have adopted things that
// are older than itself: of these nothing is undone.
func (o *operation) undo(ctx workflow.Context) {
	o.undone = "what exists is listed in status.resources"
	if o.preempted || len(o.undos) == 0 {
		return
	}
	if !o.minted {
		o.undone = "nothing was undone, since its identity is older than the object and it may have adopted what others use; delete the object to remove it"
		return
	}
	if o.inherited { // then all that a creation makes may be there
		o.undos = slices.DeleteFunc(slices.Clone(o.steps), func(s Step) bool { return len(s.Undo) == 0 })
	}
	if o.cancelled == "" { // what is removed now is removed at that word
		o.in.By = "a cancellation in Temporal"
	}
	op := &o.report.Operation
	o.undoing, o.stopped = true, v1.StepStatus{Name: op.Step, StartedAt: op.StepStartedAt}
	clear(o.faults) // of steps that are not tried any more
	op.State, o.report.LastError = v1.OperationCancelling, nil
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	ctx, o.abandon = workflow.WithCancel(ctx)
	var back []Step
	if o.inherited {
		back = append(back, o.recall...)
	}
	for i := len(o.undos) - 1; i >= 0; i-- {
		back = append(back, o.undos[i].Undo...)
	}
	o.first, o.steps = len(o.steps), append(o.steps, back...)
	o.list(back)
	switch err := o.runAll(ctx, back); {
	case err == nil:
		o.undone = "what it made is undone" + o.remaining()
		o.disown(ctx)
	case o.preempted:
		o.undone = "the deletion goes on from what exists"
	default:
		o.undone = "the undoing was ended" + o.who() + " " + in(op.Step) + ", what is left is listed in status.resources"
	}
}

// disown takes the kind's own conditions back: they are about what is undone.
func (o *operation) disown(ctx workflow.Context) {
	for _, c := range slices.Clone(o.report.Conditions) {
		switch c.Type {
		case v1.ConditionReady, v1.ConditionProgressing, v1.ConditionStalled, v1.ConditionDeletionBlocked, v1.ConditionInUse:
		default:
			o.condition(ctx, c.Type, metav1.ConditionFalse, "Undone", "the creation was cancelled, and what it made is undone")
		}
	}
}

// remaining names what the ledger still has after an undoing that has ended
// well: somebody has to know.
func (o *operation) remaining() string {
	var left []v1.Resource
	for _, r := range o.report.Resources {
		if r.State != v1.ResourceRetained {
			left = append(left, r)
		}
	}
	if len(left) == 0 {
		return ""
	}
	return ", but " + Names(left) + ": delete the object to remove it"
}
