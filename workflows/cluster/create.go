package cluster

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
	"github.com/tidbcloud/infra-orchestrator/workflows/operation"
)

// CreateCluster makes a Cluster in its Network: key, role, machines, database,
// endpoints, DNS, backups.
func CreateCluster(ctx workflow.Context, in lifecycle.Input) (lifecycle.Result, error) {
	return operation.Run(ctx, in, newCluster(in).ensureSteps()...)
}

// UpdateCluster makes a Cluster again. Every step is an Ensure, so an
// unchanged spec changes nothing, and what has drifted is put right.
func UpdateCluster(ctx workflow.Context, in lifecycle.Input) (lifecycle.Result, error) {
	return operation.Run(ctx, in, newCluster(in).ensureSteps()...)
}

func (c *cluster) ensureSteps() []operation.Step {
	return []operation.Step{
		{Name: "WaitNetwork", Doc: "the Network to be ready", Budget: 24 * time.Hour, Run: c.waitNetwork, Given: "see to the Network, which has operations of its own"},
		{Name: "Preflight", Doc: "check spec, references and credentials", Budget: 2 * time.Minute, Run: c.preflight, Recall: []operation.Step{c.inspectStep()}},
		{Name: "AcquireLease", Doc: "keep the Network awake", Run: c.acquireLease, Undo: []operation.Step{
			{Name: "ReleaseLease", Doc: "the Network may sleep again", Run: operation.Unless(&c.void, c.releaseLease)}}},
		{Name: "FetchConfig", Doc: "ask the config-service for this version's configuration", Run: c.fetchConfig},
		{Name: "EnsureKey", Doc: "encryption key", Run: c.ensureKey, Undo: c.remove(key)},
		{Name: "EnsureRole", Doc: "identity of the database's pods", Run: c.ensureRole, Undo: c.remove(role), Replan: "Preflight"},
		{Name: "AllocateWorkerPools", Doc: "choose worker pools and their names", Run: c.allocateWorkerPools},
		{Name: "EnsureWorkerPools", Doc: "worker pools in the Shoot", Run: c.ensureWorkerPools, Undo: c.remove(workerPools)},
		{Name: "WaitWorkerPools", Doc: "Gardener to add the machines", Budget: 30 * time.Minute, Run: c.waitWorkerPools, Remake: "EnsureWorkerPools"},
		{Name: "EnsureStorageClasses", Doc: "storage classes with the cluster's key", Run: c.ensureStorageClasses, Undo: c.remove(storageClasses)},
		{Name: "EnsureNamespace", Doc: "namespace, service accounts and secrets", Run: c.ensureNamespace, Undo: c.remove(namespace)},
		{Name: "EnsureDatabase", Doc: "order the TidbCluster from the operator", Run: c.ensureDatabase, Undo: c.remove(database), Remake: "EnsureNamespace"},
		{Name: "WaitDatabaseReady", Doc: "every component of the database to be ready", Budget: time.Hour, Limit: &c.plan.ClusterCreateTimeout, Run: c.waitDatabaseReady, Remake: "EnsureDatabase"},
		{Name: "RetireWorkerPools", Doc: "remove worker pools that others have replaced", Budget: time.Hour, Run: c.retireWorkerPools, Remake: "EnsureWorkerPools"},
		{Name: "EnsureRootPassword", Doc: "set the root password", Budget: 10 * time.Minute, Run: c.ensureRootPassword, Remake: "EnsureDatabase"},
		{Name: "EnsureLoadBalancer", Doc: "service and network load balancer", Budget: 15 * time.Minute, Run: c.ensureLoadBalancer, Undo: c.remove(loadBalancer), Remake: "EnsureNamespace"},
		{Name: "EnsureEndpointService", Doc: "endpoint service for private connections", Budget: 15 * time.Minute, Run: c.ensureEndpointService, Undo: c.remove(endpointService), Skippable: true, Remake: "EnsureLoadBalancer"},
		{Name: "EnsureDNSRecords", Doc: "DNS records in the Network's zone", Run: c.ensureRecords, Undo: c.remove(dnsRecords), Skippable: true, Replan: "Preflight"},
		{Name: "EnsureBackupPolicy", Doc: "backup schedule", Run: c.ensureBackupPolicy, Undo: c.remove(backupPolicy), Skippable: true, Remake: "EnsureNamespace"},
		{Name: "Publish", Doc: "declare the Cluster available", Run: c.publish},
	}
}

func (c *cluster) waitNetwork(ctx workflow.Context) error {
	_, err := operation.Do(ctx, contract.WaitNetworkReady, c.in.Object)
	return err
}

func (c *cluster) preflight(ctx workflow.Context) error {
	if err := c.resolve(ctx); err != nil {
		return err
	}
	if _, err := operation.Do(ctx, c.cloud.VerifyCredentials, c.plan.Account); err != nil {
		return err
	}
	// From here on things may exist: a deletion goes by this field. What an
	// earlier operation has published stays until it is observed anew.
	if operation.Published(ctx, "observed", &v1.ObservedCluster{}) {
		return nil
	}
	return operation.Publish(ctx, "observed", v1.ObservedCluster{})
}

func (c *cluster) acquireLease(ctx workflow.Context) error {
	return operation.Acquire(ctx, operation.Lease(c.in, c.plan.Network))
}

func (c *cluster) fetchConfig(ctx workflow.Context) error {
	ref, err := operation.Do(ctx, contract.FetchClusterConfig, contract.ConfigQuery{
		Cloud: c.plan.Cloud, Region: c.plan.Account.Region, Tenant: c.plan.Tenant, Operator: c.plan.Operator, Version: c.plan.Version,
	})
	c.hash = ref.Hash
	return err
}

