package cluster

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
	"github.com/tidbcloud/infra-orchestrator/workflows/operation"
)

// DeleteCluster removes a Cluster from whatever state it is in, outermost
// first: names, endpoints, load balancer, database with its volumes, machines,
// role, key. It ends with the proof that nothing is left.
func DeleteCluster(ctx workflow.Context, in lifecycle.Input) (lifecycle.Result, error) {
	return operation.Run(ctx, in, operation.Deletion(in, newCluster(in).deleteSteps()...)...)
}

func (c *cluster) deleteSteps() []operation.Step {
	all := []operation.Step{c.inspectStep()}
	for _, one := range []part{backupPolicy, dnsRecords, endpointService, loadBalancer, database, namespace, storageClasses, workerPools, role, key} {
		all = append(all, c.remove(one)...)
	}
	return append(all,
		operation.Step{Name: "ProveAbsence", Doc: "look for anything that still carries the identity", Run: operation.Unless(&c.void, c.proveAbsence)},
		operation.Step{Name: "ReleaseLease", Doc: "the Network may sleep again", Run: operation.Unless(&c.void, c.releaseLease)})
}

func (c *cluster) inspectStep() operation.Step {
	return operation.Step{Name: "Inspect", Doc: "see what exists", Budget: 2 * time.Minute, Run: c.inspect}
}

// part is a piece of a Cluster that is made and removed as a whole.
type part string

const (
	backupPolicy    part = "DeleteBackupPolicy"
	dnsRecords      part = "DeleteDNSRecords"
	endpointService part = "DeleteEndpointService"
	loadBalancer    part = "DeleteLoadBalancer"
	database        part = "DeleteDatabase"
	namespace       part = "DeleteNamespace"
	storageClasses  part = "DeleteStorageClasses"
	workerPools     part = "DeleteWorkerPools"
	role            part = "DeleteRole"
	key             part = "DeleteKey"
)

// remove is the step that removes a part: of a deletion, and of a creation that
// is cancelled.
func (c *cluster) remove(p part) []operation.Step {
	s := map[part]operation.Step{
		backupPolicy:    {Doc: "stop backups and wait for the operator's finalizers", Budget: 30 * time.Minute, Run: c.deleteBackups},
		dnsRecords:      {Doc: "DNS records in the Network's zone", Run: c.deleteRecords},
		endpointService: {Doc: "reject connections and delete the endpoint service", Budget: 15 * time.Minute, Run: c.deleteEndpointService},
		loadBalancer:    {Doc: "service and network load balancer", Budget: 15 * time.Minute, Run: c.deleteLoadBalancer},
		database:        {Doc: "TidbCluster, its pods and its volumes", Budget: 30 * time.Minute, Run: c.deleteDatabase},
		namespace:       {Doc: "namespace in the Shoot", Budget: 15 * time.Minute, Run: c.deleteNamespace},
		storageClasses:  {Doc: "storage classes", Run: c.deleteStorageClasses},
		workerPools:     {Doc: "worker pools in the Shoot", Run: c.deleteWorkerPools},
		role:            {Doc: "identity of the database's pods", Run: c.deleteRole},
		key:             {Doc: "encryption key; it goes for good in 30 days", Run: c.deleteKey},
	}[p]
	s.Name, s.Run = string(p), operation.Unless(&c.void, s.Run)
	return []operation.Step{s}
}

func (c *cluster) inspect(ctx workflow.Context) (err error) {
	c.void, err = operation.Void(ctx, operation.Published(ctx, "observed", &v1.ObservedCluster{}), c.resolve)
	return err
}

func (c *cluster) deleteBackups(ctx workflow.Context) error {
	return operation.Remove(ctx, keyBackups, contract.DeleteBackups, c.database())
}

func (c *cluster) deleteRecords(ctx workflow.Context) error {
	if c.plan.DNSZoneID == "" {
		return nil
	}
	return operation.Remove(ctx, keyRecords, c.cloud.DeleteRecords, c.records(), "endpoints")
}

func (c *cluster) deleteEndpointService(ctx workflow.Context) error {
	return operation.Remove(ctx, keyEndpoint, c.cloud.DeleteEndpointService, c.endpointService(), "endpoints")
}

// deleteLoadBalancer ends when the cloud has none any more: one that stays
// would keep the VPC for ever.
func (c *cluster) deleteLoadBalancer(ctx workflow.Context) error {
	if err := operation.Remove(ctx, keyService, contract.DeleteService, c.database()); err != nil {
		return err
	}
	_, err := operation.Do(ctx, c.cloud.WaitLoadBalancerGone, contract.LoadBalancerInput{
		Account: c.plan.Account, Cluster: c.in.Object, ServiceNamespace: c.plan.Namespace, VPCID: c.plan.VPCID,
	})
	return err
}

func (c *cluster) deleteDatabase(ctx workflow.Context) error {
	return operation.Remove(ctx, keyDatabase, contract.DeleteDatabase, c.database())
}

func (c *cluster) deleteNamespace(ctx workflow.Context) error {
	return operation.Remove(ctx, keyNamespace, contract.DeleteClusterNamespace, c.database())
}

func (c *cluster) deleteStorageClasses(ctx workflow.Context) error {
	return operation.Remove(ctx, keyClasses, contract.DeleteStorageClasses, c.database())
}

func (c *cluster) deleteWorkerPools(ctx workflow.Context) error {
	return operation.WithLock(ctx, c.plan.Network, contract.LockShoot, func(ctx workflow.Context) error {
		return operation.Remove(ctx, keyPools, contract.DeleteWorkerPools, c.pools(), fieldPools)
	})
}

func (c *cluster) deleteRole(ctx workflow.Context) error {
	return operation.Remove(ctx, keyIdentity, c.cloud.DeleteIdentity, c.named(c.plan.RoleName))
}

func (c *cluster) deleteKey(ctx workflow.Context) error {
	if c.plan.EncryptionMode != "ServiceManaged" {
		return nil
	}
	out, err := operation.Do(operation.About(ctx, keyKey), c.cloud.DeleteKey, c.named(c.plan.KeyAlias))
	if err != nil {
		return err
	}
	if out.Note != "" {
		operation.Tell(ctx, false, "KeyScheduledForDeletion", "%s", out.Note)
	}
	operation.Forget(ctx, keyKey)
	operation.Unpublish(ctx, "encryption")
	return nil
}

func (c *cluster) releaseLease(ctx workflow.Context) error {
	_, err := operation.Do(ctx, contract.ReleaseLease, operation.Lease(c.in, c.plan.Network))
	return err
}

// proveAbsence deletes disks that it finds: the storage driver deletes them with
// the database, but of a Cluster whose Shoot went first nobody else does. A
// Cluster that is retained never comes here.
func (c *cluster) proveAbsence(ctx workflow.Context) error {
	in := contract.SweepInput{Account: c.plan.Account, Owner: c.in.Object}
	left, err := operation.Do(ctx, c.cloud.Sweep, in)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(left.Resources, func(r v1.Resource) bool { return r.Type == c.cloud.VolumeType }) {
		deleted, err := operation.Do(operation.About(ctx, keyDatabase), c.cloud.DeleteVolumes, in)
		if err != nil {
			return err
		}
		if deleted.Note != "" {
			operation.Tell(ctx, false, "VolumesDeleted", "%s", deleted.Note)
		}
		if left, err = operation.Do(ctx, c.cloud.Sweep, in); err != nil {
			return err
		}
	}
	return operation.ProveAbsence(ctx, left.Resources)
}
