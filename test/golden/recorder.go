package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
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
// workflow has not come to it, is asked for again.
func (r *recorder) verb(ctx context.Context, workflowID, verb string) error {
	fmt.Printf("  %s to %s\n", verb, workflowID)
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	h, err := r.stack.Temporal.UpdateWorkflow(ctx, sdk.UpdateWorkflowOptions{
		WorkflowID: workflowID, UpdateName: temporal.UpdateVerb, WaitForStage: sdk.WorkflowUpdateStageCompleted,
		Args: []any{temporal.VerbRequest{Verb: verb, By: "golden@recorder"}},
	})
	if err != nil {
		return fmt.Errorf("%s to %s: %w", verb, workflowID, err)
	}
	var reply temporal.VerbReply
	if err := h.Get(ctx, &reply); err != nil {
		return fmt.Errorf("%s to %s: %w", verb, workflowID, err)
	}
	return nil
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
		d, err := r.stack.Temporal.DescribeWorkflowExecution(ctx, operation, "")
		for _, pending := range d.GetPendingActivities() {
			if pending.GetActivityType().GetName() == activity && pending.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED {
				return true, nil
			}
		}
		return false, errors.Join(err, fmt.Errorf("pending: %v", d.GetPendingActivities()))
	})
	return operation, err
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
	if p.refuse == nil || form != stalled || strings.Contains(operation, "/delete/") {
		return r.save(ctx, p.kind, operation, form)
	}
	if err := r.well(ctx, p, name, "", ""); err != nil {
		return err
	}
	return r.save(ctx, p.kind, operation, form)
}

// latest is the id of the object's newest operation of a sort.
func (r *recorder) latest(ctx context.Context, kind, name, verb string) (id string, err error) {
	err = until(ctx, verb+kind+" "+name+" is listed", func() (bool, error) {
		found, err := r.stack.Workflows(ctx, fmt.Sprintf("WorkflowType = %q AND InfraName = %q AND ExecutionStatus = \"Completed\"", verb+kind, name))
		if err != nil || len(found) == 0 {
			return false, err
		}
		id = found[0].GetExecution().GetWorkflowId() // newest first
		return true, nil
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
	object, err := r.objectRun(ctx, info.GetParentExecution().GetWorkflowId(), info.GetParentExecution().GetRunId())
	if err != nil {
		return err
	}
	// One for each verb and form: they take different ways through the object.
	return r.write(kind, "Object"+info.GetType().GetName(), form, object)
}

// objectRun waits until the object workflow has told of its operation's end,
// which is when it rests, continues as new or is done.
func (r *recorder) objectRun(ctx context.Context, workflowID, runID string) (h *historypb.History, err error) {
	err = until(ctx, workflowID+" has seen its operation end", func() (bool, error) {
		h, err = r.stack.History(ctx, workflowID, runID)
		if err != nil {
			return false, err
		}
		seen := false
		for _, e := range h.GetEvents() {
			switch e.GetEventType() {
			case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED, enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED:
				seen = true
			case enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
				if seen {
					return true, nil
				}
			}
		}
		return false, errors.New("not in its history")
	})
	return h, err
}

// write writes a history: the successful form as it is, since it is the one
// that people read and tests take steps from, the others packed.
func (r *recorder) write(kind, name, form string, h *historypb.History) error {
	raw, err := temporalproto.CustomJSONMarshalOptions{Indent: " "}.Marshal(h)
	if err != nil {
		return err
	}
	name += ".json"
	if form != success {
		name = strings.TrimSuffix(name, ".json") + "." + form + ".json.gz"
		if raw, err = packed(raw); err != nil {
			return err
		}
	}
	folder := strings.ToLower(kind)
	if kind == v1.KindProviderType {
		folder = "provider"
	}
	to := filepath.Join(r.out, folder, "testdata", "histories")
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	r.written++
	fmt.Printf("  %-45s %4d events, %3d KB\n", name, len(h.GetEvents()), len(raw)/1024)
	return os.WriteFile(filepath.Join(to, name), raw, 0o644)
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
