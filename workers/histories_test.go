package workers_test

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/activities/aws"
	"github.com/tidbcloud/infra-orchestrator/activities/balancing"
	"github.com/tidbcloud/infra-orchestrator/activities/configservice"
	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/activities/garden"
	"github.com/tidbcloud/infra-orchestrator/activities/management"
	"github.com/tidbcloud/infra-orchestrator/activities/operations"
	"github.com/tidbcloud/infra-orchestrator/activities/shoot"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/workers"
	"github.com/tidbcloud/infra-orchestrator/workflows/workflowtest"
)

// unrecorded are the activities without a golden history, and why.
var unrecorded = map[string]string{
	contract.AWS.DeleteVolumes.Name: "runs only when a sweep finds disks, which is when a Shoot went before its Cluster; no scene of test/golden does that yet",
}

// Every activity occurs in a golden history, or else a change of the way that
// leads to it would meet operations in flight without any test. A new activity
// without one fails here: add a scene to test/golden, then `hack/golden
// -missing`.
func TestEveryActivityHasAHistory(t *testing.T) {
	missing := names{}
	for _, folder := range []workers.Registrar{
		&aws.Activities{}, &balancing.Activities{}, &configservice.Activities{}, &garden.Activities{},
		&management.Activities{}, &operations.Activities{}, &shoot.Activities{},
	} {
		folder.Register(missing)
	}
	require.Greater(t, len(missing), 55, "what workers serve is not found any more")
	registered := names{}
	workflowtest.New(v1.KindNetwork).Register(registered)
	for name := range registered {
		require.Contains(t, missing, name, "no folder of activities has it: name that folder here")
	}

	files, err := filepath.Glob(filepath.Join("..", "workflows", "*", "testdata", "histories", "*.json*"))
	require.NoError(t, err)
	for _, f := range files {
		h, err := workflowtest.Load(f)
		require.NoError(t, err, f)
		found, err := workflowtest.Activities(h)
		require.NoError(t, err, f)
		for _, name := range found {
			require.NotContains(t, unrecorded, name, "%s has it: it is no exception any more", f)
			delete(missing, name)
		}
	}
	maps.DeleteFunc(missing, func(name string, _ bool) bool { return unrecorded[name] != "" })
	require.Empty(t, slices.Sorted(maps.Keys(missing)), "these occur in no golden history")
}
