package plain

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/plan"
	"github.com/tidbcloud/infra-orchestrator/test/bench/internal/nullcloud"
)

// clusterReconciler reconciles Clusters.
type clusterReconciler struct{ base }

// Reconcile implements reconcile.Reconciler.
func (r *clusterReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	o := &v1.Cluster{}
	if err := r.Get(ctx, req.NamespacedName, o); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	c := &cluster{job: r.start(v1.KindCluster, o), o: o}
	if !o.DeletionTimestamp.IsZero() {
		return c.remove(ctx, c.deleteSteps())
	}
	return c.ensure(ctx, v1.PhaseAvailable, c.ensureSteps())
}

type cluster struct {
	*job
	o               *v1.Cluster
	network         *v1.Network
	plan            contract.ClusterPlan
	hash            string
	workers         contract.WorkerPools
	keyARN, roleARN string
	address         contract.ServiceAddress
	lb              contract.LoadBalancer
}

func (c *cluster) ensureSteps() []step {
	return []step{
		{name: "WaitNetwork", run: c.waitNetwork},
		{name: "Preflight", run: c.preflight},
		{name: "FetchConfig", run: c.fetchConfig},
		{name: "EnsureKey", run: c.ensureKey},
		{name: "EnsureRole", run: c.ensureRole},
		{name: "EnsureWorkerPools", run: c.ensurePools},
		{name: "WaitWorkerPools", long: true, run: c.waitPools},
		{name: "EnsureStorageClasses", run: c.make("storage-classes", contract.EnsureStorageClasses)},
		{name: "EnsureNamespace", run: c.make("namespace", contract.EnsureClusterNamespace)},
		{name: "EnsureDatabase", run: c.make("database", contract.EnsureDatabase)},
		{name: "WaitDatabaseReady", long: true, run: c.waitDatabase},
		{name: "EnsureRootPassword", long: true, run: c.ensurePassword},
		{name: "EnsureLoadBalancer", long: true, run: c.ensureLoadBalancer},
		{name: "EnsureEndpointService", run: c.ensureEndpoint},
		{name: "EnsureDNSRecords", run: c.ensureRecords},
		{name: "EnsureBackupPolicy", run: c.ensureBackups},
	}
}

// waitNetwork leaves until the Network is ready: its event wakes the Cluster.
func (c *cluster) waitNetwork(ctx context.Context) error {
	c.network = &v1.Network{}
	if err := c.b.Get(ctx, client.ObjectKey{Namespace: c.o.Namespace, Name: string(c.o.Spec.Network)}, c.network); err != nil {
		return err
	}
	if !meta.IsStatusConditionTrue(c.network.Status.Conditions, v1.ConditionReady) {
		c.condition(v1.ConditionProgressing, true, "WaitNetwork", "waits for Network "+c.network.Name)
		c.condition(v1.ConditionReady, false, "WaitNetwork", "waits for Network "+c.network.Name)
		return errNotYet
	}
	return nil
}

func (c *cluster) resolve(ctx context.Context) error {
	in, err := c.b.inputs(ctx, c.o, string(c.network.Spec.Provider))
	if err != nil {
		return err
	}
	c.plan, err = plan.Cluster(c.o, c.network, in.provider, in.kind, in.account, in.options)
	return err
}

func (c *cluster) preflight(ctx context.Context) error {
	if err := c.resolve(ctx); err != nil {
		return err
	}
	return call(ctx, c.job, contract.AWS.VerifyCredentials, c.plan.Account)
}

func (c *cluster) fetchConfig(ctx context.Context) error {
	ref, err := nullcloud.Call(ctx, c.b.cloud, contract.FetchClusterConfig, contract.ConfigQuery{
		Cloud: c.plan.Cloud, Region: c.plan.Account.Region, Tenant: c.plan.Tenant, Operator: c.plan.Operator, Version: c.plan.Version})
	c.hash = ref.Hash
	return err
}

func (c *cluster) ensureKey(ctx context.Context) error {
	key, err := made(ctx, c.job, "encryption-key", contract.AWS.EnsureKey, c.aws(c.plan.KeyAlias))
	c.keyARN = key.ID
	c.o.Status.Encryption = &v1.EncryptionStatus{KeyARN: key.ID, KeyState: "Enabled"}
	return err
}

