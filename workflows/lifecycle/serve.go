package lifecycle

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
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
			return refusal(unknown(req.Verb)) // all else after a look at the object
		},
	})
	if err != nil || !o.kind.Keeper {
		return err
	}
	if err := workflow.SetUpdateHandler(ctx, temporal.UpdateAcquire, o.onAcquire); err != nil {
		return err
	}
	return workflow.SetUpdateHandler(ctx, temporal.UpdateRelease, o.onRelease)
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
	return temporal.VerbReply{Text: q.reply}, refusal(q.refused)
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
	v := viewOf(*s, o.ref)
	if r != nil && !v.active { // it has not told of itself yet
		v = v.with(v1.OperationStatus{Type: string(r.in.Verb), State: v1.OperationRunning, Generation: r.in.Generation,
			Cancellable: r.in.Verb != Delete}, s.Generation)
	}
	q.reply, q.refused = allow(q.req, v)
	in := contract.VerbAnswer{Ref: o.ref, UID: s.UID, Consume: consume}
	if q.refused == "" {
		in.Pause = pauseOf(q.req.Verb)
		// First, so that "no step starts any more" holds when it is said.
		if err := o.obey(ctx, s, r, q.req, v); err != nil && in.Pause == nil {
			q.reply, q.refused = "", v.object+" has just ended its operation: look again"
		}
	}
	in.Events = []contract.Event{verbEvent(ctx, q.req, q.reply, q.refused)}
	if _, err := must(answering(ctx, o.ref, s.Generation, q.req, q.refused != ""), contract.AnswerVerb, in); err != nil {
		workflow.GetLogger(ctx).Error("answer to a verb not told", "object", o.ref.String(), "verb", q.req.Verb, "error", err)
	}
}

// obey does what a granted verb asks for. It fails when the operation that it
// is for has ended.
func (o *object) obey(ctx workflow.Context, s *contract.ObjectState, r *running, req temporal.VerbRequest, v view) error {
	pause := pauseOf(req.Verb)
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
	return r.control(ctx, controlOf(req, v)).Get(ctx, nil)
}

// verbEvent tells on the object what was asked, by whom, and what came of it.
func verbEvent(ctx workflow.Context, req temporal.VerbRequest, reply, refused string) contract.Event {
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

// sweepEvery is how often the queue of a lock looks for holders that are no
// more. Without a queue there is no timer.
const sweepEvery = time.Minute

// onAcquire returns when the lease is granted.
func (o *object) onAcquire(ctx workflow.Context, in contract.LeaseRequest) error {
	l := &o.carried.Leases
	if l.acquire(in, now(ctx)) {
		o.leased = o.leased || in.Name == contract.LeaseRunning
		return nil
	}
	for !l.holds(in) {
		ended := func() bool { return o.gone || l.holds(in) || find(l.Waiting, in) < 0 }
		if _, err := workflow.AwaitWithTimeout(ctx, sweepEvery, ended); err != nil {
			return err
		}
		if o.gone || (!l.holds(in) && find(l.Waiting, in) < 0) {
			return faults.ToTemporal(faults.New(faults.Transient, "Withdrawn", o.ref.String(), "the request for %q was withdrawn, or its keeper is gone", in.Name))
		}
		if !l.holds(in) {
			if _, err := o.read(ctx); err != nil { // which sweeps
				return err
			}
		}
	}
	o.leased = o.leased || in.Name == contract.LeaseRunning
	return nil
}

func (o *object) onRelease(ctx workflow.Context, in contract.LeaseRequest) error {
	if in.Withdraw {
		o.carried.Leases.withdraw(in)
		return nil
	}
	o.carried.Leases.release(in, now(ctx))
	o.leased = o.leased || in.Name == contract.LeaseRunning
	return nil
}

// sweep ends what vanished holders held; and after this workflow was ended by
// hand it takes the leases over from status, where its predecessor wrote them.
func (o *object) sweep(ctx workflow.Context, s contract.ObjectState, asked []contract.Holder) {
	if gone := o.carried.Leases.sweep(s.Vanished, asked, now(ctx)); len(gone) > 0 {
		o.leased = true
		workflow.GetLogger(ctx).Info("leases ended, their holders are no more", "object", o.ref.String(), "leases", strings.Join(gone, ", "))
	}
	if o.carried.UID != "" || s.UID == "" {
		return
	}
	for _, one := range s.Leases {
		part := strings.SplitN(one.Holder, "/", 3)
		if len(part) != 3 {
			continue
		}
		o.carried.Leases.acquire(contract.LeaseRequest{Name: contract.LeaseRunning, Shared: true, Holder: contract.Holder{
			Object: contract.ObjectRef{Kind: part[0], Namespace: o.ref.Namespace, Name: part[1]}, UID: part[2]}}, one.Since)
	}
}

// kept is what a keeper's status shows.
func (o *object) kept(s contract.ObjectState) (*v1.NetworkClusters, []v1.Lease) {
	clusters := &v1.NetworkClusters{Total: s.Users}
	var list []v1.Lease
	for _, one := range o.carried.Leases.Granted {
		if one.Name != contract.LeaseRunning {
			continue
		}
		list = append(list, v1.Lease{Holder: one.Holder.String(), Purpose: "Running", Since: one.Since})
		if one.Holder.Object.Kind == v1.KindCluster {
			clusters.Running++
		}
	}
	return clusters, list
}

func now(ctx workflow.Context) metav1.Time { return metav1.NewTime(workflow.Now(ctx)) }
