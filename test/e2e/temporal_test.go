package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// temporalShowsIt looks at what an operator sees: readable titles, types and
// search attributes. The page itself is looked at by hack/ui-check.
func temporalShowsIt(t *testing.T) {
	ctx := within(t, time.Minute)
	for kind, title := range map[string]string{
		"CreateNetwork": "Create Network infra/n1 on AWS us-west-2",
		"CreateCluster": "Create Cluster infra/c1 in network n1",
		"UpdateCluster": "Update Cluster infra/c1 in network n1",
	} {
		eventually(t, 20*time.Second, kind+" is listed", func() error {
			found, err := world.Workflows(ctx, fmt.Sprintf(`WorkflowType = %q AND InfraAccount = "acme" AND InfraPhase IS NOT NULL`, kind))
			if err == nil && len(found) != 1 {
				err = fmt.Errorf("%d found", len(found))
			}
			return err
		})
		found, err := world.Workflows(ctx, fmt.Sprintf("WorkflowType = %q", kind))
		require.NoError(t, err)
		d, err := world.Temporal.DescribeWorkflow(ctx, found[0].GetExecution().GetWorkflowId(), "")
		require.NoError(t, err)
		summary, err := d.GetStaticSummary()
		require.NoError(t, err)
		require.Equal(t, title, summary)
	}
}

// noSecretAnywhere looks for the marker in every history, event and log of the
// whole test; the checker has looked at every status all the while.
func noSecretAnywhere(t *testing.T) {
	ctx := within(t, 2*time.Minute)
	require.NoError(t, checker.SearchHistories(ctx, world, "garden-core"))
	require.NoError(t, checker.SearchEvents(ctx))
	require.NoError(t, checker.SearchLogs(world.State.Logs))
	require.NotZero(t, checker.Looks(), "nobody looked into the cloud")
	require.Empty(t, checker.Violations())
}
