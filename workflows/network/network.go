// Package network holds the operations of a Network: Create, Update, Delete.
package network

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
	"github.com/tidbcloud/infra-orchestrator/workflows/operation"
)

// Kind is the Network for the kernel.
func Kind() lifecycle.Kind {
	return lifecycle.Kind{
		Name: "Network", Well: v1.PhaseNormal, Keeper: true,
		Phases: map[lifecycle.Verb]v1.Phase{
			lifecycle.Create: v1.PhaseCreating, lifecycle.Update: v1.PhaseUpdating, lifecycle.Delete: v1.PhaseDeleting,
		},
		Operations: map[lifecycle.Verb]lifecycle.Operation{
			lifecycle.Create: CreateNetwork, lifecycle.Update: UpdateNetwork, lifecycle.Delete: DeleteNetwork,
		},
	}
}

// Keys of the ledger.
const (
	keyBinding = "binding"
	keyBucket  = "bucket"
	keyShoot   = "shoot"
	keyVPC     = "vpc"
	keyOIDC    = "oidc-provider"
	keyZone    = "dns-zone"
)

// network is the state of one operation: what its steps have found.
type network struct {
	in    lifecycle.Input
	plan  contract.NetworkPlan
	cloud contract.Cloud
	shoot contract.ShootStatus
	vpc   contract.VPC
	hash  string // of the config-service's bundle
	void  bool   // nothing was ever made, see inspect
}

func newNetwork(in lifecycle.Input) *network { return &network{in: in} }

// resolve validates the Network and pins its plan for the whole operation.
func (n *network) resolve(ctx workflow.Context) (err error) {
	if n.plan, err = operation.Do(ctx, contract.PlanNetwork, n.in.Object); err != nil {
		return err
	}
	n.cloud, err = operation.CloudOf(n.plan.Cloud)
	return err
}

func (n *network) shootInput() contract.ShootInput {
	return contract.ShootInput{Object: n.in.Object, Owner: n.in.Object, Shoot: n.plan.Shoot}
}

func (n *network) named(name string) contract.CloudResourceInput {
	return contract.CloudResourceInput{Account: n.plan.Account, Owner: n.in.Object, Env: n.plan.Env, Name: name}
}

func (n *network) zone() contract.ZoneInput {
	return contract.ZoneInput{CloudResourceInput: n.named(n.plan.DNSZoneName), Visibility: n.plan.DNSVisibility, VPCID: n.vpc.ID}
}

func (n *network) oidc() contract.IssuerInput {
	return contract.IssuerInput{Account: n.plan.Account, Owner: n.in.Object, Env: n.plan.Env, IssuerURL: n.shoot.Issuer}
}

// technicalID is Gardener's name for everything of the Shoot in the cloud, see
// ComputeTechnicalID in https://github.com/gardener/gardener/tree/master/pkg/utils/gardener.
func (n *network) technicalID() string {
	return fmt.Sprintf("shoot--%s--%s", n.plan.Project, n.plan.Shoot.Name)
}
