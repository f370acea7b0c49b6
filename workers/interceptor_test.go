package workers

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/activities/reads"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// What an attempt has read arrives at the workflow with its fault.
func TestAFaultSaysWhatItsAttemptHasUsed(t *testing.T) {
	ctx := reads.Note(t.Context())
	reads.Used(ctx, "Secret/key", "uid/7")
	reads.Used(ctx, "Secret/key", "uid/8")
	refused := faults.New(faults.Auth, "Refused", "key", "no")
	got := faults.FromTemporal(faults.ToTemporal(used(ctx, refused)))
	require.Equal(t, map[string]string{"Secret/key": "uid/7"}, got.Used, "what was read first may be what failed")
	require.Equal(t, faults.Auth, got.Class)
	require.Nil(t, refused.Used, "a fault that others share is left alone")
	passing := faults.New(faults.Transient, "Away", "", "no")
	require.Same(t, passing, used(ctx, passing), "it passes by itself")
}