func (c *cluster) ensureRole(ctx context.Context) error {
	role, err := made(ctx, c.job, "identity", contract.AWS.EnsureIdentity, contract.IdentityInput{
		CloudResourceInput: c.aws(c.plan.RoleName), IssuerID: c.plan.IssuerID, Issuer: c.plan.OIDCIssuer,
		Subjects: c.plan.RoleSubjects(), Bucket: c.plan.BucketName, Prefix: c.plan.BackupPrefix(), KeyID: c.keyARN})
	c.roleARN = role.ID
	return err
}

func (c *cluster) ensurePools(ctx context.Context) error {
	var err error
	c.workers, err = nullcloud.Call(ctx, c.job.b.cloud, contract.AllocateWorkerPools, contract.AllocateWorkerPoolsInput{
		Cluster: c.ref(), Shoot: c.plan.Shoot, Generation: c.plan.Generation, Components: c.plan.Components})
	if err != nil {
		return err
	}
	_, err = made(ctx, c.job, "worker-pools", contract.EnsureWorkerPools, c.pools())
	return err
}

func (c *cluster) waitPools(ctx context.Context) error {
	if err := call(ctx, c.job, contract.WaitShootReady, contract.ShootInput{Object: c.ref(), Owner: c.plan.Network, Shoot: c.plan.Shoot}); err != nil {
		return err
	}
	c.condition(v1.ConditionInfrastructureReady, true, "Ready", "key, role and machines exist")
	return nil
}

func (c *cluster) make(key string, a contract.Activity[contract.DatabaseInput, contract.Outcome]) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := made(ctx, c.job, key, a, c.database())
		return err
	}
}

func (c *cluster) waitDatabase(ctx context.Context) error {
	seen, err := nullcloud.Call(ctx, c.b.cloud, contract.WaitDatabaseReady, c.database())
	if err != nil {
		return err
	}
	one := func(name string) *v1.ObservedComponent {
		s, ok := seen.Components[name]
		if !ok {
			return nil
		}
		return &v1.ObservedComponent{Replicas: s.Replicas, Ready: s.Ready, Image: s.Image}
	}
	c.o.Status.Observed = &v1.ObservedCluster{Version: seen.Version, PD: one("pd"), TiDB: one("tidb"), TiKV: one("tikv"), TiFlash: one("tiflash")}
	c.condition(v1.ConditionDatabaseReady, true, "Ready", "every component is ready")
	return nil
}

func (c *cluster) ensurePassword(ctx context.Context) error {
	return call(ctx, c.job, contract.EnsureRootPassword, c.database())
}

func (c *cluster) ensureLoadBalancer(ctx context.Context) (err error) {
	if _, err = made(ctx, c.job, "service", contract.EnsureService, c.database()); err != nil {
		return err
	}
	if c.address, err = nullcloud.Call(ctx, c.b.cloud, contract.WaitServiceAddress, c.database()); err != nil {
		return err
	}
	c.lb, err = nullcloud.Call(ctx, c.b.cloud, contract.AWS.WaitLoadBalancerActive, contract.LoadBalancerInput{
		Account: c.plan.Account, Cluster: c.ref(), Hostname: c.address.Hostname})
	return err
}

func (c *cluster) ensureEndpoint(ctx context.Context) error {
	svc, err := nullcloud.Call(ctx, c.b.cloud, contract.AWS.EnsureEndpointService, c.endpoint())
	if err != nil {
		return err
	}
	c.record("endpoint-service", svc.Resource)
	c.o.Status.Endpoints = &v1.EndpointsStatus{Private: &v1.PrivateEndpointStatus{ServiceName: svc.ServiceName, State: svc.State}}
	return nil
}

func (c *cluster) ensureRecords(ctx context.Context) error {
	if err := call(ctx, c.job, contract.AWS.EnsureRecords, c.records()); err != nil {
		return err
	}
	c.record("dns-records", v1.Resource{Provider: "aws", Region: c.plan.Account.Region, Type: "Route53::RecordSet", ID: c.host(), State: v1.ResourcePresent})
	c.o.Status.Endpoints.Private.Host, c.o.Status.Endpoints.Private.Port = c.host(), c.plan.Port
	c.condition(v1.ConditionEndpointsReady, true, "Ready", "load balancer, endpoint service and DNS records exist")
	return nil
}

