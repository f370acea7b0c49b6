package network

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
	"github.com/tidbcloud/infra-orchestrator/workflows/operation"
)

// DeleteNetwork removes a Network from whatever state it is in: everything
// outside Gardener's knowledge first, then the Shoot, then what the Shoot
// needed. It ends with the proof that nothing is left.
func DeleteNetwork(ctx workflow.Context, in lifecycle.Input) (lifecycle.Result, error) {
	return operation.Run(ctx, in, operation.Deletion(in, newNetwork(in).deleteSteps()...)...)
}

func (n *network) deleteSteps() []operation.Step {
	return []operation.Step{
		n.inspectStep(),
		{Name: "CleanShoot", Doc: "remove load balancers and volumes from the Shoot", Budget: 15 * time.Minute, Run: operation.Unless(&n.void, n.cleanShoot)},
		n.deleteDNSZone(), n.deleteShoot(), n.waitShootGone(), n.deleteOIDC(), n.deleteBucket(), n.deleteBinding(),
		{Name: "ProveAbsence", Doc: "look for anything that still carries the identity", Run: operation.Unless(&n.void, n.proveAbsence)},
	}
}

func (n *network) inspectStep() operation.Step {
	return operation.Step{Name: "Inspect", Doc: "see what exists", Run: n.inspect}
}

// These steps undo those of a creation that is cancelled, too.

func (n *network) deleteDNSZone() operation.Step {
	return operation.Step{Name: "DeleteDNSZone", Doc: "DNS zone", Run: operation.Unless(&n.void, func(ctx workflow.Context) error {
		if n.plan.DNSZoneName == "" {
			return nil
		}
		return operation.Remove(ctx, keyZone, n.cloud.DeleteZone, n.zone(), "dnsZone")
	})}
}

func (n *network) deleteShoot() operation.Step {
	return operation.Step{Name: "DeleteShoot", Doc: "confirm and delete the Shoot", Run: operation.Unless(&n.void, func(ctx workflow.Context) error {
		_, err := operation.Do(operation.About(ctx, keyShoot), contract.DeleteShoot, n.shootInput())
		return err
	})}
}

// waitShootGone names what keeps the VPC, when Gardener fails for that.
func (n *network) waitShootGone() operation.Step {
	return operation.Step{Name: "WaitShootGone", Doc: "Gardener to remove the Shoot and its VPC", Budget: 90 * time.Minute, Limit: &n.plan.ShootDeleteTimeout,
		Run: operation.Unless(&n.void, func(ctx workflow.Context) error {
			if _, err := operation.WaitShoot(operation.About(ctx, keyShoot), contract.WaitShootGone, n.shootInput()); err != nil {
				return n.explain(ctx, err)
			}
			operation.Forget(ctx, keyShoot)
			operation.Unpublish(ctx, "vpc")
			// Its names stay: a deletion goes by them.
			return n.publishShoot(ctx, contract.ShootStatus{TechnicalID: n.swept(ctx)})
		})}
}

func (n *network) deleteOIDC() operation.Step {
	// It finds them by identity, too: an earlier Shoot of the Network had another
	// issuer, and this operation may know of none.
	return operation.Step{Name: "DeleteOIDC", Doc: "trust in the Shoot's service accounts", Run: operation.Unless(&n.void, func(ctx workflow.Context) error {
		return operation.Remove(ctx, keyOIDC, n.cloud.DeleteIssuer, n.oidc(), "oidc")
	})}
}

func (n *network) deleteBucket() operation.Step {
	return operation.Step{Name: "DeleteBucket", Doc: "bucket, kept when it holds backups to retain", Budget: 30 * time.Minute,
		Run: operation.Unless(&n.void, n.removeBucket)}
}

func (n *network) deleteBinding() operation.Step {
	return operation.Step{Name: "DeleteBinding", Doc: "credentials binding, unless another Network uses it", Shared: []operation.Shared{
		{Key: keyBinding, By: "other Networks of the Provider use it, too: leave it while there is one"}}, Run: operation.Unless(&n.void, func(ctx workflow.Context) error {
		return operation.Remove(ctx, keyBinding, contract.DeleteBinding, n.plan)
	})}
}

