package cluster_test

import (
	"testing"

	"github.com/tidbcloud/infra-orchestrator/workflows/cluster"
	"github.com/tidbcloud/infra-orchestrator/workflows/workflowtest"
)

func TestEveryStep(t *testing.T) { workflowtest.EveryStep(t, cluster.Kind()) }

func TestReplay(t *testing.T) { workflowtest.Replay(t, cluster.Kind()) }
