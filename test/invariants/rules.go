package invariants

import (
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

func rawOptions(version string) *metav1.ListOptions {
	return &metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true}
}

// working are the phases of an operation on an object that exists.
var working = []v1.Phase{v1.PhaseUpdating, v1.PhaseModifying, v1.PhaseUpgrading}

// next are the phases that may follow a phase, of the kinds that are built.
// Well stands for Normal and Available. A phase may always be followed by
// Deleting, and by itself.
var next = map[v1.Phase][]v1.Phase{
	"":                  {v1.PhasePending, v1.PhaseCreating},
	v1.PhasePending:     {v1.PhaseCreating, v1.PhaseFailed},
	v1.PhaseCreating:    {v1.PhaseNormal, v1.PhaseAvailable, v1.PhaseFailed},
	v1.PhaseFailed:      append([]v1.Phase{v1.PhaseCreating}, working...),
	v1.PhaseNormal:      append([]v1.Phase{v1.PhaseHibernating}, working...),
	v1.PhaseAvailable:   append([]v1.Phase{v1.PhasePausing, v1.PhaseUnavailable, v1.PhaseImporting}, working...),
	v1.PhaseUpdating:    {v1.PhaseNormal, v1.PhaseFailed},
	v1.PhaseModifying:   {v1.PhaseAvailable, v1.PhaseFailed},
	v1.PhaseUpgrading:   {v1.PhaseAvailable, v1.PhaseFailed},
	v1.PhaseHibernating: {v1.PhaseHibernated, v1.PhaseNormal, v1.PhaseFailed},
	v1.PhaseHibernated:  {v1.PhaseWakingUp},
	v1.PhaseWakingUp:    {v1.PhaseNormal, v1.PhaseFailed},
	// A deletion is never taken back; one that was ended by hand is Failed.
	v1.PhaseDeleting: {v1.PhaseFailed},
}

func mayFollow(before, now v1.Phase) bool {
	return before == now || now == v1.PhaseDeleting || slices.Contains(next[before], now)
}

// wentOn says whether a creation that had stalled, and is Failed for that, went
// on and was done before its object could say that it is Creating again.
func wentOn(b, c *v1.CommonStatus) bool {
	return b.Phase == v1.PhaseFailed && (c.Phase == v1.PhaseNormal || c.Phase == v1.PhaseAvailable) &&
		c.Operation != nil && c.Operation.Type == "Create" && c.Operation.State == v1.OperationSucceeded && c.Operation.Attempts > 1
}

// compare says which invariants a new state of an object violates, given the
// state before; that is nil when the object was not known.
func compare(key Key, before, now v1.Object) (bad []string) {
	bad = alone(key, now)
	if before != nil && before.GetUID() == now.GetUID() {
		bad = append(bad, since(key, before, now)...)
	}
	return bad
}

// alone says what is wrong with a state whatever came before.
func alone(key Key, now v1.Object) (bad []string) {
	add := func(format string, args ...any) { bad = append(bad, key.String()+": "+fmt.Sprintf(format, args...)) }
	c := now.Common()
	ready := apimeta.FindStatusCondition(c.Conditions, v1.ConditionReady)
	if ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration != c.ObservedGeneration {
		add("5: Ready is True for generation %d, but status.observedGeneration is %d", ready.ObservedGeneration, c.ObservedGeneration)
	}
	if c.ObservedGeneration > now.GetGeneration() {
		add("5: status.observedGeneration is %d, but the object is at generation %d", c.ObservedGeneration, now.GetGeneration())
	}
	if goesAndStalls(c.Conditions) {
		add("5: Progressing and Stalled are both True")
	}
	if op := c.Operation; op != nil && op.Generation > now.GetGeneration() {
		add("12: an operation for generation %d, but the object is at generation %d", op.Generation, now.GetGeneration())
	}
	return bad
}

