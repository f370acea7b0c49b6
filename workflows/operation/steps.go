package operation

import (
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
)

// forever is the budget of a wait for people: it says whom it waits for, and
// that never becomes a failure.
const forever = 365 * 24 * time.Hour

// WaitUnused is the name of the step in which a deletion has not begun yet.
const waitUnused = "WaitUnused"

// WaitUnused is the first step of every deletion: the object waits, visibly,
// until nothing refers to it.
func WaitUnused(in lifecycle.Input) Step {
	whom := "all that uses the " + in.Object.Kind + " to be gone: " + strings.Join(slices.Sorted(slices.Values(v1.KeptBy(in.Object.Kind))), ", ")
	return Step{Name: waitUnused, Doc: whom, Budget: forever, Run: func(ctx workflow.Context) error {
		_, err := Do(ctx, contract.WaitUnused, in.Object)
		return err
	}}
}

// RemoveFinalizer is the last step of every deletion.
func RemoveFinalizer(in lifecycle.Input) Step {
	return Step{Name: "RemoveFinalizer", Doc: "let the object go", Run: func(ctx workflow.Context) error {
		_, err := Do(ctx, contract.RemoveFinalizer, in.Object)
		return err
	}}
}

// Deletion is what a deletion runs: the kind's own steps between the wait for
// whoever uses the object and the removal of its finalizer; or, with
// deletionPolicy Retain or force-delete, what these say.
func Deletion(in lifecycle.Input, steps ...Step) []Step {
	switch {
	case in.ForceDelete:
		return []Step{
			{Name: "LeaveBehind", Doc: "list what is left behind (force-delete)", Run: leaveBehind(sharedBy(steps))},
			RemoveFinalizer(in),
		}
	case in.DeletionPolicy == v1.DeletionPolicyRetain:
		return retainSteps(in)
	}
	all := append([]Step{WaitUnused(in)}, steps...)
	return append(all, RemoveFinalizer(in))
}

// Void says, at the beginning of a deletion, whether the object never had
// anything, and resolves its plan otherwise. published is whether a creation
// has told that it passed its Preflight: then there may be something. One that
// ran and has not told so may have been ended before it could; then the plan
// decides: where none can be made, none was made before, and nothing by it.
// Of an object whose identity is older than itself, as one out of a backup, it
// is never said: whatever carries that identity is to be looked for.
func Void(ctx workflow.Context, published bool, resolve func(workflow.Context) error) (bool, error) {
	o := operationOf(ctx)
	if !published && o.in.Previous == "" && o.minted {
		return true, nil
	}
	err := resolve(ctx)
	if err == nil || published || !o.minted || isCancelled(ctx, err) {
		return false, err
	}
	f := faults.FromTemporal(err)
	if f.Class.Retryable() || f.Class == faults.Auth || f.Class == faults.Gone {
		return false, err // it says nothing of the plan
	}
	return true, nil
}

// retainSteps are a deletion with deletionPolicy Retain: the object is
// forgotten, what it has is kept.
func retainSteps(in lifecycle.Input) []Step {
	return []Step{
		WaitUnused(in),
		{Name: "Retain", Doc: "list what is kept (deletionPolicy Retain)", Run: retain},
		RemoveFinalizer(in),
	}
}

// Unless skips a step's work while the condition holds; the step is still in
// the list, done in no time.
func Unless(condition *bool, run func(workflow.Context) error) func(workflow.Context) error {
	return func(ctx workflow.Context) error {
		if *condition {
			return nil
		}
		return run(ctx)
	}
}

// Ensure runs an Ensure activity and writes what it made into the ledger.
func Ensure[In any](ctx workflow.Context, key string, a contract.Activity[In, contract.Outcome], in In) (v1.Resource, error) {
	out, err := Do(About(ctx, key), a, in)
	if err != nil {
		return v1.Resource{}, err
	}
	Record(ctx, key, out.Resource)
	return out.Resource, nil
}

// Remove runs a Delete activity, takes its entry out of the ledger, and the
// status fields that tell of it out of status.
func Remove[In any](ctx workflow.Context, key string, a contract.Activity[In, contract.None], in In, fields ...string) error {
	if _, err := Do(About(ctx, key), a, in); err != nil {
		return err
	}
	Forget(ctx, key)
	Unpublish(ctx, fields...)
	return nil
}
