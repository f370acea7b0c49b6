package object

import (
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
)

// running is an operation in flight, started by this run or found running.
type running struct {
	in    lifecycle.Input
	id    string
	ended workflow.Future
	// known: status names it as the active one, so that the next run of the
	// object's workflow finds it there.
	known bool
	// paused is what the operation was last told: nil when that is unknown.
	paused *bool
}

// control steers the operation. The future is ready once the operation has it
// in its history; it fails when the operation has ended, which matters to
// nobody but whoever asked.
func (r *running) control(ctx workflow.Context, c lifecycle.Control) workflow.Future {
	return workflow.SignalExternalWorkflow(ctx, r.id, "", lifecycle.SignalControl, c)
}

// operate runs one operation to its end and tells how it ended.
func (o *object) operate(ctx workflow.Context, s contract.ObjectState, verb lifecycle.Verb) error {
	in := lifecycle.Input{Object: o.ref, UID: s.UID, Verb: verb, Generation: s.Generation, DeletionPolicy: s.DeletionPolicy,
		ForceDelete: s.ForceDelete, Minted: s.Minted && !s.Migrated, Facts: facts(s), By: s.LastManager}
	asked, by := o.asked, o.by
	if asked != "" {
		in.By = by
	}
	o.asked, o.by = "", ""
	if s.Operation != nil {
		in.Previous = s.Operation.ID
	}
	o.tellState(ctx, s, in)
	o.worked = true
	r := o.resume(ctx, s, in)
	if r == nil {
		var err error
		if r, err = o.start(ctx, in); err != nil {
			return err
		}
	}
	if over, err := o.watch(ctx, r); !over {
		return err
	}
	if identity, is := former(ctx, r); is {
		o.asked, o.by = asked, by
		return o.outlive(ctx, r, identity)
	}
	if o.lost(ctx, r) && !forgotten(ctx, r) {
		// Terminated, or reset: then it goes on under the same id.
		r.ended = o.attach(ctx, r.id, "")
		if over, err := o.watch(ctx, r); !over {
			return err
		}
	}
	return o.finish(ctx, r)
}

// Operations of one verb for one generation follow each other where each gives
// way to the next. That is rare, so from the fourth on there is a pause between
// them: whatever has each give way at once must not fill Temporal and the Events.
const (
	unpaced   = 3
	firstPace = 10 * time.Second
	mostPace  = 10 * time.Minute
)

// pace waits before an operation that follows its like unasked. It returns true
// when somebody has called meanwhile: then the object is looked at again.
func (o *object) pace(ctx workflow.Context, s contract.ObjectState, verb lifecycle.Verb) (again bool, err error) {
	op, before := s.Operation, o.carried.Operations
	if o.asked != "" || op == nil || op.Active() || op.Type != string(verb) || op.Generation != s.Generation || o.carried.Generation != s.Generation || before < unpaced {
		return false, nil
	}
	pause := paceOf(before)
	if op.FinishedAt != nil { // whoever calls meanwhile does not prolong it
		pause -= workflow.Now(ctx).Sub(op.FinishedAt.Time)
	}
	if pause <= 0 {
		return false, nil
	}
	return workflow.AwaitWithTimeout(ctx, pause, o.called)
}

// paceOf is the pause after so many operations: 10 s, twice as long each time,
// at most 10 minutes.
func paceOf(before int64) time.Duration {
	if n := before - unpaced; n < 6 {
		return firstPace << n
	}
	return mostPace
}

// tellState tells that an operation is on its way, or what it is stalled by
// when it is one that runs already.
func (o *object) tellState(ctx workflow.Context, s contract.ObjectState, in lifecycle.Input) {
	if c := apimeta.FindStatusCondition(s.Conditions, v1.ConditionStalled); c != nil && c.Status == metav1.ConditionTrue && s.Operation != nil && s.Operation.Active() {
		o.tellStalled(ctx, s, in, c.Reason, c.Message)
		return
	}
	o.tellRuns(ctx, s, in)
}

// tellStalled tells what an operation is stalled by.
func (o *object) tellStalled(ctx workflow.Context, s contract.ObjectState, in lifecycle.Input, reason, message string) {
	phase := o.kind.Phases[in.Verb]
	if in.Verb.Traits().Makes {
		phase = v1.PhaseFailed
	}
	o.tell(ctx, s, phase, s.ObservedGeneration, o.ready(ctx, s.Generation, false, reason, message))
}

