// Package provider holds the operations of Provider and ProviderType. Both
// own nothing outside this API: creating verifies, deleting waits until
// nothing refers to them.
package provider

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
	"github.com/tidbcloud/infra-orchestrator/workflows/operation"
)

// Kind is the Provider for the kernel.
func Kind() lifecycle.Kind {
	return lifecycle.Kind{Name: "Provider", Well: v1.PhaseNormal, Phases: phases(),
		Operations: map[lifecycle.Verb]lifecycle.Operation{
			lifecycle.Create: CreateProvider, lifecycle.Update: UpdateProvider, lifecycle.Delete: DeleteProvider,
		}}
}

// TypeKind is the ProviderType for the kernel.
func TypeKind() lifecycle.Kind {
	return lifecycle.Kind{Name: "ProviderType", Well: v1.PhaseNormal, Phases: phases(),
		Operations: map[lifecycle.Verb]lifecycle.Operation{
			lifecycle.Create: CreateProviderType, lifecycle.Update: UpdateProviderType, lifecycle.Delete: DeleteProviderType,
		}}
}

func phases() map[lifecycle.Verb]v1.Phase {
	return map[lifecycle.Verb]v1.Phase{
		lifecycle.Create: v1.PhaseCreating, lifecycle.Update: v1.PhaseUpdating, lifecycle.Delete: v1.PhaseDeleting,
	}
}

// CreateProvider checks a Provider's references and credentials.
func CreateProvider(ctx workflow.Context, in lifecycle.Input) (lifecycle.Result, error) {
	return operation.Run(ctx, in, verifySteps(in)...)
}

// UpdateProvider checks them again.
func UpdateProvider(ctx workflow.Context, in lifecycle.Input) (lifecycle.Result, error) {
	return operation.Run(ctx, in, verifySteps(in)...)
}

// DeleteProvider waits until no Network uses the Provider and lets it go.
func DeleteProvider(ctx workflow.Context, in lifecycle.Input) (lifecycle.Result, error) {
	return operation.Run(ctx, in, operation.Deletion(in)...)
}

// CreateProviderType checks a ProviderType.
func CreateProviderType(ctx workflow.Context, in lifecycle.Input) (lifecycle.Result, error) {
	return operation.Run(ctx, in, checkStep(in))
}

// UpdateProviderType checks it again.
func UpdateProviderType(ctx workflow.Context, in lifecycle.Input) (lifecycle.Result, error) {
	return operation.Run(ctx, in, checkStep(in))
}

// DeleteProviderType waits until no Provider is of the type and lets it go.
func DeleteProviderType(ctx workflow.Context, in lifecycle.Input) (lifecycle.Result, error) {
	return operation.Run(ctx, in, operation.Deletion(in)...)
}

func verifySteps(in lifecycle.Input) []operation.Step {
	var plan contract.ProviderPlan
	var cloud contract.Cloud
	return []operation.Step{
		{Name: "Preflight", Doc: "check spec and references", Budget: 2 * time.Minute, Run: func(ctx workflow.Context) (err error) {
			if plan, err = operation.Do(ctx, contract.PlanProvider, in.Object); err != nil {
				return err
			}
			cloud, err = operation.CloudOf(plan.Cloud)
			return err
		}},
		{Name: "VerifyCredentials", Doc: "ask the cloud whose the credentials are", Budget: 2 * time.Minute, Run: func(ctx workflow.Context) error {
			who, err := operation.Do(ctx, cloud.VerifyCredentials, plan.Account)
			if err != nil {
				return err
			}
			operation.SetCondition(ctx, v1.ConditionCredentialsValid, true, "Verified", "the credentials belong to "+who.Principal)
			if plan.CredentialsHash == "" {
				return nil
			}
			return operation.Publish(ctx, "credentialsHash", plan.CredentialsHash)
		}},
	}
}

func checkStep(in lifecycle.Input) operation.Step {
	return operation.Step{Name: "Preflight", Doc: "check spec and references", Budget: 2 * time.Minute, Run: func(ctx workflow.Context) error {
		_, err := operation.Do(ctx, contract.PlanProviderType, in.Object)
		return err
	}}
}
