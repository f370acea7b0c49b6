package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/temporalproto"
	sdk "go.temporal.io/sdk/client"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/test/stack"
)

const (
	namespace = "infra"
	// patience bounds one expectation; a Shoot takes about 15 s.
	patience = 4 * time.Minute
	// look is how often a condition is looked at.
	look = 100 * time.Millisecond
)

// recorder drives the stack and saves histories.
type recorder struct {
	stack   *stack.Stack
	out     string
	only    string
	samples []*unstructured.Unstructured
	changes map[string]int // by object
	quiet   bool           // the kind is made, but not recorded
	missing bool           // record only what is not there yet
	written int
}

// until looks until done says so.
func until(ctx context.Context, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		ok, err := done()
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not within %s: %w", what, patience, errors.Join(ctx.Err(), err))
		case <-tick.C:
		}
	}
}

// fault switches a fault on; mend switches it off.
func (r *recorder) fault(ctx context.Context, f stack.Fault) (mend func() error, err error) {
	id, err := r.stack.AddFault(ctx, f)
	return func() error { return r.stack.RemoveFault(ctx, id) }, err
}

// verb asks a workflow for a verb. One that is not accepted yet, since the
// workflow has not come to it, is asked for again; and so is one that met an
// answer to another call, for which Temporal gives up the task of both.
func (r *recorder) verb(ctx context.Context, workflowID, verb string) error {
	fmt.Printf("  %s to %s\n", verb, workflowID)
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		h, err := r.stack.Temporal.UpdateWorkflow(ctx, sdk.UpdateWorkflowOptions{
			WorkflowID: workflowID, UpdateName: temporal.UpdateVerb, WaitForStage: sdk.WorkflowUpdateStageCompleted,
			Args: []any{temporal.VerbRequest{Verb: verb, By: "golden@recorder"}},
		})
		if err == nil {
			err = h.Get(ctx, new(temporal.VerbReply))
		}
		var lost *serviceerror.WorkflowNotReady
		if !errors.As(err, &lost) {
			if err != nil {
				err = fmt.Errorf("%s to %s: %w", verb, workflowID, err)
			}
			return err
		}
	}
}

// status reads what every kind has.
func (r *recorder) status(ctx context.Context, kind, name string) (generation int64, s v1.CommonStatus, err error) {
	o := bare(kind, name)
	if err := r.stack.Kube.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return 0, s, err
	}
	raw, _, err := unstructured.NestedMap(o.Object, "status")
	if err != nil {
		return 0, s, err
	}
	return o.GetGeneration(), s, runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &s)
}

// stalls waits until the object's operation stalls, and returns its id.
func (r *recorder) stalls(ctx context.Context, kind, name, verb string) (operation string, err error) {
	err = until(ctx, kind+" "+name+": "+verb+" stalls", func() (bool, error) {
		_, s, err := r.status(ctx, kind, name)
		if err != nil || s.Operation == nil {
			return false, err
		}
		op := s.Operation
		operation = op.ID
		return op.Type == verb && op.State == v1.OperationBlocked, fmt.Errorf("%s is %s at %s", op.Type, op.State, op.Step)
	})
	return operation, err
}

// holds waits until the operation is where it is held. Temporal is asked, since
// status tells of quick steps together.
func (r *recorder) holds(ctx context.Context, p *plan, name, verb string) (operation string, err error) {
	activity := p.holdAt[verb]
	if activity == "" {
		return r.stalls(ctx, p.kind, name, verb)
	}
	err = until(ctx, p.kind+" "+name+": "+activity+" runs", func() (bool, error) {
		generation, _, err := r.status(ctx, p.kind, name)
		if err != nil {
			return false, err
		}
		operation = temporal.OperationID(temporal.ObjectID(p.kind, namespace, name), verb, generation, 1)
		_, is, err := r.runs(ctx, operation, activity)
		return is, err
	})
	return operation, err
}

// runs says whether a workflow is at an activity, and which run of it that is.
func (r *recorder) runs(ctx context.Context, workflowID, activity string) (runID string, is bool, err error) {
	d, err := r.stack.Temporal.DescribeWorkflowExecution(ctx, workflowID, "")
	for _, pending := range d.GetPendingActivities() {
		if pending.GetActivityType().GetName() == activity && pending.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED {
			return d.GetWorkflowExecutionInfo().GetExecution().GetRunId(), true, nil
		}
	}
	return "", false, errors.Join(err, fmt.Errorf("pending: %v", d.GetPendingActivities()))
}

// well waits until the object is Ready and saves its last operation.
func (r *recorder) well(ctx context.Context, p *plan, name, verb, form string) error {
	err := until(ctx, p.kind+" "+name+" is Ready", func() (bool, error) {
		generation, s, err := r.status(ctx, p.kind, name)
		if err != nil {
			return false, err
		}
		return s.ObservedGeneration == generation && meta.IsStatusConditionTrue(s.Conditions, v1.ConditionReady), fmt.Errorf("phase %s, %+v", s.Phase, s.LastError)
	})
	if err != nil || form == "" {
		return err
	}
	id, err := r.latest(ctx, p.kind, name, verb)
	if err != nil {
		return err
	}
	return r.save(ctx, p.kind, id, form)
}

