package lifecycle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

func TestDecide(t *testing.T) {
	op := func(kind string, generation int64, state v1.OperationState) *v1.OperationStatus {
		return &v1.OperationStatus{Type: kind, Generation: generation, State: state}
	}
	of := func(uid string, op *v1.OperationStatus) *v1.OperationStatus {
		op.UID = uid
		return op
	}
	for _, c := range []struct {
		name   string
		state  contract.ObjectState
		asked  string
		action action
		verb   Verb
		reason string
	}{
		{name: "gone", action: actEnd},
		{name: "new", state: contract.ObjectState{Exists: true, Generation: 1}, action: actRun, verb: Create},
		{name: "done", state: contract.ObjectState{Exists: true, Generation: 3, ObservedGeneration: 3}, action: actSettle, reason: "Ready"},
		{name: "changed", state: contract.ObjectState{Exists: true, Generation: 4, ObservedGeneration: 3}, action: actRun, verb: Update},
		{name: "deleted", state: contract.ObjectState{Exists: true, Generation: 4, ObservedGeneration: 3, Deleting: true}, action: actRun, verb: Delete},
		{name: "deleted when new", state: contract.ObjectState{Exists: true, Generation: 2, Deleting: true}, action: actRun, verb: Delete},
		{name: "another object of that name", state: contract.ObjectState{Exists: true, Generation: 1, ID: "other", UID: "new"}, action: actReplace},
		{name: "another object of that name, not claimed yet", state: contract.ObjectState{Exists: true, Generation: 1, UID: "new"}, action: actYield},
		{name: "identity changed in place", state: contract.ObjectState{Exists: true, Generation: 1, ID: "other", UID: "known"}, action: actWait, reason: "IdentityChanged"},
		{name: "paused", state: contract.ObjectState{Exists: true, Generation: 1, Paused: true}, action: actWait, reason: "Paused"},
		{name: "creation was cancelled", state: contract.ObjectState{Exists: true, Generation: 1, Operation: op("Create", 1, v1.OperationCancelled)},
			action: actWait, verb: Create, reason: "Cancelled"},
		{name: "creation was terminated", state: contract.ObjectState{Exists: true, Generation: 1, Operation: op("Create", 1, v1.OperationFailed)},
			action: actWait, verb: Create, reason: "Failed"},
		{name: "creation was cancelled, spec changed since", state: contract.ObjectState{Exists: true, Generation: 2, Operation: op("Create", 1, v1.OperationCancelled)},
			action: actRun, verb: Create},
		{name: "creation was cancelled, deleted since", state: contract.ObjectState{Exists: true, Generation: 2, Deleting: true, Operation: op("Create", 1, v1.OperationCancelled)},
			action: actRun, verb: Delete},
		{name: "creation was cancelled, retry asked", asked: "retry", state: contract.ObjectState{Exists: true, Generation: 1, Operation: op("Create", 1, v1.OperationCancelled)},
			action: actRun, verb: Create},
		{name: "deletion was terminated", state: contract.ObjectState{Exists: true, Generation: 2, Deleting: true, Operation: op("Delete", 2, v1.OperationFailed)},
			action: actWait, verb: Delete, reason: "Failed"},
		{name: "deletion gave way to a forced one", state: contract.ObjectState{Exists: true, Generation: 2, Deleting: true, Operation: op("Delete", 2, v1.OperationCancelled),
			Conditions: []metav1.Condition{{Type: v1.ConditionProgressing, Reason: "Preempted"}}}, action: actRun, verb: Delete},
		{name: "reconcile asked", asked: "reconcile", state: contract.ObjectState{Exists: true, Generation: 3, ObservedGeneration: 3}, action: actRun, verb: Update},
		{name: "reconcile asked of a paused object", asked: "reconcile", state: contract.ObjectState{Exists: true, Generation: 3, ObservedGeneration: 3, Paused: true}, action: actSettle, reason: "Ready"},
		{name: "reconcile was cancelled", state: contract.ObjectState{Exists: true, Generation: 3, ObservedGeneration: 3, Operation: op("Update", 3, v1.OperationCancelled)},
			action: actWait, verb: Update, reason: "Cancelled"},
		{name: "reconcile with a long history gave way to the next", state: contract.ObjectState{Exists: true, Generation: 3, ObservedGeneration: 3, Operation: op("Update", 3, v1.OperationCancelled),
			Conditions: []metav1.Condition{{Type: v1.ConditionProgressing, Reason: "Superseded"}}}, action: actRun, verb: Update},
		{name: "update was cancelled, a later generation is there", state: contract.ObjectState{Exists: true, Generation: 4, ObservedGeneration: 4, Operation: op("Update", 3, v1.OperationCancelled)},
			action: actSettle, reason: "Ready"},
		{name: "creation ended while no object workflow ran", state: contract.ObjectState{Exists: true, Generation: 1, Operation: op("Create", 1, v1.OperationSucceeded)},
			action: actSettle, reason: "Ready"},
		{name: "creation ended while no object workflow ran, changed since", state: contract.ObjectState{Exists: true, Generation: 2, Operation: op("Create", 1, v1.OperationSucceeded)},
			action: actRun, verb: Update},
		{name: "restored", state: contract.ObjectState{Exists: true, UID: "known", Generation: 1, ObservedGeneration: 4, Operation: of("former", op("Update", 4, v1.OperationSucceeded))},
			action: actRun, verb: Create},
		{name: "restored after its creation was cancelled", state: contract.ObjectState{Exists: true, UID: "known", Generation: 1, Operation: of("former", op("Create", 1, v1.OperationCancelled))},
			action: actRun, verb: Create},
		{name: "restored after its deletion, and deleted", state: contract.ObjectState{Exists: true, UID: "known", Generation: 2, Deleting: true, Operation: of("former", op("Delete", 2, v1.OperationSucceeded))},
			action: actRun, verb: Delete},
		{name: "restored and paused", state: contract.ObjectState{Exists: true, UID: "known", Generation: 1, ObservedGeneration: 4, Paused: true, Operation: of("former", op("Update", 4, v1.OperationSucceeded))},
			action: actWait, reason: "Paused"},
		{name: "not restored", state: contract.ObjectState{Exists: true, UID: "known", Generation: 1, ObservedGeneration: 1, Operation: of("known", op("Create", 1, v1.OperationSucceeded))},
			action: actSettle, reason: "Ready"},
		{name: "changed while paused", state: contract.ObjectState{Exists: true, Generation: 4, ObservedGeneration: 3, Paused: true}, action: actWait, reason: "Paused"},
		{name: "paused and deleted", state: contract.ObjectState{Exists: true, Generation: 2, Deleting: true, Paused: true}, action: actWait, reason: "Paused"},
		{name: "deletion done, another finalizer is left", state: contract.ObjectState{Exists: true, Generation: 2, Deleting: true, Operation: op("Delete", 2, v1.OperationSucceeded)},
			action: actEnd},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := decide("mine", "known", c.state, c.asked)
			assert.Equal(t, c.action, d.action)
			assert.Equal(t, c.verb, d.verb)
			assert.Equal(t, c.reason, d.reason)
			if d.action == actWait {
				assert.NotEmpty(t, d.text, "who waits must be told what to do")
			}
		})
	}
}

