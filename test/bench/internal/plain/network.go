package plain

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/plan"
	"github.com/tidbcloud/infra-orchestrator/test/bench/internal/nullcloud"
)

// networkReconciler reconciles Networks.
type networkReconciler struct{ base }

// Reconcile implements reconcile.Reconciler.
func (r *networkReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	o := &v1.Network{}
	if err := r.Get(ctx, req.NamespacedName, o); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	n := &network{job: r.start(v1.KindNetwork, o), o: o}
	if !o.DeletionTimestamp.IsZero() {
		return n.remove(ctx, n.deleteSteps())
	}
	return n.ensure(ctx, v1.PhaseNormal, n.ensureSteps())
}

type network struct {
	*job
	o     *v1.Network
	plan  contract.NetworkPlan
	shoot contract.ShootStatus
	hash  string
}

func (n *network) ensureSteps() []step {
	return []step{
		{name: "Preflight", run: n.preflight},
		{name: "EnsureBinding", run: n.ensureBinding},
		{name: "EnsureBucket", run: n.ensureBucket},
		{name: "EnsureShoot", run: n.ensureShoot},
		{name: "WaitShootReady", long: true, run: n.waitShootReady},
		{name: "DiscoverVPC", run: n.discoverVPC},
		{name: "EnsureOIDC", run: n.ensureOIDC},
		{name: "EnsureDNSZone", run: n.ensureDNSZone},
		{name: "FetchConfig", run: n.fetchConfig},
		{name: "BootstrapShoot", long: true, run: n.bootstrapShoot},
	}
}

func (n *network) resolve(ctx context.Context) error {
	in, err := n.b.inputs(ctx, n.o, string(n.o.Spec.Provider))
	if err != nil {
		return err
	}
	n.plan, err = plan.Network(n.o, in.provider, in.kind, in.account, in.options)
	return err
}

func (n *network) preflight(ctx context.Context) error {
	if err := n.resolve(ctx); err != nil {
		return err
	}
	if err := call(ctx, n.job, contract.AWS.VerifyCredentials, n.plan.Account); err != nil {
		return err
	}
	n.publishShoot()
	return nil
}

func (n *network) publishShoot() {
	s := n.shoot
	n.o.Status.Shoot = &v1.NetworkShootStatus{Namespace: n.plan.Shoot.Namespace, Name: n.plan.Shoot.Name, UID: s.UID,
		TechnicalID: s.TechnicalID, SeedName: s.SeedName, Generation: s.Generation, ObservedGeneration: s.ObservedGeneration}
}

func (n *network) ensureBinding(ctx context.Context) error {
	_, err := made(ctx, n.job, "binding", contract.EnsureBinding, n.plan)
	return err
}

func (n *network) ensureBucket(ctx context.Context) error {
	_, err := made(ctx, n.job, "bucket", contract.AWS.EnsureBucket, n.aws(n.plan.BucketName))
	n.o.Status.Bucket = &v1.NetworkBucketStatus{Name: n.plan.BucketName}
	return err
}

func (n *network) ensureShoot(ctx context.Context) error {
	_, err := made(ctx, n.job, "shoot", contract.EnsureShoot, n.plan)
	return err
}

func (n *network) waitShootReady(ctx context.Context) (err error) {
	if n.shoot, err = nullcloud.Call(ctx, n.b.cloud, contract.WaitShootReady, n.shootInput()); err != nil {
		return err
	}
	n.condition(v1.ConditionShootReady, true, "Ready", "the Shoot "+n.plan.Shoot.String()+" is healthy")
	n.publishShoot()
	return nil
}

func (n *network) discoverVPC(ctx context.Context) error {
	vpc, err := nullcloud.Call(ctx, n.b.cloud, contract.AWS.DiscoverVPC, contract.DiscoverVPCInput{Account: n.plan.Account, TechnicalID: n.shoot.TechnicalID})
	n.o.Status.VPC = &v1.NetworkVPCStatus{ID: vpc.ID, CIDR: vpc.CIDR, RouteTableIDs: vpc.RouteTableIDs, Zones: vpc.Zones}
	return err
}

func (n *network) ensureOIDC(ctx context.Context) error {
	r, err := made(ctx, n.job, "oidc-provider", contract.AWS.EnsureIssuer, n.oidc())
	n.o.Status.OIDC = &v1.NetworkOIDCStatus{Issuer: n.shoot.Issuer, ProviderARN: r.ID}
	return err
}