func (r *recorder) gone(ctx context.Context, kind, name string) error {
	return until(ctx, kind+" "+name+" is gone", func() (bool, error) {
		_, s, err := r.status(ctx, kind, name)
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, errors.Join(err, fmt.Errorf("phase %s, %+v", s.Phase, s.LastError))
	})
}

// closed waits for the end of a workflow.
func (r *recorder) closed(ctx context.Context, workflowID string) error {
	return until(ctx, workflowID+" ends", func() (bool, error) {
		d, err := r.stack.Temporal.DescribeWorkflowExecution(ctx, workflowID, "")
		return err == nil && d.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, err
	})
}

// ended waits for the end of an operation and saves it.
func (r *recorder) ended(ctx context.Context, p *plan, name, operation, form string) error {
	if err := r.closed(ctx, operation); err != nil {
		return err
	}
	if form != cancelled && form != preempted && !strings.Contains(operation, "/delete/") {
		if err := r.well(ctx, p, name, "", ""); err != nil {
			return err
		}
	}
	return r.save(ctx, p.kind, operation, form)
}

// latest is the id of the object's newest operation of a sort, other than
// those given.
func (r *recorder) latest(ctx context.Context, kind, name, verb string, others ...string) (id string, err error) {
	err = until(ctx, verb+kind+" "+name+" is listed", func() (bool, error) {
		found, err := r.stack.Workflows(ctx, fmt.Sprintf("WorkflowType = %q AND InfraName = %q AND ExecutionStatus = \"Completed\"", verb+kind, name))
		for _, one := range found { // newest first
			if id = one.GetExecution().GetWorkflowId(); !slices.Contains(others, id) {
				return true, nil
			}
		}
		return false, err
	})
	return id, err
}

// save writes the history of an operation, and that of the run of the object
// workflow that ran it.
func (r *recorder) save(ctx context.Context, kind, operation, form string) error {
	if r.quiet {
		return nil
	}
	d, err := r.stack.Temporal.DescribeWorkflowExecution(ctx, operation, "")
	if err != nil {
		return err
	}
	info := d.GetWorkflowExecutionInfo()
	h, err := r.stack.History(ctx, operation, info.GetExecution().GetRunId())
	if err != nil {
		return err
	}
	if err := r.write(kind, info.GetType().GetName(), form, h); err != nil {
		return err
	}
	object, err := r.objectRun(ctx, info.GetParentExecution().GetWorkflowId(), info.GetParentExecution().GetRunId(), endOf(operation))
	if err != nil {
		return err
	}
	// One for each verb and form: they take different ways through the object.
	return r.write(kind, "Object"+info.GetType().GetName(), form, object)
}

// objectRun waits until the object workflow has told of its operation's end,
// which is when it rests, continues as new or is done.
func (r *recorder) objectRun(ctx context.Context, workflowID, runID string, end func(*historypb.HistoryEvent) bool) (h *historypb.History, err error) {
	err = until(ctx, workflowID+" has seen its operation end", func() (bool, error) {
		h, err = r.stack.History(ctx, workflowID, runID)
		if err != nil {
			return false, err
		}
		at := slices.IndexFunc(h.GetEvents(), end)
		if at < 0 {
			return false, errors.New("not in its history")
		}
		return slices.ContainsFunc(h.GetEvents()[at:], func(e *historypb.HistoryEvent) bool {
			return e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
		}), nil
	})
	return h, err
}

// endOf recognizes the end of an operation in the history of its parent.
func endOf(operation string) func(*historypb.HistoryEvent) bool {
	return func(e *historypb.HistoryEvent) bool {
		return e.GetChildWorkflowExecutionCompletedEventAttributes().GetWorkflowExecution().GetWorkflowId() == operation ||
			e.GetChildWorkflowExecutionCanceledEventAttributes().GetWorkflowExecution().GetWorkflowId() == operation
	}
}

// path is where a history goes, below the folder of its kind.
func (r *recorder) path(kind, name, form string) string {
	if form == success {
		name += ".json"
	} else {
		name += "." + form + ".json.gz"
	}
	folder := strings.ToLower(kind)
	if kind == v1.KindProviderType {
		folder = "provider"
	}
	return filepath.Join(r.out, folder, "testdata", "histories", name)
}

// has says whether a history is there.
func (r *recorder) has(kind, name, form string) bool {
	_, err := os.Stat(r.path(kind, name, form))
	return err == nil
}

// write writes a history: the successful form as it is, since it is the one
// that people read and tests take steps from, the others packed.
func (r *recorder) write(kind, name, form string, h *historypb.History) error {
	if r.missing && r.has(kind, name, form) {
		return nil
	}
	raw, err := temporalproto.CustomJSONMarshalOptions{Indent: " "}.Marshal(h)
	if err != nil {
		return err
	}
	if form != success {
		if raw, err = packed(raw); err != nil {
			return err
		}
	}
	to := r.path(kind, name, form)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	r.written++
	fmt.Printf("  %-45s %4d events, %3d KB\n", filepath.Base(to), len(h.GetEvents()), len(raw)/1024)
	return os.WriteFile(to, raw, 0o644)
}

func packed(raw []byte) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = z.Write(raw)
	err = errors.Join(err, z.Close())
	return b.Bytes(), err
}
