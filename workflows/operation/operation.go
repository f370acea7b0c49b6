package operation

import (
	"errors"
	"hash/fnv"
	"time"

	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
)

// errSuperseded ends an operation in favour of a newer generation.
var errSuperseded = errors.New("superseded by a newer generation")

// operation is the state of a running operation workflow.
type operation struct {
	in     lifecycle.Input
	steps  []Step // flattened, in order
	report contract.OperationReport
	lock   workflow.Mutex  // one report at a time, so that none overtakes another
	waited map[string]bool // names of the steps that have waited for something
	phase  string          // of the object, when it was started
	told   time.Time       // when the last report was sent
	untold bool            // a step has begun since

	wakes  int   // a counter, since several steps may be stalled at once
	turns  int   // how often a keeper has said that a lease is granted
	newest int64 // generation of the newest wake
	paused bool  // as the object's workflow says, which starts none for a paused object
	minted bool  // see contract.ObjectState
	// inherited: earlier operations of the object have made things.
	inherited bool
	// stalls counts how often a step has stalled; skips holds those that somebody
	// asked to leave out; stops what ends a running step.
	stalls  map[string]int
	faults  map[string]*stalled // of the steps that are stalled now
	changed map[string]changes  // of what the object needs, by step
	// quietSince is from when on a step's passing failures are nobody's business.
	quietSince map[string]time.Time
	absent     map[string]*absence // what steps miss
	first      int                 // of steps, in the list that runs
	events     int                 // so far, for their keys
	skips      map[string]bool
	stops      map[string]workflow.CancelFunc

	cancel    workflow.CancelFunc // ends the steps
	cancelled string              // who asked for it, if a verb did
	preempted bool                // by a deletion: nothing is undone here
	undos     []Step              // newest last
	recall    []Step              // before them, see Step.Recall
	undoing   bool
	stopped   v1.StepStatus       // the step in which it was cancelled, while it is undone
	last      string              // the step that ran last, when it has ended
	abandon   workflow.CancelFunc // ends the undoing
	undone    string              // what became of it, for people
}

// Run runs an operation: its steps in order, each with budget, progress and
// stall handling. It returns an error only when it was cancelled.
func Run(ctx workflow.Context, in lifecycle.Input, steps ...Step) (lifecycle.Result, error) {
	o := &operation{in: in, steps: flatten(steps), lock: workflow.NewMutex(ctx),
		stalls: map[string]int{}, faults: map[string]*stalled{}, changed: map[string]changes{}, quietSince: map[string]time.Time{}, absent: map[string]*absence{},
		waited: map[string]bool{}, skips: map[string]bool{}, stops: map[string]workflow.CancelFunc{}}
	requireMakers(o.steps)
	ctx = lifecycle.WithCaller(workflow.WithValue(ctx, operationKey, o), o.caller)
	if in.Verb.Traits().Uncancellable {
		ctx = o.uncancelled(ctx)
	}
	ctx, o.cancel = workflow.WithCancel(ctx)
	if err := o.listen(ctx); err != nil {
		return lifecycle.Result{}, err
	}
	if err := o.begin(ctx); err != nil {
		return lifecycle.Result{}, err // cancelled before anything was done or told
	}
	err := o.runAll(ctx, steps)
	if err != nil && !errors.Is(err, errSuperseded) {
		o.undo(ctx)
	}
	return o.end(ctx, err)
}

// uncancelled keeps "Request Cancellation" in Temporal from a deletion, as the
// verb cancel is refused, too: half of the object is gone already.
func (o *operation) uncancelled(ctx workflow.Context) workflow.Context {
	apart, _ := workflow.NewDisconnectedContext(ctx)
	workflow.Go(apart, func(apart workflow.Context) {
		begun := func() bool { return o.report.Operation.ID != "" }
		if workflow.Await(apart, func() bool { return ctx.Err() != nil && begun() }) != nil {
			return
		}
		_, refused := lifecycle.Allow(temporal.VerbRequest{Verb: temporal.VerbCancel}, lifecycle.View{Active: true, Verb: o.in.Verb})
		o.event(apart, true, "CancelRefused", "%s was asked in Temporal to cancel: refused, %s", o.in.Title(), refused)
		o.publish(apart, false)
	})
	return apart
}

