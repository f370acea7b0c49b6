package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// recentEvents is how many events describe shows.
const recentEvents = 12

// description is everything that describe shows.
type description struct {
	Object object
	Events []corev1.Event
	// Attempt is what Temporal knows; nil when there is no running operation.
	Attempt *attempt
	// Own is what Temporal knows of the object's own workflow.
	Own *attempt
	Now time.Time
}

// renderDescription renders an object for a person who wants to know what is
// going on, and what to do.
func renderDescription(d description) string {
	var b strings.Builder
	o := d.Object
	rows := [][]string{
		{"Name:", o.Namespace + "/" + o.Name},
		{"Kind:", o.Kind},
		{"Identity:", o.Annotations[v1.AnnotationID]},
		{"Phase:", string(o.Status.Phase)},
		{"Generation:", fmt.Sprintf("%d, done %d", o.Generation, o.Status.ObservedGeneration)},
		{"Age:", since(&o.CreationTimestamp, d.Now)},
	}
	if !o.DeletionTimestamp.IsZero() {
		rows = append(rows, []string{"Deleted:", ago(o.DeletionTimestamp, d.Now) + ", held by " + strings.Join(o.Finalizers, ", ")})
	}
	if isPaused(o) {
		rows = append(rows, []string{"Paused:", "yes, by annotation " + v1.AnnotationPaused})
	}
	b.WriteString(columns(rows, ""))
	section(&b, "Spec", specLines(o.Spec, "  "))
	section(&b, "Conditions", conditionLines(o.Status.Conditions, d.Now))
	section(&b, "Operation", operationLines(o, d.Now))
	section(&b, "Last error", errorLines(o.Status.LastError, d.Now))
	section(&b, "Temporal", failingLine(d.Own)+attemptLines(d.Attempt, d.Now))
	section(&b, "Resources", resourceLines(o.Status.Resources))
	section(&b, "Events", eventLines(d.Events, d.Now))
	return b.String()
}

func section(b *strings.Builder, title, body string) {
	if body != "" {
		b.WriteString("\n" + title + ":\n" + body)
	}
}

// specLines shows the spec, maps as dotted paths, short lists on one line.
func specLines(spec map[string]any, indent string) string {
	var rows [][]string
	flatten("", spec, func(path, value string) { rows = append(rows, []string{path, value}) })
	if len(rows) == 0 {
		return ""
	}
	return columns(rows, indent)
}

func flatten(path string, value any, emit func(path, value string)) {
	switch v := value.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			flatten(strings.TrimPrefix(path+"."+k, "."), v[k], emit)
		}
	case []any:
		parts := make([]string, 0, len(v))
		for _, item := range v {
			if m, ok := item.(map[string]any); ok && m["name"] != nil {
				item = m["name"] // a list of named things: their names say enough
			}
			parts = append(parts, fmt.Sprint(item))
		}
		emit(path, strings.Join(parts, ", "))
	default:
		emit(path, oneLine(fmt.Sprint(v)))
	}
}

func conditionLines(conditions []metav1.Condition, now time.Time) string {
	if len(conditions) == 0 {
		return ""
	}
	rows := [][]string{{"TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"}}
	for _, c := range conditions {
		rows = append(rows, []string{c.Type, string(c.Status), c.Reason, since(&c.LastTransitionTime, now), oneLine(c.Message)})
	}
	return columns(rows, "  ")
}

// marks of the states of steps.
var marks = map[v1.StepState]string{
	v1.StepPending: "·", v1.StepRunning: "▶", v1.StepSucceeded: "✓",
	v1.StepStalled: "!", v1.StepSkipped: "↷", v1.StepCancelled: "✗",
}

