package object

import (
	"cmp"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
)

// action is what the object workflow does next.
type action string

const (
	actEnd     action = "end"     // the object is gone
	actYield   action = "yield"   // one without an identity has its name: the bridge starts anew for that
	actReplace action = "replace" // another object has its name: start afresh
	actRun     action = "run"     // run an operation
	actSettle  action = "settle"  // nothing is due; status must say so
	actWait    action = "wait"    // nothing is due until somebody asks
)

// decision is an action with its operation and its reason.
type decision struct {
	action action
	verb   lifecycle.Verb
	reason string // CamelCase, for the condition Ready
	text   string // one sentence
}

// decide says what is due, from the object as it is and nothing else. id and
// uid are those of the object that the workflow is for; uid is empty before
// the first look. asked is a verb, retry or reconcile, that was granted.
func decide(id, uid string, s contract.ObjectState, asked string) decision {
	if restored(s) && !s.Operation.Active() { // one that is active has to be stopped first
		s.Operation, s.ObservedGeneration = nil, 0
	}
	if !s.Exists {
		return decision{action: actEnd}
	}
	if d, is := misidentified(id, uid, s); is {
		return d
	}
	switch {
	case s.Operation != nil && s.Operation.Active():
		// Attach first: a pause, a deletion or a verb is passed on to it.
		return decision{action: actRun, verb: lifecycle.Verb(s.Operation.Type)}
	case s.Paused:
		return paused(s)
	case deletionDone(s):
		// Ours is done; what is left waits for somebody else's finalizer.
		return decision{action: actEnd}
	case s.Deleting:
		return unlessEnded(s, lifecycle.Delete, asked)
	default:
		return wanted(s, asked)
	}
}

// misidentified says what to do about an object that has not the identity that
// the workflow is for, or that its own operations have worked with.
func misidentified(id, uid string, s contract.ObjectState) (decision, bool) {
	switch {
	case s.ID != "" && known(s) != "" && s.ID != known(s):
		return identityChanged(known(s)), true
	case s.ID != "" && s.ID != id && s.UID == uid:
		return identityChanged(id), true
	case s.ID != "" && s.ID != id:
		return decision{action: actReplace}, true
	case s.ID == "" && s.UID != "" && (s.UID == uid || uid == "" && (s.Deleting || s.Operation != nil)):
		return decision{action: actWait, reason: "IdentityMissing", text: identityMissing(cmp.Or(known(s), id))}, true
	case s.ID == "" && s.UID != "": // not claimed yet, and none of this workflow's
		return decision{action: actYield}, true
	}
	return decision{}, false
}

// known is the identity with which the object's operations have worked; empty
// where none says it.
func known(s contract.ObjectState) string {
	if s.Operation == nil || restored(s) {
		return ""
	}
	return s.Operation.Identity
}

func identityChanged(from string) decision {
	return decision{action: actWait, reason: "IdentityChanged", text: "the annotation " + v1.AnnotationID +
		" was changed from " + from + ": put it back, all external resources are found by it"}
}

// identityMissing says what to do about an object whose identity was taken away.
func identityMissing(id string) string {
	is := ""
	if id != "" {
		is = " (" + id + ")"
	}
	return "the annotation " + v1.AnnotationID + " was taken away: put it back" + is + ", all external resources are found by it; nothing is done until then"
}

// deletionDone says whether our deletion of the object has ended well, so that
// only others' finalizers can still hold it.
func deletionDone(s contract.ObjectState) bool {
	op := s.Operation
	return s.Deleting && !s.Held && op != nil && !restored(s) && lifecycle.Verb(op.Type).Traits().Final && op.State == v1.OperationSucceeded
}

// restored says whether status is of a former object, and came back with this
// one out of a backup: nothing in it says how this object is.
func restored(s contract.ObjectState) bool {
	return s.Operation != nil && s.Operation.UID != "" && s.Operation.UID != s.UID
}

// wanted brings the object to its generation.
func wanted(s contract.ObjectState, asked string) decision {
	op := s.Operation
	if op != nil && op.State == v1.OperationSucceeded && !lifecycle.Verb(op.Type).Traits().Final {
		// It may have ended while no object workflow was there to tell so.
		s.ObservedGeneration = max(s.ObservedGeneration, op.Generation)
	}
	switch {
	case s.ObservedGeneration == 0:
		return unlessEnded(s, lifecycle.Create, asked)
	case s.ObservedGeneration < s.Generation:
		return unlessEnded(s, lifecycle.Update, asked)
	case asked != "":
		return decision{action: actRun, verb: lifecycle.Update}
	case op != nil && op.Type == string(lifecycle.Update) && (op.State == v1.OperationFailed || op.State == v1.OperationCancelled) && op.Generation == s.Generation:
		return unlessEnded(s, lifecycle.Update, "") // a reconcile that was ended midway
	default:
		return decision{action: actSettle, reason: "Ready"}
	}
}

// paused freezes the object; one with nothing to do stays Ready.
func paused(s contract.ObjectState) decision {
	if !s.Deleting && s.ObservedGeneration >= s.Generation {
		return decision{action: actSettle, reason: "Ready", text: "; it is paused, so a change waits until it is resumed"}
	}
	return decision{action: actWait, reason: "Paused", text: pausedText(s)}
}

// pausedText says what a pause holds up and how it ends.
func pausedText(s contract.ObjectState) string {
	what := "nothing starts"
	if s.Deleting {
		what = "the deletion waits"
	}
	return what + " while the annotation " + v1.AnnotationPaused + " is there: remove it, or ask for resume, and the object goes on"
}

// unlessEnded runs the verb, unless its last run for this generation was ended
// by somebody: then only a verb or a new generation starts it again.
func unlessEnded(s contract.ObjectState, v lifecycle.Verb, asked string) decision {
	op := s.Operation
	ended := op != nil && op.Type == string(v) && op.Generation == s.Generation &&
		(op.State == v1.OperationCancelled || op.State == v1.OperationFailed) && !preempted(s)
	if !ended || asked != "" {
		return decision{action: actRun, verb: v}
	}
	how, at := " was cancelled", ""
	if op.Step != "" {
		at = " at step " + op.Step
	}
	if op.State == v1.OperationFailed { // see closeReport
		how = " was ended"
		for _, c := range s.Conditions {
			if c.Type == v1.ConditionProgressing && c.Reason == string(op.State) && c.Message != "" {
				at += ": " + c.Message
			}
		}
	}
	return decision{action: actWait, verb: v, reason: string(op.State), text: string(v) + how + at + "; " + again(v)}
}

// preempted says whether the last operation gave way to another one, rather
// than being ended by somebody.
func preempted(s contract.ObjectState) bool {
	for _, c := range s.Conditions {
		if c.Type == v1.ConditionProgressing {
			return c.Reason == lifecycle.ReasonPreempted || c.Reason == lifecycle.ReasonSuperseded
		}
	}
	return false
}
