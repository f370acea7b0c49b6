package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
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

// noSecretAnywhere looks for the marker in every history, status, event and
// log of the whole test.
func noSecretAnywhere(t *testing.T) {
	ctx := within(t, 2*time.Minute)
	all, err := world.Workflows(ctx, "")
	require.NoError(t, err)
	require.NotEmpty(t, all)
	found := false // a search in payloads that cannot be read would prove nothing
	for _, w := range all {
		h, err := world.History(ctx, w.GetExecution().GetWorkflowId(), w.GetExecution().GetRunId())
		require.NoError(t, err)
		raw, err := readable(h)
		require.NoError(t, err)
		clean(t, "history of "+w.GetExecution().GetWorkflowId(), raw)
		found = found || bytes.Contains(raw, []byte("garden-core"))
	}
	require.True(t, found)
	for _, list := range []client.ObjectList{&v1.ProviderList{}, &v1.NetworkList{}, &v1.ClusterList{}, &corev1.EventList{}} {
		require.NoError(t, world.Kube.List(ctx, list))
		raw, err := json.Marshal(list)
		require.NoError(t, err)
		clean(t, fmt.Sprintf("%T", list), raw)
	}
	logs, err := filepath.Glob(filepath.Join(world.State.Logs, "*"))
	require.NoError(t, err)
	require.NotEmpty(t, logs)
	for _, f := range logs {
		raw, err := os.ReadFile(f)
		require.NoError(t, err)
		clean(t, f, raw)
	}
}

func clean(t *testing.T, where string, raw []byte) {
	t.Helper()
	if i := bytes.Index(raw, []byte(marker)); i >= 0 {
		t.Errorf("%s holds a secret: …%s…", where, raw[max(0, i-80):min(len(raw), i+40)])
	}
}

// writeGoldenHistories exports one history of each operation type to the
// folder named by GOLDEN_DIR (make golden).
func writeGoldenHistories(t *testing.T) {
	dir := os.Getenv("GOLDEN_DIR")
	if dir == "" {
		return // an export, not a test: the replay tests beside the workflows use it
	}
	ctx := within(t, time.Minute)
	for _, k := range []string{"Network", "Cluster", "Provider", "ProviderType"} {
		for _, verb := range []string{"", "Create", "Update", "Delete"} {
			found, err := world.Workflows(ctx, fmt.Sprintf(`WorkflowType = %q`, verb+k))
			require.NoError(t, err)
			if len(found) == 0 {
				continue // not every kind was updated
			}
			w := found[len(found)-1].GetExecution()
			h, err := world.History(ctx, w.GetWorkflowId(), w.GetRunId())
			require.NoError(t, err)
			raw, err := exported(h)
			require.NoError(t, err)
			pkg := map[string]string{"ProviderType": "provider"}[k]
			if pkg == "" {
				pkg = strings.ToLower(k)
			}
			to := filepath.Join(dir, pkg, "testdata", "histories")
			require.NoError(t, os.MkdirAll(to, 0o755))
			name := verb
			if name == "" {
				name = "Object"
			}
			require.NoError(t, os.WriteFile(filepath.Join(to, name+k+".json"), raw, 0o644))
		}
	}
}

// readable is a history as JSON with payloads that can be searched.
func readable(h *historypb.History) ([]byte, error) {
	return temporalproto.CustomJSONMarshalOptions{
		Metadata: map[string]any{commonpb.EnablePayloadShorthandMetadataKey: true},
	}.Marshal(h)
}

// exported is a history as the Temporal CLI and UI export it, for replay.
func exported(h *historypb.History) ([]byte, error) {
	return temporalproto.CustomJSONMarshalOptions{Indent: " "}.Marshal(h)
}
