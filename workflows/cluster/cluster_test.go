package cluster_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/faults"
	"github.com/tidbcloud/infra-orchestrator/workflows/cluster"
	"github.com/tidbcloud/infra-orchestrator/workflows/workflowtest"
)

func TestEveryStep(t *testing.T) { workflowtest.EveryStep(t, cluster.Kind()) }

func TestReplay(t *testing.T) { workflowtest.Replay(t, cluster.Kind()) }

// An update shows what is observed until it is observed anew: an empty object
// in its place is null to server-side apply, which the CRD refuses, and with it
// every report.
func TestUpdateKeepsWhatIsObserved(t *testing.T) {
	e := workflowtest.NewEnv(t, cluster.Kind())
	e.State.Generation, e.State.ObservedGeneration = 2, 1
	e.State.Details = map[string]json.RawMessage{"observed": json.RawMessage(`{"version":"v8.5.2"}`)}
	e.Before = func(activity string, times int) error {
		if activity == contract.EnsureRole.Name && times == 1 {
			return faults.New(faults.Quota, "LimitExceeded", "role", "no more of them") // which is told
		}
		return nil
	}
	e.Rest(24 * time.Hour)
	e.RunObject()
	require.Greater(t, len(e.Reports()), 2)
	for _, r := range e.Reports() {
		require.Contains(t, string(r.Details["observed"]), "v8.5.2", "step %s", r.Operation.Step)
	}
}
