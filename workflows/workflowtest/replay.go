package workflowtest

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
)

// Replay replays every golden history in testdata/histories of the calling
// package: a change that breaks operations in flight fails here. The histories
// are recorded on the devstack by `make golden`, never by hand.
func Replay(t *testing.T, kinds ...lifecycle.Kind) {
	r := worker.NewWorkflowReplayer()
	operations := 0
	for _, k := range kinds {
		r.RegisterWorkflowWithOptions(k.Object, workflow.RegisterOptions{Name: k.Name})
		for verb, run := range k.Operations {
			r.RegisterWorkflowWithOptions(run, workflow.RegisterOptions{Name: k.OperationType(verb)})
			operations++
		}
	}
	files, err := filepath.Glob(filepath.Join("testdata", "histories", "*.json"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), operations, "each operation type needs a golden history: run make golden")
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			require.NoError(t, r.ReplayWorkflowHistoryFromJSONFile(nil, f))
		})
	}
}
