package main

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// waitWidth is where get cuts what an object waits for; -o wide does not.
const waitWidth = 60

// renderTable renders objects, one a line.
func renderTable(objs []object, wide bool, now time.Time) string {
	head := []string{"KIND", "NAME", "PHASE", "READY", "STEP", "PROGRESS", "AGE", "WAITING FOR"}
	if wide {
		head = []string{"KIND", "NAME", "PHASE", "READY", "REASON", "OPERATION", "STATE", "STEP", "PROGRESS", "AGE", "WAITING FOR"}
	}
	rows := [][]string{head}
	for _, o := range objs {
		op := v1.OperationStatus{}
		step, progress := "", ""
		if o.Status.Operation != nil {
			op = *o.Status.Operation
			if op.Active() {
				step, progress = op.Step, fmt.Sprintf("%d%%", op.Progress)
			}
		}
		ready, reason := "", ""
		if c := meta.FindStatusCondition(o.Status.Conditions, v1.ConditionReady); c != nil {
			ready, reason = string(c.Status), c.Reason
		}
		age, wait := since(&o.CreationTimestamp, now), waitingFor(o)
		if wide {
			rows = append(rows, []string{o.Kind, o.Name, string(o.Status.Phase), ready, reason, op.Type, string(op.State), step, progress, age, wait})
		} else {
			rows = append(rows, []string{o.Kind, o.Name, string(o.Status.Phase), ready, step, progress, age, cut(wait, waitWidth)})
		}
	}
	return columns(rows, "")
}

// waitingFor is what the object waits for: the end of a pause, and what its
// operation says.
func waitingFor(o object) string {
	text := operationWaitsFor(o)
	switch {
	case !isPaused(o):
		return text
	case text == "":
		return "paused: resume lets it go on"
	}
	return "paused; " + text
}

// isPaused is what the controllers call paused.
func isPaused(o object) bool { return o.Annotations[v1.AnnotationPaused] == "true" }

// operationWaitsFor is what the operation says that it waits for; a stalled one
// waits for somebody to mend its last error.
func operationWaitsFor(o object) string {
	op := o.Status.Operation
	if op == nil || !op.Active() {
		return ""
	}
	if e := o.Status.LastError; op.State == v1.OperationBlocked && e != nil {
		return e.Class + ": " + oneLine(e.Message)
	}
	return oneLine(op.WaitingFor)
}

// columns aligns rows by width in characters; empty cells show as "-".
func columns(rows [][]string, indent string) string {
	var width []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(cell), 1)
		}
	}
	var b strings.Builder
	for _, row := range rows {
		line := indent
		for i, cell := range row {
			if cell == "" {
				cell = "-"
			}
			line += cell + strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell)+2)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

func cut(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:width-1]) + "…"
}

// oneLine keeps a message from breaking a table.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// since is the time from t to now as kubectl shows ages; empty without t.
func since(t *metav1.Time, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return span(now.Sub(t.Time))
}

func ago(t *metav1.Time, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return since(t, now) + " ago"
}

// span renders a duration as kubectl does; seconds below 2 minutes.
func span(d time.Duration) string { return duration.HumanDuration(d) }

// eventTime is when an event happened last: events of the new API count in a
// series, those of the old one in lastTimestamp.
func eventTime(e corev1.Event) time.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	default:
		return e.CreationTimestamp.Time
	}
}
