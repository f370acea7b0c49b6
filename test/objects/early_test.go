package objects

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/activities/operations"
)

// The Network's workflow was terminated while the API server does not answer: what
// is given back before the first look must not be taken away again after it.
func TestAnEarlyReleaseIsOfNoLaterLock(t *testing.T) {
	n := newNetwork(t)
	ops := &operations.Activities{Temporal: n.temporal}
	n.world.Refuse(contract.ReadObject.Name, true)
	require.NoError(t, n.temporal.TerminateWorkflow(t.Context(), n.id, "", "by somebody on call"))
	first, second := n.holder(1), n.holder(2)
	place := func(in contract.LeaseRequest) int {
		a, err := ops.AcquireLease(t.Context(), in)
		require.NoError(t, err)
		return a.Place
	}
	require.Zero(t, place(first)) // EnsureWorkerPools
	_, err := ops.ReleaseLease(t.Context(), first)
	require.NoError(t, err)
	require.Zero(t, place(first)) // RetireWorkerPools, of the same operation
	require.Equal(t, 1, place(second))
	n.world.Refuse(contract.ReadObject.Name, false)
	n.nudge()
	require.Never(t, func() bool { return place(second) == 0 }, 8*time.Second, 500*time.Millisecond, "both hold the exclusive lock")
}
