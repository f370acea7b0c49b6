package workflowtest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
	"github.com/tidbcloud/infra-orchestrator/workflows/object"
)

// Form is a way that an operation can go. Each goes through other code of the
// kernel, so each has a golden history.
type Form string

const (
	// Success: nothing came in between.
	Success Form = "success"
	// Stalled: a step stalled, and went on by the verb retry.
	Stalled Form = "stalled"
	// Cancelled: by the verb, and what was made is undone. A deletion: asked in
	// Temporal to cancel, which it refuses; it goes on to its end.
	Cancelled Form = "cancelled"
	// Preempted: a deletion came in between; in a deletion, a forced one.
	Preempted Form = "preempted"
	// Forced: a deletion with force-delete, after one that was held up.
	Forced Form = "forced"
	// Retained: a deletion with deletionPolicy Retain.
	Retained Form = "retained"
	// ShootFailed: stalled since Gardener gave up on the Shoot; the retry has it
	// try again.
	ShootFailed Form = "shoot-failed"
	// Dependents: stalled since something of others keeps the VPC.
	Dependents Form = "dependents"
	// Replaced: worker pools gave way to others.
	Replaced Form = "replaced"
	// Attached: of an object workflow that found its operation running. How that
	// goes is the kernel's own, so one kind shows it.
	Attached Form = "attached"
)

// special are forms of one operation only.
var special = map[string][]Form{
	"Create" + v1.KindNetwork: {ShootFailed, Attached},
	"Delete" + v1.KindNetwork: {Dependents},
	"Update" + v1.KindCluster: {Replaced},
}

// unstalled are operations that have no step which anybody could make stall.
// Deletions of these kinds wait for whoever uses the object, for as long as that
// takes, and then remove the finalizer; both ask the management API only, and
// fail for nothing but its outages, which pass unseen.
var unstalled = map[string]bool{"Delete" + v1.KindProviderType: true, "Delete" + v1.KindProvider: true}

// Forms are those of which an operation must have a golden history.
func Forms(k lifecycle.Kind, verb lifecycle.Verb) []Form {
	operation, forms := k.OperationType(verb), []Form{Success, Cancelled, Preempted}
	if !unstalled[operation] {
		forms = append(forms, Stalled)
	}
	if verb == lifecycle.Delete {
		forms = append(forms, Forced, Retained)
	}
	return append(forms, special[operation]...)
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
	object := file("Object"+k.OperationType(verb), form)
	require.FileExists(t, object, "run make golden")
	h := load(t, object)
	require.Equal(t, k.Name, h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName())
	if form == Attached { // the operation itself has not noticed
		require.NoError(t, attaches(h, k.OperationType(verb)), "%s is no history of this form", object)
		return
	}
	require.True(t, starts(h, k.OperationType(verb)), "%s starts no %s", object, k.OperationType(verb))

	operation := file(k.OperationType(verb), form)
	require.FileExists(t, operation, "run make golden")
	require.NoError(t, proves(form, load(t, operation)), "%s is no history of this form", operation)
}

// starts says whether an object workflow has started such an operation.
func starts(h *historypb.History, operation string) bool {
	return slices.ContainsFunc(h.GetEvents(), func(e *historypb.HistoryEvent) bool {
		return e.GetStartChildWorkflowExecutionInitiatedEventAttributes().GetWorkflowType().GetName() == operation
	})
}

// attaches returns nil when an object workflow waited for such an operation,
// which it had not started, to its end.
func attaches(h *historypb.History, operation string) error {
	m := marksOf(h)
	waits, err := Activities(h)
	if err != nil {
		return err
	}
	if starts(h, operation) || !m.answered || !slices.Contains(waits, contract.WaitOperation.Name) {
		return fmt.Errorf("starts it: %t, has an answer: %t, runs %v", starts(h, operation), m.answered, waits)
	}
	return nil
}

// marks is what of a history tells its form.
type marks struct {
	in        lifecycle.Input
	refused   bool   // an activity gave up
	answered  bool   // an activity ended well
	asked     string // what was asked of the workflow
	cancelled bool   // Temporal was asked to cancel it
}

