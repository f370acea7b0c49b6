package object

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
)

// Numbers of history events from which an object workflow that has nothing to do
// continues as new.
const (
	// afterWork is for a run in which an operation ran: the object rests with a
	// clean history.
	afterWork = 10
	// atRest is for a run that has only been woken by resyncs. One adds 5 events,
	// Of about 3 KB in all, so at one every 10 minutes a run lasts 16 hours: each
	// run that ends is kept for the namespace's retention time. On the other side
	// stands what a worker that starts anew has to read, once, for an object that
	// is woken: 300 KB.
	atRest = 500
	// atRestSize, in bytes, is for objects of which a look says much, as of a
	// Network with many leases.
	atRestSize = 512 << 10
)

// Input is the argument of an object workflow; api/temporal.Object is
// what the bridge sends.
type Input struct {
	Kind      string   `json:"kind"`
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	ID        string   `json:"id"`
	Carried   *carried `json:"carried,omitempty"`
}

// Carried is what an object workflow hands to its next run.
type carried struct {
	// Resting: nothing was due; wait for a signal before looking again.
	Resting bool `json:"resting,omitempty"`
	// UID of the object, from the first look on.
	UID string `json:"uid,omitempty"`
	// Removed: a deletion of the object has succeeded.
	Removed bool `json:"removed,omitempty"`
	// Operations counts those that ran for Generation, for their ids.
	Generation int64 `json:"generation,omitempty"`
	Operations int64 `json:"operations,omitempty"`
	// Leases that the object grants to others (Network).
	Leases leases `json:"leases,omitzero"`
}

// object is the state of a running object workflow.
type object struct {
	kind    lifecycle.Kind
	ref     contract.ObjectRef
	carried carried
	changed workflow.ReceiveChannel
	news    workflow.ReceiveChannel

	requests []*request              // verbs that wait for an answer
	asked    string                  // retry or reconcile, granted while no operation ran
	by       string                  // who asked
	leased   bool                    // a lease that status shows was granted or given back
	releases workflow.ReceiveChannel // of a keeper
	early    []contract.LeaseRequest // given back before status was read
	calling  int                     // turns that are being told
	gone     bool                    // the object exists no more
	worked   bool                    // an operation ran in this run
	looked   time.Time               // when the last look began
}

// Of is the object workflow of a kind: look, decide, act, rest.
func Of(k lifecycle.Kind) func(workflow.Context, Input) error {
	return func(ctx workflow.Context, in Input) error { return run(ctx, k, in) }
}

func run(ctx workflow.Context, k lifecycle.Kind, in Input) error {
	o, err := newObject(ctx, k, in)
	if err != nil {
		return err
	}
	for {
		rested := o.carried.Resting
		if long := o.rest(ctx); long || o.full(ctx) || (rested && superseded(ctx) && o.idle(ctx)) {
			return o.continueAs(ctx, o.ref.ID)
		}
		if ended, err := o.look(ctx); ended || err != nil {
			return err
		}
	}
}

// look reads the object and does what is due.
func (o *object) look(ctx workflow.Context) (ended bool, err error) {
	s, err := o.read(ctx)
	if err != nil {
		return false, err
	}
	if s.Operation == nil || !s.Operation.Active() {
		o.serve(ctx, &s, nil) // else it is attached to first, and then steered
	}
	d := decide(o.ref.ID, o.carried.UID, s, o.asked)
	if !s.Exists || d.action == actReplace || d.action == actYield {
		o.reportRemoval(ctx)
	}
	o.removed(s)
	if s.ID == o.ref.ID {
		o.carried.UID = s.UID
	}
	switch d.action {
	case actEnd, actYield:
		return true, o.leave(ctx)
	case actReplace:
		return false, o.replace(ctx, s)
	case actRun:
		if again, err := o.pace(ctx, s, d.verb); again || err != nil {
			return false, err
		}
		return false, o.operate(ctx, s, d.verb)
	default:
		return false, o.settle(ctx, s, d)
	}
}

// leave lets everybody know who still waits for an answer.
func (o *object) leave(ctx workflow.Context) error {
	o.gone = true
	o.dismiss(ctx)
	return workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) && o.calling == 0 })
}

// replace starts afresh for the object that has the name now. Whoever asked
// this one has an answer first.
func (o *object) replace(ctx workflow.Context, s contract.ObjectState) error {
	o.dismiss(ctx)
	for o.serve(ctx, &s, nil); !o.idle(ctx); o.serve(ctx, &s, nil) {
		o.leased = false
		if err := workflow.Await(ctx, func() bool {
			return len(o.requests) > 0 || workflow.AllHandlersFinished(ctx) && o.calling == 0
		}); err != nil {
			return err
		}
	}
	return o.continueAs(ctx, s.ID)
}

func newObject(ctx workflow.Context, k lifecycle.Kind, in Input) (*object, error) {
	o := &object{
		kind: k, ref: contract.ObjectRef{Kind: in.Kind, Namespace: in.Namespace, Name: in.Name, ID: in.ID},
		changed: workflow.GetSignalChannel(ctx, temporal.SignalChanged),
		news:    workflow.GetSignalChannel(ctx, lifecycle.SignalNews),
	}
	if in.Carried != nil {
		o.carried = *in.Carried
	}
	return o, o.handle(ctx)
}

// rest waits until there is something to look at, if the last look found
// nothing to do. It returns true when the history should start afresh instead.
func (o *object) rest(ctx workflow.Context) (long bool) {
	for o.carried.Resting {
		_ = workflow.Await(ctx, func() bool { return o.called() || o.long(ctx) })
		if o.called() || ctx.Err() != nil {
			break
		}
		if o.idle(ctx) {
			return true
		}
	}
	o.carried.Resting = false
	o.drain()
	return false
}

