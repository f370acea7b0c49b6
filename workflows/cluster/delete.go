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
		return lifecycle.Run(ctx, in, lifecycle.RetainSteps(in, usedBy)...)
	}
	return lifecycle.Run(ctx, in, c.deleteSteps()...)
}

// usedBy is whom the deletion waits for.
const usedBy = "everything that uses the Cluster to be gone"

func (c *cluster) deleteSteps() []lifecycle.Step {
	return []lifecycle.Step{
		lifecycle.WaitUnused(c.in, usedBy),
		{Name: "Inspect", Doc: "see what exists", Budget: 2 * time.Minute, Run: c.inspect},
		{Name: "DeleteBackupPolicy", Doc: "stop backups and wait for the operator's finalizers", Budget: 30 * time.Minute, Run: lifecycle.Unless(&c.void, c.deleteBackups)},
		{Name: "DeleteDNSRecords", Doc: "DNS records in the Network's zone", Run: lifecycle.Unless(&c.void, c.deleteRecords)},
		{Name: "DeleteEndpointService", Doc: "reject connections and delete the PrivateLink endpoint service", Budget: 15 * time.Minute, Run: lifecycle.Unless(&c.void, c.deleteEndpointService)},
		{Name: "DeleteLoadBalancer", Doc: "service and network load balancer", Budget: 15 * time.Minute, Run: lifecycle.Unless(&c.void, c.deleteLoadBalancer)},
		{Name: "DeleteDatabase", Doc: "TidbCluster, its pods and its volumes", Budget: 30 * time.Minute, Run: lifecycle.Unless(&c.void, c.deleteDatabase)},
		{Name: "DeleteNamespace", Doc: "namespace in the Shoot", Budget: 15 * time.Minute, Run: lifecycle.Unless(&c.void, c.deleteNamespace)},
		{Name: "DeleteStorageClasses", Doc: "storage classes", Run: lifecycle.Unless(&c.void, c.deleteStorageClasses)},
		{Name: "DeleteWorkerPools", Doc: "worker pools in the Shoot", Run: lifecycle.Unless(&c.void, c.deleteWorkerPools)},
		{Name: "DeleteRole", Doc: "IAM role", Run: lifecycle.Unless(&c.void, c.deleteRole)},
		{Name: "DeleteKey", Doc: "KMS alias, and the key in 30 days", Run: lifecycle.Unless(&c.void, c.deleteKey)},
		{Name: "ProveAbsence", Doc: "look for anything that still carries the identity", Run: lifecycle.Unless(&c.void, c.proveAbsence)},
		lifecycle.RemoveFinalizer(c.in),
	}
}

// inspect pins the plan. A Cluster that never passed Preflight has nothing,
// and may well have a spec or a Network that cannot be resolved.
func (c *cluster) inspect(ctx workflow.Context) error {
	if c.void = !lifecycle.Published(ctx, "observed", &v1.ObservedCluster{}); c.void {
		return nil
	}
	return c.resolve(ctx)
}

func (c *cluster) deleteBackups(ctx workflow.Context) error {
	return lifecycle.Remove(ctx, keyBackups, contract.DeleteBackups, c.database())
}

func (c *cluster) deleteRecords(ctx workflow.Context) error {
	if c.plan.DNSZoneID == "" {
		return nil
	}
	return lifecycle.Remove(ctx, keyRecords, contract.DeleteRecords, c.records())
}

func (c *cluster) deleteEndpointService(ctx workflow.Context) error {
	return lifecycle.Remove(ctx, keyEndpoint, contract.DeleteEndpointService, c.endpointService())
}

// deleteLoadBalancer ends when the cloud has none any more: one that stays
// would keep the VPC for ever.
func (c *cluster) deleteLoadBalancer(ctx workflow.Context) error {
	if err := lifecycle.Remove(ctx, keyService, contract.DeleteService, c.database()); err != nil {
		return err
	}
	_, err := lifecycle.Do(ctx, contract.WaitLoadBalancerGone, contract.LoadBalancerInput{
		Account: c.plan.Account, Cluster: c.in.Object, ServiceNamespace: c.plan.Namespace, VPCID: c.plan.VPCID,
	})
	return err
}

func (c *cluster) deleteDatabase(ctx workflow.Context) error {
	return lifecycle.Remove(ctx, keyDatabase, contract.DeleteDatabase, c.database())
}

func (c *cluster) deleteNamespace(ctx workflow.Context) error {
	return lifecycle.Remove(ctx, keyNamespace, contract.DeleteClusterNamespace, c.database())
}

func (c *cluster) deleteStorageClasses(ctx workflow.Context) error {
	return lifecycle.Remove(ctx, keyClasses, contract.DeleteStorageClasses, c.database())
}

func (c *cluster) deleteWorkerPools(ctx workflow.Context) error {
	return lifecycle.Remove(ctx, keyPools, contract.DeleteWorkerPools, c.pools())
}

func (c *cluster) deleteRole(ctx workflow.Context) error {
	return lifecycle.Remove(ctx, keyRole, contract.DeleteRole, c.aws(c.plan.RoleName))
}

func (c *cluster) deleteKey(ctx workflow.Context) error {
	if c.plan.EncryptionMode != "ServiceManaged" {
		return nil
	}
	out, err := lifecycle.Do(lifecycle.About(ctx, keyKMS), contract.DeleteKey, c.aws(c.plan.KeyAlias))
	if err != nil {
		return err
	}
	if out.Note != "" {
		lifecycle.Tell(ctx, false, "KeyScheduledForDeletion", "%s", out.Note)
	}
	lifecycle.Forget(ctx, keyKMS)
	return nil
}

func (c *cluster) proveAbsence(ctx workflow.Context) error {
	return lifecycle.ProveAbsent(ctx, c.plan.Account, c.in.Object)
}