// tellRuns tells that an operation is on its way.
func (o *object) tellRuns(ctx workflow.Context, s contract.ObjectState, in lifecycle.Input) {
	phase := o.kind.Phases[in.Verb]
	o.tell(ctx, s, phase, s.ObservedGeneration, o.ready(ctx, s.Generation, false, string(phase), in.Title()+" runs"))
}

// lost says whether the child ended in a way that it did not choose.
func (o *object) lost(ctx workflow.Context, r *running) bool {
	if ctx.Err() != nil {
		return false
	}
	err := r.ended.Get(ctx, nil)
	return err != nil && !sdk.IsCanceledError(err)
}

// resume attaches to the operation that status calls active, if it does. An
// operation's last report precedes its end, so an active one here was started
// by an object workflow that is no more, or was terminated; either way its end
// comes first. Unless it is a former object's, whose status was restored with
// the object.
func (o *object) resume(ctx workflow.Context, s contract.ObjectState, in lifecycle.Input) *running {
	op := s.Operation
	if op == nil || !op.Active() {
		return nil
	}
	in.Verb, in.Generation = lifecycle.Verb(op.Type), op.Generation
	in.ForceDelete = false // if it is one, starting it again does no harm
	r := &running{in: in, id: op.ID, ended: o.attach(ctx, op.ID, in.UID)}
	if !restored(s) { // else what is asked is asked of this object's own
		o.reconsider(ctx, r)
	}
	return r
}

// start starts the operation, or attaches to it when it runs already.
func (o *object) start(ctx workflow.Context, in lifecycle.Input) (*running, error) {
	if o.carried.Generation != in.Generation {
		o.carried.Generation, o.carried.Operations = in.Generation, 0
	}
	o.carried.Operations = max(o.carried.Operations, attemptOf(in)) + 1
	id := temporal.ObjectID(o.ref.Kind, o.ref.Namespace, o.ref.Name)
	r := &running{in: in, id: temporal.OperationID(id, string(in.Verb), in.Generation, o.carried.Operations)}
	r.paused = new(bool)
	// Whoever cancels the object's workflow in Temporal ends that, and no operation.
	apart, _ := workflow.NewDisconnectedContext(ctx)
	child := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(apart, o.childOptions(in, r.id)), o.kind.OperationType(in.Verb), in)
	err := child.GetChildWorkflowExecution().Get(ctx, nil)
	var already *sdk.ChildWorkflowExecutionAlreadyStartedError
	switch {
	case err == nil:
		r.ended = child
	case errors.As(err, &already):
		r.ended = o.attach(ctx, r.id, in.UID)
	default:
		return nil, err
	}
	return r, nil
}

func (o *object) childOptions(in lifecycle.Input, id string) workflow.ChildWorkflowOptions {
	attrs := []sdk.SearchAttributeUpdate{
		temporal.AttrKind.ValueSet(in.Object.Kind), temporal.AttrNamespace.ValueSet(in.Object.Namespace),
		temporal.AttrName.ValueSet(in.Object.Name), temporal.AttrPhase.ValueSet(string(o.kind.Phases[in.Verb])),
	}
	optional := func(k sdk.SearchAttributeKeyKeyword, v string) {
		if v != "" {
			attrs = append(attrs, k.ValueSet(v))
		}
	}
	optional(temporal.AttrAccount, in.Facts.Account)
	optional(temporal.AttrProvider, in.Facts.Provider)
	optional(temporal.AttrRegion, in.Facts.Region)
	return workflow.ChildWorkflowOptions{
		WorkflowID: id, WaitForCancellation: true,
		// An object workflow that is terminated by hand must not take its
		// operation with it; the next one attaches.
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_ABANDON,
		StaticSummary:         in.Title(),
		Priority:              lifecycle.PriorityOf(in),
		TypedSearchAttributes: sdk.NewSearchAttributes(attrs...),
		Memo:                  map[string]any{contract.MemoUID: in.UID, contract.MemoIdentity: in.Object.ID},
	}
}