func (c *cluster) ensureKey(ctx workflow.Context) error {
	switch c.plan.EncryptionMode {
	case "None":
		return nil
	case "Customer":
		c.keyID = c.plan.CustomerKeyID
	default:
		key, err := operation.Ensure(ctx, keyKey, c.cloud.EnsureKey, c.named(c.plan.KeyAlias))
		if err != nil {
			return err
		}
		c.keyID = key.ID
	}
	return operation.Publish(ctx, "encryption", v1.EncryptionStatus{KeyARN: c.keyID, KeyState: "Enabled"})
}

func (c *cluster) ensureRole(ctx workflow.Context) error {
	role, err := operation.Ensure(ctx, keyIdentity, c.cloud.EnsureIdentity, c.identity())
	c.identityID = role.ID
	return err
}

func (c *cluster) ensureStorageClasses(ctx workflow.Context) error {
	_, err := operation.Ensure(ctx, keyClasses, contract.EnsureStorageClasses, c.database())
	return err
}

func (c *cluster) ensureNamespace(ctx workflow.Context) error {
	_, err := operation.Ensure(ctx, keyNamespace, contract.EnsureClusterNamespace, c.database())
	return err
}

func (c *cluster) ensureDatabase(ctx workflow.Context) error {
	_, err := operation.Ensure(ctx, keyDatabase, contract.EnsureDatabase, c.database())
	return err
}

func (c *cluster) waitDatabaseReady(ctx workflow.Context) error {
	seen, err := operation.Do(ctx, contract.WaitDatabaseReady, c.database())
	if err != nil {
		return err
	}
	operation.SetCondition(ctx, v1.ConditionDatabaseReady, true, "Ready", "every component is ready")
	return operation.Publish(ctx, "observed", observed(seen))
}

func (c *cluster) ensureRootPassword(ctx workflow.Context) error {
	if c.plan.RootPasswordSecret == "" {
		return nil
	}
	_, err := operation.Do(operation.About(ctx, keyDatabase), contract.EnsureRootPassword, c.database())
	return err
}

func (c *cluster) ensureLoadBalancer(ctx workflow.Context) (err error) {
	if _, err = operation.Ensure(ctx, keyService, contract.EnsureService, c.database()); err != nil {
		return err
	}
	if c.address, err = operation.Do(ctx, contract.WaitServiceAddress, c.database()); err != nil {
		return err
	}
	c.lb, err = operation.Do(ctx, c.cloud.WaitLoadBalancerActive, contract.LoadBalancerInput{
		Account: c.plan.Account, Cluster: c.in.Object, Hostname: c.address.Hostname,
	})
	return err
}

func (c *cluster) ensureEndpointService(ctx workflow.Context) error {
	if !c.plan.Private {
		return nil
	}
	svc, err := operation.Do(operation.About(ctx, keyEndpoint), c.cloud.EnsureEndpointService, c.endpointService())
	if err != nil {
		return err
	}
	operation.Record(ctx, keyEndpoint, svc.Resource)
	return operation.Publish(ctx, "endpoints", v1.EndpointsStatus{Private: &v1.PrivateEndpointStatus{
		ServiceName: svc.ServiceName, State: svc.State, Host: c.address.Hostname, Port: c.plan.Port,
	}})
}

func (c *cluster) ensureRecords(ctx workflow.Context) error {
	if c.plan.DNSZoneID == "" {
		return nil
	}
	if _, err := operation.Do(operation.About(ctx, keyRecords), c.cloud.EnsureRecords, c.records()); err != nil {
		return err
	}
	operation.Record(ctx, keyRecords, v1.Resource{Provider: c.cloud.Ledger, Region: c.plan.Account.Region, Type: c.cloud.RecordType, ID: c.host(), State: v1.ResourcePresent})
	ep := v1.EndpointsStatus{}
	operation.Published(ctx, "endpoints", &ep)
	if ep.Private == nil {
		ep.Private = &v1.PrivateEndpointStatus{}
	}
	ep.Private.Host, ep.Private.Port = c.host(), c.plan.Port
	return operation.Publish(ctx, "endpoints", ep)
}

func (c *cluster) ensureBackupPolicy(ctx workflow.Context) error {
	if _, err := operation.Ensure(ctx, keyBackups, contract.EnsureBackupSchedule, c.database()); err != nil {
		return err
	}
	on := c.plan.BackupSchedule != "None"
	if !on {
		operation.Forget(ctx, keyBackups)
	}
	operation.SetCondition(ctx, v1.ConditionBackupPolicyActive, on, "Schedule"+c.plan.BackupSchedule, "backup schedule "+c.plan.BackupSchedule)
	return nil
}

func (c *cluster) publish(ctx workflow.Context) error {
	parts := []operation.Part{
		{Name: "load balancer", Step: "EnsureLoadBalancer"},
		{Name: "endpoint service", Step: "EnsureEndpointService", Absent: !c.plan.Private},
		{Name: "DNS records", Step: "EnsureDNSRecords", Absent: c.plan.DNSZoneID == ""},
	}
	operation.SetExist(ctx, v1.ConditionEndpointsReady, parts...)
	return nil
}

// observed turns what was seen of the database into status.observed.
func observed(s contract.DatabaseStatus) v1.ObservedCluster {
	one := func(name string) *v1.ObservedComponent {
		c, ok := s.Components[name]
		if !ok {
			return nil
		}
		return &v1.ObservedComponent{Replicas: c.Replicas, Ready: c.Ready, Image: c.Image}
	}
	return v1.ObservedCluster{Version: s.Version, PD: one("pd"), TiDB: one("tidb"), TiKV: one("tikv"), TiFlash: one("tiflash")}
}
