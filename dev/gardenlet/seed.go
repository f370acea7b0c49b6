package gardenlet

import (
	"context"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// announceSeed reports the Seed as ready, as its gardenlet does at start.
func (r *reconciler) announceSeed(ctx context.Context) error {
	seed := &gardencorev1beta1.Seed{}
	if err := r.live.Get(ctx, client.ObjectKey{Name: r.opts.SeedName}, seed); err != nil {
		return err
	}
	base := seed.DeepCopy()
	now := metav1.Now()
	seed.Status.Gardener = &identity
	seed.Status.ObservedGeneration = seed.Generation
	seed.Status.Conditions = []gardencorev1beta1.Condition{
		newCondition(gardencorev1beta1.GardenletReady, health{gardencorev1beta1.ConditionTrue, "GardenletReady", "Gardenlet is posting ready status."}, now),
		newCondition(gardencorev1beta1.SeedSystemComponentsHealthy, health{gardencorev1beta1.ConditionTrue, "SystemComponentsRunning", "All system components are healthy."}, now),
	}
	seed.Status.LastOperation = &gardencorev1beta1.LastOperation{
		Type: gardencorev1beta1.LastOperationTypeReconcile, State: gardencorev1beta1.LastOperationStateSucceeded,
		Progress: 100, Description: "Seed cluster has been successfully reconciled.", LastUpdateTime: now,
	}
	return r.client.Status().Patch(ctx, seed, client.MergeFrom(base))
}
