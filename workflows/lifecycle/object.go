package lifecycle

import (
	"time"

	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// restAfter is the number of history events from which an object workflow
// that has nothing to do continues as new.
const restAfter = 10

// ObjectInput is the argument of an object workflow; api/temporal.Object is
// what the bridge sends.
type ObjectInput struct {
	Kind      string   `json:"kind"`
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	ID        string   `json:"id"`
	Carried   *carried `json:"carried,omitempty"`
}

// carried is what an object workflow hands to its next run.
type carried struct {
	// Resting: nothing was due; wait for a signal before looking again.
	Resting bool `json:"resting,omitempty"`
	// UID of the object, from the first look on.
	UID string `json:"uid,omitempty"`
	// Operations counts those that ran for Generation, for their ids.
	Generation int64 `json:"generation,omitempty"`
	Operations int64 `json:"operations,omitempty"`
}

// object is the state of a running object workflow.
type object struct {
	kind    Kind
	ref     contract.ObjectRef
	carried carried
	changed workflow.ReceiveChannel
	news    workflow.ReceiveChannel
}

// Object is the object workflow of the kind: look, decide, act, rest.
func (k Kind) Object(ctx workflow.Context, in ObjectInput) error {
	o := newObject(ctx, k, in)
	for {
		o.rest(ctx)
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
	d := decide(o.ref.ID, o.carried.UID, s)
	if s.ID == o.ref.ID {
		o.carried.UID = s.UID
	}
	switch d.action {
	case actEnd:
		return true, nil
	case actReplace:
		return false, o.continueAs(ctx, s.ID)
	case actRun:
		return false, o.operate(ctx, s, d.verb)
	default:
		return false, o.settle(ctx, s, d)
	}
}

func newObject(ctx workflow.Context, k Kind, in ObjectInput) *object {
	o := &object{
		kind: k, ref: contract.ObjectRef{Kind: in.Kind, Namespace: in.Namespace, Name: in.Name, ID: in.ID},
		changed: workflow.GetSignalChannel(ctx, temporal.SignalChanged),
		news:    workflow.GetSignalChannel(ctx, signalNews),
	}
	if in.Carried != nil {
		o.carried = *in.Carried
	}
	return o
}

// rest waits for a signal if the last look found nothing to do.
func (o *object) rest(ctx workflow.Context) {
	if o.carried.Resting {
		o.changed.Receive(ctx, nil)
	}
	o.carried.Resting = false
	o.drain()
}

// drain takes all waiting signals: one look answers them all.
func (o *object) drain() (any bool) {
	for o.changed.ReceiveAsync(nil) {
		any = true
	}
	for o.news.ReceiveAsync(nil) {
	}
	return any
}

// settle tells that nothing is due and lets the workflow rest.
func (o *object) settle(ctx workflow.Context, s contract.ObjectState, d decision) error {
	if d.action == actSettle {
		o.tell(ctx, s, o.kind.Well, s.Generation, o.ready(ctx, s.Generation, true, "Ready", o.ref.Kind+" is ready"))
	} else {
		o.tell(ctx, s, phaseOf(s), s.ObservedGeneration, o.ready(ctx, s.Generation, false, d.reason, d.text))
	}
	if o.drain() {
		return nil
	}
	o.carried.Resting = true
	if workflow.GetInfo(ctx).GetCurrentHistoryLength() > restAfter {
		return o.continueAs(ctx, o.ref.ID)
	}
	return nil
}

// continueAs starts a fresh run, for this identity or for the one that took
// the object's name.
func (o *object) continueAs(ctx workflow.Context, id string) error {
	in := ObjectInput{Kind: o.ref.Kind, Namespace: o.ref.Namespace, Name: o.ref.Name, ID: id}
	if id == o.ref.ID {
		in.Carried = &o.carried
	}
	return workflow.NewContinueAsNewError(ctx, o.kind.Name, in)
}

// read reads the object past every cache, and waits out any outage.
func (o *object) read(ctx workflow.Context) (contract.ObjectState, error) {
	for {
		s, err := must(ctx, contract.ReadObject, contract.ReadObjectInput{Ref: o.ref, Live: true})
		if err == nil || sdk.IsCanceledError(err) {
			return s, err
		}
		workflow.GetLogger(ctx).Error("cannot read the object, trying again in a minute", "object", o.ref.String(), "error", err)
		if err := workflow.Sleep(ctx, time.Minute); err != nil {
			return s, err
		}
	}
}

// tell writes the object's own part of status, unless it says so already.
func (o *object) tell(ctx workflow.Context, s contract.ObjectState, phase v1.Phase, observed int64, ready metav1.Condition) {
	same := s.Phase == phase && s.ObservedGeneration == observed && s.Ready != nil && s.Ready.Status == ready.Status &&
		s.Ready.Reason == ready.Reason && s.Ready.Message == ready.Message && s.Ready.ObservedGeneration == ready.ObservedGeneration
	if same {
		return
	}
	if s.Ready != nil && s.Ready.Status == ready.Status {
		ready.LastTransitionTime = s.Ready.LastTransitionTime
	}
	in := contract.ObjectStatus{Ref: o.ref, UID: s.UID, ObservedGeneration: observed, Phase: phase, Ready: ready}
	if _, err := must(ctx, contract.ApplyObjectStatus, in); err != nil {
		workflow.GetLogger(ctx).Error("status not told", "object", o.ref.String(), "error", err)
	}
	up := temporal.AttrPhase.ValueSet(string(phase))
	if err := workflow.UpsertTypedSearchAttributes(ctx, up); err != nil {
		workflow.GetLogger(ctx).Warn("search attributes not set", "error", err)
	}
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
