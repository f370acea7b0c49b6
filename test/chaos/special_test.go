package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/test/chaos/hook"
	"github.com/tidbcloud/infra-orchestrator/test/chaos/lab"
	"github.com/tidbcloud/infra-orchestrator/test/invariants"
)

// Forms of operations that do what the common form does not. Each has borders
// and an end of its own, so each counts as an operation of its own.
const (
	// replacePools is an UpdateCluster that replaces worker pools; its borders are
	// those from their allocation on: until then it is as any other.
	replacePools = "ReplacePools"
	// cancelCreate is a CreateNetwork that is cancelled while it waits for its
	// Shoot; its borders are those after the cancel.
	cancelCreate = "CancelCreateNetwork"
	// deleteCancelled is the DeleteNetwork after that.
	deleteCancelled = "DeleteCancelledNetwork"
)

// learner keeps what a dry run finds out about special forms.
type learner struct {
	runs      map[string]string // names of their runs
	cancelled int               // length of the trace when the cancel was asked for
}

// boundaries are the borders of each operation in a trace.
func (l *learner) boundaries(trace []lab.Passed) map[string][]lab.Boundary {
	out := ours(lab.Boundaries(trace, l.runs))
	allocated := slices.IndexFunc(trace, func(p lab.Passed) bool {
		return l.runs[p.RunID] == replacePools && p.Activity == contract.AllocateWorkerPools.Name
	})
	out[replacePools] = lab.Boundaries(trace[max(0, allocated):], l.runs)[replacePools]
	out[cancelCreate] = lab.Boundaries(trace[l.cancelled:], l.runs)[cancelCreate]
	return out
}

// apart runs an operation that is a special form of a workflow.
func (j *journey) apart(workflow, name string, run func() error) error {
	since := len(j.lane.Conductor.Trace())
	err := run()
	if j.special != nil {
		for _, id := range lab.Runs(j.lane.Conductor.Trace(), since, workflow) {
			j.special.runs[id] = name
		}
	}
	return err
}

// replace updates the Cluster while its class of machines is another one, so
// that TiDB and TiKV get new worker pools. The class is as before after that,
// for whatever is created next; the Cluster itself would follow with its next
// update, so it has to be the last one.
func (j *journey) replace() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	if err := j.lane.SetMachines(ctx, lab.OtherMachines); err != nil {
		return err
	}
	if err := j.apart("UpdateCluster", replacePools, func() error { return j.updateAs(replacePools, v1.KindCluster) }); err != nil {
		return err
	}
	return j.lane.SetMachines(ctx, lab.SampleMachines)
}

// cancelCreation creates a Network, cancels that while it waits for its Shoot,
// and deletes what is left: the object.
func (j *journey) cancelCreation() error {
	key := j.lane.Key(v1.KindNetwork)
	ask := func(ctx context.Context) error {
		// A Shoot may be there within seconds, so the wait is held until it is
		// cancelled.
		wait := j.lane.Conductor.Arm(lab.Rule{Object: lab.WorkflowID(key), Then: hook.Go,
			Boundary: lab.Boundary{Workflow: "CreateNetwork", Activity: contract.WaitShootReady.Name, Moment: hook.Before}})
		defer wait.Release()
		if err := j.lane.Create(ctx, key, nil); err != nil {
			return err
		}
		select {
		case <-wait.Reached():
		case <-ctx.Done():
			return fmt.Errorf("the Shoot is never waited for: %s", invariants.Describe(j.lane.Checker.Latest(key)))
		}
		if j.special != nil {
			j.special.cancelled = len(j.lane.Conductor.Trace())
		}
		_, refused, err := j.lane.Verb(ctx, key, temporal.VerbCancel)
		return errors.Join(err, unless(refused == "", "cancel was refused: "+refused))
	}
	if err := j.apart("CreateNetwork", cancelCreate, func() error {
		return j.do(cancelCreate, key, ask, func(ctx context.Context) error { return j.awaitCancelled(ctx, key) })
	}); err != nil {
		return err
	}
	return j.apart("DeleteNetwork", deleteCancelled, func() error {
		return j.do(deleteCancelled, key, func(ctx context.Context) error { return j.lane.Delete(ctx, key) },
			func(ctx context.Context) error { return j.lane.AwaitGone(ctx, key) })
	})
}

// awaitCancelled waits until the creation is cancelled. What it had made is
// undone by then.
func (j *journey) awaitCancelled(ctx context.Context, key invariants.Key) error {
	o, err := j.lane.Checker.Await(ctx, key, func(o v1.Object) bool {
		return o == nil || stalled(o) || (ended(o) && o.Common().Phase == v1.PhaseFailed)
	})
	if err != nil {
		return err
	}
	if o == nil || stalled(o) || o.Common().Operation.State != v1.OperationCancelled {
		return fmt.Errorf("the cancel ended otherwise: %s", invariants.Describe(o))
	}
	left, err := j.lane.Left(ctx, o)
	return errors.Join(err, unless(len(left) == 0, "the undo has left "+strings.Join(left, ", ")))
}
