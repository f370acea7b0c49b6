package operation

import (
	"errors"
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
	// Remake is the step that makes what this one needs: when it has vanished,
	// the operation goes on from there. It may be the step's own name, where it
	// makes itself what it waits for. Steps in between run again.
	Remake string
	// Replan is, for a step that needs what other objects make, the step that
	// finds out anew what that is: when it has vanished, the operation goes on
	// from there, in case that it was made again under another name.
	Replan string
	// Given is, for a step that waits and has no Remake, what to see to when
	// what it waits for is missing: no step of the operation makes that.
	Given string
	// Shared, in a step of a deletion, says of entries of the ledger that it
	// removes who else uses them. A forced deletion, which only lists them, must
	// not have them removed under others.
	Shared []Shared
	// Skippable steps may be left out by the verb skip: what comes after them
	// does not need them.
	Skippable bool

	beside []Step // with Together: these run at once in place of Run
}

// defaultBudget is a step's time before it stalls, when it names none.
const defaultBudget = 5 * time.Minute

// Shared says of an entry of the ledger who else uses it: a clause for people.
type Shared struct{ Key, By string }

func (s Step) budget() time.Duration {
	if s.Limit != nil && *s.Limit > 0 {
		return time.Duration(*s.Limit) * time.Second
	}
	if s.Budget == 0 {
		return defaultBudget
	}
	return s.Budget
}

// Together runs steps at the same time and ends when all have ended. So does
// one of them that goes back to an earlier step: they never run beside it.
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

type valueKey string

const (
	stepKey      valueKey = "step"
	operationKey valueKey = "operation"
	lockedKey    valueKey = "locked"
	aboutKey     valueKey = "about"
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
// not fail on faults, they stall, or go back to an earlier one; what comes back
// is cancellation or supersession.
func (o *operation) runAll(ctx workflow.Context, steps []Step) error {
	for i := 0; i < len(steps); i++ {
		run := o.runStep
		if len(steps[i].beside) > 0 {
			run = o.runBeside
		}
		err := run(ctx, steps[i])
		var earlier *back
		switch {
		case errors.As(err, &earlier):
			i = o.rewind(steps, i, earlier.to) - 1
		case err != nil:
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
			first = o.graver(first, o.runStep(ctx, one))
		})
	}
	group.Wait(ctx)
	return first
}

// runStep runs one step until it is done, skipped, cancelled or superseded, or
// goes back to an earlier one.
func (o *operation) runStep(ctx workflow.Context, s Step) error {
	if o.stepStatus(s.Name).State == v1.StepSkipped {
		return nil // also when the operation has gone back
	}
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
			o.found(s)
			o.mark(ctx, s, v1.StepSucceeded)
			return nil
		case o.skips[s.Name]:
			return o.leaveOut(ctx, s)
		case isCancelled(ctx, err):
			o.mark(ctx, s, v1.StepCancelled)
			return workflow.ErrCanceled
		}
		err = o.overcome(ctx, s, err, began)
		switch {
		case o.skips[s.Name]:
			return o.leaveOut(ctx, s)
		case err != nil:
			return err
		}
	}
}

// overcome is what becomes of a step that failed: nil when it shall run again,
// which it does at first unseen, then after a stall. began is when it began to
// Run.
func (o *operation) overcome(ctx workflow.Context, s Step, err error, began time.Time) error {
	f := faults.FromTemporal(err)
	if o.gone(f) {
		o.preempted = true
		o.mark(ctx, s, v1.StepCancelled)
		return workflow.ErrCanceled
	}
	missing := lacks(f, err)
	if pause, again := o.passing(ctx, s, f, err); again {
		if err := workflow.Sleep(ctx, pause); err != nil {
			o.mark(ctx, s, v1.StepCancelled)
			return err
		}
		return nil
	}
	remade := missing && o.maker(s) != ""
	if remade && o.absenceOf(s).remade < mostRemade {
		return o.remake(ctx, s, f)
	}
	told := f
	if missing {
		told = o.missed(s, f, err)
	}
	if err := o.stall(ctx, s, told, began); err != nil {
		return err
	}
	o.quietSince[s.Name] = workflow.Now(ctx)
	if remade {
		return o.remake(ctx, s, f)
	}
	return nil
}

// gone says whether a fault is that the operation's own object is no more.
func (o *operation) gone(f *faults.Fault) bool {
	return f.Class == faults.Gone && f.Resource == o.in.Object.String()
}

// border stands between two steps: here an operation ends for a newer
// generation, if it is one that the next operation can go on from. A deletion
// does so while it has not begun: the change may be that all is to be kept.
func (o *operation) border(ctx workflow.Context) error {
	waited, t := o.report.Operation.Step == waitUnused, o.in.Verb.Traits()
	if o.newest > o.in.Generation && (t.Yields || t.Final && waited) {
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
