package lifecycle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// view is what the validation of a verb looks at.
type view struct {
	object   string // "Network infra/n1"
	deleting bool
	paused   bool
	settled  bool // status is of the current generation

	// The operation that runs, or ran last.
	active      bool // it has not ended
	verb        Verb
	step        string
	stalled     bool
	cancelling  bool
	skippable   bool
	cancellable bool
	ended       v1.OperationState // how it ended: Cancelled or Failed for the current generation; else empty
}

// viewOf is the view of an object as it was read.
func viewOf(s contract.ObjectState, ref contract.ObjectRef) view {
	v := view{object: ref.Kind + " " + ref.Namespace + "/" + ref.Name, deleting: s.Deleting, paused: s.Paused,
		settled: s.ObservedGeneration >= s.Generation}
	if s.Operation == nil {
		return v
	}
	return v.with(*s.Operation, s.Generation)
}

// with adds an operation to the view.
func (v view) with(op v1.OperationStatus, generation int64) view {
	v.verb, v.step, v.skippable, v.cancellable = Verb(op.Type), op.Step, op.Skippable, op.Cancellable
	switch op.State {
	case v1.OperationRunning:
		v.active = true
	case v1.OperationBlocked:
		v.active, v.stalled = true, true
	case v1.OperationCancelling:
		v.active, v.cancelling = true, true
		v.stalled = slices.ContainsFunc(op.Steps, func(s v1.StepStatus) bool { return s.State == v1.StepStalled })
	case v1.OperationCancelled, v1.OperationFailed:
		if op.Generation == generation {
			v.ended = op.State
		}
	}
	return v
}

// allow says what a verb will do, or refuses it with a sentence that says why
// and what to do instead.
func allow(req temporal.VerbRequest, v view) (reply string, refused string) {
	if refused := unknown(req.Verb); refused != "" {
		return "", refused
	}
	if req.Step != "" && req.Step != v.step {
		return "", fmt.Sprintf("%s is not in step %s (it is in %q): look again, then repeat the verb", v.object, req.Step, v.step)
	}
	if v.paused && req.Verb != temporal.VerbResume && req.Verb != temporal.VerbPause {
		return "", v.object + " is paused, nothing starts until it is resumed: ask for resume first"
	}
	switch req.Verb {
	case temporal.VerbRetry:
		return allowRetry(v)
	case temporal.VerbSkip:
		return allowSkip(v)
	case temporal.VerbCancel:
		return allowCancel(v)
	case temporal.VerbReconcile:
		return allowReconcile(v)
	case temporal.VerbPause:
		if v.paused {
			return "", v.object + " is paused already; resume ends it"
		}
		return "no step of " + v.object + " starts until it is resumed; what runs is finished", ""
	default: // resume
		if !v.paused {
			return "", v.object + " is not paused"
		}
		return v.object + " goes on", ""
	}
}

// unknown refuses what is no verb at all; it is empty for one that is.
func unknown(verb string) (refused string) {
	if slices.Contains(temporal.Verbs(), verb) {
		return ""
	}
	return fmt.Sprintf("%q is no verb; there are %s", verb, strings.Join(temporal.Verbs(), ", "))
}

func allowRetry(v view) (reply, refused string) {
	switch {
	case v.active && v.stalled:
		return "step " + v.step + " runs again", ""
	case v.active:
		return "", fmt.Sprintf("%s %s runs, step %s, and has not stalled: there is nothing to retry", v.verb, v.object, v.step)
	case v.ended != "":
		return fmt.Sprintf("%s starts again from what exists", v.verb), ""
	default:
		return "", v.object + " has nothing that stalled or was cancelled; reconcile runs its steps again"
	}
}

func allowSkip(v view) (reply, refused string) {
	switch {
	case !v.active:
		return "", v.object + " runs no operation: there is no step to skip"
	case v.cancelling:
		return "", v.object + " is undoing what it made: ask for cancel again to leave it as it is"
	case !v.skippable:
		return "", "step " + v.step + " cannot be skipped, what comes after needs it: mend what it waits for, or cancel"
	default:
		return "step " + v.step + " is left out", ""
	}
}

func allowCancel(v view) (reply, refused string) {
	switch {
	case !v.active:
		return "", v.object + " runs no operation: there is nothing to cancel"
	case v.verb == Delete:
		return "", "a deletion cannot be cancelled, what is gone is gone: pause it if it must not go on"
	case v.cancelling:
		return "the undoing ends here; what is left is listed in status.resources", ""
	case !v.cancellable:
		return "", "step " + v.step + " cannot be cancelled: wait for the next one"
	case v.verb == Create:
		return "the creation stops and what it made is undone, newest first", ""
	default:
		return "the " + strings.ToLower(string(v.verb)) + " stops; what it did stays", ""
	}
}

func allowReconcile(v view) (reply, refused string) {
	switch {
	case v.active:
		return "", fmt.Sprintf("%s %s runs already, step %s", v.verb, v.object, v.step)
	case v.deleting:
		return "", v.object + " is being deleted"
	default:
		return "the steps of " + v.object + " run again; what is as it should be stays", ""
	}
}
