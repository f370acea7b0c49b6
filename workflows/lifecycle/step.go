package lifecycle

import (
	"time"

	"go.temporal.io/sdk/workflow"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// Step is a named piece of an operation.
type Step struct {
	// Name is a verb phrase in CamelCase: EnsureBucket. Unique in its operation.
	Name string
	// Doc is what it does, or waits for, in a few words; shown in the UI.
	Doc string
	// Budget is the time after which the step stalls; 5 minutes when zero.
	Budget time.Duration
	// Limit, in seconds, goes before Budget once the plan that it points into
	// is resolved (ProviderType.spec.timeouts).
	Limit *int64
	// Run does the work through Do. It may run again after a stall or a crash
	// of this program's logic, so it only calls idempotent activities.
	Run func(workflow.Context) error
	// Undo takes back what the step of a creation made, when it is cancelled.
	Undo []Step
	// Recall finds out what Undo steps need to know of what an earlier operation
	// has made: it goes first when this one may not have come so far itself.
	Recall []Step
	// Skippable steps may be left out by the verb skip: what comes after them
	// does not need them.
	Skippable bool

	beside []Step // with Together: these run at once in place of Run
}

func (s Step) budget() time.Duration {
	if s.Limit != nil && *s.Limit > 0 {
		return time.Duration(*s.Limit) * time.Second
	}
	if s.Budget == 0 {
		return defaultBudget
	}
	return s.Budget
}

// Together runs steps at the same time and ends when all have ended.
func Together(steps ...Step) Step { return Step{beside: steps} }

// flatten lists the named steps in order.
func flatten(steps []Step) []Step {
	var all []Step
	for _, s := range steps {
		if len(s.beside) > 0 {
			all = append(all, flatten(s.beside)...)
		} else {
			all = append(all, s)
		}
	}
	return all
}

type ctxKey string

const (
	stepKey      ctxKey = "step"
	operationKey ctxKey = "operation"
	lockedKey    ctxKey = "locked"
)

// stepOf returns the step that ctx runs in; a zero Step outside of one.
func stepOf(ctx workflow.Context) Step {
	s, _ := ctx.Value(stepKey).(Step)
	return s
}

func operationOf(ctx workflow.Context) *operation {
	return ctx.Value(operationKey).(*operation)
}

// runAll runs the steps in order and stops at the first that fails. Steps do
// not fail on faults, they stall; what comes back is cancellation or
// supersession.
func (o *operation) runAll(ctx workflow.Context, steps []Step) error {
	for _, s := range steps {
		run := o.runStep
		if len(s.beside) > 0 {
			run = o.runBeside
		}
		if err := run(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (o *operation) runBeside(ctx workflow.Context, s Step) error {
	var first error
	group := workflow.NewWaitGroup(ctx)
	for _, one := range s.beside {
		group.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer group.Done()
			if err := o.runStep(ctx, one); err != nil && first == nil {
				first = err
			}
		})
	}
	group.Wait(ctx)
	return first
}

// runStep runs one step until it is done, skipped, cancelled or superseded.
func (o *operation) runStep(ctx workflow.Context, s Step) error {
	if err := o.border(ctx); err != nil {
		return err
	}
	o.register(s)
	ctx, stop := workflow.WithCancel(workflow.WithValue(ctx, stepKey, s))
	defer stop()
	o.stops[s.Name] = stop
	o.quietSince[s.Name] = workflow.Now(ctx)
	for {
		o.mark(ctx, s, v1.StepRunning)
		began := workflow.Now(ctx)
		err := s.Run(ctx)
		switch {
		case err == nil:
			o.mark(ctx, s, v1.StepSucceeded)
			return nil
		case o.skips[s.Name]:
			return o.leaveOut(ctx, s)
		case isCancelled(ctx, err):
			o.mark(ctx, s, v1.StepCancelled)
			return workflow.ErrCanceled
		}
		f := faults.FromTemporal(err)
		if o.gone(f) {
			o.preempted = true
			o.mark(ctx, s, v1.StepCancelled)
			return workflow.ErrCanceled
		}
		if o.passing(ctx, s, f) {
			if err = workflow.Sleep(ctx, quietPause); err == nil || o.skips[s.Name] {
				continue
			}
			o.mark(ctx, s, v1.StepCancelled)
			return err
		}
		if err := o.stall(ctx, s, f, began); err != nil && !o.skips[s.Name] {
			return err
		}
		if o.skips[s.Name] {
			return o.leaveOut(ctx, s)
		}
		o.quietSince[s.Name] = workflow.Now(ctx)
	}
}

// border stands between two steps: here an operation ends for a newer
// generation, if it is one that the next operation can go on from. A deletion
// does so while it has not begun: the change may be that all is to be kept.
func (o *operation) border(ctx workflow.Context) error {
	waited := o.report.Operation.Step == waitUnused
	if o.newest > o.in.Generation && (o.in.Verb == Update || o.in.Verb == Delete && waited) {
		return errSuperseded
	}
	return ctx.Err()
}

// leaveOut ends a step that somebody skipped.
func (o *operation) leaveOut(ctx workflow.Context, s Step) error {
	o.mended(ctx, s)
	o.mark(ctx, s, v1.StepSkipped)
	o.event(ctx, true, "Skipped", "step %s was left out: %s", s.Name, s.Doc)
	return nil
}
