package operation

import (
	"go.temporal.io/sdk/workflow"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
)

// listen serves the object workflow's signals, and the update verb for people
// who look at the operation in the Temporal UI.
func (o *operation) listen(ctx workflow.Context) error {
	ch := workflow.GetSignalChannel(ctx, lifecycle.SignalControl)
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			var c lifecycle.Control
			ch.Receive(ctx, &c)
			o.steer(c)
		}
	})
	return workflow.SetUpdateHandlerWithOptions(ctx, temporal.UpdateVerb, o.answer, workflow.UpdateHandlerOptions{
		Description: "retry, skip, pause, resume or cancel this operation",
		Validator: func(req temporal.VerbRequest) error {
			_, refused := lifecycle.Allow(req, o.view())
			return lifecycle.Refusal(refused)
		},
	})
}

// answer does what a validated verb asks for.
func (o *operation) answer(ctx workflow.Context, req temporal.VerbRequest) (temporal.VerbReply, error) {
	v := o.view()
	reply, refused := lifecycle.Allow(req, v)
	if refused != "" {
		return temporal.VerbReply{}, lifecycle.Refusal(refused)
	}
	c := lifecycle.ControlOf(req, v)
	in := contract.VerbAnswer{Ref: o.in.Object, UID: o.in.UID, Pause: lifecycle.PauseOf(req.Verb),
		Events: []contract.Event{lifecycle.VerbEvent(ctx, req, reply, "")}}
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	if _, err := lifecycle.Must(lifecycle.Answering(ctx, o.in.Object, o.in.Generation, req, false), contract.AnswerVerb, in); err != nil {
		return temporal.VerbReply{}, err
	}
	o.steer(c)
	return temporal.VerbReply{Text: reply}, nil
}

// steer applies a control. One that no longer fits changes nothing.
func (o *operation) steer(c lifecycle.Control) {
	if c.By != "" { // what follows is done at that person's word
		o.in.By = c.By
	}
	switch c.Do {
	case lifecycle.DoGranted:
		o.turns++
	case lifecycle.DoWake, temporal.VerbRetry:
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
	case lifecycle.DoGone:
		if step := o.report.Operation.Step; !o.in.Verb.Traits().Final || step == "" || step == waitUnused {
			o.preempted = true
			o.stop()
		}
	case lifecycle.DoPreempt:
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

func (o *operation) view() lifecycle.View {
	v := lifecycle.View{Object: o.in.Object.Kind + " " + o.in.Object.Namespace + "/" + o.in.Object.Name,
		Deleting: o.in.Verb.Traits().Final, Paused: o.paused}
	return v.With(o.report.Operation, o.in.Generation)
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
