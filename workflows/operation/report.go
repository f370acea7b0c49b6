package operation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
)

// mark records a step's new state and tells it: to the custom resource, to the
// workflow's current details and to its search attributes. The end of a step
// is told together with the beginning of the next.
func (o *operation) mark(ctx workflow.Context, s Step, state v1.StepState) {
	now := metav1.NewTime(workflow.Now(ctx))
	op := &o.report.Operation
	st := o.stepStatus(s.Name)
	st.State = state
	switch state {
	case v1.StepRunning:
		st.FinishedAt = nil
		if st.StartedAt == nil {
			st.StartedAt = &now
		}
		op.WaitingFor = ""
		if len(o.faults) == 0 { // else a step beside it is stalled, and that is what people must see
			op.Step, op.StepStartedAt = s.Name, st.StartedAt
			op.Cancellable, op.Skippable = !o.in.Verb.Traits().Uncancellable, s.Skippable
			o.condition(ctx, v1.ConditionProgressing, metav1.ConditionTrue, s.Name, s.Doc)
			o.condition(ctx, v1.ConditionStalled, metav1.ConditionFalse, "Progressing", "nothing to mend")
		}
	default:
		st.FinishedAt = &now
		op.Progress = max(op.Progress, o.progress())
		if state == v1.StepSucceeded && o.waited[s.Name] {
			o.event(ctx, false, s.Name, "%s: done in %s", s.Doc, took(st.StartedAt, now.Time))
		}
	}
	if state != v1.StepRunning {
		return // told with the beginning of the next step, or with the end
	}
	o.details(ctx)
	if o.untold = now.Sub(o.told) < freshEnough; !o.untold {
		o.publish(ctx, false)
	}
}

// freshEnough is how old a report may be when a quick step begins. Quick steps
// are told together by the next one that waits; one that hangs is told by its
// worker (workers/interceptor.go). It is long on purpose: when there is much to
// do each step takes seconds, and that is no time to write more (test/bench).
const freshEnough = 30 * time.Second

// stalled is why a step does not go on: for machines, and as a sentence.
type stalled struct {
	last v1.LastError
	text string
}

// fail records and tells that a step stalls.
func (o *operation) fail(ctx workflow.Context, s Step, f *faults.Fault, delay time.Duration) {
	now := metav1.NewTime(workflow.Now(ctx))
	next := metav1.NewTime(now.Add(delay))
	o.stepStatus(s.Name).State = v1.StepStalled
	owner, hint := f.Owner, f.Hint
	if owner == "" {
		owner = f.Class.DefaultOwner()
	}
	if hint == "" {
		hint = f.Class.DefaultHint()
	}
	o.faults[s.Name] = &stalled{text: "step " + s.Name + ": " + f.Human(), last: v1.LastError{Class: string(f.Class), Code: f.Code, Step: s.Name,
		Owner: string(owner), Message: f.Error(), Hint: hint, At: &now, NextRetryAt: &next}}
	first, _ := o.stalledStep()
	o.show(ctx, first)
	o.event(ctx, true, "Stalled", "step %s: %s", s.Name, f.Human())
	o.details(ctx)
	o.publish(ctx, false)
	o.tellNews(ctx)
}

// show puts a stalled step before everything else that goes on beside it.
func (o *operation) show(ctx workflow.Context, s Step) {
	f, op := o.faults[s.Name], &o.report.Operation
	op.Step, op.StepStartedAt, op.State, op.Skippable = s.Name, o.stepStatus(s.Name).StartedAt, v1.OperationBlocked, s.Skippable
	if o.undoing {
		op.State = v1.OperationCancelling
	}
	last := f.last
	o.report.LastError = &last
	o.condition(ctx, v1.ConditionProgressing, metav1.ConditionFalse, "Stalled", "step "+s.Name+" waits for somebody, see condition Stalled")
	o.condition(ctx, v1.ConditionStalled, metav1.ConditionTrue, f.last.Class, f.text)
}

// mended notes that a step is not stalled any more. Where one beside it still
// is, that is what the report goes on showing.
func (o *operation) mended(ctx workflow.Context, s Step) {
	delete(o.faults, s.Name)
	o.report.LastError, o.report.Operation.State = nil, o.state()
	if other, is := o.stalledStep(); is {
		o.show(ctx, other)
	}
	o.tellNews(ctx)
}

// stalledStep is the first step that is stalled.
func (o *operation) stalledStep() (Step, bool) {
	for _, s := range o.steps {
		if o.faults[s.Name] != nil {
			return s, true
		}
	}
	return Step{}, false
}

// Publish sends the report. Reports go one at a time, each with the newest
// state, so that none overtakes another. The last one must arrive. A report is
// never cancelled: one that is abandoned in flight could still arrive, after
// the last one.
func (o *operation) publish(ctx workflow.Context, last bool) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	if err := o.lock.Lock(ctx); err != nil {
		return
	}
	defer o.lock.Unlock()
	o.told, o.untold = workflow.Now(ctx), false
	o.attributes(ctx)
	sent := o.report
	// What is sent is not serialised before a local activity reads it.
	sent.Operation.Steps = slices.Clone(o.report.Operation.Steps)
	sent.Resources, sent.Conditions = slices.Clone(o.report.Resources), slices.Clone(o.report.Conditions)
	sent.Details = maps.Clone(o.report.Details)
	o.report.Events = nil
	if last {
		if _, err := lifecycle.Must(ctx, contract.ApplyOperationStatus, sent); err != nil { // the object closes it
			workflow.GetLogger(ctx).Error("last report refused", "operation", sent.Operation.ID, "error", err)
		}
		return
	}
	if err := lifecycle.Try(ctx, contract.ApplyOperationStatus, sent); err != nil {
		o.report.Events = append(sent.Events, o.report.Events...) // go with the next
		if o.gone(faults.FromTemporal(err)) {                     // a later operation has followed this one
			o.preempted = true
			o.stop()
		}
	}
}

