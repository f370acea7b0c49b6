package network_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/workflows/network"
	"github.com/tidbcloud/infra-orchestrator/workflows/workflowtest"
)

// A Shoot that is absent proves nothing of its VPC: the sweep asks for what
// carries the Shoot's name in the cloud, also when the Shoot is gone already; but
// not for a Shoot that the Network never had.
func TestAbsenceOfWhatTheShootHad(t *testing.T) {
	for name, c := range map[string]struct {
		shoot string // status.shoot
		want  string
	}{
		"of a Shoot that was Ready":   {`{"namespace":"garden-core","name":"n1","uid":"u","technicalID":"shoot--core--n1"}`, "shoot--core--n1"},
		"of a Shoot that is gone":     {`{"namespace":"garden-core","name":"n1","technicalID":"shoot--core--n1"}`, "shoot--core--n1"},
		"of a name that was not ours": {`{"namespace":"garden-core","name":"n1"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := workflowtest.NewEnv(t, network.Kind())
			e.Shoot = contract.ShootStatus{}
			e.Change(func(s *contract.ObjectState) {
				s.Deleting, s.ObservedGeneration = true, 1
				s.Details = map[string]json.RawMessage{"shoot": json.RawMessage(c.shoot)}
				s.Operation = &v1.OperationStatus{ID: "network/infra/x1/create/1.1", Type: "Create", Generation: 1, State: v1.OperationSucceeded}
			})
			e.RunObject()
			require.False(t, e.Current().Exists)
			require.Equal(t, c.want, e.Swept.TechnicalID)
		})
	}
}
