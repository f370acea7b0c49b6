package network

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
	"github.com/tidbcloud/infra-orchestrator/workflows/operation"
)

// CreateNetwork makes a Network: credentials, bucket, Shoot, VPC facts,
// identity provider, DNS zone, operators.
func CreateNetwork(ctx workflow.Context, in lifecycle.Input) (lifecycle.Result, error) {
	return operation.Run(ctx, in, newNetwork(in).ensureSteps()...)
}

// UpdateNetwork makes a Network again. Every step is an Ensure, so an
// unchanged spec changes nothing, and what has drifted is put right; but of a
// Shoot that exists the spec is left as it is.
func UpdateNetwork(ctx workflow.Context, in lifecycle.Input) (lifecycle.Result, error) {
	return operation.Run(ctx, in, newNetwork(in).ensureSteps()...)
}

func (n *network) ensureSteps() []operation.Step {
	return []operation.Step{
		{Name: "Preflight", Doc: "check spec, references and credentials", Budget: 2 * time.Minute, Run: n.preflight, Recall: undo(n.inspectStep())},
		{Name: "EnsureBinding", Doc: "bind the provider's credentials in the garden project", Budget: 2 * time.Minute, Run: n.ensureBinding, Undo: undo(n.deleteBinding())},
		operation.Together(
			operation.Step{Name: "EnsureBucket", Doc: "bucket for backups and imports", Run: n.ensureBucket, Undo: undo(n.deleteBucket())},
			operation.Step{Name: "EnsureShoot", Doc: "order the Shoot from Gardener", Budget: 2 * time.Minute, Run: n.ensureShoot, Undo: undo(n.deleteShoot(), n.waitShootGone())},
		),
		{Name: "WaitShootReady", Doc: "the Shoot to be created and healthy", Budget: time.Hour, Limit: &n.plan.ShootCreateTimeout, Run: n.waitShootReady, Remake: "EnsureShoot"},
		{Name: "DiscoverVPC", Doc: "find the VPC that Gardener made", Run: n.discoverVPC},
		{Name: "EnsureOIDC", Doc: "trust in the Shoot's service accounts", Run: n.ensureOIDC, Undo: undo(n.deleteOIDC())},
		{Name: "EnsureDNSZone", Doc: "DNS zone", Run: n.ensureDNSZone, Undo: undo(n.deleteDNSZone()), Skippable: true, Remake: "DiscoverVPC"},
		{Name: "FetchConfig", Doc: "ask the config-service for the operators' bundle", Run: n.fetchConfig},
		{Name: "BootstrapShoot", Doc: "install the operators into the Shoot", Budget: 15 * time.Minute, Run: n.bootstrapShoot, Remake: "EnsureShoot"},
		{Name: "Publish", Doc: "declare the Network ready", Run: n.publish},
	}
}

// undo lists what takes a step back, in order.
func undo(steps ...operation.Step) []operation.Step { return steps }

func (n *network) preflight(ctx workflow.Context) error {
	if err := n.resolve(ctx); err != nil {
		return err
	}
	if _, err := operation.Do(ctx, n.cloud.VerifyCredentials, n.plan.Account); err != nil {
		return err
	}
	// From here on things may exist: a deletion goes by this field. What an
	// earlier operation has published stays until it is observed anew.
	if operation.Published(ctx, "shoot", &v1.NetworkShootStatus{}) {
		return nil
	}
	return n.publishShoot(ctx, contract.ShootStatus{})
}

func (n *network) ensureBinding(ctx workflow.Context) error {
	_, err := operation.Ensure(ctx, keyBinding, contract.EnsureBinding, n.plan)
	return err
}

func (n *network) ensureBucket(ctx workflow.Context) error {
	if _, err := operation.Ensure(ctx, keyBucket, n.cloud.EnsureBucket, n.named(n.plan.BucketName)); err != nil {
		return err
	}
	return operation.Publish(ctx, "bucket", v1.NetworkBucketStatus{Name: n.plan.BucketName})
}

