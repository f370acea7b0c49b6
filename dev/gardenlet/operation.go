package gardenlet

import (
	"context"
	"errors"
	"fmt"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errSuperseded ends an attempt because the Shoot wants something else by now.
var errSuperseded = errors.New("superseded by a change of the shoot")

// faultPoll is how often a stuck or delayed operation looks whether it may go on.
const faultPoll = 250 * time.Millisecond

// step is one part of an operation.
type step struct {
	// description as the name of the task in Gardener's flow.
	description string
	// progress in per cent when the step begins.
	progress int32
	// run does the work; nil: the step only takes time.
	run func(op *operation, ctx context.Context) error
}

// operation is one attempt to create, reconcile, hibernate, wake or delete a
// Shoot.
type operation struct {
	*reconciler
	shoot       *gardencorev1beta1.Shoot
	technicalID string
	kind        gardencorev1beta1.LastOperationType
	phase       string
	generation  int64
}

func newOperation(r *reconciler, shoot *gardencorev1beta1.Shoot, technicalID string) *operation {
	return &operation{
		reconciler:  r,
		shoot:       shoot,
		technicalID: technicalID,
		kind:        operationType(shoot),
		phase:       phaseOf(shoot),
		generation:  shoot.Generation,
	}
}

// run walks through the steps. Each takes at least its share of the pace.
func (op *operation) run(ctx context.Context) error {
	if err := op.patchStatus(ctx, op.begin); err != nil {
		return err
	}
	steps, total := stepsOf(op.phase), op.opts.Pace.total(op.phase)
	for i, s := range steps {
		next := int32(100)
		if i+1 < len(steps) {
			next = steps[i+1].progress
		}
		share := total * time.Duration(next-s.progress) / 100
		if err := op.runStep(ctx, s, next, time.Now().Add(share)); err != nil {
			return err
		}
	}
	return op.patchStatus(ctx, op.succeed)
}

// runStep reports the step, meets the faults that strike before the next one,
// does the work, and lets the step last until its time is up.
func (op *operation) runStep(ctx context.Context, s step, next int32, end time.Time) error {
	report := func(progress int32) error {
		return op.patchStatus(ctx, func(status *gardencorev1beta1.ShootStatus) {
			op.progress(status, progress, s.description)
		})
	}
	if err := report(s.progress); err != nil {
		return err
	}
	if err := op.meetFaults(ctx, s, next, report); err != nil {
		return err
	}
	if s.run != nil {
		if err := s.run(op, ctx); err != nil {
			return fmt.Errorf("task %q failed: %w", s.description, err)
		}
	}
	return op.sleep(ctx, time.Until(end))
}

// meetFaults holds or fails the operation when a fault strikes within the step.
func (op *operation) meetFaults(ctx context.Context, s step, next int32, report func(int32) error) error {
	fault, ok := op.fault(s.progress, next)
	if !ok {
		return nil
	}
	if err := report(max(s.progress, int32(fault.Progress))); err != nil {
		return err
	}
	switch fault.Kind {
	case FaultError:
		return fmt.Errorf("task %q failed: %w", s.description, newFaultError(fault, s.description))
	case FaultDelay:
		return op.sleep(ctx, op.opts.Pace.scale(fault.Delay))
	case FaultStuck:
		for ok && fault.Kind == FaultStuck {
			if err := op.sleep(ctx, faultPoll); err != nil {
				return err
			}
			if op.outdated(ctx) {
				return errSuperseded
			}
			fault, ok = op.fault(s.progress, next)
		}
	}
	return nil
}

// fault returns the fault that strikes at a progress in [from, to).
func (op *operation) fault(from, to int32) (Fault, bool) {
	if op.opts.Faults == nil {
		return Fault{}, false
	}
	f, ok := op.opts.Faults.Shoot(op.shoot.Namespace, op.shoot.Name, op.phase)
	at := int32(min(max(f.Progress, 0), 99))
	return f, ok && at >= from && at < to
}

// sleep waits, and ends the attempt when the Shoot is deleted meanwhile: nobody
// wants to watch a creation finish first.
func (op *operation) sleep(ctx context.Context, d time.Duration) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(max(d, 0), faultPoll)):
		}
		if op.deletionAsked(ctx) {
			return errSuperseded
		}
		if d -= faultPoll; d <= 0 {
			return nil
		}
	}
}

// deletionAsked and outdated look into the cache: they are asked often.
func (op *operation) deletionAsked(ctx context.Context) bool {
	current := &gardencorev1beta1.Shoot{}
	err := op.client.Get(ctx, client.ObjectKeyFromObject(op.shoot), current)
	return err == nil && current.DeletionTimestamp != nil && op.phase != PhaseDelete
}

func (op *operation) outdated(ctx context.Context) bool {
	current := &gardencorev1beta1.Shoot{}
	err := op.client.Get(ctx, client.ObjectKeyFromObject(op.shoot), current)
	return err == nil && current.Generation > op.generation
}

// patchStatus changes the status of the Shoot as it is now. The Shoot may be
// changed by others at the same time; only our fields are in the patch.
func (op *operation) patchStatus(ctx context.Context, change func(*gardencorev1beta1.ShootStatus)) error {
	base := op.shoot.DeepCopy()
	change(&op.shoot.Status)
	status := op.shoot.Status
	if err := op.client.Status().Patch(ctx, op.shoot, client.MergeFrom(base)); err != nil {
		return err
	}
	// The answer has the spec of this moment; the operation goes on with the
	// spec that it began with.
	op.shoot.Spec, op.shoot.Generation, op.shoot.Status = base.Spec, base.Generation, status
	return nil
}
