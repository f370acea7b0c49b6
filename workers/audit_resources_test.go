package workers_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
	"github.com/tidbcloud/infra-orchestrator/workers"
	"github.com/tidbcloud/infra-orchestrator/workers/audit"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
	"github.com/tidbcloud/infra-orchestrator/workflows/workflowtest"
)

// names collects what is registered.
type names map[string]bool

func (n names) RegisterActivityWithOptions(_ any, o activity.RegisterOptions) { n[o.Name] = true }

// Every activity of the contract that changes something names what it changes:
// the ledger's entry by its key, and an external id; or the object, where that
// itself is changed. A new activity without one fails here: start it through
// operation.About, Ensure or Remove, and let it return its Resource or say what
// it changes (activities/audited).
func TestEveryChangeNamesAResource(t *testing.T) {
	missing := names{}
	workflowtest.New(v1.KindNetwork).Register(missing)
	maps.DeleteFunc(missing, func(name string, _ bool) bool {
		effect, _ := contract.EffectOf(name)
		return effect != contract.Mutates
	})
	require.Greater(t, len(missing), 25, "the contract is not found any more")
	delete(missing, contract.AnswerVerb.Name) // TestAuditOfAVerb

	for _, kind := range workers.Kinds() {
		world := workflowtest.New(kind.Name)
		// A wait that stalls once asks Gardener to try again.
		world.Before = func(name string, times int) error {
			if name == contract.WaitShootReady.Name && times == 1 {
				return faults.New(faults.Quota, "LimitExceeded", "the thing", "no more of them")
			}
			return nil
		}
		if kind.Name == v1.KindCluster { // of a Shoot that went first
			world.Left = []v1.Resource{{Provider: "aws", Type: "EC2::Volume", ID: "vol-1"}}
		}
		for _, verb := range []lifecycle.Verb{lifecycle.Create, lifecycle.Update, lifecycle.Delete} {
			for _, r := range outcomesOf(t, world, verb) {
				require.Equal(t, audit.OutcomeOK, r.Outcome, r.Activity)
				requireNamed(t, r)
				delete(missing, r.Activity)
			}
		}
	}
	require.Empty(t, slices.Sorted(maps.Keys(missing)), "no operation runs these; what do they change?")
}

func requireNamed(t *testing.T, r audit.Record) {
	t.Helper()
	in := r.OperationType + ": " + r.Activity
	require.NotNil(t, r.Object, in)
	require.NotEmpty(t, r.Object.ID, in)
	if strings.HasPrefix(r.Activity, "management.") {
		return // the object is what it changes
	}
	require.NotEmpty(t, r.Resource, "%s: which entry of the ledger?", in)
	ids := []string{}
	if r.Before != nil {
		ids = append(ids, r.Before.ID)
	}
	if r.After != nil {
		ids = append(ids, r.After.ID)
	}
	for _, c := range r.Changed {
		ids = append(ids, c.ID)
	}
	require.NotEmpty(t, ids, "%s: which external resource?", in)
	require.NotContains(t, ids, "", in)
}
