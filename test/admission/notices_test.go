package admission

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/internal/admissioncases"
	"github.com/tidbcloud/infra-orchestrator/test/stack"
)

// later are the kinds whose lifecycle is yet to come.
var later = []string{"Backup", "Import", "NetworkPeer", "Restore", "TiCDC"}

// startBridge runs a bridge for a namespace. It goes on without Temporal.
func startBridge(t *testing.T, namespace string) {
	t.Helper()
	require.NoError(t, server.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	log, err := os.Create(filepath.Join(t.TempDir(), "bridge.log"))
	require.NoError(t, err)
	cmd := exec.Command(filepath.Join(stack.Root(), "bin", "bridge"), "--kubeconfig", server.kubeconfig, "--namespace", namespace,
		"--metrics-bind-address", "0", "--health-probe-bind-address", "0")
	cmd.Env = append(os.Environ(), "ENABLE_WEBHOOKS=false", "TEMPORAL_ADDRESS=127.0.0.1:1")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	require.NoError(t, cmd.Start(), "make build makes bin/bridge")
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		if t.Failed() {
			_ = stack.PrintTail(log.Name())
		}
	})
}

// An object of a kind without a lifecycle says so by itself, at once, and can be
// deleted at once.
func TestKindsWithoutLifecycle(t *testing.T) {
	const namespace = "notices"
	startBridge(t, namespace)
	for _, kind := range later {
		u := create(t, kind, namespace)
		require.Eventually(t, func() bool {
			require.NoError(t, server.client.Get(t.Context(), client.ObjectKeyFromObject(u), u))
			return condition(u, "Stalled") == "True/NotImplemented"
		}, 30*time.Second, 50*time.Millisecond, kind)
		require.Equal(t, "False/NotImplemented", condition(u, "Ready"), kind)
		require.Equal(t, "False/NotImplemented", condition(u, "Progressing"), kind)
		phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
		require.Equal(t, "Pending", phase, kind)
		require.Empty(t, u.GetFinalizers(), "nobody would remove it")
	}
	require.Regexp(t, `shown +c1 +Manual +Pending +False +NotImplemented`, kubectl(t, "-n", namespace, "get", "backup"))
	out := kubectl(t, "-n", namespace, "get", "ticdc", "shown", "-o", `jsonpath={.status.conditions[?(@.type=="Progressing")].message}`)
	require.Equal(t, "A TiCDC is accepted and kept, but nothing acts on it in this version; delete it, or keep it for a version that does", out)

	takeOver(t, "Backup", namespace)
	for _, kind := range later {
		u := object(t, kind, namespace)
		require.NoError(t, server.client.Delete(t.Context(), u))
		require.True(t, apierrors.IsNotFound(server.client.Get(t.Context(), client.ObjectKeyFromObject(u), u)), kind)
	}

	create(t, "Account", namespace)
	kubectl(t, "-n", namespace, "wait", "--for=condition=Ready", "--timeout=30s", "account/shown")
}

// takeOver applies what the first report of an operation would: the notice goes.
func takeOver(t *testing.T, kind, namespace string) {
	u := object(t, kind, namespace)
	delete(u.Object, "spec")
	u.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": "Progressing", "status": "True", "reason": "Running", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z",
	}}}
	apply := client.ApplyConfigurationFromUnstructured(u)
	require.NoError(t, server.client.Status().Apply(t.Context(), apply, client.FieldOwner("infra-provider-operation"), client.ForceOwnership))
	got := object(t, kind, namespace)
	require.NoError(t, server.client.Get(t.Context(), client.ObjectKeyFromObject(got), got))
	require.Equal(t, "True/Running", condition(got, "Progressing"))
	require.Empty(t, condition(got, "Stalled"), "left over")
}

func object(t *testing.T, kind, namespace string) *unstructured.Unstructured {
	t.Helper()
	table := server.tables[kindIndex(t, kind)]
	o, err := table.Small(admissioncases.Changes{"metadata.namespace": namespace, "metadata.name": "shown"})
	require.NoError(t, err)
	return &unstructured.Unstructured{Object: o}
}

func create(t *testing.T, kind, namespace string) *unstructured.Unstructured {
	t.Helper()
	u := object(t, kind, namespace)
	require.NoError(t, server.client.Create(t.Context(), u))
	return u
}

// condition is the status and the reason of a condition, parted by a slash.
func condition(u *unstructured.Unstructured, name string) string {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == name {
			return m["status"].(string) + "/" + m["reason"].(string)
		}
	}
	return ""
}
