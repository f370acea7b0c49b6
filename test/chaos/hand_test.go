package chaos

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/test/chaos/hook"
	"github.com/tidbcloud/infra-orchestrator/test/chaos/lab"
	"github.com/tidbcloud/infra-orchestrator/test/invariants"
)

// hand is what somebody does by hand, just before an activity of an operation.
type hand struct {
	operation, activity, what string
	do                        func(*lab.Lane, context.Context, invariants.Key) error
}

var hands = []hand{
	{"CreateNetwork", contract.WaitShootReady.Name, "its Shoot removed by hand while it is waited for", (*lab.Lane).RemoveShoot},
	{"CreateCluster", contract.WaitDatabaseReady.Name, "its TidbCluster removed by hand while it is waited for", (*lab.Lane).RemoveDatabase},
	{"UpdateCluster", contract.WaitDatabaseReady.Name, "its TidbCluster removed by hand while it is waited for", (*lab.Lane).RemoveDatabase},
	{"DeleteNetwork", contract.DeleteShoot.Name, "the garden's copy of its key is an old one", func(l *lab.Lane, ctx context.Context, _ invariants.Key) error {
		return l.SpoilCredentials(ctx)
	}},
}

// TestHand has somebody remove what an operation waits for, and the garden's
// copy of a key be an old one: what was removed is made again, with an Event
// that says so, and the copy is refreshed. Ends are compared with those of the
// same operations without a hand.
func TestHand(t *testing.T) {
	if !full() {
		t.Skip("part of make chaos; TestSeeded has one of them")
	}
	ownStack(t)
	l := newLane(t, "hand")
	j := &journey{lane: l, part: "hand", expect: newStates()}
	require.NoError(t, j.whole(nothing), "without a hand")
	var arm []*lab.Armed
	j.before = func(operation string, key invariants.Key) string {
		for _, h := range hands {
			if h.operation == operation {
				arm = append(arm, strike(t, l, h, key))
				return h.what
			}
		}
		return ""
	}
	require.NoError(t, j.whole(nothing))
	for _, a := range arm {
		require.True(t, a.Fired(), "%s never comes to %s", a.Workflow, a.Activity)
	}
	require.Len(t, arm, len(hands))
	require.Empty(t, missingEvents(t, l))
	require.NoError(t, checker.Look(t.Context()))
	failUnconverged(t, "hand")
}

// strike holds an operation before an activity until the hand has done its work.
func strike(t *testing.T, l *lab.Lane, h hand, key invariants.Key) *lab.Armed {
	a := l.Conductor.Arm(lab.Rule{Object: lab.WorkflowID(key), Then: hook.Go,
		Boundary: lab.Boundary{Workflow: h.operation, Activity: h.activity, Call: 1, Moment: hook.Before}})
	go func() {
		defer a.Release()
		select {
		case <-a.Reached():
		case <-t.Context().Done():
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if err := h.do(l, ctx, key); err != nil {
			t.Errorf("%s: %s: %v", h.operation, h.what, err)
		}
	}()
	return a
}

// missingEvents are the objects that nothing says of that what they lacked was
// made again.
func missingEvents(t *testing.T, l *lab.Lane) (lacking []string) {
	var list corev1.EventList
	require.NoError(t, l.Stack.Kube.List(within(t, patience), &list, client.InNamespace(l.Name)))
	told := map[string]int{}
	for _, e := range list.Items {
		if e.Reason == "Recreated" {
			told[e.InvolvedObject.Kind]++
		}
	}
	for kind, n := range map[string]int{"Network": 1, "Cluster": 2} {
		if told[kind] < n {
			lacking = append(lacking, fmt.Sprintf("%d of %d Events Recreated of the %s", told[kind], n, kind))
		}
	}
	return lacking
}
