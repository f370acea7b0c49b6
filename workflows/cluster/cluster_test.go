package cluster_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
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
		if activity == contract.AWS.EnsureIdentity.Name && times == 1 {
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

// TiKV's disks of a Cluster whose Shoot went first: nobody else deletes them,
// and they are what costs most. What is retained is never touched.
func TestDeletionDeletesDisksThatTheShootLeft(t *testing.T) {
	for _, policy := range []v1.DeletionPolicy{v1.DeletionPolicyDelete, v1.DeletionPolicyRetain} {
		e := workflowtest.NewEnv(t, cluster.Kind())
		e.Left = []v1.Resource{{Provider: "aws", Type: "EC2::Volume", ID: "vol-1"}}
		e.Change(func(s *contract.ObjectState) {
			s.Deleting, s.DeletionPolicy, s.ObservedGeneration = true, policy, 1
			s.Operation = &v1.OperationStatus{ID: "cluster/infra/x1/create/1.1", Type: "Create", Generation: 1, State: v1.OperationSucceeded}
		})
		e.RunObject()
		require.False(t, e.Current().Exists)
		if policy == v1.DeletionPolicyRetain {
			require.NotContains(t, e.Journal(), contract.AWS.DeleteVolumes.Name)
		} else {
			require.Contains(t, e.Journal(), contract.AWS.DeleteVolumes.Name)
		}
	}
}
