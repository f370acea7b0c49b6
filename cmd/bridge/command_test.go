package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/internal/manifests"
	"github.com/tidbcloud/infra-orchestrator/internal/runtime"
)

// The Deployment that we ship starts: every argument is a flag, and all of
// them together are accepted.
func TestDeploymentArguments(t *testing.T) {
	args, err := manifests.Arguments("../../deploy/kustomize", "infra-bridge", "bridge")
	require.NoError(t, err)
	require.NotEmpty(t, args)
	cmd := newCommand()
	require.NoError(t, cmd.ParseFlags(args))
	leads, err := cmd.Flags().GetBool("leader-elect")
	require.NoError(t, err)
	require.True(t, leads, "two replicas need --leader-elect")
}

func TestRefusals(t *testing.T) {
	for _, tc := range []struct{ arg, err string }{
		{"--resync=10ms", "--resync"},
		{"--enable-o11y-agent", "not supported yet"},
		{"--config=/nonexistent.yaml", "--config"},
		{"--kubeconfig=/nonexistent", "/nonexistent"},
		{"surplus", "unknown command"},
	} {
		t.Run(tc.arg, func(t *testing.T) {
			cmd := newCommand()
			cmd.SetArgs([]string{tc.arg})
			require.ErrorContains(t, cmd.ExecuteContext(t.Context()), tc.err)
		})
	}
}

// The Lease may be where nobody deletes it with the objects.
func TestLeaseNamespace(t *testing.T) {
	require.Equal(t, "objects", (&options{Flags: runtime.Flags{Namespace: "objects"}}).leaseNamespace())
	require.Equal(t, "control", (&options{Flags: runtime.Flags{Namespace: "objects"}, leaseIn: "control"}).leaseNamespace())
}

func TestVersion(t *testing.T) {
	var out bytes.Buffer
	cmd := newCommand()
	cmd.SetArgs([]string{"--version"})
	cmd.SetOut(&out)
	require.NoError(t, cmd.Execute())
	require.Regexp(t, `^bridge \S+ \(go1\.`, out.String())
}

func TestWebhookOptions(t *testing.T) {
	for _, tc := range []struct{ arg, err string }{
		{"--webhook-bind-address=9443", "--webhook-bind-address"},
		{"--webhook-bind-address=:0", `"0" is no port`},
		{"--webhook-url=http://127.0.0.1:1", "want an https:// address"},
		{"--webhook-cert-dir=/nonexistent", "--webhook-cert-dir"},
	} {
		t.Run(tc.arg, func(t *testing.T) {
			cmd := newCommand()
			cmd.SetArgs([]string{tc.arg})
			require.ErrorContains(t, cmd.ExecuteContext(t.Context()), tc.err)
		})
	}
	cmd := newCommand()
	cmd.SetArgs([]string{"--webhook-url=https://127.0.0.1:1", "--webhook-cert-dir=/"})
	require.ErrorContains(t, cmd.ExecuteContext(t.Context()), "leave out --webhook-cert-dir")
}

// No server, and no caches, when webhooks are not wanted.
func TestWithoutWebhooks(t *testing.T) {
	hooks, err := newWebhookServer(&options{}, runtime.Config{}, nil)
	require.NoError(t, err)
	require.Nil(t, hooks)
	require.Nil(t, hooks.server())
	require.NoError(t, hooks.waitForCaches(t.Context()))
}
