package cluster

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
)

// DeleteCluster removes a Cluster from whatever state it is in, outermost
// first: names, endpoints, load balancer, database with its volumes, machines,
// role, key. It ends with the proof that nothing is left.
func DeleteCluster(ctx workflow.Context, in lifecycle.Input) (lifecycle.Result, error) {
	c := newCluster(in)
	if in.DeletionPolicy == v1.DeletionPolicyRetain {
		return lifecycle.Run(ctx, in, c.retainSteps()...)
	}
	return lifecycle.Run(ctx, in, c.deleteSteps()...)
}

func (c *cluster) deleteSteps() []lifecycle.Step {
	return []lifecycle.Step{
		{Name: "WaitUnused", Doc: "everything that uses the Cluster to be gone", Budget: 365 * 24 * time.Hour, Run: c.waitUnused},
		{Name: "Inspect", Doc: "see what exists", Budget: 2 * time.Minute, Run: c.inspect},
		{Name: "DeleteBackupPolicy", Doc: "stop backups and wait for the operator's finalizers", Budget: 30 * time.Minute, Run: c.ifAny(c.deleteBackups)},
		{Name: "DeleteDNSRecords", Doc: "DNS records in the Network's zone", Run: c.ifAny(c.deleteRecords)},
		{Name: "DeleteEndpointService", Doc: "reject connections and delete the PrivateLink endpoint service", Budget: 15 * time.Minute, Run: c.ifAny(c.deleteEndpointService)},
		{Name: "DeleteLoadBalancer", Doc: "service and network load balancer", Budget: 15 * time.Minute, Run: c.ifAny(c.deleteLoadBalancer)},
		{Name: "DeleteDatabase", Doc: "TidbCluster, its pods and its volumes", Budget: 30 * time.Minute, Run: c.ifAny(c.deleteDatabase)},
		{Name: "DeleteNamespace", Doc: "namespace in the Shoot", Budget: 15 * time.Minute, Run: c.ifAny(c.deleteNamespace)},
		{Name: "DeleteStorageClasses", Doc: "storage classes", Run: c.ifAny(c.deleteStorageClasses)},
		{Name: "DeleteWorkerPools", Doc: "worker pools in the Shoot", Run: c.ifAny(c.deleteWorkerPools)},
		{Name: "DeleteRole", Doc: "IAM role", Run: c.ifAny(c.deleteRole)},
		{Name: "DeleteKey", Doc: "KMS alias, and the key in 30 days", Run: c.ifAny(c.deleteKey)},
		{Name: "ProveAbsence", Doc: "look for anything that still carries the identity", Run: c.ifAny(c.proveAbsence)},
		{Name: "RemoveFinalizer", Doc: "let the object go", Run: c.removeFinalizer},
	}
}

// retainSteps forget the Cluster and keep what it has.
func (c *cluster) retainSteps() []lifecycle.Step {
	return []lifecycle.Step{
		{Name: "WaitUnused", Doc: "everything that uses the Cluster to be gone", Budget: 365 * 24 * time.Hour, Run: c.waitUnused},
		{Name: "Retain", Doc: "list what is kept (deletionPolicy Retain)", Run: lifecycle.Retain},
		{Name: "RemoveFinalizer", Doc: "let the object go", Run: c.removeFinalizer},
	}
}

func (c *cluster) waitUnused(ctx workflow.Context) error {
	_, err := lifecycle.Do(ctx, contract.WaitUnused, c.in.Object)
	return err
}

// inspect pins the plan. A Cluster that never passed Preflight has nothing,
// and may well have a spec or a Network that cannot be resolved.
func (c *cluster) inspect(ctx workflow.Context) error {
	if c.void = !lifecycle.Published(ctx, "observed", &v1.ObservedCluster{}); c.void {
		return nil
	}
	return c.resolve(ctx)
}

// ifAny skips a step's work when nothing was ever made.
func (c *cluster) ifAny(run func(workflow.Context) error) func(workflow.Context) error {
	return func(ctx workflow.Context) error {
		if c.void {
			return nil
		}
		return run(ctx)
	}
}

func (c *cluster) deleteBackups(ctx workflow.Context) error {
	return remove(ctx, keyBackups, contract.DeleteBackups, c.database())
}

func (c *cluster) deleteRecords(ctx workflow.Context) error {
	if c.plan.DNSZoneID == "" {
		return nil
	}
	return remove(ctx, keyRecords, contract.DeleteRecords, c.records())
}

func (c *cluster) deleteEndpointService(ctx workflow.Context) error {
	return remove(ctx, keyEndpoint, contract.DeleteEndpointService, c.endpointService())
}

// deleteLoadBalancer ends when the cloud has none any more: one that stays
// would keep the VPC for ever.
func (c *cluster) deleteLoadBalancer(ctx workflow.Context) error {
	if err := remove(ctx, keyService, contract.DeleteService, c.database()); err != nil {
		return err
	}
	_, err := lifecycle.Do(ctx, contract.WaitLoadBalancerGone, contract.LoadBalancerInput{
		Account: c.plan.Account, Cluster: c.in.Object, ServiceNamespace: c.plan.Namespace, VPCID: c.plan.VPCID,
	})
	return err
}

func (c *cluster) deleteDatabase(ctx workflow.Context) error {
	return remove(ctx, keyDatabase, contract.DeleteDatabase, c.database())
}

func (c *cluster) deleteNamespace(ctx workflow.Context) error {
	return remove(ctx, keyNamespace, contract.DeleteClusterNamespace, c.database())
}

func (c *cluster) deleteStorageClasses(ctx workflow.Context) error {
	return remove(ctx, keyClasses, contract.DeleteStorageClasses, c.database())
}

func (c *cluster) deleteWorkerPools(ctx workflow.Context) error {
	return remove(ctx, keyPools, contract.DeleteWorkerPools, c.pools())
}

func (c *cluster) deleteRole(ctx workflow.Context) error {
	return remove(ctx, keyRole, contract.DeleteRole, c.aws(c.plan.RoleName))
}

func (c *cluster) deleteKey(ctx workflow.Context) error {
	if c.plan.EncryptionMode != "ServiceManaged" {
		return nil
	}
	if _, err := lifecycle.Do(ctx, contract.DeleteKey, c.aws(c.plan.KeyAlias)); err != nil {
		return err
	}
	lifecycle.Forget(ctx, keyKMS)
	return nil
}

func (c *cluster) proveAbsence(ctx workflow.Context) error {
	left, err := lifecycle.Do(ctx, contract.SweepAWS, contract.SweepInput{Account: c.plan.Account, Owner: c.in.Object})
	if err != nil {
		return err
	}
	return lifecycle.ProveAbsence(ctx, left.Resources)
}

func (c *cluster) removeFinalizer(ctx workflow.Context) error {
	_, err := lifecycle.Do(ctx, contract.RemoveFinalizer, c.in.Object)
	return err
}

// remove runs a Delete and takes its entry out of the ledger.
func remove[In any](ctx workflow.Context, key string, a contract.Activity[In, contract.None], in In) error {
	if _, err := lifecycle.Do(ctx, a, in); err != nil {
		return err
	}
	lifecycle.Forget(ctx, key)
	return nil
}