func TestAttemptOf(t *testing.T) {
	for previous, want := range map[string]int64{
		"":                                   0,
		"network/infra/n1/create/4.2":        2,
		"network/infra/n1/create/3.9":        0, // for another generation
		"network/infra/n1/create/something":  0,
		"network/infra/4.7/create/4.1":       1,
		"network/infra/n1/create/4.10":       10,
		"network/infra/n1/create/4":          0,
		"network/infra/n1/create/4.-":        0,
		"network/infra/n1/create/4.3.trail":  3,
		"network/infra/n1.4.5/delete/44.120": 0,
	} {
		assert.Equal(t, want, attemptOf(Input{Generation: 4, Previous: previous}), previous)
	}
}

func TestSpreadIsStableAndBounded(t *testing.T) {
	seen := map[time.Duration]bool{}
	for i := range int32(100) {
		d := spread(10*time.Minute, "cluster/infra/c1/create/1.1", i)
		assert.Equal(t, d, spread(10*time.Minute, "cluster/infra/c1/create/1.1", i))
		assert.GreaterOrEqual(t, d, 8*time.Minute)
		assert.LessOrEqual(t, d, 12*time.Minute)
		seen[d] = true
	}
	assert.Greater(t, len(seen), 50, "attempts must not wake together")
}

