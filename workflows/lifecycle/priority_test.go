package lifecycle

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/temporal"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
)

func TestPriorityOf(t *testing.T) {
	acme := Facts{Account: "acme", Provider: "acme-west"}
	for name, c := range map[string]struct {
		verb  Verb
		facts Facts
		want  sdk.Priority
	}{
		"creation":           {Create, acme, sdk.Priority{PriorityKey: 2, FairnessKey: "account/acme"}},
		"deletion":           {Delete, acme, sdk.Priority{PriorityKey: 2, FairnessKey: "account/acme"}},
		"update":             {Update, acme, sdk.Priority{PriorityKey: 4, FairnessKey: "account/acme"}},
		"nobody's wish":      {"Resync", acme, sdk.Priority{PriorityKey: 5, FairnessKey: "account/acme"}},
		"no account yet":     {Create, Facts{Provider: "acme-west"}, sdk.Priority{PriorityKey: 2, FairnessKey: "provider/acme-west"}},
		"of no account ever": {Create, Facts{}, sdk.Priority{PriorityKey: 2, FairnessKey: "namespace/infra"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := Input{Verb: c.verb, Facts: c.facts, Object: contract.ObjectRef{Kind: "Network", Namespace: "infra", Name: "n1"}}
			require.Equal(t, c.want, PriorityOf(in))
		})
	}
}

// Temporal refuses a workflow whose fairness key is too long, and two accounts
// must not share one because their names begin alike.
func TestFairnessKeyOfLongNames(t *testing.T) {
	long := strings.Repeat("a", 253)
	one, other := fairnessKey(Input{Facts: Facts{Account: long}}), fairnessKey(Input{Facts: Facts{Account: long[1:]}})
	require.LessOrEqual(t, len(one), maxFairnessKey)
	require.True(t, strings.HasPrefix(one, "account/aaaa"), one)
	require.NotEqual(t, one, other)
	exact := strings.Repeat("b", maxFairnessKey-len("account/"))
	require.Equal(t, "account/"+exact, fairnessKey(Input{Facts: Facts{Account: exact}}))
}
