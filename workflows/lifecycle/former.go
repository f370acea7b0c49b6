package lifecycle

import (
	"errors"

	"go.temporal.io/sdk/workflow"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
)

// Objects that went without a deletion of ours: somebody took the finalizer
// away. What they had stays, and nothing but their identity leads to it.

// errFormer is how the wait for an operation ends that is of a former object of
// the same name.
var errFormer = errors.New("it is of a former object of this name")

func (o *object) former(ctx workflow.Context, r *running) bool {
	return ctx.Err() == nil && errors.Is(r.ended.Get(ctx, nil), errFormer)
}

// outlive stops the operation of a former object and waits for its end. This
// object's own operation gets the next number.
func (o *object) outlive(ctx workflow.Context, r *running) error {
	o.warn(ctx, r.in.UID, r.id, "FormerOperation", "the operation "+r.id+" of a former object of this name ran still, and is stopped; "+
		"what it made is left behind, tagged with the identity in its memo")
	r.control(ctx, control{Do: doPreempt})
	r.ended = o.attach(ctx, r.id, "")
	return workflow.Await(ctx, r.ended.IsReady)
}

// reportRemoval says what is known of an object that this workflow was for and
// that went without a deletion of ours; its ledger went with it.
func (o *object) reportRemoval(ctx workflow.Context) {
	if o.carried.UID == "" || o.carried.Removed {
		return
	}
	o.warn(ctx, o.carried.UID, "removed", "RemovedByForce", o.ref.Kind+" "+o.ref.Namespace+"/"+o.ref.Name+
		" went without its deletion having run, as when its finalizer is taken away; whatever it had is left behind: look for what is tagged with its identity "+o.ref.ID)
}

// warn logs a sentence and tells it as an Event on the object with the uid,
// which may be gone.
func (o *object) warn(ctx workflow.Context, uid, key, reason, sentence string) {
	workflow.GetLogger(ctx).Warn(sentence, "object", o.ref.String(), "uid", uid)
	e := contract.Event{Key: uid + "/" + key + "/" + reason, Warning: true, Reason: reason, Message: sentence}
	if _, err := must(ctx, contract.AnswerVerb, contract.VerbAnswer{Ref: o.ref, UID: uid, Events: []contract.Event{e}}); err != nil {
		workflow.GetLogger(ctx).Error("event not told", "object", o.ref.String(), "reason", reason, "error", err)
	}
}
