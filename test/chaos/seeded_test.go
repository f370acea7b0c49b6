package chaos

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/test/chaos/hook"
	"github.com/tidbcloud/infra-orchestrator/test/chaos/lab"
	"github.com/tidbcloud/infra-orchestrator/test/invariants"
)

// seededKills is how many workers die in the short subset: each costs the 15 s
// after which Temporal misses a heartbeat.
const seededKills = 1

// TestSeeded is the short subset that runs in CI: every operation, with the
// worker killed at a border that the seed picks, and every 13th mutating call
// losing its answer, in an AWS account that is eventually consistent (every 4th
// operation on what is fresh, from one that the seed picks), and a hand that
// takes something away from one operation. There is no dry run, so ends are compared with each other:
// updates run twice, and must end as they did before.
func TestSeeded(t *testing.T) {
	if full() {
		t.Skip("make chaos runs everything")
	}
	ownStack(t)
	golden, err := lab.Golden()
	require.NoError(t, err)
	r := dice()
	operations := slices.Sorted(keysOf(golden))
	r.Shuffle(len(operations), func(i, k int) { operations[i], operations[k] = operations[k], operations[i] })
	chosen := map[string]lab.Boundary{}
	for _, op := range operations[:seededKills] {
		// A history may be older than the code, and have a call that there is no
		// more: so it says how many there are, not which.
		calls := len(lab.Calls(golden[op]))
		moment := []hook.Moment{hook.Before, hook.After}[r.IntN(2)]
		chosen[op] = lab.Boundary{Workflow: op, Call: 1 + r.IntN(max(1, calls*3/4)), Moment: moment}
	}
	l := newLane(t, "seeded")
	_, off, err := beEventual(t.Context(), l, r.IntN(eventualEvery))
	require.NoError(t, err)
	defer func() { require.NoError(t, off(context.Background())) }()
	n := r.IntN(13)
	l.Gate.SetLose(newLoser(1, func(int) bool { n++; return n%13 == 0 }).lose)
	var armed []*lab.Armed
	h := hands[r.IntN(len(hands))]
	struck := false
	j := &journey{lane: l, part: "seeded", expect: newStates()}
	j.before = func(operation string, key invariants.Key) string {
		b, ok := chosen[operation]
		switch {
		case ok:
		case operation == h.operation && !struck:
			struck = true
			armed = append(armed, strike(t, l, h, key))
			return h.what
		default:
			return "answers lost"
		}
		delete(chosen, operation) // the second time nobody dies
		armed = append(armed, l.Conductor.Arm(lab.Rule{Boundary: b, Object: lab.WorkflowID(key), Then: hook.Kill}))
		return fmt.Sprintf("worker killed %s call %d", b.Moment, b.Call)
	}
	require.NoError(t, j.whole(j.updateAll), "seed %d", seed)
	for _, a := range armed {
		require.True(t, a.Fired(), "seed %d: %+v was never reached", seed, a.Boundary)
	}
	want := seededKills
	if struck {
		want++
	}
	require.Len(t, armed, want)
	require.NoError(t, checker.Look(t.Context()))
	failUnconverged(t, "seeded")
}
