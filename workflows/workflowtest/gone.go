package workflowtest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
	"github.com/tidbcloud/infra-orchestrator/workflows/operation"
)

// goneAt are the tests of something that is missing at one activity of a
// creation, and of an update, when it runs for the nth time.
func goneAt(t *testing.T, k lifecycle.Kind, activity string, nth int) {
	for _, verb := range []lifecycle.Verb{lifecycle.Create, lifecycle.Update} {
		name := "/" + string(verb) + "/" + activity
		t.Run("gone once"+name, func(t *testing.T) { goneOnce(t, k, verb, activity, nth) })
		t.Run("gone for ever"+name, func(t *testing.T) { goneForEver(t, k, verb, activity, nth) })
		if contract.VerbOf(activity) == "Wait" {
			t.Run("vanishes"+name, func(t *testing.T) { vanishes(t, k, verb, activity, nth) })
		}
	}
}

func missing() error {
	return faults.New(faults.Gone, "NoSuchEntity", "the thing", "it cannot be found")
}

// begun returns an environment in which the operation of the verb is due.
func begun(t *testing.T, k lifecycle.Kind, verb lifecycle.Verb) *Env {
	if verb == lifecycle.Create {
		return NewEnv(t, k)
	}
	e, _ := created(t, k)
	e.Change(func(s *contract.ObjectState) { s.Generation++ })
	return e
}

// ran is how long the object's operation took.
func ran(t *testing.T, e *Env) time.Duration {
	t.Helper()
	op := e.Current().Operation
	require.NotNil(t, op.FinishedAt)
	return op.FinishedAt.Sub(op.StartedAt.Time)
}

// goneOnce: what was made a moment ago is not visible yet, what was listed is
// gone at the second call. Nobody hears of it.
func goneOnce(t *testing.T, k lifecycle.Kind, verb lifecycle.Verb, activity string, nth int) {
	e := begun(t, k, verb)
	e.Before = func(name string, times int) error {
		if name == activity && times == nth {
			return missing()
		}
		return nil
	}
	e.Rest(24 * time.Hour)
	e.RunObject()
	requireReady(t, e)
	requireQuiet(t, e)
	require.Less(t, ran(t, e), time.Minute)
}

func requireQuiet(t *testing.T, e *Env) {
	t.Helper()
	for _, r := range e.Reports() {
		require.Nil(t, r.LastError, "it passes")
		for _, event := range r.Events {
			require.False(t, event.Warning, event.Message)
		}
	}
}

// goneForEver: what is missing does not come. It is told as a Dependency that
// is looked at again in two minutes, says what is missing, and what to do.
func goneForEver(t *testing.T, k lifecycle.Kind, verb lifecycle.Verb, activity string, nth int) {
	e := begun(t, k, verb)
	e.Before = func(name string, times int) error {
		if name == activity && times >= nth {
			return missing()
		}
		return nil
	}
	e.Rest(6 * time.Hour)
	e.RunObject()
	errors := lastErrors(e)
	require.NotEmpty(t, errors, "it must be told")
	first := errors[0]
	require.Less(t, first.At.Sub(e.Current().Operation.StartedAt.Time), 10*time.Minute)
	require.InDelta(t, 2*time.Minute, first.NextRetryAt.Sub(first.At.Time), float64(time.Minute/2))
	for _, told := range errors {
		require.Equal(t, string(faults.Dependency), told.Class)
		require.Contains(t, told.Message, "the thing")
		require.NotEqual(t, faults.Gone.DefaultHint(), told.Hint)
	}
	require.Less(t, len(e.Journal()), 1000, "it must not spin")
	requireMonotonic(t, e)
	if contract.VerbOf(activity) == "Wait" {
		_, recreated := recreations(e)
		require.True(t, recreated || first.Hint != operation.HintMissing,
			"a step that waits says which step makes what it waits for (Remake), or why none does (Given)")
	}
}

// lastErrors lists the different stalls that were told, in order.
func lastErrors(e *Env) (all []v1.LastError) {
	for _, r := range e.Reports() {
		if r.LastError != nil && (len(all) == 0 || !all[len(all)-1].At.Equal(r.LastError.At)) {
			all = append(all, *r.LastError)
		}
	}
	return all
}

// recreations lists the Events of what was made again.
func recreations(e *Env) (texts []string, any bool) {
	for _, r := range e.Reports() {
		for _, event := range r.Events {
			if event.Reason == "Recreated" {
				texts = append(texts, event.Message)
			}
		}
	}
	return texts, len(texts) > 0
}