// attach returns a future of an operation that somebody else started. With a
// uid, one that is not for that object is a formerError.
func (o *object) attach(ctx workflow.Context, id, uid string) workflow.Future {
	opts := workflow.ActivityOptions{TaskQueue: contract.WaitOperation.Queue(), Summary: "attached to " + id,
		StartToCloseTimeout: lifecycle.AttachTimeout, HeartbeatTimeout: lifecycle.IdleHeartbeat, RetryPolicy: lifecycle.RetryPolicy()}
	f, set := workflow.NewFuture(ctx)
	workflow.Go(ctx, func(ctx workflow.Context) {
		var end contract.OperationEnd
		err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, opts), contract.WaitOperation.Name,
			contract.OperationRun{Object: o.ref, WorkflowID: id, UID: uid}).Get(ctx, &end)
		switch {
		case err != nil:
			set.SetError(err)
		case end.Former:
			set.SetError(&formerError{identity: end.Identity})
		case end.Unknown:
			set.SetError(errUnknown)
		case end.Cancelled:
			set.SetError(workflow.ErrCanceled)
		case end.Failure != "":
			set.SetError(errors.New(end.Failure))
		default:
			set.SetValue(lifecycle.Result{State: lifecycle.ResultState(end.State)})
		}
	})
	return f
}

// again is what people can do about an operation that was ended.
func again(v lifecycle.Verb) string {
	if v.Traits().Final {
		return "ask for retry, and it goes on from what exists; the object stays until then"
	}
	return "ask for retry or change the spec, and it starts again from what exists; or delete the object"
}

// finish tells how an operation ended.
func (o *object) finish(ctx workflow.Context, r *running) error {
	var res lifecycle.Result
	err := r.ended.Get(ctx, &res)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	o.carried.Removed = err == nil && res.State == lifecycle.Succeeded && r.in.Verb.Traits().Final
	s, rerr := o.read(ctx)
	if rerr != nil || !s.Exists || s.UID != r.in.UID { // another object has the name by now
		return rerr
	}
	if err := o.closeReport(ctx, s, r, err); err != nil {
		return err
	}
	switch {
	case err == nil && res.State == lifecycle.Succeeded && !r.in.Verb.Traits().Final:
		ok := s.Generation == r.in.Generation && !s.Deleting
		ready := o.ready(ctx, s.Generation, ok, "Ready", o.ref.Kind+" is ready")
		if !ok {
			ready = o.ready(ctx, s.Generation, false, "Outdated", "a newer generation is due")
		}
		o.tell(ctx, s, o.kind.Well, r.in.Generation, ready)
		// Nothing is due unless somebody has said so meanwhile.
		o.carried.Resting = ok && !o.drain()
	case err == nil, s.Deleting && !r.in.Verb.Traits().Final:
		// Superseded, deleted or preempted: the next look says what is due.
	case preempted(s), errors.Is(err, errUnknown) && !undoing(s, r):
	case sdk.IsCanceledError(err), errors.Is(err, errUnknown):
		o.tell(ctx, s, v1.PhaseFailed, s.ObservedGeneration, o.ready(ctx, s.Generation, false, "Cancelled", r.in.Title()+" was cancelled: "+again(r.in.Verb)))
	default:
		o.tell(ctx, s, v1.PhaseFailed, s.ObservedGeneration, o.ready(ctx, s.Generation, false, "OperationFailed", r.in.Title()+" was ended: "+howEnded(err, r.id)+"; "+again(r.in.Verb)))
	}
	return nil
}

// undoing says whether the operation was being undone at somebody's word.
func undoing(s contract.ObjectState, r *running) bool {
	return s.Operation != nil && s.Operation.ID == r.id && s.Operation.State == v1.OperationCancelling
}

