package lifecycle

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
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// signalWake makes a stalled operation try again. Argument: wake.
const signalWake = "wake"

// wake says why.
type wake struct {
	// Generation, when newer than the operation's, supersedes it.
	Generation int64 `json:"generation,omitempty"`
	// Reason is one word or two, for the log: retry, credentials changed, ....
	Reason string `json:"reason,omitempty"`
}

// errSuperseded ends a stalled operation in favour of a newer generation.
var errSuperseded = errors.New("superseded by a newer generation")

// operation is the state of a running operation workflow.
type operation struct {
	in     Input
	steps  []Step // flattened, in order
	report contract.OperationReport
	lock   workflow.Mutex // one report at a time, so that none overtakes another
	wakes  int
	newest int64 // generation of the newest wake
	// stalled holds the names of steps that have stalled before.
	stalled map[string]bool
}

// Run runs an operation: its steps in order, each with budget, progress and
// stall handling. It returns an error only when it was cancelled.
func Run(ctx workflow.Context, in Input, steps ...Step) (Result, error) {
	o := &operation{in: in, steps: flatten(steps), lock: workflow.NewMutex(ctx), stalled: map[string]bool{}}
	ctx = workflow.WithValue(ctx, operationKey, o)
	o.listen(ctx)
	if err := o.begin(ctx); err != nil {
		return Result{}, err // cancelled before anything was done or told
	}
	return o.end(ctx, o.runAll(ctx, steps))
}

// listen counts wakes. A counter, not a channel, since several steps may be
// stalled at once and each must see every wake.
func (o *operation) listen(ctx workflow.Context) {
	ch := workflow.GetSignalChannel(ctx, signalWake)
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			var w wake
			ch.Receive(ctx, &w)
			o.wakes++
			o.newest = max(o.newest, w.Generation)
		}
	})
}

// begin reads what earlier operations have published, so that this one goes on
// from there, and tells that it runs.
func (o *operation) begin(ctx workflow.Context) error {
	s, err := must(ctx, contract.ReadObject, contract.ReadObjectInput{Ref: o.in.Object, Live: true})
	if err != nil {
		return err
	}
	now := metav1.NewTime(workflow.Now(ctx))
	o.report = contract.OperationReport{
		Ref: o.in.Object, UID: o.in.UID, Resources: s.Resources, Conditions: s.Conditions, Details: s.Details,
		Operation: v1.OperationStatus{
			ID: workflow.GetInfo(ctx).WorkflowExecution.ID, Type: string(o.in.Verb), Generation: o.in.Generation,
			State: v1.OperationRunning, StartedAt: &now, Attempts: 1,
		},
	}
	for _, step := range o.steps {
		o.report.Operation.Steps = append(o.report.Operation.Steps, v1.StepStatus{Name: step.Name, State: v1.StepPending})
	}
	o.event(ctx, false, string(o.in.Verb)+"Started", "%s", o.in.Title())
	return nil
}

// end tells how it ended.
func (o *operation) end(ctx workflow.Context, err error) (Result, error) {
	op := &o.report.Operation
	reason, text := "Succeeded", o.in.Title()+": done"
	res := Result{State: Succeeded}
	switch {
	case err == nil:
		op.State, op.Progress, op.WaitingFor = v1.OperationSucceeded, 100, ""
		o.event(ctx, false, string(o.in.Verb)+"Succeeded", "%s in %s", o.in.Title(), took(op.StartedAt, workflow.Now(ctx)))
	case errors.Is(err, errSuperseded):
		op.State, reason, text = v1.OperationCancelled, "Superseded", "a newer generation of the spec takes over"
		res.State, err = Superseded, nil
	default:
		op.State, reason = v1.OperationCancelled, "Cancelled"
		text = "cancelled in step " + op.Step + "; what exists is listed in status.resources"
		o.event(ctx, true, string(o.in.Verb)+"Cancelled", "%s: %s", o.in.Title(), text)
	}
	now := metav1.NewTime(workflow.Now(ctx))
	op.FinishedAt = &now
	o.report.LastError = nil
	o.condition(ctx, v1.ConditionProgressing, metav1.ConditionFalse, reason, text)
	o.condition(ctx, v1.ConditionStalled, metav1.ConditionFalse, reason, "nothing to mend")
	o.details(ctx)
	o.publish(ctx, true)
	return res, err
}

// stall tells a fault and waits: for a wake, for the slow timer of its class,
// or for cancellation. It returns nil when the step shall run again.
func (o *operation) stall(ctx workflow.Context, s Step, err error) error {
	f := faults.FromTemporal(err)
	o.stalled[s.Name] = true
	delay := spread(f.Class.RetryAfter(), o.report.Operation.ID, o.report.Operation.Attempts)
	o.fail(ctx, s, f, delay)
	o.news(ctx, news{Stalled: true, Reason: string(f.Class), Message: f.Human()})
	seen := o.wakes
	_, err = workflow.AwaitWithTimeout(ctx, delay, func() bool { return o.wakes > seen })
	if err != nil {
		o.mark(ctx, s, v1.StepCancelled)
		return err
	}
	if o.newest > o.in.Generation {
		return errSuperseded
	}
	o.report.LastError = nil
	o.report.Operation.Attempts++
	o.report.Operation.State = v1.OperationRunning
	o.news(ctx, news{})
	return nil
}

// signalNews tells the object workflow that an operation stalls or goes on.
const signalNews = "operation"

// news is the argument of signalNews.
type news struct {
	Stalled bool   `json:"stalled"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

func (o *operation) news(ctx workflow.Context, n news) {
	id := temporal.ObjectID(o.in.Object.Kind, o.in.Object.Namespace, o.in.Object.Name)
	// Not awaited: an object workflow that is away reads the status later.
	workflow.SignalExternalWorkflow(ctx, id, "", signalNews, n)
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
