package workflowtest

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
)

// verbsAt are the verbs at one activity of a creation.
func verbsAt(t *testing.T, k lifecycle.Kind, activity string) {
	t.Run("pause/"+activity, func(t *testing.T) { pauseDuring(t, k, activity) })
	t.Run("cancel/"+activity, func(t *testing.T) { cancelDuring(t, k, activity) })
	t.Run("cancel then delete/"+activity, func(t *testing.T) { deleteWhileUndoing(t, k, activity) })
	t.Run("retry/"+activity, func(t *testing.T) { retryDuring(t, k, activity) })
	t.Run("retry of a stall/"+activity, func(t *testing.T) { retryStall(t, k, activity) })
	t.Run("mended/"+activity, func(t *testing.T) { mendedStall(t, k, activity) })
}

// During asks for a verb while the activity runs for the first time.
func (e *Env) During(activity, verb string) { e.at(activity, verb, func() {}) }

// at asks for a verb while the activity runs for the first time. The activity
// ends when the verb is answered, so that it does not come too late.
func (e *Env) at(activity, verb string, then func()) {
	asked := false
	e.Before = func(name string, _ int) error {
		if name == activity && !asked {
			asked = true
			e.AskNow(verb)
			then()
		}
		return nil
	}
}

// Ask sets the annotation that asks for a verb, as kubectl does.
func (e *Env) Ask(verb string) {
	e.Change(func(s *contract.ObjectState) { s.Verb, s.VerbManager = verb, "alice" })
	e.RegisterDelayedCallback(e.Nudge, 0)
}

// AskNow asks for a verb from within an activity, and returns when it is
// answered, so that it does not come too late.
func (e *Env) AskNow(verb string) {
	e.Change(func(s *contract.ObjectState) { s.Verb, s.VerbManager = verb, "alice" })
	e.Nudge()
	<-e.answered
}

// eventsOf counts the Events about the verb.
func (e *Env) eventsOf(verb string) (accepted, refused int) {
	for _, a := range e.Answers() {
		for _, ev := range a.Events {
			switch {
			case a.Consume != verb:
			case ev.Reason == "VerbRefused":
				refused++
			default:
				accepted++
			}
		}
	}
	return accepted, refused
}

// pauseDuring freezes the object while an activity runs: that one is finished,
// no other starts until the pause ends an hour later.
func pauseDuring(t *testing.T, k lifecycle.Kind, activity string) {
	e := NewEnv(t, k)
	frozen := 0
	e.at(activity, temporal.VerbPause, func() {
		// The verb needs a task or two; meanwhile an activity may yet start.
		e.RegisterDelayedCallback(func() { frozen = len(e.Journal()) }, time.Minute)
		e.RegisterDelayedCallback(func() {
			require.Len(t, e.Journal(), frozen, "nothing starts while it is paused")
			require.True(t, e.Current().Paused)
			if e.Current().Operation.State != v1.OperationSucceeded {
				require.Contains(t, e.Condition(v1.ConditionReady).Message, "resume", "it says how to go on")
			}
			e.Ask(temporal.VerbResume)
		}, time.Hour)
	})
	e.Rest(24 * time.Hour)
	e.RunObject()
	requireReady(t, e)
	accepted, refused := e.eventsOf(temporal.VerbPause)
	require.Equal(t, []int{1, 0}, []int{accepted, refused})
	require.Empty(t, e.Current().Verb, "the annotation is consumed")
	requireMonotonic(t, e)
}

// cancelDuring cancels a creation while an activity runs. It ends Cancelled
// with nothing left, and Delete finishes it.
func cancelDuring(t *testing.T, k lifecycle.Kind, activity string) {
	e := NewEnv(t, k)
	e.at(activity, temporal.VerbCancel, func() {})
	e.Rest(24 * time.Hour)
	e.RunObject()
	s := e.Current()
	if s.Operation.State == v1.OperationSucceeded {
		requireReady(t, e) // it came too late, and says so
		_, refused := e.eventsOf(temporal.VerbCancel)
		require.Equal(t, 1, refused)
		return
	}
	require.Equal(t, v1.OperationCancelled, s.Operation.State)
	require.Equal(t, v1.PhaseFailed, s.Phase)
	require.Equal(t, "Cancelled", s.Ready.Reason)
	require.Contains(t, s.Ready.Message, "retry", "it says how to go on")
	for _, r := range s.Resources {
		require.NotEqual(t, v1.ResourcePresent, r.State, "%s %s is left", r.Type, r.ID)
	}
	for _, c := range s.Conditions {
		if c.Status == metav1.ConditionTrue {
			require.Contains(t, []string{v1.ConditionDeletionBlocked, v1.ConditionInUse}, c.Type, "it is about what is undone")
		}
	}
	requireUndoneInReverse(t, e, k)
	requireMonotonic(t, e)
	requireDeletable(t, k, s)
	requireRetryable(t, k, s)
}

