package operation

import (
	"time"

	"go.temporal.io/sdk/workflow"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
)

// quiet is the time in which throttling and passing failures are nobody's
// business, whatever the step's budget is.
const quiet = 15 * time.Minute

// quietPause keeps a step that fails without using its budget from spinning.
const quietPause = 10 * time.Second

// metricStalls counts stalls by operation, step and fault class.
const metricStalls = "infra_operation_stalls_total"

// passing says whether a failure may pass unseen: the step runs again after the
// pause. Time that the step was stalled or paused does not count.
func (o *operation) passing(ctx workflow.Context, s Step, f *faults.Fault, err error) (pause time.Duration, again bool) {
	if lacks(f, err) {
		return o.patient(ctx, s, err)
	}
	return quietPause, f.Class.Retryable() && workflow.Now(ctx).Sub(o.quietSince[s.Name]) < quiet
}

// stall tells a fault and waits: for a verb, for a new generation, for a change
// of what the object needs, for the slow timer of its class, or for
// cancellation. It returns nil when the step shall run again. since is when the
// attempt began.
func (o *operation) stall(ctx workflow.Context, s Step, f *faults.Fault, since time.Time) error {
	delay := spread(patience(f.Class, o.stalls[s.Name]), o.report.Operation.ID, o.report.Operation.Attempts)
	o.stalls[s.Name]++
	o.fail(ctx, s, f, delay)
	workflow.GetMetricsHandler(ctx).WithTags(map[string]string{
		"operation": string(o.in.Verb) + o.in.Object.Kind, "step": s.Name, "class": string(f.Class)}).Counter(metricStalls).Inc(1)

	watch, stop := workflow.WithCancel(ctx)
	defer stop()
	seen, change := o.wakes, o.watchDependencies(watch, f, since)
	_, err := workflow.AwaitWithTimeout(ctx, delay, func() bool {
		return o.wakes > seen || *change != "" || o.skips[s.Name]
	})
	if err != nil {
		o.mark(ctx, s, v1.StepCancelled)
		return err
	}
	if *change != "" { // first: what comes during the pause counts
		if err := o.settleDown(ctx, s, f, seen); err != nil {
			o.mark(ctx, s, v1.StepCancelled)
			return err
		}
	}
	if !o.undoing && (o.newest > o.in.Generation || workflow.GetInfo(ctx).GetContinueAsNewSuggested()) {
		// A newer generation, or a history that has grown long with stalls: the
		// next operation goes on from what exists.
		return errSuperseded
	}
	if *change != "" {
		o.event(ctx, false, "Resumed", "step %s runs again: %s", s.Name, *change)
	}
	o.report.Operation.Attempts++
	o.told = time.Time{} // that the stall is over is told at once
	o.mended(ctx, s)
	return nil
}

// Changes of what an object needs that mend nothing follow each other more and
// more slowly: one that is told again and again, as by a cache that has stopped,
// must not fill Temporal and the Events.
const (
	firstChangePause = 5 * time.Second
	mostChangePause  = 5 * time.Minute
)

// changes counts those after which a step has failed as before.
type changes struct {
	fault string
	n     int
}

// settleDown waits after a change, unless it is the first since the step has
// begun to fail in this way. A verb ends it.
func (o *operation) settleDown(ctx workflow.Context, s Step, f *faults.Fault, seen int) error {
	c := o.changed[s.Name]
	if c.fault != f.Error() {
		c = changes{fault: f.Error()}
	}
	c.n++
	o.changed[s.Name] = c
	if c.n == 1 {
		return nil
	}
	pause := mostChangePause
	if c.n < 8 {
		pause = firstChangePause << (c.n - 2)
	}
	_, err := workflow.AwaitWithTimeout(ctx, pause, func() bool { return o.wakes > seen || o.skips[s.Name] })
	return err
}

// watchDependencies fills the string it returns once something has changed
// that the object needs. Failures that pass by themselves need no watch.
func (o *operation) watchDependencies(ctx workflow.Context, f *faults.Fault, since time.Time) *string {
	what := new(string)
	if f.Class.Retryable() {
		return what
	}
	opts := workflow.ActivityOptions{TaskQueue: contract.WaitDependencies.Queue(), Summary: "a change of what it needs",
		StartToCloseTimeout: lifecycle.AttachTimeout, HeartbeatTimeout: lifecycle.IdleHeartbeat, RetryPolicy: lifecycle.RetryPolicy(), Priority: lifecycle.PriorityOf(o.in)}
	change := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, opts), contract.WaitDependencies.Name,
		contract.DependenciesInput{Ref: o.in.Object, Since: metav1.NewTime(since), Used: f.Used})
	workflow.Go(ctx, func(ctx workflow.Context) {
		var c contract.Change
		if err := change.Get(ctx, &c); err == nil {
			*what = c.What
		}
	})
	return what
}

// patience is the slow timer: that of the class, twice as long each time that
// the step stalls again, up to an hour. A verb or a change ends it at once, so
// it only bounds what a cause costs that nobody mends for days.
func patience(class faults.Class, before int) time.Duration {
	const most = time.Hour
	d := class.RetryAfter()
	for ; before > 0 && d < most; before-- {
		d *= 2
	}
	return max(class.RetryAfter(), min(d, most))
}

func (o *operation) state() v1.OperationState {
	if o.undoing {
		return v1.OperationCancelling
	}
	return v1.OperationRunning
}

// tellNews tells it what stalls the operation now, if anything does.
func (o *operation) tellNews(ctx workflow.Context) {
	if o.preempted {
		return // another operation speaks for the object now
	}
	n := lifecycle.News{UID: o.in.UID}
	if s, is := o.stalledStep(); is {
		f := o.faults[s.Name]
		n.Stalled, n.Reason, n.Message = true, f.last.Class, f.text
	}
	id := temporal.ObjectID(o.in.Object.Kind, o.in.Object.Namespace, o.in.Object.Name)
	// Not awaited: an object workflow that is away reads the status later.
	workflow.SignalExternalWorkflow(ctx, id, "", lifecycle.SignalNews, n)
}