func TestWithConditionKeepsTransitionTime(t *testing.T) {
	old, now := metav1.NewTime(time.Unix(100, 0)), metav1.NewTime(time.Unix(200, 0))
	list := []metav1.Condition{{Type: "Stalled", Status: metav1.ConditionFalse, LastTransitionTime: old}}
	same := withCondition(list, metav1.Condition{Type: "Stalled", Status: metav1.ConditionFalse, Reason: "New", LastTransitionTime: now})
	assert.Equal(t, old, same[0].LastTransitionTime)
	assert.Equal(t, "New", same[0].Reason)
	changed := withCondition(list, metav1.Condition{Type: "Stalled", Status: metav1.ConditionTrue, LastTransitionTime: now})
	assert.Equal(t, now, changed[0].LastTransitionTime)
	assert.Len(t, withCondition(list, metav1.Condition{Type: "Progressing"}), 2)
	assert.Empty(t, list[0].Reason, "the list given is left alone")
}

func TestTitle(t *testing.T) {
	in := Input{Object: contract.ObjectRef{Kind: "Network", Namespace: "infra", Name: "n1"}, Verb: Create, Facts: Facts{Cloud: "AWS", Region: "us-west-2"}}
	assert.Equal(t, "Create Network infra/n1 on AWS us-west-2", in.Title())
	in.Object.Kind, in.Facts.Network = "Cluster", "n1"
	assert.Equal(t, "Create Cluster infra/n1 in network n1", in.Title())
	in.Facts = Facts{}
	assert.Equal(t, "Create Cluster infra/n1", in.Title())
}

func TestMarkdownOfAStall(t *testing.T) {
	at := func(s int64) *metav1.Time { m := metav1.NewTime(time.Unix(s, 0)); return &m }
	in := Input{Object: contract.ObjectRef{Kind: "Network", Namespace: "infra", Name: "n1"}, Verb: Create, Generation: 2}
	op := v1.OperationStatus{Step: "EnsureShoot", Progress: 50, Steps: []v1.StepStatus{
		{Name: "Preflight", State: v1.StepSucceeded, StartedAt: at(0), FinishedAt: at(3)},
		{Name: "EnsureShoot", State: v1.StepStalled, StartedAt: at(3)},
		{Name: "WaitShootReady", State: v1.StepPending},
	}}
	last := &v1.LastError{Class: string(faults.Quota), Step: "EnsureShoot", Owner: "operator", Message: "shoot n1: too many VPCs", Hint: "raise the limit", NextRetryAt: at(1800)}
	docs := map[string]string{"Preflight": "check", "EnsureShoot": "order the Shoot", "WaitShootReady": "the Shoot to be healthy"}
	assert.Equal(t, `**Create Network infra/n1** (generation 2), 50 %

**Stalled in EnsureShoot: Quota.** shoot n1: too many VPCs

For the operator: raise the limit. Tries again by itself at 1970-01-01T00:30:00Z.

| | step | what | took |
|---|---|---|---|
| ✓ | Preflight | check | 3s |
| ✗ | EnsureShoot | order the Shoot | since 00:00:03 UTC |
| · | WaitShootReady | the Shoot to be healthy |  |
`, markdown(in, op, last, docs))
	assert.Contains(t, markdown(in, op, nil, docs), "Waits for **EnsureShoot**: order the Shoot.")
	op.State, op.StartedAt, op.FinishedAt = v1.OperationSucceeded, at(0), at(63)
	assert.Contains(t, markdown(in, op, nil, docs), "**Succeeded** after 1m3s.")
}
