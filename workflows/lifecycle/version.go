package lifecycle

import "go.temporal.io/sdk/workflow"

// outdated says that an object workflow that has rested should begin its next
// run: another version of the workers than this run's is current, and nobody
// waits for an answer of this run.
func outdated(ctx workflow.Context) bool {
	return superseded(ctx) && workflow.AllHandlersFinished(ctx)
}

// superseded says that another version of the workers than this run's is
// current (Worker Deployment Versioning; never without it), as of the workflow
// task that runs.
func superseded(ctx workflow.Context) bool {
	return workflow.GetInfo(ctx).GetTargetWorkerDeploymentVersionChanged()
}

// continueAsNew starts the next run of an object workflow: on the version of
// the workers that is current, where this run is pinned to another.
func continueAsNew(ctx workflow.Context, kind string, in ObjectInput) error {
	if !superseded(ctx) {
		return workflow.NewContinueAsNewError(ctx, kind, in)
	}
	return workflow.NewContinueAsNewErrorWithOptions(ctx, workflow.ContinueAsNewErrorOptions{
		InitialVersioningBehavior: workflow.ContinueAsNewVersioningBehaviorAutoUpgrade,
	}, kind, in)
}
