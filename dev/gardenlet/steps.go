package gardenlet

import (
	"context"
	"fmt"
	"sync"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The steps carry the names of the tasks in Gardener's flows, one or two for
// each stretch of the real ones, in their order.

var createSteps = []step{
	{"Deploying Shoot namespace in Seed", 0, nil},
	{"Deploying cloud provider account secret", 4, nil},
	{"Waiting until shoot infrastructure has been reconciled", 10, (*operation).runInfrastructure},
	{"Waiting until main and event etcd report readiness", 34, nil},
	{"Waiting until Kubernetes API server rolled out", 42, (*operation).runCluster},
	{"Waiting until shoot control plane has been reconciled", 58, nil},
	{"Waiting until shoot worker nodes have been reconciled", 68, (*operation).runWorkers},
	{"Waiting until all shoot worker nodes have updated the operating system config", 86, nil},
	{"Waiting until Shoot Prometheus is reconciled", 95, nil},
}

var reconcileSteps = []step{
	{"Deploying Shoot namespace in Seed", 0, nil},
	{"Waiting until shoot infrastructure has been reconciled", 12, (*operation).runInfrastructure},
	{"Waiting until Kubernetes API server rolled out", 40, (*operation).runCluster},
	{"Waiting until shoot worker nodes have been reconciled", 62, (*operation).runWorkers},
	{"Waiting until all shoot worker nodes have updated the operating system config", 90, nil},
}

var hibernateSteps = []step{
	{"Deploying Shoot namespace in Seed", 0, nil},
	{"Waiting until shoot infrastructure has been reconciled", 12, (*operation).runInfrastructure},
	{"Waiting until shoot worker nodes have been reconciled", 40, (*operation).runNoWorkers},
	{"Hibernating control plane", 80, (*operation).runStop},
}

var wakeSteps = []step{
	{"Deploying Shoot namespace in Seed", 0, nil},
	{"Waiting until shoot infrastructure has been reconciled", 10, (*operation).runInfrastructure},
	{"Waiting until main and event etcd report readiness", 25, nil},
	{"Waiting until Kubernetes API server rolled out", 35, (*operation).runCluster},
	{"Waiting until shoot worker nodes have been reconciled", 60, (*operation).runWorkers},
	{"Waiting until all shoot worker nodes have updated the operating system config", 90, nil},
}

var deleteSteps = []step{
	{"Deploying Shoot namespace in Seed", 0, nil},
	{"Waiting until Kubernetes API server reports readiness", 8, (*operation).runForCleanup},
	{"Cleaning Kubernetes resources", 20, (*operation).runCleanup},
	{"Waiting until shoot worker nodes have been terminated", 45, (*operation).runNoWorkers},
	{"Waiting until Kubernetes API server has been deleted", 60, (*operation).runStop},
	{"Waiting until shoot infrastructure has been deleted", 68, (*operation).runNoInfrastructure},
	{"Waiting until main and event etcd have been destroyed", 90, (*operation).runDestroy},
	{"Waiting until shoot namespace in Seed has been deleted", 96, nil},
}

func stepsOf(phase string) []step {
	switch phase {
	case PhaseCreate:
		return createSteps
	case PhaseHibernate:
		return hibernateSteps
	case PhaseWake:
		return wakeSteps
	case PhaseDelete:
		return deleteSteps
	default:
		return reconcileSteps
	}
}

// runInfrastructure has the cloud side made. An API server that will be needed
// starts at the same time: it does not depend on the cloud.
func (op *operation) runInfrastructure(ctx context.Context) error {
	var wg sync.WaitGroup
	var clusterErr error
	if !hibernationWanted(op.shoot) {
		wg.Go(func() { _, clusterErr = op.clusters.start(ctx, op.shoot.DeepCopy(), op.technicalID) })
	}
	err := op.opts.Infrastructure.Reconcile(ctx, op.shoot.DeepCopy(), op.technicalID)
	wg.Wait()
	if err != nil {
		return err // what people have to know first
	}
	return clusterErr
}

func (op *operation) runNoInfrastructure(ctx context.Context) error {
	return op.opts.Infrastructure.Delete(ctx, op.shoot.DeepCopy(), op.technicalID)
}

func (op *operation) runCluster(ctx context.Context) error {
	// A Shoot may be created asleep: then it has no API server to start with.
	if hibernationWanted(op.shoot) {
		return nil
	}
	return op.startCluster(ctx)
}

func (op *operation) runWorkers(ctx context.Context) error {
	if hibernationWanted(op.shoot) {
		return nil
	}
	return op.syncNodes(ctx, op.shoot.Spec.Provider.Workers)
}

func (op *operation) runNoWorkers(ctx context.Context) error {
	if !op.clusters.running(op.technicalID) {
		return nil
	}
	return op.syncNodes(ctx, nil)
}

func (op *operation) runStop(context.Context) error {
	return op.clusters.stop(op.technicalID)
}

// runForCleanup wakes the control plane: Gardener does so even for a hibernated
// Shoot, to clean up inside. A Shoot whose API server never ran has nothing to
// clean.
func (op *operation) runForCleanup(ctx context.Context) error {
	if !op.clusters.exists(op.technicalID) {
		return nil
	}
	return op.startCluster(ctx)
}

func (op *operation) runCleanup(ctx context.Context) error {
	info, ok := op.clusters.info(op.technicalID)
	if !ok {
		return nil
	}
	// The work is real, however fast the rest is.
	return cleanShoot(ctx, info.Config, max(op.opts.Pace.scale(cleanupTimeout), cleanupLeast))
}

func (op *operation) runDestroy(ctx context.Context) error {
	return op.clusters.destroy(ctx, op.technicalID)
}

// startCluster brings up the API server, grants Gardener's groups their rights
// in it, and tells the garden how to reach it.
func (op *operation) startCluster(ctx context.Context) error {
	cluster, err := op.clusters.start(ctx, op.shoot, op.technicalID)
	if err != nil {
		return err
	}
	if err := grantAdmins(ctx, cluster.Config()); err != nil {
		return fmt.Errorf("grant rights in the shoot: %w", err)
	}
	if err := op.publishAccess(ctx, op.shoot, cluster.CA()); err != nil {
		return fmt.Errorf("publish the shoot's certificate authorities: %w", err)
	}
	addresses := advertise(op.shoot, cluster.URL())
	return client.IgnoreNotFound(op.patchStatus(ctx, func(status *gardencorev1beta1.ShootStatus) {
		status.AdvertisedAddresses = addresses
	}))
}
