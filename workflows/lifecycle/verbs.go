package lifecycle

import (
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// View is what the validation of a verb looks at.
type View struct {
	Object   string // "Network infra/n1"
	Deleting bool
	Paused   bool
	Settled  bool // status is of the current generation

	// The operation that runs, or ran last.
	Active      bool // it has not ended
	Verb        Verb
	Step        string
	Stalled     bool
	Cancelling  bool
	Skippable   bool
	Cancellable bool
	Ended       v1.OperationState // how it ended: Cancelled or Failed for the current generation; else empty
}

// ViewOf is the view of an object as it was read.
func ViewOf(s contract.ObjectState, ref contract.ObjectRef) View {
	v := View{Object: ref.Kind + " " + ref.Namespace + "/" + ref.Name, Deleting: s.Deleting, Paused: s.Paused,
		Settled: s.ObservedGeneration >= s.Generation}
	if s.Operation == nil {
		return v
	}
	return v.With(*s.Operation, s.Generation)
}

// With adds an operation to the view.
func (v View) With(op v1.OperationStatus, generation int64) View {
	v.Verb, v.Step, v.Skippable, v.Cancellable = Verb(op.Type), op.Step, op.Skippable, op.Cancellable
	switch op.State {
	case v1.OperationRunning:
		v.Active = true
	case v1.OperationBlocked:
		v.Active, v.Stalled = true, true
	case v1.OperationCancelling:
		v.Active, v.Cancelling = true, true
		v.Stalled = slices.ContainsFunc(op.Steps, func(s v1.StepStatus) bool { return s.State == v1.StepStalled })
	case v1.OperationCancelled, v1.OperationFailed:
		if op.Generation == generation {
			v.Ended = op.State
		}
	}
	return v
}

// Allow says what a verb will do, or refuses it with a sentence that says why
// and what to do instead.
func Allow(req temporal.VerbRequest, v View) (reply string, refused string) {
	if refused := UnknownVerb(req.Verb); refused != "" {
		return "", refused
	}
	if req.Step != "" && req.Step != v.Step {
		return "", fmt.Sprintf("%s is not in step %s (it is in %q): look again, then repeat the verb", v.Object, req.Step, v.Step)
	}
	if v.Paused && req.Verb != temporal.VerbResume && req.Verb != temporal.VerbPause {
		return "", v.Object + " is paused, nothing starts until it is resumed: ask for resume first"
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
		if v.Paused {
			return "", v.Object + " is paused already; resume ends it"
		}
		return "no step of " + v.Object + " starts until it is resumed; what runs is finished", ""
	default: // resume
		if !v.Paused {
			return "", v.Object + " is not paused"
		}
		return v.Object + " goes on", ""
	}
}

// UnknownVerb refuses what is no verb at all; it is empty for one that is.
func UnknownVerb(verb string) (refused string) {
	if slices.Contains(temporal.Verbs(), verb) {
		return ""
	}
	return fmt.Sprintf("%q is no verb; there are %s", verb, strings.Join(temporal.Verbs(), ", "))
}

func allowRetry(v View) (reply, refused string) {
	switch {
	case v.Active && v.Stalled:
		return "step " + v.Step + " runs again", ""
	case v.Active:
		return "", fmt.Sprintf("%s %s runs, step %s, and has not stalled: there is nothing to retry", v.Verb, v.Object, v.Step)
	case v.Ended != "":
		return fmt.Sprintf("%s starts again from what exists", v.Verb), ""
	default:
		return "", v.Object + " has nothing that stalled or was cancelled; reconcile runs its steps again"
	}
}

func allowSkip(v View) (reply, refused string) {
	switch {
	case !v.Active:
		return "", v.Object + " runs no operation: there is no step to skip"
	case v.Cancelling:
		return "", v.Object + " is undoing what it made: ask for cancel again to leave it as it is"
	case !v.Skippable && v.Verb.Traits().Uncancellable:
		return "", "step " + v.Step + " cannot be skipped, what comes after needs it: mend what it waits for, or pause it"
	case !v.Skippable:
		return "", "step " + v.Step + " cannot be skipped, what comes after needs it: mend what it waits for, or cancel"
	default:
		return "step " + v.Step + " is left out", ""
	}
}

func allowCancel(v View) (reply, refused string) {
	switch {
	case !v.Active:
		return "", v.Object + " runs no operation: there is nothing to cancel"
	case v.Verb.Traits().Uncancellable:
		return "", "a deletion cannot be cancelled, what is gone is gone: pause it if it must not go on"
	case v.Cancelling:
		return "the undoing ends here; what is left is listed in status.resources", ""
	case !v.Cancellable:
		return "", "step " + v.Step + " cannot be cancelled: wait for the next one"
	case v.Verb.Traits().Makes:
		return "the creation stops and what it made is undone, newest first", ""
	default:
		return "the " + strings.ToLower(string(v.Verb)) + " stops; what it did stays", ""
	}
}

func allowReconcile(v View) (reply, refused string) {
	switch {
	case v.Active:
		return "", fmt.Sprintf("%s %s runs already, step %s", v.Verb, v.Object, v.Step)
	case v.Deleting:
		return "", v.Object + " is being deleted"
	default:
		return "the steps of " + v.Object + " run again; what is as it should be stays", ""
	}
}

// VerbEvent tells on the object what was asked, by whom, and what came of it.
func VerbEvent(ctx workflow.Context, req temporal.VerbRequest, reply, refused string) contract.Event {
	by := req.By
	if by == "" {
		by = "somebody"
	}
	e := contract.Event{Key: fmt.Sprintf("verb/%s/%d", req.Verb, workflow.Now(ctx).UnixNano()),
		Reason: "VerbAccepted", Message: fmt.Sprintf("%s asked for %s: %s", by, req.Verb, reply)}
	if refused != "" {
		e.Warning, e.Reason, e.Message = true, "VerbRefused", fmt.Sprintf("%s asked for %q: refused, %s", by, req.Verb, refused)
	}
	return e
}
