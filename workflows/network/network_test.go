package network_test

import (
	"testing"

	"github.com/tidbcloud/infra-orchestrator/workflows/network"
	"github.com/tidbcloud/infra-orchestrator/workflows/workflowtest"
)

func TestEveryStep(t *testing.T) { workflowtest.EveryStep(t, network.Kind()) }

func TestReplay(t *testing.T) { workflowtest.Replay(t, network.Kind()) }
