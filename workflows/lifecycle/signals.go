package lifecycle

import (
	sdk "go.temporal.io/sdk/temporal"

	"github.com/tidbcloud/infra-orchestrator/api/temporal"
)

// SignalControl is how an object workflow steers its operation. Argument:
// Control. Whatever it says has been validated.
const SignalControl = "control"

// Control is one of the verbs that concern an operation, or one of these.
type Control struct {
	Do string `json:"do"`
	// Step to skip; the one that runs when empty.
	Step string `json:"step,omitempty"`
	// Generation of the spec by now.
	Generation int64  `json:"generation,omitempty"`
	By         string `json:"by,omitempty"`
	// Undoing: who cancels has seen that it is being undone, and ends that.
	Undoing bool `json:"undoing,omitempty"`
}

const (
	// DoWake: the spec has changed; a stalled operation gives way to it.
	DoWake = "wake"
	// DoPreempt: a deletion is due; the operation stops and leaves what exists.
	DoPreempt = "preempt"
	// DoGone: the object is gone, without its deletion having ended, or another
	// one has its name. A deletion that knows what exists goes on all the same:
	// nobody else will remove it. Everything else stops.
	DoGone = "gone"
	// DoGranted: a keeper says that the turn of a request for a lease has come.
	DoGranted = "granted"
)

// ControlOf is what a granted verb means: the step and the state that whoever
// granted it has seen, not those in which it arrives.
func ControlOf(req temporal.VerbRequest, v View) Control {
	c := Control{Do: req.Verb, Step: req.Step, By: req.By, Undoing: v.Cancelling}
	if c.Do == temporal.VerbSkip && c.Step == "" {
		c.Step = v.Step
	}
	return c
}

// Refusal is the error of an update that was refused; nil for none.
func Refusal(sentence string) error {
	if sentence == "" {
		return nil
	}
	return sdk.NewNonRetryableApplicationError(sentence, "Refused", nil)
}

// PauseOf is what a verb does to the annotation of a pause.
func PauseOf(verb string) *bool {
	switch verb {
	case temporal.VerbPause, temporal.VerbResume:
		pause := verb == temporal.VerbPause
		return &pause
	}
	return nil
}

// SignalNews tells the object workflow that an operation stalls or goes on.
const SignalNews = "operation"

// News is the argument of signalNews.
type News struct {
	// UID of the object that the operation is for; older operations send none.
	UID     string `json:"uid,omitempty"`
	Stalled bool   `json:"stalled"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}
