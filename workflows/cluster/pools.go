package cluster

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/workflows/operation"
)

// allocateWorkerPools fixes the names of the pools before anything uses them.
// From here on they are in this operation's history, and with the next telling
// in the Cluster's status: another operation finds them in the Shoot, or else
// there.
func (c *cluster) allocateWorkerPools(ctx workflow.Context) (err error) {
	var known []v1.WorkerPool
	operation.Published(ctx, fieldPools, &known)
	c.workers, err = operation.Do(ctx, contract.AllocateWorkerPools, contract.AllocateWorkerPoolsInput{
		Cluster: c.in.Object, Shoot: c.plan.Shoot, Generation: c.plan.Generation, Components: c.plan.Components, Known: known,
	})
	if err != nil {
		return err
	}
	return operation.Publish(ctx, fieldPools, poolStatus(c.workers, known))
}

// ensureWorkerPools adds what is new. What it replaces stays until
// retireWorkerPools.
func (c *cluster) ensureWorkerPools(ctx workflow.Context) error {
	return operation.WithLock(ctx, c.plan.Network, contract.LockShoot, func(ctx workflow.Context) error {
		_, err := operation.Ensure(ctx, keyPools, contract.EnsureWorkerPools, c.pools())
		return err
	})
}

func (c *cluster) waitWorkerPools(ctx workflow.Context) error {
	if _, err := operation.WaitShoot(operation.About(ctx, keyPools), contract.WaitShootReady, c.shootInput()); err != nil {
		return err
	}
	operation.SetCondition(ctx, v1.ConditionInfrastructureReady, true, "Ready", "key, role and machines exist")
	return nil
}

// retireWorkerPools removes what the new pools have replaced. Pods that are on
// the old machines move then, so the database is waited for once more.
func (c *cluster) retireWorkerPools(ctx workflow.Context) error {
	if !c.workers.Shrinks {
		return nil
	}
	err := operation.WithLock(ctx, c.plan.Network, contract.LockShoot, func(ctx workflow.Context) error {
		_, err := operation.Ensure(ctx, keyPools, contract.RetireWorkerPools, c.pools())
		return err
	})
	if err != nil {
		return err
	}
	if err := operation.Publish(ctx, fieldPools, poolStatus(contract.WorkerPools{Pools: c.workers.Pools}, nil)); err != nil {
		return err
	}
	if _, err := operation.WaitShoot(operation.About(ctx, keyPools), contract.WaitShootReady, c.shootInput()); err != nil {
		return err
	}
	return c.waitDatabaseReady(ctx)
}

// fieldPools of the status.
const fieldPools = "pools"

// poolStatus is status.pools: those to have, then those that go, which were
// known before.
func poolStatus(p contract.WorkerPools, known []v1.WorkerPool) []v1.WorkerPool {
	out := make([]v1.WorkerPool, 0, len(p.Pools)+len(p.Retire))
	for _, one := range p.Pools {
		w := v1.WorkerPool{Name: one.Name, Component: one.Dedicated, MachineType: one.MachineType, Nodes: one.Minimum}
		if len(one.Zones) > 0 {
			w.Zone = one.Zones[0]
		}
		out = append(out, w)
	}
	for _, name := range p.Retire {
		w := v1.WorkerPool{Name: name}
		if at := slices.IndexFunc(known, func(k v1.WorkerPool) bool { return k.Name == name }); at >= 0 {
			w = known[at]
		}
		w.Retiring = true
		out = append(out, w)
	}
	return out
}
