package object

import (
	"go.temporal.io/sdk/workflow"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
)

// What the object's workflow does while its operation runs.

// watch serves signals and verbs until the operation is over. It returns false
// when this run ends before: cancelled, or with a history that has grown long,
// as when the operation waits for weeks; then the next run attaches to it.
func (o *object) watch(ctx workflow.Context, r *running) (over bool, err error) {
	for {
		_ = workflow.Await(ctx, func() bool {
			return r.ended.IsReady() || o.called() || o.news.Len() > 0 || r.known && o.outgrown(ctx)
		})
		switch {
		case ctx.Err() != nil:
			return false, ctx.Err()
		case r.ended.IsReady():
			return true, nil
		case r.known && o.outgrown(ctx) && !o.called() && o.news.Len() == 0:
			// Once more, since it may be ending right now.
			s, err := o.read(ctx)
			if err != nil {
				return false, err
			}
			// Unless somebody has called meanwhile.
			if r.known = knows(s, r); r.known && !o.called() && o.news.Len() == 0 && o.idle(ctx) {
				return false, o.continueAs(ctx, o.ref.ID)
			}
			continue
		}
		var n lifecycle.News
		if o.news.ReceiveAsync(&n) {
			o.relay(ctx, r, n)
			continue
		}
		o.drain()
		o.reconsider(ctx, r)
	}
}

// called says whether anybody waits to be heard.
func (o *object) called() bool {
	return o.changed.Len() > 0 || len(o.requests) > 0 || o.leased
}

// knows says whether status calls the operation active.
func knows(s contract.ObjectState, r *running) bool {
	return s.Operation != nil && s.Operation.ID == r.id && s.Operation.Active()
}

// outgrown says whether a run should end although its operation has not.
func (o *object) outgrown(ctx workflow.Context) bool {
	return workflow.GetInfo(ctx).GetContinueAsNewSuggested() && workflow.AllHandlersFinished(ctx) && o.calling == 0
}

// reconsider looks at the object again while its operation runs: verbs are
// answered, a deletion preempts anything else, a new generation wakes a stalled
// operation, and a pause is passed on.
func (o *object) reconsider(ctx workflow.Context, r *running) {
	s, err := o.read(ctx)
	if err != nil {
		return
	}
	o.serve(ctx, &s, r)
	r.known = knows(s, r)
	switch {
	case !s.Exists, s.UID != r.in.UID:
		r.control(ctx, lifecycle.Control{Do: lifecycle.DoGone})
		return
	case s.Paused:
		o.pause(ctx, s, r, true)
		return
	}
	o.pause(ctx, s, r, false)
	switch {
	case s.Deleting && (!r.in.Verb.Traits().Final || s.ForceDelete && !r.in.ForceDelete):
		r.control(ctx, lifecycle.Control{Do: lifecycle.DoPreempt})
	case s.Generation > r.in.Generation:
		r.control(ctx, lifecycle.Control{Do: lifecycle.DoWake, Generation: s.Generation})
	}
	if o.kind.Keeper && s.Ready != nil { // leases may have changed
		o.tell(ctx, s, phaseOf(s), s.ObservedGeneration, *s.Ready)
	}
}

// pause passes a pause, or its end, on and tells it.
func (o *object) pause(ctx workflow.Context, s contract.ObjectState, r *running, paused bool) {
	if r.paused == nil || *r.paused != paused {
		do := temporal.VerbResume
		if paused {
			do = temporal.VerbPause
		}
		r.control(ctx, lifecycle.Control{Do: do})
	}
	r.paused = &paused
	switch {
	case paused: // also when a deletion comes during the pause
		o.tell(ctx, s, phaseOf(s), s.ObservedGeneration, o.ready(ctx, s.Generation, false, "Paused", pausedText(s)))
	case s.Ready != nil && s.Ready.Reason == "Paused":
		o.tellState(ctx, s, r.in)
	}
}

// relay shows on the object that its operation stalls, or goes on again.
func (o *object) relay(ctx workflow.Context, r *running, n lifecycle.News) {
	s, err := o.read(ctx)
	if err != nil || !s.Exists || s.UID != r.in.UID || n.UID != "" && n.UID != s.UID {
		return // another object's, too: its operation may outlive it
	}
	if !n.Stalled {
		o.tellRuns(ctx, s, r.in)
		return
	}
	o.tellStalled(ctx, s, r.in, n.Reason, n.Message)
}