// requireUndoneInReverse asserts that what was made is undone newest first.
func requireUndoneInReverse(t *testing.T, e *Env, k lifecycle.Kind) {
	t.Helper()
	steps := e.Current().Operation.Steps
	for _, s := range steps {
		require.NotEqual(t, v1.StepStalled, s.State, s.Name)
	}
	first := map[string]int{}
	for i, name := range e.Journal() {
		if _, ok := first[name]; !ok {
			first[name] = i
		}
	}
	pairs := [][2]string{{contract.AWS.EnsureIdentity.Name, contract.AWS.DeleteIdentity.Name}, {contract.EnsureDatabase.Name, contract.DeleteDatabase.Name},
		{contract.EnsureBinding.Name, contract.DeleteBinding.Name}, {contract.EnsureShoot.Name, contract.DeleteShoot.Name}}
	for i, newer := range pairs {
		for _, older := range pairs[:i] {
			n, nd := first[newer[0]], first[newer[1]]
			o, od := first[older[0]], first[older[1]]
			if nd > 0 && od > 0 && n > o {
				require.Less(t, nd, od, "%s is undone before %s", newer[0], older[0])
			}
		}
	}
}

func requireDeletable(t *testing.T, k lifecycle.Kind, s contract.ObjectState) {
	t.Helper()
	e := NewEnv(t, k)
	e.State = s
	e.Change(func(s *contract.ObjectState) { s.Deleting, s.Generation = true, s.Generation+1 })
	e.RunObject()
	require.NoError(t, e.GetWorkflowError())
	require.False(t, e.Current().Exists)
}

func requireRetryable(t *testing.T, k lifecycle.Kind, s contract.ObjectState) {
	t.Helper()
	e := NewEnv(t, k)
	e.State = s
	e.State.Verb, e.State.VerbManager = temporal.VerbRetry, "alice"
	e.Rest(24 * time.Hour)
	e.RunObject()
	requireReady(t, e)
	require.Equal(t, "create/1.2", e.Current().Operation.ID[len(e.Current().Operation.ID)-len("create/1.2"):])
}

// deleteWhileUndoing deletes the object during the second activity after a
// cancel: the undoing gives way, Delete finishes.
func deleteWhileUndoing(t *testing.T, k lifecycle.Kind, activity string) {
	e := NewEnv(t, k)
	after, deleted := -1, false
	e.Before = func(name string, _ int) error {
		switch {
		case after < 0 && name == activity:
			after = 0
			e.Ask(temporal.VerbCancel)
		case after >= 0 && !deleted:
			if after++; after == 2 {
				deleted = true
				e.Change(func(s *contract.ObjectState) { s.Deleting = true; s.Generation++ })
				e.RegisterDelayedCallback(e.Nudge, 0)
			}
		}
		return nil
	}
	e.RegisterDelayedCallback(func() { // nothing was left to undo: delete now
		if !deleted {
			deleted = true
			e.Change(func(s *contract.ObjectState) { s.Deleting = true; s.Generation++ })
			e.Nudge()
		}
	}, 10*time.Hour)
	e.RunObject()
	require.NoError(t, e.GetWorkflowError())
	require.False(t, e.Current().Exists)
}

// retryDuring asks for retry where nothing has stalled: refused, nothing changes.
func retryDuring(t *testing.T, k lifecycle.Kind, activity string) {
	e := NewEnv(t, k)
	e.at(activity, temporal.VerbRetry, func() {})
	e.Rest(24 * time.Hour)
	e.RunObject()
	requireReady(t, e)
	accepted, refused := e.eventsOf(temporal.VerbRetry)
	require.Equal(t, []int{0, 1}, []int{accepted, refused}, "one Event says why")
	require.Empty(t, e.Current().Verb)
}

// retryStall ends a stall by the verb, long before its slow timer.
func retryStall(t *testing.T, k lifecycle.Kind, activity string) {
	e := NewEnv(t, k)
	start := e.Now()
	var resumed time.Duration
	e.Before = func(name string, times int) error {
		switch {
		case name != activity:
		case times == 1:
			e.RegisterDelayedCallback(func() { e.Ask(temporal.VerbRetry) }, time.Minute)
			return faults.New(faults.Quota, "LimitExceeded", "the thing", "no more of them")
		case times == 2:
			resumed = e.Now().Sub(start)
		}
		return nil
	}
	e.Rest(24 * time.Hour)
	e.RunObject()
	requireReady(t, e)
	require.Less(t, resumed, 10*time.Minute, "the slow timer of Quota is 24 minutes and more")
	accepted, _ := e.eventsOf(temporal.VerbRetry)
	require.Equal(t, 1, accepted)
}

// mendedStall ends a stall because what the object needs has changed.
func mendedStall(t *testing.T, k lifecycle.Kind, activity string) {
	e := NewEnv(t, k)
	e.Mended = "secret infra/core-aws has changed"
	start := e.Now()
	var resumed time.Duration
	e.Before = func(name string, times int) error {
		if name == activity && times == 1 {
			return faults.New(faults.Auth, "AccessDenied", "the thing", "no")
		}
		if name == activity && times == 2 {
			resumed = e.Now().Sub(start)
		}
		return nil
	}
	e.Rest(24 * time.Hour)
	e.RunObject()
	requireReady(t, e)
	require.Less(t, resumed, 5*time.Minute, "the slow timer of Auth is 8 minutes and more")
	require.True(t, slices.ContainsFunc(e.Reports(), func(r contract.OperationReport) bool {
		return slices.ContainsFunc(r.Events, func(ev contract.Event) bool { return ev.Reason == "Resumed" })
	}), "an Event says what changed")
	require.Equal(t, metav1.ConditionFalse, e.Condition(v1.ConditionStalled).Status)
}
