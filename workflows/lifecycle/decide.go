package lifecycle

import (
	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// action is what the object workflow does next.
type action string

const (
	actEnd     action = "end"     // the object is gone
	actReplace action = "replace" // another object has its name: start afresh
	actRun     action = "run"     // run an operation
	actSettle  action = "settle"  // nothing is due; status must say so
	actWait    action = "wait"    // nothing is due until somebody asks
)

// decision is an action with its operation and its reason.
type decision struct {
	action action
	verb   Verb
	reason string // CamelCase, for the condition Ready
	text   string // one sentence
}

// decide says what is due, from the object as it is and nothing else. id and
// uid are those of the object that the workflow is for; uid is empty before
// the first look.
func decide(id, uid string, s contract.ObjectState) decision {
	switch {
	case !s.Exists:
		return decision{action: actEnd}
	case s.ID != "" && s.ID != id && s.UID == uid:
		return decision{action: actWait, reason: "IdentityChanged", text: "the annotation " + v1.AnnotationID +
			" was changed from " + id + ": put it back, all external resources are found by it"}
	case s.ID != "" && s.ID != id:
		return decision{action: actReplace}
	case s.Paused:
		return decision{action: actWait, reason: "Paused", text: "frozen by the annotation " + v1.AnnotationPaused + ": remove it and the object goes on"}
	case s.Deleting && s.Operation != nil && s.Operation.Type == string(Delete) && s.Operation.State == v1.OperationSucceeded:
		// Ours is done; what is left waits for somebody else's finalizer.
		return decision{action: actEnd}
	case s.Deleting:
		return unlessEnded(s, Delete)
	case s.ObservedGeneration >= s.Generation:
		return decision{action: actSettle, reason: "Ready", text: "nothing to do"}
	case s.ObservedGeneration == 0:
		return unlessEnded(s, Create)
	default:
		return unlessEnded(s, Update)
	}
}

// unlessEnded runs the verb, unless its last run for this generation was ended
// by somebody: then only a verb or a new generation starts it again.
func unlessEnded(s contract.ObjectState, v Verb) decision {
	op := s.Operation
	ended := op != nil && op.Type == string(v) && op.Generation == s.Generation &&
		(op.State == v1.OperationCancelled || op.State == v1.OperationFailed)
	if !ended {
		return decision{action: actRun, verb: v}
	}
	return decision{action: actWait, verb: v, reason: string(op.State),
		text: string(v) + " was ended at step " + op.Step + "; change the spec and it starts again from what exists, or delete the object"}
}