func (n *network) ensureShoot(ctx workflow.Context) error {
	if n.in.Verb.Traits().Makes {
		// Nobody else writes a Shoot that is not there yet.
		_, err := operation.Ensure(ctx, keyShoot, contract.EnsureShoot, n.plan)
		return err
	}
	return operation.WithLock(ctx, n.in.Object, contract.LockShoot, func(ctx workflow.Context) error {
		_, err := operation.Ensure(ctx, keyShoot, contract.EnsureShoot, n.plan)
		return err
	})
}

func (n *network) waitShootReady(ctx workflow.Context) (err error) {
	if n.shoot, err = operation.WaitShoot(operation.About(ctx, keyShoot), contract.WaitShootReady, n.shootInput()); err != nil {
		return err
	}
	operation.SetCondition(ctx, v1.ConditionShootReady, true, "Ready", "the Shoot "+n.plan.Shoot.String()+" is healthy")
	return n.publishShoot(ctx, n.shoot)
}

// publishShoot shows the Shoot in status.shoot.
func (n *network) publishShoot(ctx workflow.Context, s contract.ShootStatus) error {
	return operation.Publish(ctx, "shoot", v1.NetworkShootStatus{
		Namespace: n.plan.Shoot.Namespace, Name: n.plan.Shoot.Name, UID: s.UID, TechnicalID: s.TechnicalID,
		SeedName: s.SeedName, Generation: s.Generation, ObservedGeneration: s.ObservedGeneration, Hibernated: s.Hibernated,
	})
}

func (n *network) discoverVPC(ctx workflow.Context) (err error) {
	n.vpc, err = operation.Do(ctx, n.cloud.DiscoverVPC, contract.DiscoverVPCInput{Account: n.plan.Account, TechnicalID: n.shoot.TechnicalID})
	if err != nil {
		return err
	}
	return operation.Publish(ctx, "vpc", v1.NetworkVPCStatus{ID: n.vpc.ID, CIDR: n.vpc.CIDR, RouteTableIDs: n.vpc.RouteTableIDs, Zones: n.vpc.Zones})
}

func (n *network) ensureOIDC(ctx workflow.Context) error {
	provider, err := operation.Ensure(ctx, keyOIDC, n.cloud.EnsureIssuer, n.oidc())
	if err != nil {
		return err
	}
	return operation.Publish(ctx, "oidc", v1.NetworkOIDCStatus{Issuer: n.shoot.Issuer, ProviderARN: provider.ID})
}

func (n *network) ensureDNSZone(ctx workflow.Context) error {
	if n.plan.DNSZoneName == "" {
		return nil // spec.dns.visibility None
	}
	zone, err := operation.Do(operation.About(ctx, keyZone), n.cloud.EnsureZone, n.zone())
	if err != nil {
		return err
	}
	operation.Record(ctx, keyZone, zone.Resource)
	return operation.Publish(ctx, "dnsZone", v1.NetworkDNSZoneStatus{ID: zone.ID, Name: zone.Name, NameServers: zone.NameServers})
}

func (n *network) fetchConfig(ctx workflow.Context) error {
	ref, err := operation.Do(ctx, contract.FetchNetworkConfig, contract.ConfigQuery{
		Cloud: n.plan.Cloud, Region: n.plan.Region, Tenant: n.plan.Tenant,
	})
	n.hash = ref.Hash
	return err
}

func (n *network) bootstrapShoot(ctx workflow.Context) error {
	in := contract.BootstrapInput{Owner: n.in.Object, Shoot: n.plan.Shoot, ConfigHash: n.hash}
	if _, err := operation.Do(operation.About(ctx, keyShoot), contract.BootstrapShoot, in); err != nil {
		return err
	}
	_, err := operation.Do(ctx, contract.WaitBootstrapped, in)
	return err
}

func (n *network) publish(ctx workflow.Context) error {
	operation.SetExist(ctx, v1.ConditionCloudResourcesReady,
		operation.Part{Name: "bucket", Step: "EnsureBucket"},
		operation.Part{Name: "OIDC provider", Step: "EnsureOIDC"},
		operation.Part{Name: "DNS zone", Step: "EnsureDNSZone", Absent: n.plan.DNSZoneName == ""})
	operation.SetCondition(ctx, v1.ConditionAwake, true, "Awake", "the Shoot runs")
	return n.publishShoot(ctx, n.shoot)
}
