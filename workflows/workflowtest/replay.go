package workflowtest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
)

// Form is a way that an operation can go. Each goes through other code of the
// kernel, so each has a golden history.
type Form string

const (
	// Success: nothing came in between.
	Success Form = "success"
	// Stalled: a step stalled, and went on by the verb retry.
	Stalled Form = "stalled"
	// Cancelled: by the verb, and what was made is undone.
	Cancelled Form = "cancelled"
	// Preempted: a deletion came in between.
	Preempted Form = "preempted"
)

// instant are operations that call nothing outside of the management API, and
// are over before they can stall or be met by anybody.
var instant = map[string]bool{
	"Create" + v1.KindProviderType: true, "Update" + v1.KindProviderType: true, "Delete" + v1.KindProviderType: true,
	"Delete" + v1.KindProvider: true,
}

// Forms are those of which an operation must have a golden history. A deletion
// can neither be cancelled nor preempted.
func Forms(k lifecycle.Kind, verb lifecycle.Verb) []Form {
	switch {
	case instant[k.OperationType(verb)]:
		return []Form{Success}
	case verb == lifecycle.Delete:
		return []Form{Success, Stalled}
	default:
		return []Form{Success, Stalled, Cancelled, Preempted}
	}
}

// histories is where they are, in the folder of a kind's package.
var histories = filepath.Join("testdata", "histories")

// Replay replays every golden history of the calling package, and fails when
// one that Forms demands is missing: a change that breaks an operation in
// flight, or an object workflow, fails here. The histories are recorded on the
// devstack by `make golden`, never by hand; see file for their names.
func Replay(t *testing.T, kinds ...lifecycle.Kind) {
	for _, k := range kinds {
		for verb := range k.Operations {
			for _, form := range Forms(k, verb) {
				name := k.OperationType(verb) + "." + string(form)
				t.Run("recorded/"+name, func(t *testing.T) { requireForm(t, k, verb, form) })
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(histories, "*.json*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	r := newReplayer(kinds, func(k lifecycle.Kind, verb lifecycle.Verb) lifecycle.Operation { return k.Operations[verb] })
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) { require.NoError(t, replay(r, load(t, f))) })
	}
	t.Run("gate", func(t *testing.T) { requireGate(t, kinds) })
}

// file is the path of a history: CreateNetwork.json, and with its form
// CreateNetwork.stalled.json.gz; of the object workflow around it
// ObjectCreateNetwork.json.
func file(workflow string, form Form) string {
	if form == Success {
		return filepath.Join(histories, workflow+".json")
	}
	return filepath.Join(histories, workflow+"."+string(form)+".json.gz")
}

// requireForm checks that the two histories are there, and are what their
// names say.
func requireForm(t *testing.T, k lifecycle.Kind, verb lifecycle.Verb, form Form) {
	operation := file(k.OperationType(verb), form)
	require.FileExists(t, operation, "run make golden")
	require.NoError(t, proves(form, load(t, operation)), "%s is no history of this form", operation)

	object := file("Object"+k.OperationType(verb), form)
	require.FileExists(t, object, "run make golden")
	h := load(t, object)
	require.Equal(t, k.Name, h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName())
	started := false
	for _, e := range h.GetEvents() {
		started = started || e.GetStartChildWorkflowExecutionInitiatedEventAttributes().GetWorkflowType().GetName() == k.OperationType(verb)
	}
	require.True(t, started, "%s starts no %s", object, k.OperationType(verb))
}

// proves returns nil when the history of an operation is of the form.
func proves(form Form, h *historypb.History) error {
	refused, asked := false, "" // an activity gave up; what was asked of the workflow
	for _, e := range h.GetEvents() {
		switch e.GetEventType() {
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_FAILED, enumspb.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
			refused = true
		case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
			for _, p := range e.GetWorkflowExecutionSignaledEventAttributes().GetInput().GetPayloads() {
				asked += string(p.GetData())
			}
		case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:
			for _, p := range e.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest().GetInput().GetArgs().GetPayloads() {
				asked += string(p.GetData())
			}
		}
	}
	end := h.GetEvents()[len(h.GetEvents())-1].GetEventType()
	completed, cancelled := end == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED, end == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED
	ok := map[Form]bool{
		Success:   completed && !refused,
		Stalled:   completed && refused && strings.Contains(asked, `"retry"`),
		Cancelled: cancelled && strings.Contains(asked, `"cancel"`),
		Preempted: cancelled && strings.Contains(asked, `"preempt"`),
	}[form]
	if !ok {
		return fmt.Errorf("ends with %s, refused: %t, asked: %s", end, refused, asked)
	}
	return nil
}

// requireGate proves that Replay refuses: the history of a creation must not
// pass for one of a deletion.
func requireGate(t *testing.T, kinds []lifecycle.Kind) {
	r := newReplayer(kinds, func(k lifecycle.Kind, _ lifecycle.Verb) lifecycle.Operation { return k.Operations[lifecycle.Delete] })
	for _, k := range kinds {
		h := load(t, file(k.OperationType(lifecycle.Create), Success))
		require.ErrorContains(t, replay(r, h), "TMPRL1100", k.Name)
	}
}

// newReplayer registers the workflows of the kinds; run says which function an
// operation has.
func newReplayer(kinds []lifecycle.Kind, run func(lifecycle.Kind, lifecycle.Verb) lifecycle.Operation) worker.WorkflowReplayer {
	r := worker.NewWorkflowReplayer()
	for _, k := range kinds {
		r.RegisterWorkflowWithOptions(k.Object, workflow.RegisterOptions{Name: k.Name})
		for verb := range k.Operations {
			r.RegisterWorkflowWithOptions(run(k, verb), workflow.RegisterOptions{Name: k.OperationType(verb)})
		}
	}
	return r
}

// replay replays a history under the ids that it was recorded with.
func replay(r worker.WorkflowReplayer, h *historypb.History) error {
	started := h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes()
	return r.ReplayWorkflowHistoryWithOptions(nil, h, worker.ReplayWorkflowHistoryOptions{
		OriginalExecution: workflow.Execution{ID: started.GetWorkflowId(), RunID: started.GetOriginalExecutionRunId()},
	})
}

// load reads a history, as the Temporal CLI and UI export it; *.gz is packed.
func load(t *testing.T, path string) *historypb.History {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	if strings.HasSuffix(path, ".gz") {
		z, err := gzip.NewReader(bytes.NewReader(raw))
		require.NoError(t, err)
		raw, err = io.ReadAll(z)
		require.NoError(t, err)
	}
	h, err := client.HistoryFromJSON(bytes.NewReader(raw), client.HistoryJSONOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, h.GetEvents())
	return h
}
