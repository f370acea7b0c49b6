package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tidbcloud/infra-orchestrator/test/chaos/hook"
	"github.com/tidbcloud/infra-orchestrator/test/stack"
)

// Golden lists the borders of the activities in the golden histories of all
// operations, by type of workflow. Local activities are not in it.
func Golden() (map[string][]Boundary, error) {
	files, err := filepath.Glob(filepath.Join(stack.Root(), "workflows", "*", "testdata", "histories", "*.json"))
	if err != nil || len(files) == 0 {
		return nil, errors.Join(err, errors.New("no golden histories are found"))
	}
	out := map[string][]Boundary{}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		workflow, calls, err := activitiesOf(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		// Other forms of an operation, such as cancelled ones, have longer names.
		if !isObject(workflow) && filepath.Base(f) == workflow+".json" {
			out[workflow] = calls
		}
	}
	return out, nil
}

func isObject(workflow string) bool {
	for _, k := range Kinds {
		if k == workflow {
			return true
		}
	}
	return false
}

type named struct {
	Name string `json:"name"`
}

func activitiesOf(raw []byte) (workflow string, out []Boundary, err error) {
	var h struct {
		Events []struct {
			Started *struct {
				WorkflowType named `json:"workflowType"`
			} `json:"workflowExecutionStartedEventAttributes"`
			Scheduled *struct {
				ActivityType named `json:"activityType"`
			} `json:"activityTaskScheduledEventAttributes"`
		} `json:"events"`
	}
	if err := json.Unmarshal(raw, &h); err != nil {
		return "", nil, err
	}
	calls := map[string]int{}
	for _, e := range h.Events {
		if e.Started != nil {
			workflow = e.Started.WorkflowType.Name
		}
		if e.Scheduled == nil {
			continue
		}
		name := e.Scheduled.ActivityType.Name
		calls[name]++
		for _, m := range []hook.Moment{hook.Before, hook.After} {
			out = append(out, Boundary{Workflow: workflow, Activity: name, Call: calls[name], Moment: m})
		}
	}
	return workflow, out, nil
}