func (c *cluster) ensureBackups(ctx context.Context) error {
	_, err := made(ctx, c.job, "backup-schedule", contract.EnsureBackupSchedule, c.database())
	c.condition(v1.ConditionBackupPolicyActive, true, "Schedule"+c.plan.BackupSchedule, "backup schedule "+c.plan.BackupSchedule)
	return err
}

func (c *cluster) deleteSteps() []step {
	remove := func(name string, long bool, a contract.Activity[contract.DatabaseInput, contract.None]) step {
		return step{name: name, long: long, run: func(ctx context.Context) error { return call(ctx, c.job, a, c.database()) }}
	}
	return []step{
		{name: "Inspect", run: c.inspect},
		remove("DeleteBackupPolicy", true, contract.DeleteBackups),
		{name: "DeleteDNSRecords", run: func(ctx context.Context) error { return call(ctx, c.job, contract.AWS.DeleteRecords, c.records()) }},
		{name: "DeleteEndpointService", run: func(ctx context.Context) error { return call(ctx, c.job, contract.AWS.DeleteEndpointService, c.endpoint()) }},
		remove("DeleteService", true, contract.DeleteService),
		{name: "WaitLoadBalancerGone", run: func(ctx context.Context) error {
			return call(ctx, c.job, contract.AWS.WaitLoadBalancerGone, contract.LoadBalancerInput{Account: c.plan.Account, Cluster: c.ref(), ServiceNamespace: c.plan.Namespace, VPCID: c.plan.VPCID})
		}},
		remove("DeleteDatabase", true, contract.DeleteDatabase),
		remove("DeleteNamespace", true, contract.DeleteClusterNamespace),
		remove("DeleteStorageClasses", false, contract.DeleteStorageClasses),
		{name: "DeleteWorkerPools", run: func(ctx context.Context) error { return call(ctx, c.job, contract.DeleteWorkerPools, c.pools()) }},
		{name: "DeleteRole", run: func(ctx context.Context) error { return call(ctx, c.job, contract.AWS.DeleteIdentity, c.aws(c.plan.RoleName)) }},
		{name: "DeleteKey", run: func(ctx context.Context) error { return call(ctx, c.job, contract.AWS.DeleteKey, c.aws(c.plan.KeyAlias)) }},
		{name: "ProveAbsence", run: func(ctx context.Context) error {
			return call(ctx, c.job, contract.AWS.Sweep, contract.SweepInput{Account: c.plan.Account, Owner: c.ref()})
		}},
	}
}

func (c *cluster) inspect(ctx context.Context) error {
	c.network = &v1.Network{}
	if err := c.b.Get(ctx, client.ObjectKey{Namespace: c.o.Namespace, Name: string(c.o.Spec.Network)}, c.network); err != nil {
		return err
	}
	return c.resolve(ctx)
}

func (c *cluster) aws(name string) contract.CloudResourceInput {
	return contract.CloudResourceInput{Account: c.plan.Account, Owner: c.ref(), Env: c.plan.Env, Name: name}
}

func (c *cluster) database() contract.DatabaseInput {
	return contract.DatabaseInput{Plan: c.plan, ConfigHash: c.hash, KeyID: c.keyARN, IdentityID: c.roleARN}
}

func (c *cluster) pools() contract.WorkerPoolsInput {
	return contract.WorkerPoolsInput{Cluster: c.ref(), Shoot: c.plan.Shoot, Pools: c.workers.Pools}
}

func (c *cluster) endpoint() contract.EndpointServiceInput {
	return contract.EndpointServiceInput{Account: c.plan.Account, Owner: c.ref(), Env: c.plan.Env, LoadBalancerID: c.lb.ID, AllowedPrincipals: c.plan.AllowedPrincipals}
}

func (c *cluster) host() string { return c.ref().ID8() + "." + c.plan.DNSZoneName }

func (c *cluster) records() contract.RecordsInput {
	return contract.RecordsInput{Account: c.plan.Account, Owner: c.ref(), ZoneID: c.plan.DNSZoneID,
		Records: []contract.Record{{Name: c.host(), Target: c.address.Hostname}}}
}
