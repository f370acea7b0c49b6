package gardenlet

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// retryDuration is how long gardenlet retries an operation before it gives up.
const retryDuration = 12 * time.Hour

// identity is how this gardenlet signs its status.
var identity = gardencorev1beta1.Gardener{ID: "devstack", Name: "devstack-gardenlet", Version: "v1.149.3"}

// faultError is a failure that was switched on.
type faultError struct {
	codes   []gardencorev1beta1.ErrorCode
	message string
}

func (e *faultError) Error() string { return e.message }

func newFaultError(f Fault, description string) *faultError {
	e := &faultError{message: f.Message}
	for _, code := range f.Codes {
		e.codes = append(e.codes, gardencorev1beta1.ErrorCode(code))
	}
	if e.message == "" {
		e.message = fmt.Sprintf("%s: the provider extension reports an error", description)
	}
	return e
}

// codesOf finds Gardener's error codes in an error.
func codesOf(err error) []gardencorev1beta1.ErrorCode {
	var fault *faultError
	if errors.As(err, &fault) {
		return fault.codes
	}
	var infra *InfraError
	if errors.As(err, &infra) && infra.Code != "" {
		return []gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorCode(infra.Code)}
	}
	return nil
}

// begin puts an operation into Processing.
func (op *operation) begin(status *gardencorev1beta1.ShootStatus) {
	now := metav1.Now()
	last := status.LastOperation
	if status.RetryCycleStartTime == nil || status.ObservedGeneration != op.generation || last == nil || last.Type != op.kind {
		status.RetryCycleStartTime = &now
	}
	description := "Reconciliation of Shoot cluster initialized."
	if op.phase == PhaseDelete {
		description = "Deletion of Shoot cluster in progress."
	}
	status.TechnicalID = op.technicalID
	status.UID = op.shoot.UID
	status.Gardener = identity
	status.ObservedGeneration = op.generation
	if op.phase != PhaseDelete {
		status.SeedName = op.shoot.Spec.SeedName
	}
	if status.ClusterIdentity == nil {
		status.ClusterIdentity = new(fmt.Sprintf("%s-%s-%s", op.technicalID, op.shoot.UID, op.opts.ClusterIdentity))
	}
	if len(status.Conditions) == 0 {
		status.Conditions, status.Constraints = initialConditions(now)
	}
	status.LastOperation = &gardencorev1beta1.LastOperation{
		Type: op.kind, State: gardencorev1beta1.LastOperationStateProcessing, Description: description, LastUpdateTime: now,
	}
}

func (op *operation) progress(status *gardencorev1beta1.ShootStatus, progress int32, description string) {
	status.LastOperation.Progress = progress
	status.LastOperation.Description = description
	status.LastOperation.LastUpdateTime = metav1.Now()
}

// succeed ends an operation. Conditions are Progressing until care has looked.
func (op *operation) succeed(status *gardencorev1beta1.ShootStatus) {
	now := metav1.Now()
	description := "Shoot cluster has been successfully reconciled."
	if op.phase == PhaseDelete {
		description = "Shoot cluster has been successfully deleted."
	} else {
		status.IsHibernated = hibernationWanted(op.shoot)
		status.Networking = networkingOf(op.shoot)
		for i := range status.Conditions {
			if c := &status.Conditions[i]; c.Status != gardencorev1beta1.ConditionFalse {
				c.Status, c.LastUpdateTime = gardencorev1beta1.ConditionProgressing, now
			}
		}
	}
	status.RetryCycleStartTime = nil
	status.LastErrors = nil
	status.LastOperation = &gardencorev1beta1.LastOperation{
		Type: op.kind, State: gardencorev1beta1.LastOperationStateSucceeded, Progress: 100,
		Description: description, LastUpdateTime: now,
	}
}

// networkingOf are the ranges in use: those of the spec.
func networkingOf(shoot *gardencorev1beta1.Shoot) *gardencorev1beta1.NetworkingStatus {
	wanted := shoot.Spec.Networking
	if wanted == nil {
		return nil
	}
	list := func(cidr *string) []string {
		if cidr == nil {
			return nil
		}
		return []string{*cidr}
	}
	return &gardencorev1beta1.NetworkingStatus{Nodes: list(wanted.Nodes), Pods: list(wanted.Pods), Services: list(wanted.Services)}
}

// fail records a failed attempt and returns the state that it leaves: Failed
// for codes that Gardener does not retry, and after 12 h of retrying.
func (op *operation) fail(ctx context.Context, cause error) (gardencorev1beta1.LastOperationState, error) {
	state := gardencorev1beta1.LastOperationStateError
	err := op.patchStatus(ctx, func(status *gardencorev1beta1.ShootStatus) {
		now := metav1.Now()
		flow := "Shoot cluster reconciliation"
		if op.phase == PhaseDelete {
			flow = "Shoot cluster deletion"
		}
		description := fmt.Sprintf("flow %q encountered task errors: [%s]", flow, cause)
		status.LastErrors = []gardencorev1beta1.LastError{{
			Description: cause.Error(), Codes: codesOf(cause), LastUpdateTime: &now,
		}}
		expired := status.RetryCycleStartTime != nil && now.Sub(status.RetryCycleStartTime.Time) > retryDuration
		if expired || v1beta1helper.HasNonRetryableErrorCode(status.LastErrors...) {
			state = gardencorev1beta1.LastOperationStateFailed
			status.RetryCycleStartTime = nil
		} else {
			description += " Operation will be retried."
		}
		status.LastOperation.State = state
		status.LastOperation.Description = description
		status.LastOperation.LastUpdateTime = now
	})
	return state, err
}