// removed makes what an activity waits for the nth time vanish then: it
// stays away until something that makes things has run again. at runs for each
// activity from then on, with the number of it.
func (e *Env) removed(activity string, nth int, at func(name string, n int)) {
	gone, made, n := false, false, 0
	e.Before = func(name string, times int) error {
		if name == activity && times == nth {
			gone = true
			return missing()
		}
		if !gone {
			return nil
		}
		n++
		at(name, n)
		switch contract.VerbOf(name) {
		case "Ensure", "Bootstrap":
			made = true
		}
		if name == activity && !made {
			return missing()
		}
		return nil
	}
}

// vanishes: what is waited for is removed by somebody. The operation makes it
// again and ends well, and says so; or it says who else is to make it.
func vanishes(t *testing.T, k lifecycle.Kind, verb lifecycle.Verb, activity string, nth int) {
	e := begun(t, k, verb)
	total := 0
	e.removed(activity, nth, func(_ string, n int) { total = n })
	e.Rest(24 * time.Hour)
	e.RunObject()
	if errors := lastErrors(e); len(errors) > 0 {
		require.NotEqual(t, operation.HintMissing, errors[0].Hint)
		return // nothing of this operation makes it
	}
	requireReady(t, e)
	require.Less(t, ran(t, e), 5*time.Minute)
	requireMonotonic(t, e)
	requireStepsOnce(t, e)
	if _, again := recreations(e); again {
		for point := 1; point <= min(total, 12); point++ {
			whileRemade(t, k, verb, activity, nth, point)
		}
	}
}

func requireStepsOnce(t *testing.T, e *Env) {
	t.Helper()
	seen := map[string]bool{}
	for _, s := range e.Current().Operation.Steps {
		require.False(t, seen[s.Name], "step %s is listed twice", s.Name)
		seen[s.Name] = true
	}
}

// whileRemade does what people do while something is made again: at the nth
// activity after it was found missing.
func whileRemade(t *testing.T, k lifecycle.Kind, verb lifecycle.Verb, activity string, nth, point int) {
	at := func(e *Env, do func()) {
		e.removed(activity, nth, func(_ string, n int) {
			if n == point {
				do()
			}
		})
	}
	e := begun(t, k, verb)
	at(e, func() {
		e.AskNow(temporal.VerbPause)
		e.RegisterDelayedCallback(func() { e.Ask(temporal.VerbResume) }, time.Hour)
	})
	e.Rest(24 * time.Hour)
	e.RunObject()
	requireReady(t, e)

	e = begun(t, k, verb)
	at(e, func() { e.AskNow(temporal.VerbCancel) })
	e.Rest(24 * time.Hour)
	e.RunObject()
	requireStepsOnce(t, e)
	if s := e.Current(); s.Operation.State != v1.OperationSucceeded {
		require.Equal(t, v1.OperationCancelled, s.Operation.State)
		require.False(t, verb == lifecycle.Create && slices.ContainsFunc(s.Resources, func(r v1.Resource) bool { return r.State == v1.ResourcePresent }))
	}

	e = begun(t, k, verb)
	at(e, func() {
		e.Change(func(s *contract.ObjectState) { s.Deleting = true; s.Generation++ })
		e.RegisterDelayedCallback(e.Nudge, 0)
	})
	e.RunObject()
	require.NoError(t, e.GetWorkflowError())
	require.False(t, e.Current().Exists)
}

// goneInDeletion: out of what removes something Gone means what it says, and
// is told; out of everything else it passes.
func goneInDeletion(t *testing.T, k lifecycle.Kind, activity string) {
	e, _ := created(t, k)
	seen := 0
	e.Before = func(name string, _ int) error {
		if name != activity {
			return nil
		}
		if seen++; seen == 1 {
			return missing()
		}
		return nil
	}
	e.Change(func(s *contract.ObjectState) { s.Deleting = true })
	e.RunObject()
	require.NoError(t, e.GetWorkflowError())
	require.False(t, e.Current().Exists)
	require.GreaterOrEqual(t, seen, 2)
	if !contract.Removes(activity) {
		require.Empty(t, lastErrors(e), "it passes")
		return
	}
	told := lastErrors(e)
	require.NotEmpty(t, told)
	require.Equal(t, string(faults.Gone), told[0].Class)
	require.True(t, strings.Contains(told[0].Message, "the thing"))
}