// closeReport closes the report of an operation that could not do it itself,
// because it was terminated, or because its last report was refused. Status
// must never call an operation active that has ended: it would be attached to
// again and again.
func (o *object) closeReport(ctx workflow.Context, s contract.ObjectState, r *running, ended error) error {
	state, why := v1.OperationSucceeded, "it ended without its last report"
	var of *formerError
	switch {
	case errors.As(ended, &of):
		state = v1.OperationCancelled
	case sdk.IsCanceledError(ended):
		state = v1.OperationCancelled
	case ended != nil:
		state, why = v1.OperationFailed, howEnded(ended, r.id)
	}
	reason, event := string(state), string(r.in.Verb)+string(state)
	known := s.Operation != nil && s.Operation.ID == r.id
	switch {
	case of != nil: // nobody has to ask for this object's own
		reason, why = lifecycle.ReasonSuperseded, of.Error()
	case errors.Is(ended, errUnknown) && undoing(s, r):
		state, reason, event = v1.OperationCancelled, string(v1.OperationCancelled), "OperationLost"
		why = ended.Error() + ", as when it has lost its data; it was being undone, and what is left is in status.resources"
	case errors.Is(ended, errUnknown): // nor for what nobody has ended
		state, reason, event = v1.OperationCancelled, lifecycle.ReasonSuperseded, "OperationLost"
		why = ended.Error() + ", as when it has lost its data; it begins again, and goes on from what exists"
	}
	if known && !s.Operation.Active() || !known && ended == nil {
		return nil
	}
	s, err := lifecycle.ReadObject(ctx, contract.ReadObjectInput{Ref: o.ref, Live: true}) // in full
	if err != nil || !s.Exists || s.UID != r.in.UID {
		return err
	}
	op := v1.OperationStatus{ID: r.id, UID: s.UID, Identity: r.in.Object.ID, Type: string(r.in.Verb), Generation: r.in.Generation, Attempts: 1}
	if s.Operation != nil && s.Operation.ID == r.id {
		op = *s.Operation
	}
	at := now(ctx)
	op.State, op.WaitingFor, op.FinishedAt, op.Cancellable, op.Skippable = state, "", &at, false, false
	conditions := withEnd(s.Conditions, metav1.Condition{Status: metav1.ConditionFalse, Reason: reason, ObservedGeneration: r.in.Generation, LastTransitionTime: at}, state, why, again(r.in.Verb))
	rep := contract.OperationReport{Ref: o.ref, UID: s.UID, Operation: op, Resources: s.Resources, Details: s.Details, Conditions: conditions,
		Events: []contract.Event{{Key: r.id + "/ended", Warning: state != v1.OperationSucceeded, Reason: event,
			Message: "the operation " + r.id + " ended: " + why}}}
	if _, err = lifecycle.Must(ctx, contract.ApplyOperationStatus, rep); err != nil && !sdk.IsCanceledError(err) {
		workflow.GetLogger(ctx).Error("end of an operation not told, trying again in a minute", "object", o.ref.String(), "error", err)
		return workflow.Sleep(ctx, time.Minute)
	}
	return err
}

// withEnd tells in the conditions why an operation ended. c has what all of them
// have in common.
func withEnd(list []metav1.Condition, c metav1.Condition, state v1.OperationState, why, todo string) []metav1.Condition {
	c.Type, c.Message = v1.ConditionProgressing, why
	list = lifecycle.WithCondition(list, c)
	if state == v1.OperationFailed { // it may have said that there is nothing to mend
		c.Type, c.Message = v1.ConditionStalled, "nothing is tried any more: "+todo
		list = lifecycle.WithCondition(list, c)
	}
	return list
}

// terminated is what Temporal says of a workflow that somebody has terminated.
var terminated = new(sdk.TerminatedError).Error()

// howEnded says, for people, how an operation ended that did not choose its end.
func howEnded(ended error, id string) string {
	if why := cause(ended); why != terminated {
		return "the workflow " + id + " ended in Temporal: " + why
	}
	return "somebody terminated the workflow " + id + " in Temporal"
}

// cause is the innermost message of a chain of Temporal errors.
func cause(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err.Error()
		}
		err = next
	}
}

// attemptOf is the attempt in the previous operation's id, if that was for the
// same generation; 0 otherwise.
func attemptOf(in lifecycle.Input) int64 {
	generation, attempt := temporal.OperationNumber(in.Previous)
	if generation != in.Generation {
		return 0
	}
	return attempt
}

func facts(s contract.ObjectState) lifecycle.Facts {
	return lifecycle.Facts{Account: s.Account, Provider: s.Provider, Network: s.Network, Cloud: s.Cloud, Region: s.Region}
}
