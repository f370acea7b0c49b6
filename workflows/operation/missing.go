package operation

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// Gone out of an activity that takes nothing away means that something is
// missing. A cloud shows late what was made, and lists what is no more; so it
// passes at first. What stays missing is made again by the step that makes it,
// or else is something to come from somewhere else: a Dependency.

const (
	// quietMissing is how long something may be missing before anybody hears of
	// it. Clouds show what was made within seconds, IAM within a minute or two.
	quietMissing = 3 * time.Minute
	// The pause between two tries grows from the first to the second.
	missingPause, longMissingPause = 5 * time.Second, 40 * time.Second
	// mostRemade is how often a step has the same thing made again before it
	// stalls first: somebody, or something, removes it.
	mostRemade = 2
)

// HintMissing is what to do about something missing of which its step does not
// know more.
const HintMissing = "find out who removed it, and put it back; the step is tried again by itself"

// absence is what a step knows of what it misses.
type absence struct {
	// missed is by activity, since each looks for something else. It stays until
	// the step is done, so that two that fail by turns are told in the end.
	missed map[string]*miss
	remade int // how often the operation went back to make it
}

// miss is what one activity of a step has not found.
type miss struct {
	since time.Time // of the first try
	tries int
	told  bool // the step stalls for it
}

// of is the miss that an error tells of.
func (a *absence) of(err error) *miss {
	name := activityOf(err)
	if a.missed[name] == nil {
		a.missed[name] = &miss{}
	}
	return a.missed[name]
}

// lacks says whether a failure is that something is missing which should be
// there.
func lacks(f *faults.Fault, err error) bool {
	return f.Class == faults.Gone && !contract.Removes(activityOf(err))
}

// waiting says whether it was a wait that failed.
func waiting(err error) bool { return contract.VerbOf(activityOf(err)) == "Wait" }

// activityOf is the name of the activity that an error comes from, "" for none.
func activityOf(err error) string {
	var failed *temporal.ActivityError
	if !errors.As(err, &failed) {
		return ""
	}
	return failed.ActivityType().GetName()
}

func (o *operation) absenceOf(s Step) *absence {
	if o.absent[s.Name] == nil {
		o.absent[s.Name] = &absence{missed: map[string]*miss{}}
	}
	return o.absent[s.Name]
}

// found forgets what a step has missed, now that it has it. How often it was
// made again counts for the whole operation.
func (o *operation) found(s Step) {
	if a := o.absent[s.Name]; a != nil {
		clear(a.missed)
	}
}

// patient says whether something missing may come yet, and how long to wait
// for the next try. What a step waits for was there when it was made, so one
// look more is enough where the operation can make it again.
func (o *operation) patient(ctx workflow.Context, s Step, err error) (pause time.Duration, yes bool) {
	m, now := o.absenceOf(s).of(err), workflow.Now(ctx)
	if m.tries == 0 {
		m.since = now
	}
	since := m.since
	if quiet := o.quietSince[s.Name]; quiet.After(since) { // it was paused meanwhile
		since = quiet
	}
	switch {
	case m.told, now.Sub(since) >= quietMissing:
		return 0, false
	case m.tries > 0 && waiting(err) && o.maker(s) != "":
		return 0, false
	}
	m.tries++
	return min(missingPause<<(m.tries-1), longMissingPause), true
}

// maker is the step of this operation that makes, or finds out anew, what s
// needs; "" when none does, or when somebody has left it out.
func (o *operation) maker(s Step) string {
	to := cmp.Or(s.Remake, s.Replan)
	for _, earlier := range o.steps[o.first:] {
		if earlier.Name == to && o.stepStatus(to).State != v1.StepSkipped {
			return to
		}
		if earlier.Name == s.Name {
			break
		}
	}
	return ""
}

// requireMakers panics where a step names a maker that does not come before it:
// the first test that runs the operation shows it.
func requireMakers(steps []Step) {
	seen := map[string]bool{"": true}
	for _, s := range steps {
		seen[s.Name] = true
		if to := cmp.Or(s.Remake, s.Replan); !seen[to] {
			panic("operation: step " + s.Name + " goes back to " + to + ", which is no step before it")
		}
	}
}

// back is the error that ends a step in favour of an earlier one, from which on
// the operation goes on.
type back struct{ to string }

func (b *back) Error() string { return "back to step " + b.to }

// remake goes back to the step that makes what is missing, and says so.
func (o *operation) remake(ctx workflow.Context, s Step, f *faults.Fault) error {
	a := o.absenceOf(s)
	clear(a.missed)
	a.remade++
	if s.Remake != "" {
		o.event(ctx, true, "Recreated", "%s; step %s makes it again", f.Error(), s.Remake)
	} else {
		o.event(ctx, true, "Replanned", "%s; step %s looks for it anew", f.Error(), s.Replan)
	}
	o.told = time.Time{} // at once
	return &back{to: cmp.Or(s.Remake, s.Replan)}
}

// rewind makes the steps from the one with the name to the one at the position
// pending again, and returns the position of the former. What somebody has left
// out stays so.
func (o *operation) rewind(steps []Step, at int, to string) int {
	first := at
	for first > 0 && !slices.ContainsFunc(flatten(steps[first:first+1]), func(s Step) bool { return s.Name == to }) {
		first--
	}
	for _, s := range flatten(steps[first : at+1]) {
		if st := o.stepStatus(s.Name); st.State != v1.StepSkipped {
			*st = v1.StepStatus{Name: s.Name, State: v1.StepPending}
		}
	}
	return first
}

// missed is the fault as people hear of it. err is where it comes from.
func (o *operation) missed(s Step, f *faults.Fault, err error) *faults.Fault {
	o.absenceOf(s).of(err).told = true
	told := *f
	told.Class = faults.Dependency
	if told.Owner == "" { // who can mend it is who could before it had another class
		told.Owner = f.Class.DefaultOwner()
	}
	if told.Message == "" {
		told.Message = "it is missing"
	}
	switch remade := o.absenceOf(s).remade; {
	case s.Replan != "" && o.maker(s) != "":
		told.Hint = "see to the object that makes it; step " + s.Replan + " looks for it anew at the next try"
	case o.maker(s) != "" && remade > 0:
		told.Hint = fmt.Sprintf("find out what removes it: it was made again %d times and went each time; step %s makes it again at the next try", remade, s.Remake)
	case s.Given != "":
		told.Hint = s.Given
	case f.Hint == "" || f.Hint == faults.Gone.DefaultHint():
		told.Hint = HintMissing
	}
	return &told
}

// graver is which of two errors of steps beside each other ends them all: any
// other one before a step back, and of these the earlier step.
func (o *operation) graver(x, y error) error {
	var bx, by *back
	switch {
	case x == nil:
		return y
	case y == nil:
		return x
	case !errors.As(x, &bx):
		return x
	case !errors.As(y, &by):
		return y
	}
	for _, s := range o.steps[o.first:] {
		switch s.Name {
		case bx.to:
			return x
		case by.to:
			return y
		}
	}
	return x
}
