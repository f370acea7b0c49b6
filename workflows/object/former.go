package object

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
)

// Objects that went without a deletion of ours: somebody took the finalizer
// away. What they had stays, and nothing but their identity leads to it.

// formerError is how the wait for an operation ends that is of a former object
// of the same name.
type formerError struct{ identity string }

func (e *formerError) Error() string { return "it is of a former object of this name" }

// former returns the identity of the former object whose operation r is.
func former(ctx workflow.Context, r *running) (identity string, is bool) {
	var of *formerError
	if ctx.Err() != nil || !errors.As(r.ended.Get(ctx, nil), &of) {
		return "", false
	}
	return of.identity, true
}

// errUnknown is how the wait for an operation ends that Temporal does not know.
// Whatever it has made exists, so it is begun again.
var errUnknown = errors.New("it is unknown to Temporal")

func forgotten(ctx workflow.Context, r *running) bool {
	return ctx.Err() == nil && errors.Is(r.ended.Get(ctx, nil), errUnknown)
}

// outlive stops the operation of a former object and waits for its end. This
// object's own operation gets the next number. A restored status that calls the
// former one active is closed.
func (o *object) outlive(ctx workflow.Context, r *running, identity string) error {
	o.warn(ctx, r.in.UID, r.id, "FormerOperation", "the operation "+r.id+" is of a former object of this name, and is stopped if it runs still; "+
		o.leftBehind(identity))
	r.control(ctx, lifecycle.Control{Do: lifecycle.DoGone})
	ended := o.attach(ctx, r.id, "")
	for {
		s, err := o.read(ctx)
		if err != nil {
			return err
		}
		if s.Exists && s.UID == r.in.UID {
			o.serve(ctx, &s, nil)
			o.tell(ctx, s, phaseOf(s), s.ObservedGeneration, o.ready(ctx, s.Generation, false, "FormerOperation",
				"the operation "+r.id+" of a former object of this name has to end first; terminate it in Temporal if it does not"))
		}
		err = workflow.Await(ctx, func() bool {
			return ended.IsReady() || o.called()
		})
		switch {
		case err != nil:
			return err
		case !ended.IsReady():
			o.drain()
		case s.Operation == nil || s.Operation.ID != r.id:
			return nil
		default:
			return o.closeReport(ctx, s, r, &formerError{identity: identity})
		}
	}
}

// reportRemoval says what is known of an object that this workflow was for and
// that went without a deletion of ours; its ledger went with it.
func (o *object) reportRemoval(ctx workflow.Context) {
	if o.carried.UID == "" || o.carried.Removed {
		return
	}
	o.warn(ctx, o.carried.UID, "removed", "RemovedByForce", fmt.Sprintf(
		"%s %s/%s went without its deletion having ended, as when its finalizer is taken away; %s",
		o.ref.Kind, o.ref.Namespace, o.ref.Name, o.leftBehind(o.ref.ID)))
}

func (o *object) leftBehind(identity string) string {
	return "whatever it had is left behind, tagged with its identity " + identity + ", unless an object with that identity exists again (a restore adopts it)"
}

// removed keeps in mind whether our deletion of the object has ended well.
func (o *object) removed(s contract.ObjectState) {
	if s.UID != o.carried.UID {
		o.carried.Removed = false
	}
	if deletionDone(s) {
		o.carried.Removed = true
	}
}

// warn logs a sentence and tells it as an Event on the object with the uid,
// which may be gone.
func (o *object) warn(ctx workflow.Context, uid, key, reason, sentence string) {
	workflow.GetLogger(ctx).Warn(sentence, "object", o.ref.String(), "uid", uid)
	e := contract.Event{Key: uid + "/" + key + "/" + reason, Warning: true, Reason: reason, Message: sentence}
	if _, err := lifecycle.Must(ctx, contract.AnswerVerb, contract.VerbAnswer{Ref: o.ref, UID: uid, Events: []contract.Event{e}}); err != nil {
		workflow.GetLogger(ctx).Error("event not told", "object", o.ref.String(), "reason", reason, "error", err)
	}
}
