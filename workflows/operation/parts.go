package operation

import (
	"strings"

	"go.temporal.io/sdk/workflow"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// Part is something that a condition says exists.
type Part struct {
	// Name for people, and the step that makes it.
	Name, Step string
	// Absent: the plan has none.
	Absent bool
}

// SetExist sets a condition that says that parts exist: True when all do that
// the plan has, False when somebody has left out the step that makes one.
func SetExist(ctx workflow.Context, condition string, parts ...Part) {
	o := operationOf(ctx)
	var exist, without, skipped []string
	for _, p := range parts {
		switch {
		case p.Absent:
			without = append(without, p.Name)
		case o.stepStatus(p.Step).State == v1.StepSkipped:
			skipped = append(skipped, p.Name+" (step "+p.Step+")")
		default:
			exist = append(exist, p.Name)
		}
	}
	text := strings.Join(exist, ", ") + ": there"
	if len(without) > 0 {
		text += "; not wanted: " + strings.Join(without, ", ")
	}
	if len(skipped) > 0 {
		SetCondition(ctx, condition, false, "Skipped", "left out by hand: "+strings.Join(skipped, ", ")+"; reconcile makes it. "+text)
		return
	}
	SetCondition(ctx, condition, true, "Ready", text)
}
