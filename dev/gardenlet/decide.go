package gardenlet

import (
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
)

// finalizer keeps a Shoot until its deletion has succeeded.
const finalizer = gardencorev1beta1.GardenerName

// action is what a Shoot needs next.
type action string

const (
	actNothing  action = "nothing"
	actBind     action = "bind"     // give it a seed
	actOperate  action = "operate"  // run the operation of phaseOf
	actFinalize action = "finalize" // let the object go
	actCare     action = "care"     // check its health
)

// decide follows gardenlet's and gardener-scheduler's rules: a Failed operation
// waits for a new generation, which a change of the spec or the retry annotation
// brings, and its cluster is looked after meanwhile; everything else that has
// not succeeded is tried again.
func decide(shoot *gardencorev1beta1.Shoot) action {
	last := shoot.Status.LastOperation
	seen := shoot.Generation == shoot.Status.ObservedGeneration
	if shoot.DeletionTimestamp != nil {
		switch {
		case !slices.Contains(shoot.Finalizers, finalizer):
			return actNothing
		case shoot.Status.UID == "", deleted(last):
			return actFinalize
		case seen && failed(last) && last.Type == gardencorev1beta1.LastOperationTypeDelete:
			return actNothing
		}
		return actOperate
	}
	switch {
	case shoot.Spec.SeedName == nil:
		return actBind
	case last == nil, !seen:
		return actOperate
	case failed(last), last.State == gardencorev1beta1.LastOperationStateSucceeded:
		return actCare
	}
	return actOperate
}

func failed(last *gardencorev1beta1.LastOperation) bool {
	return last != nil && last.State == gardencorev1beta1.LastOperationStateFailed
}

func deleted(last *gardencorev1beta1.LastOperation) bool {
	return last != nil && last.Type == gardencorev1beta1.LastOperationTypeDelete &&
		last.State == gardencorev1beta1.LastOperationStateSucceeded
}

// operationType stays Create until a creation has succeeded.
func operationType(shoot *gardencorev1beta1.Shoot) gardencorev1beta1.LastOperationType {
	last := shoot.Status.LastOperation
	switch {
	case shoot.DeletionTimestamp != nil:
		return gardencorev1beta1.LastOperationTypeDelete
	case last == nil, last.Type == gardencorev1beta1.LastOperationTypeCreate &&
		last.State != gardencorev1beta1.LastOperationStateSucceeded:
		return gardencorev1beta1.LastOperationTypeCreate
	}
	return gardencorev1beta1.LastOperationTypeReconcile
}

// phaseOf names the operation for Faults and for the choice of steps.
func phaseOf(shoot *gardencorev1beta1.Shoot) string {
	switch operationType(shoot) {
	case gardencorev1beta1.LastOperationTypeDelete:
		return PhaseDelete
	case gardencorev1beta1.LastOperationTypeCreate:
		return PhaseCreate
	}
	switch wanted := hibernationWanted(shoot); {
	case wanted && !shoot.Status.IsHibernated:
		return PhaseHibernate
	case !wanted && shoot.Status.IsHibernated:
		return PhaseWake
	}
	return PhaseReconcile
}

func hibernationWanted(shoot *gardencorev1beta1.Shoot) bool {
	h := shoot.Spec.Hibernation
	return h != nil && h.Enabled != nil && *h.Enabled
}
