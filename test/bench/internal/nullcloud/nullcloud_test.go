package nullcloud

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
)

func TestFirstCallOfEachObject(t *testing.T) {
	c := New()
	ctx := WithObject(context.Background(), "network/infra/n1")
	out, err := Call(ctx, c, contract.AWS.EnsureBucket, contract.CloudResourceInput{Name: "b"})
	require.NoError(t, err)
	require.Equal(t, "b", out.Resource.ID)
	first := c.First()["network/infra/n1"]
	require.False(t, first.IsZero())
	_, err = Call(ctx, c, contract.AWS.EnsureKey, contract.CloudResourceInput{Name: "k"})
	require.NoError(t, err)
	require.Equal(t, first, c.First()["network/infra/n1"], "only the first counts")
	require.EqualValues(t, 2, c.Calls())
	require.Panics(t, func() { _, _ = Call(ctx, c, contract.PlanNetwork, contract.ObjectRef{}) }, "plans are no call to the cloud")
}