func operationLines(o object, now time.Time) string {
	op := o.Status.Operation
	if op == nil {
		return ""
	}
	rows := [][]string{
		{"Type:", fmt.Sprintf("%s%s, for generation %d", op.Type, o.Kind, op.Generation)},
		{"State:", stateText(op)},
		{"Time:", lasted(op.StartedAt, op.FinishedAt, now)},
		{"Workflow:", op.ID},
	}
	if op.Attempts > 1 {
		rows = append(rows, []string{"Attempts:", strings.TrimSuffix(fmt.Sprintf("%d of step %s", op.Attempts, op.Step), " of step ")})
	}
	if wait := operationWaitsFor(o); wait != "" {
		rows = append(rows, []string{"Waits for:", wait})
	}
	if verbs := accepts(o); len(verbs) > 0 {
		rows = append(rows, []string{"Accepts:", strings.Join(verbs, ", ")})
	}
	text := columns(rows, "  ")
	if len(op.Steps) == 0 {
		return text
	}
	var steps [][]string
	for _, s := range op.Steps {
		steps = append(steps, []string{marks[s.State], s.Name, string(s.State), orBlank(lasted(s.StartedAt, s.FinishedAt, now))})
	}
	return text + "  Steps:\n" + columns(steps, "    ")
}

// stateText has the progress where it means something: of what was cancelled and
// undone, or ended, nobody can say how far it is.
func stateText(op *v1.OperationStatus) string {
	if op.State == v1.OperationCancelled || op.State == v1.OperationFailed {
		return string(op.State)
	}
	return fmt.Sprintf("%s, %d%%", op.State, op.Progress)
}

// accepts lists the verbs that make sense now, as the object says. The object's
// workflow decides.
func accepts(o object) (verbs []string) {
	op := o.Status.Operation
	if isPaused(o) {
		return []string{temporal.VerbResume}
	}
	if op.FinishedAt != nil {
		if op.State == v1.OperationCancelled || op.State == v1.OperationFailed {
			verbs = append(verbs, temporal.VerbRetry)
		}
		return append(verbs, temporal.VerbReconcile, temporal.VerbPause)
	}
	if op.State == v1.OperationBlocked || o.Status.LastError != nil {
		verbs = append(verbs, temporal.VerbRetry)
	}
	if op.Skippable {
		verbs = append(verbs, temporal.VerbSkip)
	}
	verbs = append(verbs, temporal.VerbPause)
	if op.Cancellable {
		verbs = append(verbs, temporal.VerbCancel)
	}
	return verbs
}

// lasted says how long something took, or has taken so far.
func lasted(start, end *metav1.Time, now time.Time) string {
	switch {
	case start.IsZero():
		return ""
	case end.IsZero():
		return span(now.Sub(start.Time)) + " so far"
	default:
		return span(end.Sub(start.Time))
	}
}

// orBlank keeps an empty last cell empty.
func orBlank(s string) string {
	if s == "" {
		return " "
	}
	return s
}

func errorLines(e *v1.LastError, now time.Time) string {
	if e == nil {
		return ""
	}
	class := e.Class
	if e.Code != "" {
		class += " (" + e.Code + ")"
	}
	rows := [][]string{{"Class:", class}, {"Step:", e.Step}, {"Message:", oneLine(e.Message)}, {"For the:", e.Owner}, {"To do:", oneLine(e.Hint)}}
	if !e.At.IsZero() {
		rows = append(rows, []string{"When:", ago(e.At, now)})
	}
	if !e.NextRetryAt.IsZero() {
		next := "in " + span(e.NextRetryAt.Sub(now))
		if e.NextRetryAt.Time.Before(now) {
			next = "due"
		}
		rows = append(rows, []string{"Next try:", next})
	}
	return columns(rows, "  ")
}

func resourceLines(resources []v1.Resource) string {
	if len(resources) == 0 {
		return ""
	}
	rows := [][]string{{"KEY", "STATE", "SYSTEM", "REGION", "TYPE", "ID"}}
	for _, r := range resources {
		rows = append(rows, []string{r.Key, string(r.State), r.Provider, r.Region, r.Type, r.ID})
	}
	return columns(rows, "  ")
}

func eventLines(events []corev1.Event, now time.Time) string {
	if len(events) == 0 {
		return ""
	}
	events = events[max(0, len(events)-recentEvents):]
	rows := [][]string{{"AGE", "TYPE", "REASON", "MESSAGE"}}
	for _, e := range events {
		at := metav1.NewTime(eventTime(e))
		rows = append(rows, []string{since(&at, now), e.Type, e.Reason, oneLine(e.Message)})
	}
	return columns(rows, "  ")
}
