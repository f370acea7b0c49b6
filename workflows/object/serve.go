package object

import (
	"fmt"

	"go.temporal.io/sdk/workflow"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
)

// request is a verb that waits for its answer.
type request struct {
	req     temporal.VerbRequest
	reply   string
	refused string
	done    bool
}

// handle serves updates: verbs to every object, leases to keepers.
func (o *object) handle(ctx workflow.Context) error {
	err := workflow.SetUpdateHandlerWithOptions(ctx, temporal.UpdateVerb, o.onVerb, workflow.UpdateHandlerOptions{
		Description: "retry, skip, pause, resume, cancel or reconcile the object",
		Validator: func(req temporal.VerbRequest) error {
			return lifecycle.Refusal(lifecycle.UnknownVerb(req.Verb)) // all else after a look at the object
		},
	})
	if err != nil || !o.kind.Keeper {
		return err
	}
	return o.keep(ctx)
}

// onVerb lets the main loop answer, which sees the object as it is.
func (o *object) onVerb(ctx workflow.Context, req temporal.VerbRequest) (temporal.VerbReply, error) {
	q := &request{req: req}
	o.requests = append(o.requests, q)
	if err := workflow.Await(ctx, func() bool { return q.done || o.gone }); err != nil {
		return temporal.VerbReply{}, err
	}
	if !q.done {
		q.refused = o.ref.Kind + " " + o.ref.Namespace + "/" + o.ref.Name + " does not exist"
	}
	return temporal.VerbReply{Text: q.reply}, lifecycle.Refusal(q.refused)
}

// serve answers the verbs that wait: the annotation's first, then updates. r is
// the operation that runs, nil when none does.
func (o *object) serve(ctx workflow.Context, s *contract.ObjectState, r *running) {
	if !s.Exists || s.ID != o.ref.ID {
		for _, q := range o.requests {
			q.refused, q.done = o.ref.Kind+" "+o.ref.Namespace+"/"+o.ref.Name+" is not, or no longer, the object of this workflow: ask again in a moment", true
		}
		o.requests = nil
		return
	}
	if s.Verb != "" {
		q := &request{req: temporal.VerbRequest{Verb: s.Verb, By: s.VerbManager}}
		o.answer(ctx, s, r, q, s.Verb)
		s.Verb = ""
	}
	for len(o.requests) > 0 {
		q := o.requests[0]
		o.requests = o.requests[1:]
		o.answer(ctx, s, r, q, "")
		q.done = true
	}
}

// answer grants or refuses one verb, and says so on the object.
func (o *object) answer(ctx workflow.Context, s *contract.ObjectState, r *running, q *request, consume string) {
	v := lifecycle.ViewOf(*s, o.ref)
	if r != nil && !v.Active { // it has not told of itself yet
		v = v.With(v1.OperationStatus{Type: string(r.in.Verb), State: v1.OperationRunning, Generation: r.in.Generation,
			Cancellable: !r.in.Verb.Traits().Uncancellable}, s.Generation)
	}
	q.reply, q.refused = lifecycle.Allow(q.req, v)
	in := contract.VerbAnswer{Ref: o.ref, UID: s.UID, Consume: consume}
	if q.refused == "" {
		in.Pause = lifecycle.PauseOf(q.req.Verb)
		// First, so that "no step starts any more" holds when it is said.
		if err := o.obey(ctx, s, r, q.req, v); err != nil && in.Pause == nil {
			q.reply, q.refused = "", v.Object+" has just ended its operation: look again"
		}
	}
	in.Events = []contract.Event{lifecycle.VerbEvent(ctx, q.req, q.reply, q.refused)}
	// Bounded: whatever refuses the answer, or is away, must not keep the object
	// from its deletion. An annotation that stays is answered at the next look.
	err := lifecycle.Try(lifecycle.Answering(ctx, o.ref, s.Generation, q.req, q.refused != ""), contract.AnswerVerb, in)
	if err != nil && in.Pause != nil { // then it does not hold: the annotation is the pause
		s.Paused = !*in.Pause
		q.reply, q.refused = "", fmt.Sprintf("the annotation %s of %s could not be written (%s): see to that, then ask again",
			v1.AnnotationPaused, v.Object, faults.FromTemporal(err).Error())
	}
}

// obey does what a granted verb asks for. It fails when the operation that it
// is for has ended.
func (o *object) obey(ctx workflow.Context, s *contract.ObjectState, r *running, req temporal.VerbRequest, v lifecycle.View) error {
	pause := lifecycle.PauseOf(req.Verb)
	if pause != nil {
		s.Paused = *pause
	}
	if r == nil {
		if pause == nil {
			o.asked, o.by = req.Verb, req.By
		}
		return nil
	}
	if pause != nil {
		r.paused = pause
	}
	return r.control(ctx, lifecycle.ControlOf(req, v)).Get(ctx, nil)
}

func now(ctx workflow.Context) metav1.Time { return metav1.NewTime(workflow.Now(ctx)) }
