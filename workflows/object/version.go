package object

import "go.temporal.io/sdk/workflow"

// superseded says that another version of the workers than this run's is
// current (Worker Deployment Versioning; never without it), as of the workflow
// task that runs. An object workflow that has rested begins its next run then.
func superseded(ctx workflow.Context) bool {
	return workflow.GetInfo(ctx).GetTargetWorkerDeploymentVersionChanged()
}

// continueAsNew starts the next run of an object workflow: on the version of
// the workers that is current, where this run is pinned to another.
func continueAsNew(ctx workflow.Context, kind string, in Input) error {
	if !superseded(ctx) {
		return workflow.NewContinueAsNewError(ctx, kind, in)
	}
	return workflow.NewContinueAsNewErrorWithOptions(ctx, workflow.ContinueAsNewErrorOptions{
		InitialVersioningBehavior: workflow.ContinueAsNewVersioningBehaviorAutoUpgrade,
	}, kind, in)
}