// since says what must not have changed as it has.
func since(key Key, before, now v1.Object) (bad []string) {
	add := func(format string, args ...any) { bad = append(bad, key.String()+": "+fmt.Sprintf(format, args...)) }
	b, c := before.Common(), now.Common()
	ready := apimeta.FindStatusCondition(c.Conditions, v1.ConditionReady)
	isReady := ready != nil && ready.Status == metav1.ConditionTrue
	if c.ObservedGeneration < b.ObservedGeneration {
		add("12: status.observedGeneration went from %d to %d", b.ObservedGeneration, c.ObservedGeneration)
	}
	if !mayFollow(b.Phase, c.Phase) && !wentOn(b, c) {
		add("6: phase went from %q to %q", b.Phase, c.Phase)
	}
	if isReady && now.GetGeneration() == before.GetGeneration() && ready.ObservedGeneration < now.GetGeneration() {
		was := apimeta.FindStatusCondition(b.Conditions, v1.ConditionReady)
		if was == nil || was.Status != metav1.ConditionTrue || was.ObservedGeneration != ready.ObservedGeneration {
			add("5: Ready became True for generation %d while the object was at generation %d", ready.ObservedGeneration, now.GetGeneration())
		}
	}
	if id, was := now.GetAnnotations()[v1.AnnotationID], before.GetAnnotations()[v1.AnnotationID]; was != "" && id != was {
		add("1: its identity went from %s to %q", was, id)
	}
	if b.Operation != nil && c.Operation != nil && b.Operation.ID == c.Operation.ID {
		bad = append(bad, compareOperation(key, b.Operation, c.Operation)...)
	}
	if b.Operation != nil && c.Operation != nil && number(c.Operation) < number(b.Operation) {
		add("12: operation %s came after %s", c.Operation.ID, b.Operation.ID)
	}
	return bad
}

func compareOperation(key Key, b, c *v1.OperationStatus) (bad []string) {
	add := func(format string, args ...any) {
		bad = append(bad, fmt.Sprintf("%s: operation %s: ", key, c.ID)+fmt.Sprintf(format, args...))
	}
	if b.State == v1.OperationFailed { // terminated by hand; it may be reset, and run on
		return bad
	}
	if c.Progress < b.Progress {
		add("12: progress went from %d %% to %d %%", b.Progress, c.Progress)
	}
	if ended(b.State) && c.State != b.State && !(b.State != v1.OperationSucceeded && c.State == v1.OperationFailed) {
		add("6: it had ended as %s and is %s now", b.State, c.State)
	}
	return bad
}

// number is an operation's place among those of its object.
func number(op *v1.OperationStatus) int64 {
	generation, attempt := temporal.OperationNumber(op.ID)
	return generation<<32 + attempt
}

func ended(s v1.OperationState) bool {
	return s == v1.OperationSucceeded || s == v1.OperationFailed || s == v1.OperationCancelled
}

// IsReady says that an object is Ready for its current generation.
func IsReady(o v1.Object) bool {
	if o == nil {
		return false
	}
	c := o.Common()
	ready := apimeta.FindStatusCondition(c.Conditions, v1.ConditionReady)
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == o.GetGeneration() &&
		c.ObservedGeneration == o.GetGeneration()
}

// Describe is an object's state in one line, for messages.
func Describe(o v1.Object) string {
	if o == nil {
		return "it is not there"
	}
	c := o.Common()
	var b strings.Builder
	fmt.Fprintf(&b, "phase %s, generation %d, observed %d", c.Phase, o.GetGeneration(), c.ObservedGeneration)
	if o.GetDeletionTimestamp() != nil {
		b.WriteString(", deleting")
	}
	if op := c.Operation; op != nil {
		fmt.Fprintf(&b, ", %s at step %s (%s), waiting for %q", op.Type, op.Step, op.State, op.WaitingFor)
	}
	if c.LastError != nil {
		fmt.Fprintf(&b, ", last error %+v", *c.LastError)
	}
	if ready := apimeta.FindStatusCondition(c.Conditions, v1.ConditionReady); ready != nil {
		fmt.Fprintf(&b, ", Ready=%s %s: %s", ready.Status, ready.Reason, ready.Message)
	}
	return b.String()
}
