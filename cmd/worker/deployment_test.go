package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/internal/manifests"
	"github.com/tidbcloud/infra-orchestrator/workers/command"
)

// The Deployment that we ship starts: every argument is a flag.
func TestDeploymentArguments(t *testing.T) {
	args, err := manifests.Arguments("../../deploy/kustomize", "infra-worker", "worker")
	require.NoError(t, err)
	require.NotEmpty(t, args)
	require.NoError(t, command.New().ParseFlags(args))
}
