package garden

import (
	"context"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/activities/audited"
	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/builders"
	"github.com/tidbcloud/infra-orchestrator/builders/shootrules"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// EnsureShoot creates the Shoot, or adopts the one that is ours. A new one that
// Gardener would refuse is an Invalid fault with all reasons, before anything
// is sent. The binding is made sure of first: another Network of the Provider
// may have removed it on its way out.
func (a *Activities) EnsureShoot(ctx context.Context, plan contract.NetworkPlan) (contract.Outcome, error) {
	want, err := builders.Shoot(plan)
	if err != nil {
		return contract.Outcome{}, err
	}
	out := contract.Outcome{Resource: resource("Shoot", plan.Shoot.Namespace, plan.Shoot.Name, plan.Region)}
	for range 2 {
		have, err := read(ctx, a.Live, plan.Shoot)
		if err != nil {
			return contract.Outcome{}, err
		}
		if have != nil {
			return out, adoptable(plan, have)
		}
		if err := shootrules.Fault(want, shootrules.Check(want, plan.Project)); err != nil {
			return contract.Outcome{}, err
		}
		if _, err := a.EnsureBinding(ctx, plan); err != nil {
			return contract.Outcome{}, err
		}
		err = a.Client.Create(ctx, want.DeepCopy())
		if err == nil {
			return out, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return contract.Outcome{}, faults.FromKubernetes(err, shootName(plan.Shoot))
		}
	}
	return contract.Outcome{}, faults.New(faults.Transient, "Flapping", shootName(plan.Shoot), "it exists at one look and not at the next")
}

// adoptable says whether a Shoot that exists can be the plan's.
func adoptable(plan contract.NetworkPlan, have *gardencorev1beta1.Shoot) error {
	switch {
	case !owns(plan.Ref, have):
		return foreign(plan.Shoot, have)
	case have.DeletionTimestamp != nil:
		return faults.New(faults.Dependency, "ShootDeleting", shootName(plan.Shoot), "it is being deleted, so it cannot be used; it is ours").
			WithHint(faults.OwnerOperator, "wait until it is gone; the operation then makes a new one by itself")
	}
	return nil
}

// ObserveShoot reads the Shoot. One that is absent, or not the owner's, is
// reported as not existing.
func (a *Activities) ObserveShoot(ctx context.Context, in contract.ShootInput) (contract.ShootStatus, error) {
	shoot, err := read(ctx, a.Live, in.Shoot)
	if err != nil || shoot == nil || !owns(in.Owner, shoot) {
		return contract.ShootStatus{}, err
	}
	return statusOf(shoot), nil
}

// RetryShoot asks Gardener to try a Failed operation again, with the Provider's
// credentials of now. In any other state the annotation would do nothing, and
// stay; the credentials are refreshed in all of them.
func (a *Activities) RetryShoot(ctx context.Context, in contract.ShootInput) (contract.None, error) {
	shoot, err := read(ctx, a.Live, in.Shoot)
	if err != nil || shoot == nil || !owns(in.Owner, shoot) {
		return contract.None{}, err
	}
	if _, err := a.refresh(ctx, shoot); err != nil {
		return contract.None{}, err
	}
	return contract.None{}, a.retry(ctx, shoot)
}

// retry is audited by itself: waits call it, too, and these count as reading.
func (a *Activities) retry(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	if op := shoot.Status.LastOperation; op == nil || op.State != gardencorev1beta1.LastOperationStateFailed {
		return nil
	}
	return audited.Change(ctx, resource("Shoot", shoot.Namespace, shoot.Name, shoot.Spec.Region), func() error {
		return a.annotate(ctx, shoot, constants.GardenerOperation, constants.ShootOperationRetry)
	})
}

// annotate sets one annotation, if nobody changed the Shoot since it was read:
// the decision was made on that state.
func (a *Activities) annotate(ctx context.Context, shoot *gardencorev1beta1.Shoot, key, value string) error {
	next := shoot.DeepCopy()
	if next.Annotations == nil {
		next.Annotations = map[string]string{}
	}
	next.Annotations[key] = value
	err := a.Client.Patch(ctx, next, client.MergeFromWithOptions(shoot, client.MergeFromWithOptimisticLock{}))
	return faults.FromKubernetes(err, "shoot "+shoot.Namespace+"/"+shoot.Name)
}

// DeleteShoot confirms and deletes. The confirmation may be lost to a writer
// that puts old annotations back, so it is given again when Gardener says that
// it is missing.
func (a *Activities) DeleteShoot(ctx context.Context, in contract.ShootInput) (contract.None, error) {
	const attempts = 4
	var err error
	for range attempts {
		var shoot *gardencorev1beta1.Shoot
		shoot, err = read(ctx, a.Live, in.Shoot)
		if err != nil || shoot == nil || !owns(in.Owner, shoot) || shoot.DeletionTimestamp != nil {
			return contract.None{}, err
		}
		if err = a.annotate(ctx, shoot, constants.ConfirmationDeletion, "true"); err != nil {
			if faults.Is(err, faults.Throttled) { // somebody else wrote; look again
				continue
			}
			return contract.None{}, faults.IgnoreGone(err)
		}
		uid := shoot.UID
		err = a.Client.Delete(ctx, shoot, client.Preconditions{UID: &uid})
		if !apierrors.IsForbidden(err) && !apierrors.IsConflict(err) {
			return contract.None{}, faults.IgnoreGone(faults.FromKubernetes(err, shootName(in.Shoot)))
		}
	}
	return contract.None{}, faults.FromKubernetes(err, "deletion of "+shootName(in.Shoot))
}
