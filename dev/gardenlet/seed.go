package gardenlet

import (
	"context"
	"errors"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// seedTimeout bounds the wait for a management cluster that does not list
// Gardener's kinds yet: just after a restart it may need some seconds.
const seedTimeout = 30 * time.Second

// announceSeed reports the Seed as ready, as its gardenlet does at start.
func (r *reconciler) announceSeed(ctx context.Context) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, seedTimeout, true, func(ctx context.Context) (bool, error) {
		last = r.patchSeed(ctx)
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

func (r *reconciler) patchSeed(ctx context.Context) error {
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
