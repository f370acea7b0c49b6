package provider_test

import (
	"testing"

	"github.com/tidbcloud/infra-orchestrator/workflows/provider"
	"github.com/tidbcloud/infra-orchestrator/workflows/workflowtest"
)

func TestEveryStepOfProvider(t *testing.T)     { workflowtest.EveryStep(t, provider.Kind()) }
func TestEveryStepOfProviderType(t *testing.T) { workflowtest.EveryStep(t, provider.TypeKind()) }

func TestReplay(t *testing.T) { workflowtest.Replay(t, provider.Kind(), provider.TypeKind()) }