func (n *network) ensureDNSZone(ctx context.Context) error {
	zone, err := nullcloud.Call(ctx, n.b.cloud, contract.AWS.EnsureZone, n.zone())
	if err != nil {
		return err
	}
	n.record("dns-zone", zone.Resource)
	n.o.Status.DNSZone = &v1.NetworkDNSZoneStatus{ID: zone.ID, Name: zone.Name}
	n.condition(v1.ConditionCloudResourcesReady, true, "Ready", "bucket, OIDC provider and DNS zone exist")
	return nil
}

func (n *network) fetchConfig(ctx context.Context) error {
	ref, err := nullcloud.Call(ctx, n.b.cloud, contract.FetchNetworkConfig, contract.ConfigQuery{Cloud: n.plan.Cloud, Region: n.plan.Region, Tenant: n.plan.Tenant})
	n.hash = ref.Hash
	return err
}

func (n *network) bootstrapShoot(ctx context.Context) error {
	in := contract.BootstrapInput{Owner: n.ref(), Shoot: n.plan.Shoot, ConfigHash: n.hash}
	if err := call(ctx, n.job, contract.BootstrapShoot, in); err != nil {
		return err
	}
	if err := call(ctx, n.job, contract.WaitBootstrapped, in); err != nil {
		return err
	}
	n.condition(v1.ConditionAwake, true, "Awake", "the Shoot runs")
	return nil
}

func (n *network) deleteSteps() []step {
	one := func(name string, long bool, run func(context.Context) error) step {
		return step{name: name, long: long, run: run}
	}
	return []step{
		one("WaitUnused", false, n.waitUnused),
		one("Inspect", false, n.resolve),
		one("CleanShoot", true, func(ctx context.Context) error { return call(ctx, n.job, contract.CleanShoot, n.shootInput()) }),
		one("DeleteDNSZone", false, func(ctx context.Context) error { return call(ctx, n.job, contract.AWS.DeleteZone, n.zone()) }),
		one("DeleteShoot", false, func(ctx context.Context) error { return call(ctx, n.job, contract.DeleteShoot, n.shootInput()) }),
		one("WaitShootGone", true, func(ctx context.Context) error { return call(ctx, n.job, contract.WaitShootGone, n.shootInput()) }),
		one("DeleteOIDC", false, func(ctx context.Context) error { return call(ctx, n.job, contract.AWS.DeleteIssuer, n.oidc()) }),
		one("DeleteBucket", false, func(ctx context.Context) error {
			return call(ctx, n.job, contract.AWS.DeleteBucket, contract.DeleteBucketInput{CloudResourceInput: n.aws(n.plan.BucketName), Retain: n.plan.RetainBucket})
		}),
		one("DeleteBinding", false, func(ctx context.Context) error { return call(ctx, n.job, contract.DeleteBinding, n.plan) }),
		one("ProveAbsence", false, func(ctx context.Context) error {
			return call(ctx, n.job, contract.AWS.Sweep, contract.SweepInput{Account: n.plan.Account, Owner: n.ref()})
		}),
	}
}

// waitUnused waits until no Cluster refers to the Network; the last one that
// goes wakes it.
func (n *network) waitUnused(ctx context.Context) error {
	var users v1.ClusterList
	if err := n.b.List(ctx, &users, client.InNamespace(n.o.Namespace), client.MatchingFields{indexNetwork: n.o.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	if len(users.Items) > 0 {
		n.condition(v1.ConditionDeletionBlocked, true, "InUse", "waits until its Clusters are deleted")
		return errNotYet
	}
	return nil
}

func (n *network) aws(name string) contract.CloudResourceInput {
	return contract.CloudResourceInput{Account: n.plan.Account, Owner: n.ref(), Env: n.plan.Env, Name: name}
}

func (n *network) shootInput() contract.ShootInput {
	return contract.ShootInput{Object: n.ref(), Owner: n.ref(), Shoot: n.plan.Shoot}
}

func (n *network) oidc() contract.IssuerInput {
	return contract.IssuerInput{Account: n.plan.Account, Owner: n.ref(), Env: n.plan.Env, IssuerURL: n.shoot.Issuer}
}

func (n *network) zone() contract.ZoneInput {
	in := contract.ZoneInput{CloudResourceInput: n.aws(n.plan.DNSZoneName), Visibility: n.plan.DNSVisibility}
	if n.o.Status.VPC != nil {
		in.VPCID = n.o.Status.VPC.ID
	}
	return in
}