func (o *operation) stepStatus(name string) *v1.StepStatus {
	for i := range o.report.Operation.Steps {
		if o.report.Operation.Steps[i].Name == name {
			return &o.report.Operation.Steps[i]
		}
	}
	panic("lifecycle: step " + name + " is not in the operation's list")
}

// progress is the share of steps that are done, in percent.
func (o *operation) progress() int32 {
	done := 0
	for _, s := range o.report.Operation.Steps {
		if s.State == v1.StepSucceeded || s.State == v1.StepSkipped {
			done++
		}
	}
	return int32(done * 100 / max(1, len(o.report.Operation.Steps)))
}

// condition sets one of the operation's conditions.
func (o *operation) condition(ctx workflow.Context, kind string, status metav1.ConditionStatus, reason, message string) {
	c := metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message,
		ObservedGeneration: o.in.Generation, LastTransitionTime: metav1.NewTime(workflow.Now(ctx))}
	o.report.Conditions = lifecycle.WithCondition(o.report.Conditions, c)
}

// event adds a Kubernetes Event to the next report.
func (o *operation) event(ctx workflow.Context, warning bool, reason, format string, args ...any) {
	run := workflow.GetInfo(ctx).WorkflowExecution.RunID
	o.events++
	o.report.Events = append(o.report.Events, contract.Event{
		Key:     fmt.Sprintf("%s/%s/%d", run, reason, o.events),
		Warning: warning, Reason: reason, Message: fmt.Sprintf(format, args...),
	})
}

// attributes upserts the search attributes that change while it runs. The phase
// is the object's, as its workflow tells it.
func (o *operation) attributes(ctx workflow.Context) {
	class, phase := temporal.AttrFaultClass.ValueUnset(), temporal.AttrPhase.ValueSet(o.phase)
	if o.phase == "" { // whoever started it has not said
		phase = temporal.AttrPhase.ValueUnset()
	}
	if o.report.LastError != nil {
		class = temporal.AttrFaultClass.ValueSet(o.report.LastError.Class)
		if o.in.Verb.Traits().Makes {
			phase = temporal.AttrPhase.ValueSet(string(v1.PhaseFailed))
		}
	}
	if err := workflow.UpsertTypedSearchAttributes(ctx, temporal.AttrStep.ValueSet(cmp.Or(o.last, o.report.Operation.Step)), class, phase); err != nil {
		workflow.GetLogger(ctx).Warn("search attributes not set", "error", err)
	}
}

// Record writes a resource into the object's ledger, told with the next step.
func Record(ctx workflow.Context, key string, r v1.Resource) {
	o := operationOf(ctx)
	now := metav1.NewTime(workflow.Now(ctx))
	r.Key, r.At = key, &now
	for i := range o.report.Resources {
		if o.report.Resources[i].Key == key {
			o.report.Resources[i] = r
			return
		}
	}
	o.report.Resources = append(o.report.Resources, r)
}

// Forget removes a resource from the ledger, after proof of its absence.
func Forget(ctx workflow.Context, key string) {
	o := operationOf(ctx)
	o.report.Resources = slices.DeleteFunc(o.report.Resources, func(r v1.Resource) bool { return r.Key == key })
}

// Publish sets one of the kind's own status fields, told with the next step.
func Publish(ctx workflow.Context, field string, value any) error {
	o := operationOf(ctx)
	b, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if o.report.Details == nil {
		o.report.Details = map[string]json.RawMessage{}
	}
	o.report.Details[field] = b
	return nil
}

// Unpublish removes status fields of the kind, of what is gone.
func Unpublish(ctx workflow.Context, fields ...string) {
	for _, f := range fields {
		delete(operationOf(ctx).report.Details, f)
	}
}

// Published reads one of the kind's own status fields, as this or an earlier
// operation has published it; false when none has.
func Published(ctx workflow.Context, field string, into any) bool {
	b, ok := operationOf(ctx).report.Details[field]
	return ok && json.Unmarshal(b, into) == nil
}

// SetCondition sets a condition of the kind, told with the next step.
func SetCondition(ctx workflow.Context, kind string, ok bool, reason, message string) {
	status := metav1.ConditionFalse
	if ok {
		status = metav1.ConditionTrue
	}
	operationOf(ctx).condition(ctx, kind, status, reason, message)
}

// Tell adds a Kubernetes Event on the object, told with the next step.
func Tell(ctx workflow.Context, warning bool, reason, format string, args ...any) {
	operationOf(ctx).event(ctx, warning, reason, format, args...)
}

// took is a duration for people, in whole seconds from a second on.
func took(since *metav1.Time, now time.Time) string {
	if since == nil {
		return "no time"
	}
	d := now.Sub(since.Time)
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