func marksOf(h *historypb.History) (m marks) {
	for _, e := range h.GetEvents() {
		switch e.GetEventType() {
		case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
			// Of another sort in an object workflow, where nobody reads it.
			_ = converter.GetDefaultDataConverter().FromPayloads(e.GetWorkflowExecutionStartedEventAttributes().GetInput(), &m.in)
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_FAILED, enumspb.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
			m.refused = true
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
			m.answered = true
		case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
			m.cancelled = true
		case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
			for _, p := range e.GetWorkflowExecutionSignaledEventAttributes().GetInput().GetPayloads() {
				m.asked += string(p.GetData())
			}
		case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:
			for _, p := range e.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest().GetInput().GetArgs().GetPayloads() {
				m.asked += string(p.GetData())
			}
		}
	}
	return m
}

// proves returns nil when the history of an operation is of the form.
func proves(form Form, h *historypb.History) error {
	m := marksOf(h)
	ran, err := Activities(h)
	if err != nil {
		return err
	}
	runs := func(name string) bool { return slices.Contains(ran, name) }
	end := h.GetEvents()[len(h.GetEvents())-1].GetEventType()
	completed, cancelled := end == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED, end == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED
	asked := func(verb string) bool { return strings.Contains(m.asked, `"`+verb+`"`) }
	retried := completed && m.refused && !m.cancelled && asked("retry")
	ok := map[Form]bool{
		Success:     completed && m.undisturbed(),
		Stalled:     retried,
		Cancelled:   cancelled && asked("cancel"),
		Preempted:   cancelled && asked("preempt"),
		Forced:      completed && m.forced() && m.in.Previous != "",
		Retained:    completed && m.retains(),
		ShootFailed: retried && !m.deletes() && runs(contract.RetryShoot.Name),
		Dependents:  retried && runs(contract.AWS.ListVPCDependents.Name),
		Replaced:    completed && runs(contract.RetireWorkerPools.Name),
	}
	if m.deletes() {
		ok[Cancelled] = completed && m.cancelled
	}
	if !ok[form] {
		return fmt.Errorf("ends with %s, %+v", end, m)
	}
	return nil
}

func (m marks) deletes() bool { return m.in.Verb == lifecycle.Delete }
func (m marks) forced() bool  { return m.deletes() && m.in.ForceDelete }
func (m marks) retains() bool {
	return m.deletes() && m.in.DeletionPolicy == v1.DeletionPolicyRetain && !m.in.ForceDelete
}
func (m marks) undisturbed() bool { return !m.refused && !m.cancelled && !m.forced() && !m.retains() }

// Activities lists the activities that a history has, local ones too, in order.
func Activities(h *historypb.History) (names []string, err error) {
	for _, e := range h.GetEvents() {
		if s := e.GetActivityTaskScheduledEventAttributes(); s != nil {
			names = append(names, s.GetActivityType().GetName())
		}
		// The SDK notes what a local activity has done in a marker.
		m := e.GetMarkerRecordedEventAttributes()
		if m.GetMarkerName() != "LocalActivity" {
			continue
		}
		var local struct{ ActivityType string }
		if err := converter.GetDefaultDataConverter().FromPayloads(m.GetDetails()["data"], &local); err != nil {
			return nil, err
		}
		names = append(names, local.ActivityType)
	}
	return names, nil
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
		r.RegisterWorkflowWithOptions(object.Of(k), workflow.RegisterOptions{Name: k.Name})
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

// load reads a history; see Load.
func load(t *testing.T, path string) *historypb.History {
	t.Helper()
	h, err := Load(path)
	require.NoError(t, err)
	return h
}

// Load reads a history, as the Temporal CLI and UI export it; *.gz is packed.
func Load(path string) (*historypb.History, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(path, ".gz") {
		z, err := gzip.NewReader(bytes.NewReader(raw))
		if err != nil {
			return nil, err
		}
		if raw, err = io.ReadAll(z); err != nil {
			return nil, err
		}
	}
	h, err := client.HistoryFromJSON(bytes.NewReader(raw), client.HistoryJSONOptions{})
	if err == nil && len(h.GetEvents()) == 0 {
		err = fmt.Errorf("%s has no events", path)
	}
	return h, err
}
