package operation

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
)

// details shows the operation in the Temporal UI (tab Workflow, "Current
// details").
func (o *operation) details(ctx workflow.Context) {
	workflow.SetCurrentDetails(ctx, markdown(o.in, o.report.Operation, o.report.LastError, o.docs()))
}

func (o *operation) docs() map[string]string {
	docs := make(map[string]string, len(o.steps))
	for _, s := range o.steps {
		docs[s.Name] = s.Doc
	}
	return docs
}

var marks = map[v1.StepState]string{
	v1.StepPending: "·", v1.StepRunning: "▶", v1.StepSucceeded: "✓", v1.StepStalled: "✗", v1.StepSkipped: "↷", v1.StepCancelled: "◼",
}

// markdown is the operation as a page for people: what it is, what it waits
// for, and its steps with their durations.
func markdown(in lifecycle.Input, op v1.OperationStatus, last *v1.LastError, docs map[string]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** (generation %d), %d %%\n\n", in.Title(), in.Generation, op.Progress)
	switch {
	case last != nil:
		fmt.Fprintf(&b, "**Stalled in %s: %s.** %s\n\nFor the %s: %s.", last.Step, last.Class, last.Message, last.Owner, last.Hint)
		if last.NextRetryAt != nil {
			fmt.Fprintf(&b, " Tries again by itself at %s.", last.NextRetryAt.UTC().Format(time.RFC3339))
		}
		b.WriteString("\n\n")
	case op.FinishedAt != nil:
		fmt.Fprintf(&b, "**%s** after %s.\n\n", op.State, took(op.StartedAt, op.FinishedAt.Time))
	case op.Step != "":
		fmt.Fprintf(&b, "Waits for **%s**: %s. The pending activity's heartbeat says how far it is.\n\n", op.Step, docs[op.Step])
		if op.WaitingFor != "" {
			fmt.Fprintf(&b, "It is %s.\n\n", op.WaitingFor)
		}
	}
	b.WriteString("| | step | what | took |\n|---|---|---|---|\n")
	for _, s := range op.Steps {
		t := ""
		switch {
		case s.FinishedAt != nil:
			t = took(s.StartedAt, s.FinishedAt.Time)
		case s.StartedAt != nil:
			t = "since " + s.StartedAt.UTC().Format("15:04:05") + " UTC"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", marks[s.State], s.Name, docs[s.Name], t)
	}
	return b.String()
}