// begin reads what earlier operations have published, so that this one goes on
// from there, and tells that it runs.
func (o *operation) begin(ctx workflow.Context) error {
	s := contract.ObjectState{Minted: o.in.Minted}
	if !o.in.Verb.Traits().Makes || o.in.Previous != "" { // else nothing can have been published
		// A cancellation that comes now is told by end, as any other.
		sure, _ := workflow.NewDisconnectedContext(ctx)
		var err error
		if s, err = lifecycle.ReadObject(sure, contract.ReadObjectInput{Ref: o.in.Object, Live: true}); err != nil {
			return err
		}
		if o.in.Verb.Traits().Final && !s.Exists { // else it would find nothing to remove, and call that done
			o.preempted = true
			o.stop()
		}
	}
	o.minted = s.Minted && !s.Migrated
	// One that was terminated may not have told what it had made.
	o.inherited = len(s.Resources) > 0 || s.Operation != nil && s.Operation.State == v1.OperationFailed
	now := metav1.NewTime(workflow.Now(ctx))
	o.report = contract.OperationReport{
		Ref: o.in.Object, UID: o.in.UID, Resources: s.Resources, Conditions: s.Conditions, Details: s.Details,
		Operation: v1.OperationStatus{
			ID: workflow.GetInfo(ctx).WorkflowExecution.ID, UID: o.in.UID, Identity: o.in.Object.ID, Type: string(o.in.Verb), Generation: o.in.Generation,
			State: v1.OperationRunning, StartedAt: &now, Attempts: 1,
		},
	}
	o.phase, _ = workflow.GetTypedSearchAttributes(ctx).GetKeyword(temporal.AttrPhase)
	for _, s := range o.steps {
		o.recall = append(o.recall, s.Recall...)
	}
	o.list(o.steps)
	o.event(ctx, false, string(o.in.Verb)+"Started", "%s", o.in.Title())
	return nil
}

// list adds steps to the operation's list, as pending.
func (o *operation) list(steps []Step) {
	for _, step := range steps {
		o.report.Operation.Steps = append(o.report.Operation.Steps, v1.StepStatus{Name: step.Name, State: v1.StepPending})
	}
}

// end tells how it ended.
func (o *operation) end(ctx workflow.Context, err error) (lifecycle.Result, error) {
	op := &o.report.Operation
	o.last = op.Step
	if o.undoing { // what people ask is where it was cancelled
		op.Step, op.StepStartedAt = o.stopped.Name, o.stopped.StartedAt
	}
	reason, text := "Succeeded", o.in.Title()+": done"
	res := lifecycle.Result{State: lifecycle.Succeeded}
	switch {
	case err == nil:
		op.State, op.Progress, op.Step, op.StepStartedAt = v1.OperationSucceeded, 100, "", nil
		if o.in.ForceDelete {
			o.event(ctx, true, string(o.in.Verb)+"Forced", "%s: it was let go by force; %s", o.in.Title(), leftByForce(o.report.Resources))
		} else {
			o.event(ctx, false, string(o.in.Verb)+"Succeeded", "%s in %s", o.in.Title(), took(op.StartedAt, workflow.Now(ctx)))
		}
		if ctx.Err() != nil && !o.preempted {
			o.event(ctx, true, "CancelledTooLate", "%s: its last step was under way when it was cancelled%s, so it is done", o.in.Title(), o.who())
		}
	case errors.Is(err, errSuperseded):
		op.State, reason, text = v1.OperationCancelled, lifecycle.ReasonSuperseded, "a newer generation of the spec takes over"
		res.State, err = lifecycle.Superseded, nil
	case o.preempted: // what it says is read only where a deletion is why
		op.State, reason, text = v1.OperationCancelled, lifecycle.ReasonPreempted, "stopped "+in(op.Step)+" for a deletion, which goes on from what exists"
		err = workflow.ErrCanceled
	default:
		op.State, reason, err = v1.OperationCancelled, "Cancelled", workflow.ErrCanceled
		text = "cancelled" + o.who() + " " + in(op.Step) + "; " + o.undone
		o.event(ctx, true, string(o.in.Verb)+"Cancelled", "%s: %s", o.in.Title(), text)
	}
	now := metav1.NewTime(workflow.Now(ctx))
	op.FinishedAt, op.Cancellable, op.Skippable, op.WaitingFor = &now, false, false, ""
	o.report.LastError = nil
	o.condition(ctx, v1.ConditionProgressing, metav1.ConditionFalse, reason, text)
	o.condition(ctx, v1.ConditionStalled, metav1.ConditionFalse, reason, "nothing to mend")
	o.details(ctx)
	o.publish(ctx, true)
	last, _ := workflow.NewDisconnectedContext(ctx)
	_ = workflow.Await(last, func() bool { return workflow.AllHandlersFinished(last) })
	return res, err
}

// in says where an operation was ended.
func in(step string) string {
	if step == "" {
		return "before its first step"
	}
	return "in step " + step
}

func (o *operation) who() string {
	if o.cancelled == "" {
		return ""
	}
	return " by " + o.cancelled
}

// spread varies d by ±20 %, the same way at each replay, so that a thousand
// operations that stalled together do not wake together.
func spread(d time.Duration, id string, attempt int32) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	_, _ = h.Write([]byte{byte(attempt)})
	part := float64(h.Sum32())/float64(1<<32)*0.4 + 0.8
	return time.Duration(float64(d) * part).Round(time.Second)
}

func isCancelled(ctx workflow.Context, err error) bool {
	return sdk.IsCanceledError(err) || (ctx.Err() != nil && errors.Is(ctx.Err(), workflow.ErrCanceled))
}
