// Package cluster holds the operations of a Cluster: Create, Update, Delete.
package cluster

import (
	"go.temporal.io/sdk/workflow"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
	"github.com/tidbcloud/infra-orchestrator/workflows/operation"
)

// Kind is the Cluster for the kernel.
func Kind() lifecycle.Kind {
	return lifecycle.Kind{
		Name: "Cluster", Well: v1.PhaseAvailable,
		Phases: map[lifecycle.Verb]v1.Phase{
			lifecycle.Create: v1.PhaseCreating, lifecycle.Update: v1.PhaseModifying, lifecycle.Delete: v1.PhaseDeleting,
		},
		Operations: map[lifecycle.Verb]lifecycle.Operation{
			lifecycle.Create: CreateCluster, lifecycle.Update: UpdateCluster, lifecycle.Delete: DeleteCluster,
		},
	}
}

// Keys of the ledger.
const (
	keyKey       = "encryption-key"
	keyIdentity  = "identity"
	keyClasses   = "storage-classes"
	keyPools     = "worker-pools"
	keyNamespace = "namespace"
	keyDatabase  = "database"
	keyService   = "service"
	keyEndpoint  = "endpoint-service"
	keyRecords   = "dns-records"
	keyBackups   = "backup-schedule"
)

// cluster is the state of one operation: what its steps have found.
type cluster struct {
	in         lifecycle.Input
	plan       contract.ClusterPlan
	cloud      contract.Cloud
	hash       string // of the config-service's answer, one for the whole operation
	workers    contract.WorkerPools
	keyID      string
	identityID string
	address    contract.ServiceAddress
	lb         contract.LoadBalancer
	void       bool // nothing was ever made, see inspect
}

func newCluster(in lifecycle.Input) *cluster { return &cluster{in: in} }

// resolve validates the Cluster and pins its plan for the whole operation.
func (c *cluster) resolve(ctx workflow.Context) (err error) {
	if c.plan, err = operation.Do(ctx, contract.PlanCluster, c.in.Object); err != nil {
		return err
	}
	c.cloud, err = operation.CloudOf(c.plan.Cloud)
	return err
}

func (c *cluster) named(name string) contract.CloudResourceInput {
	return contract.CloudResourceInput{Account: c.plan.Account, Owner: c.in.Object, Env: c.plan.Env, Name: name}
}

func (c *cluster) database() contract.DatabaseInput {
	return contract.DatabaseInput{Plan: c.plan, ConfigHash: c.hash, KeyID: c.keyID, IdentityID: c.identityID}
}

func (c *cluster) identity() contract.IdentityInput {
	return contract.IdentityInput{
		CloudResourceInput: c.named(c.plan.RoleName), IssuerID: c.plan.IssuerID, Issuer: c.plan.OIDCIssuer,
		Subjects: c.plan.RoleSubjects(), Bucket: c.plan.BucketName, Prefix: c.plan.BackupPrefix(), KeyID: c.keyID,
	}
}

// pools are the worker pools of all components, once they are allocated.
func (c *cluster) pools() contract.WorkerPoolsInput {
	return contract.WorkerPoolsInput{Cluster: c.in.Object, Shoot: c.plan.Shoot, Pools: c.workers.Pools, Retire: c.workers.Retire}
}

func (c *cluster) endpointService() contract.EndpointServiceInput {
	return contract.EndpointServiceInput{Account: c.plan.Account, Owner: c.in.Object, Env: c.plan.Env,
		LoadBalancerID: c.lb.ID, AllowedPrincipals: c.plan.AllowedPrincipals}
}

func (c *cluster) records() contract.RecordsInput {
	return contract.RecordsInput{Account: c.plan.Account, Owner: c.in.Object, ZoneID: c.plan.DNSZoneID,
		Records: []contract.Record{{Name: c.host(), Target: c.address.Hostname}}}
}

// host is the database's name in the Network's zone.
func (c *cluster) host() string { return c.in.Object.ID8() + "." + c.plan.DNSZoneName }

func (c *cluster) shootInput() contract.ShootInput {
	return contract.ShootInput{Object: c.in.Object, Owner: c.plan.Network, Shoot: c.plan.Shoot}
}