// inspect pins the plan and looks at the Shoot, so that the steps after it
// start from what exists. A Network that never passed Preflight has nothing,
// and may well have a spec that cannot be resolved.
func (n *network) inspect(ctx workflow.Context) (err error) {
	if n.void, err = operation.Void(ctx, operation.Published(ctx, "shoot", &v1.NetworkShootStatus{}), n.resolve); err != nil || n.void {
		return err
	}
	if n.shoot, err = operation.Do(ctx, contract.ObserveShoot, n.shootInput()); err != nil {
		return err
	}
	if n.shoot.Issuer == "" {
		// The Shoot may be gone already: what was published still names it, which
		// is quicker than to look for it.
		var oidc v1.NetworkOIDCStatus
		operation.Published(ctx, "oidc", &oidc)
		n.shoot.Issuer = oidc.Issuer
	}
	var vpc v1.NetworkVPCStatus
	operation.Published(ctx, "vpc", &vpc)
	n.vpc.ID = vpc.ID
	return nil
}

// cleanShoot needs a living API server: a Shoot that never ran has nothing.
func (n *network) cleanShoot(ctx workflow.Context) error {
	if !n.shoot.Exists || n.shoot.Issuer == "" || n.shoot.OperationType == "Create" && n.shoot.OperationState != "Succeeded" ||
		n.shoot.OperationType == "Delete" {
		return nil
	}
	_, err := operation.Do(operation.About(ctx, keyShoot), contract.CleanShoot, n.shootInput())
	return err
}

func (n *network) removeBucket(ctx workflow.Context) error {
	out, err := operation.Do(operation.About(ctx, keyBucket), n.cloud.DeleteBucket, contract.DeleteBucketInput{
		CloudResourceInput: n.named(n.plan.BucketName), Retain: n.plan.RetainBucket,
	})
	if err != nil {
		return err
	}
	if out.Resource.State == v1.ResourceRetained {
		operation.Record(ctx, keyBucket, out.Resource)
		operation.Tell(ctx, false, "Retained", "%s", out.Note)
		return nil
	}
	operation.Forget(ctx, keyBucket)
	operation.Unpublish(ctx, "bucket")
	return nil
}

func (n *network) proveAbsence(ctx workflow.Context) error {
	in := contract.SweepInput{Account: n.plan.Account, Owner: n.in.Object, TechnicalID: n.swept(ctx)}
	left, err := operation.Do(ctx, n.cloud.Sweep, in)
	if err != nil {
		return err
	}
	return operation.ProveAbsence(ctx, left.Resources)
}

// swept is the technical ID of the Shoot that the Network has had, "" when it
// never had one: the name alone may be that of somebody else's.
func (n *network) swept(ctx workflow.Context) string {
	var had v1.NetworkShootStatus
	operation.Published(ctx, "shoot", &had)
	switch {
	case n.shoot.TechnicalID != "":
		return n.shoot.TechnicalID
	case had.TechnicalID != "":
		return had.TechnicalID
	case had.UID != "" || n.shoot.Exists:
		return n.technicalID()
	}
	return ""
}

// explain adds the dependents of the VPC to a Dependency fault.
func (n *network) explain(ctx workflow.Context, err error) error {
	if temporal.IsCanceledError(err) {
		return err
	}
	f := faults.FromTemporal(err)
	if f.Class != faults.Dependency {
		return err
	}
	in := contract.DiscoverVPCInput{Account: n.plan.Account, TechnicalID: n.technicalID()}
	left, lerr := operation.Do(ctx, n.cloud.ListVPCDependents, in)
	if lerr == nil && len(left.Resources) > 0 {
		f.Message += "; still attached: " + operation.Names(left.Resources)
	}
	return faults.ToTemporal(f)
}