// long says whether this run has more history than an idle object should, and
// nothing that a continue-as-new would disturb.
func (o *object) long(ctx workflow.Context) bool {
	i, most := workflow.GetInfo(ctx), atRest
	if o.worked {
		most = afterWork
	}
	return (i.GetCurrentHistoryLength() > most || i.GetCurrentHistorySize() > atRestSize || i.GetContinueAsNewSuggested()) && workflow.AllHandlersFinished(ctx) && o.calling == 0
}

// full says that the run must end although it is called again and again: its
// history, or the number of its updates, comes near the server's limit. The next
// run looks first.
func (o *object) full(ctx workflow.Context) bool {
	if !workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
		return false
	}
	o.handOver(ctx)
	o.leased = false
	return o.idle(ctx)
}

// idle says that the run may end right now: nobody waits for an answer, and
// nothing is under way that its end would lose. What has come meanwhile is taken
// in first. Nothing may block between this and the end.
func (o *object) idle(ctx workflow.Context) bool {
	o.handOver(ctx)
	return o.calling == 0 && len(o.requests) == 0 && !o.leased && workflow.AllHandlersFinished(ctx)
}

// drain takes all waiting signals: one look answers them all.
func (o *object) drain() (pending bool) {
	pending = len(o.requests) > 0 || o.leased
	o.leased = false
	for o.changed.ReceiveAsync(nil) {
		pending = true
	}
	for o.news.ReceiveAsync(nil) {
	}
	return pending
}

// settle tells that nothing is due and lets the workflow rest.
func (o *object) settle(ctx workflow.Context, s contract.ObjectState, d decision) error {
	o.asked, o.by = "", ""
	if d.action == actSettle {
		o.tell(ctx, s, o.kind.Well, s.Generation, o.ready(ctx, s.Generation, true, "Ready", o.ref.Kind+" is ready"+d.text))
	} else {
		o.tell(ctx, s, phaseOf(s), s.ObservedGeneration, o.ready(ctx, s.Generation, false, d.reason, d.text))
	}
	if o.drain() {
		return nil
	}
	o.carried.Resting = true
	return nil
}

// continueAs starts a fresh run, for this identity or for the one that took
// the object's name.
func (o *object) continueAs(ctx workflow.Context, id string) error {
	in := Input{Kind: o.ref.Kind, Namespace: o.ref.Namespace, Name: o.ref.Name, ID: id}
	if id == o.ref.ID {
		in.Carried = &o.carried
	}
	return continueAsNew(ctx, o.kind.Name, in)
}

// read reads the object past every cache, and waits out any outage. Leases of
// holders that are no more end here.
func (o *object) read(ctx workflow.Context) (contract.ObjectState, error) {
	holders := o.carried.Leases.holders()
	o.looked = workflow.Now(ctx)
	s, err := lifecycle.ReadObject(ctx, contract.ReadObjectInput{Ref: o.ref, Live: true, Brief: true, Holders: holders})
	if err == nil {
		o.sweep(ctx, s, holders)
	}
	return s, err
}

// tell writes the object's own part of status, unless it says so already.
func (o *object) tell(ctx workflow.Context, s contract.ObjectState, phase v1.Phase, observed int64, ready metav1.Condition) {
	in := contract.ObjectStatus{Ref: o.ref, UID: s.UID, ObservedGeneration: observed, Phase: phase, Ready: ready}
	if o.kind.Keeper {
		in.Clusters, in.Leases = o.kept(s)
	}
	if told(s, in) {
		if has, ok := workflow.GetTypedSearchAttributes(ctx).GetKeyword(temporal.AttrPhase); !ok || has != string(phase) {
			showPhase(ctx, phase) // a run that began anew
		}
		return
	}
	if s.Ready != nil && s.Ready.Status == ready.Status {
		in.Ready.LastTransitionTime = s.Ready.LastTransitionTime
	}
	if _, err := lifecycle.Must(ctx, contract.ApplyObjectStatus, in); err != nil {
		workflow.GetLogger(ctx).Error("status not told", "object", o.ref.String(), "error", err)
	}
	showPhase(ctx, phase)
}

func showPhase(ctx workflow.Context, phase v1.Phase) {
	up := temporal.AttrPhase.ValueSet(string(phase))
	if err := workflow.UpsertTypedSearchAttributes(ctx, up); err != nil {
		workflow.GetLogger(ctx).Warn("search attributes not set", "error", err)
	}
}

// told says whether status reads like this already.
func told(s contract.ObjectState, in contract.ObjectStatus) bool {
	same := s.Phase == in.Phase && s.ObservedGeneration == in.ObservedGeneration && s.Ready != nil && s.Ready.Status == in.Ready.Status &&
		s.Ready.Reason == in.Ready.Reason && s.Ready.Message == in.Ready.Message && s.Ready.ObservedGeneration == in.Ready.ObservedGeneration
	if in.Clusters == nil {
		return same
	}
	holder := func(a, b v1.Lease) bool { return a.Holder == b.Holder && a.Purpose == b.Purpose }
	return same && s.Clusters != nil && *s.Clusters == *in.Clusters && slices.EqualFunc(s.Leases, in.Leases, holder)
}

func (o *object) ready(ctx workflow.Context, generation int64, ok bool, reason, text string) metav1.Condition {
	c := metav1.Condition{Type: v1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: text,
		ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(workflow.Now(ctx))}
	if ok {
		c.Status = metav1.ConditionTrue
	}
	return c
}

// phaseOf keeps the phase; an object that never had one is Pending.
func phaseOf(s contract.ObjectState) v1.Phase {
	if s.Phase == "" {
		return v1.PhasePending
	}
	return s.Phase
}
