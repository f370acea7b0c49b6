package admission

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/internal/admissioncases"
	"github.com/tidbcloud/infra-orchestrator/test/stack"
)

// kubectl runs kubectl as users do and returns what it prints.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(stack.Root(), "bin", "devstack"), append([]string{"kubectl"}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+server.kubeconfig)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "kubectl %v: %s", args, out)
	t.Logf("kubectl %v\n%s", args, out)
	return string(out)
}

// The examples of the API reference can be applied.
func TestExamples(t *testing.T) {
	reference, err := os.ReadFile(filepath.Join(stack.Root(), "docs", "api.md"))
	require.NoError(t, err)
	examples, err := admissioncases.Examples(string(reference))
	require.NoError(t, err)
	for _, table := range server.tables {
		require.Contains(t, examples, table.Kind)
		u := &unstructured.Unstructured{Object: examples[table.Kind]}
		require.NoError(t, server.client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.DryRunAll, client.FieldOwner("kubectl")), table.Kind)
	}
}

// So can the samples, file by file.
func TestSamples(t *testing.T) {
	for _, folder := range []string{"aws", "day-2"} {
		out := kubectl(t, "apply", "--server-side", "--dry-run=server", "-f", filepath.Join(stack.Root(), "deploy", "samples", folder))
		require.Contains(t, out, "serverside-applied (server dry run)")
	}
}

func TestExplain(t *testing.T) {
	out := kubectl(t, "explain", "network.spec.cidr")
	for _, want := range []string{
		`FIELD: cidr <Object>`, `CIDR are the address ranges of the VPC, of Pods and of Services`,
		`vpc\s+<string>\s+VPC is the range of the VPC, within the ProviderType.s networkLimits;`,
		`pods\s+<string>\s+Pods is the range of Pods; 100\.64\.0\.0/11 by default\.`,
	} {
		require.Regexp(t, want, out)
	}
	require.NotContains(t, kubectl(t, "explain", "cluster", "--recursive"), "<no description>")
	require.Contains(t, kubectl(t, "explain", "cdc.spec.downstream"), "Type is TiDBCluster, MySQL, Kafka or Storage.")
}

// kubectl get infra lists all kinds, each with the columns that tell it apart.
func TestGetInfra(t *testing.T) {
	for _, table := range server.tables {
		o, err := table.Small(admissioncases.Changes{"metadata.namespace": "infra", "metadata.name": "shown"})
		require.NoError(t, err)
		require.NoError(t, server.client.Create(t.Context(), &unstructured.Unstructured{Object: o}))
	}
	external, err := server.tables[kindIndex(t, "NetworkPeer")].With(admissioncases.Changes{"metadata.namespace": "infra", "metadata.name": "outside"})
	require.NoError(t, err)
	require.NoError(t, server.client.Create(t.Context(), &unstructured.Unstructured{Object: external}))
	out := kubectl(t, "-n", "infra", "get", "infra")
	for _, row := range []string{
		`account\.cloud\.pingcap\.com/shown +1 `,
		`backup\.cloud\.pingcap\.com/shown +c1 +Manual`,
		`cluster\.cloud\.pingcap\.com/shown +net +v8\.5\.2 +1 +3`,
		`import\.cloud\.pingcap\.com/shown +c1 +gs://data/ +SQL`,
		`networkpeer\.cloud\.pingcap\.com/shown +n1 +n2`,
		`networkpeer\.cloud\.pingcap\.com/outside +n1 +vpc-0a1b2c3d4e5f67890`,
		`network\.cloud\.pingcap\.com/shown +prov +us-west-2`,
		`provider\.cloud\.pingcap\.com/shown +t +acme`,
		`providertype\.cloud\.pingcap\.com/shown +AWS +Gardener`,
		`restore\.cloud\.pingcap\.com/shown +c2 +b1`,
		`ticdc\.cloud\.pingcap\.com/shown +c1 +c2`,
	} {
		require.Regexp(t, regexp.MustCompile(row), out)
	}
	require.Contains(t, kubectl(t, "-n", "infra", "get", "backups", "--field-selector", "spec.clusterName=c1"), "shown")
	require.NotContains(t, kubectl(t, "-n", "infra", "get", "backups", "--field-selector", "spec.clusterName=c9"), "shown")
	for _, short := range []string{"acct", "ptype", "prov", "net", "tidb", "peer", "bk", "rst", "imp", "cdc"} {
		require.Contains(t, kubectl(t, "-n", "infra", "get", short), "shown")
	}
}

func kindIndex(t *testing.T, kind string) int {
	t.Helper()
	for i, table := range server.tables {
		if table.Kind == kind {
			return i
		}
	}
	t.Fatal("no table of " + kind)
	return 0
}
