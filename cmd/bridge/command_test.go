package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/internal/manifests"
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

func TestVersion(t *testing.T) {
	var out bytes.Buffer
	cmd := newCommand()
	cmd.SetArgs([]string{"--version"})
	cmd.SetOut(&out)
	require.NoError(t, cmd.Execute())
	require.Regexp(t, `^bridge \S+ \(go1\.`, out.String())
}
