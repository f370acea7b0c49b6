package lifecycle

import (
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// signalControl is how an object workflow steers its operation. Argument:
// control. Whatever it says has been validated.
const signalControl = "control"

// control is one of the verbs that concern an operation, or one of these.
type control struct {
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
	// doWake: the spec has changed; a stalled operation gives way to it.
	doWake = "wake"
	// doPreempt: a deletion is due; the operation stops and leaves what exists.
	doPreempt = "preempt"
	// doGone: the object is gone, without its deletion having ended, or another
	// one has its name. A deletion that knows what exists goes on all the same:
	// nobody else will remove it. Everything else stops.
	doGone = "gone"
	// doGranted: a keeper says that the turn of a request for a lease has come.
	doGranted = "granted"
)

// listen serves the object workflow's signals, and the update verb for people
// who look at the operation in the Temporal UI.
func (o *operation) listen(ctx workflow.Context) error {
	ch := workflow.GetSignalChannel(ctx, signalControl)
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			var c control
			ch.Receive(ctx, &c)
			o.steer(c)
		}
	})
	return workflow.SetUpdateHandlerWithOptions(ctx, temporal.UpdateVerb, o.answer, workflow.UpdateHandlerOptions{
		Description: "retry, skip, pause, resume or cancel this operation",
		Validator: func(req temporal.VerbRequest) error {
			_, refused := allow(req, o.view())
			return refusal(refused)
		},
	})
}

// answer does what a validated verb asks for.
func (o *operation) answer(ctx workflow.Context, req temporal.VerbRequest) (temporal.VerbReply, error) {
	v := o.view()
	reply, refused := allow(req, v)
	if refused != "" {
		return temporal.VerbReply{}, refusal(refused)
	}
	c := controlOf(req, v)
	in := contract.VerbAnswer{Ref: o.in.Object, UID: o.in.UID, Pause: pauseOf(req.Verb),
		Events: []contract.Event{verbEvent(ctx, req, reply, "")}}
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	if _, err := must(answering(ctx, o.in.Object, o.in.Generation, req, false), contract.AnswerVerb, in); err != nil {
		return temporal.VerbReply{}, err
	}
	o.steer(c)
	return temporal.VerbReply{Text: reply}, nil
}

// controlOf is what a granted verb means: the step and the state that whoever
// granted it has seen, not those in which it arrives.
func controlOf(req temporal.VerbRequest, v view) control {
	c := control{Do: req.Verb, Step: req.Step, By: req.By, Undoing: v.cancelling}
	if c.Do == temporal.VerbSkip && c.Step == "" {
		c.Step = v.step
	}
	return c
}

// steer applies a control. One that no longer fits changes nothing.
func (o *operation) steer(c control) {
	if c.By != "" { // what follows is done at that person's word
		o.in.By = c.By
	}
	switch c.Do {
	case doGranted:
		o.turns++
	case doWake, temporal.VerbRetry:
		o.newest = max(o.newest, c.Generation)
		o.wakes++
	case temporal.VerbPause, temporal.VerbResume:
		o.paused = c.Do == temporal.VerbPause
	case temporal.VerbSkip:
		o.skip(c.Step)
	case temporal.VerbCancel:
		if o.undoing && !c.Undoing {
			return // said of the creation, which is being undone already
		}
		o.cancelled = c.By
		o.stop()
	case doGone:
		if step := o.report.Operation.Step; o.in.Verb != Delete || step == "" || step == waitUnused {
			o.preempted = true
			o.stop()
		}
	case doPreempt:
		o.preempted = true
		o.stop()
	}
}

// stop ends the steps, or the undoing if that is what runs.
func (o *operation) stop() {
	if o.undoing {
		o.abandon()
		return
	}
	o.cancel()
}

func (o *operation) skip(name string) {
	if name == "" {
		name = o.report.Operation.Step
	}
	for _, s := range o.steps {
		if state := o.stepStatus(s.Name).State; s.Name == name && s.Skippable && (state == v1.StepRunning || state == v1.StepStalled) {
			o.skips[name] = true
			o.stops[name]()
		}
	}
}

func (o *operation) view() view {
	v := view{object: o.in.Object.Kind + " " + o.in.Object.Namespace + "/" + o.in.Object.Name,
		deleting: o.in.Verb == Delete, paused: o.paused}
	return v.with(o.report.Operation, o.in.Generation)
}

// hold waits while the object is paused: what runs is finished, nothing else
// starts.
func (o *operation) hold(ctx workflow.Context, s Step) error {
	if !o.paused {
		return nil
	}
	o.condition(ctx, v1.ConditionProgressing, metav1.ConditionFalse, "Paused", "step "+s.Name+" starts when the object is resumed")
	o.publish(ctx, false)
	if err := workflow.Await(ctx, func() bool { return !o.paused }); err != nil {
		return err
	}
	o.quietSince[s.Name] = workflow.Now(ctx)
	if other, is := o.stalledStep(); is {
		o.show(ctx, other)
	} else {
		o.condition(ctx, v1.ConditionProgressing, metav1.ConditionTrue, s.Name, s.Doc)
	}
	o.publish(ctx, false)
	return nil
}

// refusal is the error of an update that was refused; nil for none.
func refusal(sentence string) error {
	if sentence == "" {
		return nil
	}
	return sdk.NewNonRetryableApplicationError(sentence, "Refused", nil)
}

// pauseOf is what a verb does to the annotation of a pause.
func pauseOf(verb string) *bool {
	switch verb {
	case temporal.VerbPause, temporal.VerbResume:
		pause := verb == temporal.VerbPause
		return &pause
	}
	return nil
}
