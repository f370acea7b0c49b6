package audit

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/activities/audited"
	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
)

func thing(id string) v1.Resource {
	return v1.Resource{Provider: "garden", Type: "Shoot", ID: id, State: v1.ResourcePresent}
}

func known(id, state string) lifecycle.External {
	return lifecycle.External{Provider: "garden", Type: "Shoot", ID: id, State: state}
}

// A wait counts as reading; what it changes after all has records of its own.
func TestAWaitThatChangesSomething(t *testing.T) {
	b := newBench(t)
	register(b, contract.WaitShootGone, func(ctx context.Context, _ contract.ShootInput) (contract.None, error) {
		require.Len(t, b.out.records(t), 1, "the start alone")
		require.NoError(t, audited.Change(ctx, thing("a/b"), func() error {
			all := b.out.records(t)
			require.Equal(t, StageIntent, all[len(all)-1].Stage, "the intent is written before the change")
			require.Equal(t, []lifecycle.External{known("a/b", "")}, all[len(all)-1].Changed)
			return nil
		}))
		return contract.None{}, audited.Change(ctx, thing("a/b"), func() error { return faults.New(faults.Throttled, "Conflict", "a/b", "changed") })
	})
	_, err := b.ExecuteActivity(contract.WaitShootGone.Name, contract.ShootInput{})
	require.ErrorContains(t, err, "changed")
	all := b.out.records(t)
	require.Len(t, all, 5)
	require.Equal(t, OutcomeOK, all[2].Outcome)
	require.Equal(t, []lifecycle.External{known("a/b", "Present")}, all[2].Changed)
	require.Equal(t, "Throttled", all[4].Outcome)
	require.Equal(t, []lifecycle.External{known("a/b", "")}, all[4].Changed)
	for i, r := range all[1:] {
		require.Equal(t, contract.WaitShootGone.Name, r.Activity)
		require.EqualValues(t, 1, r.Attempt)
		require.Equal(t, all[1+i/2*2].Call, r.Call, "an intent and its outcome")
	}
	require.NotEqual(t, all[1].Call, all[3].Call)
}

func TestAWaitChangesNothingUnrecorded(t *testing.T) {
	b := newBench(t)
	register(b, contract.WaitShootGone, func(ctx context.Context, _ contract.ShootInput) (contract.None, error) {
		return contract.None{}, audited.Change(ctx, thing("a/b"), func() error { t.Error("changed all the same"); return nil })
	})
	b.out.fail = func([]byte) (int, error) { return 0, syscall.ENOSPC }
	_, err := b.ExecuteActivity(contract.WaitShootGone.Name, contract.ShootInput{})
	require.ErrorContains(t, err, "nothing was done")
}

// What an activity changes is known also when it fails half-way.
func TestChangesOfAnActivity(t *testing.T) {
	b := newBench(t)
	register(b, contract.CleanShoot, func(ctx context.Context, _ contract.ShootInput) (contract.None, error) {
		for _, id := range []string{"a", "b", "a"} {
			require.NoError(t, audited.Change(ctx, thing(id), func() error { return nil }))
		}
		return contract.None{}, audited.ChangeAll(ctx, []v1.Resource{thing("b"), thing("c")}, func() error { return errors.New("boom") })
	})
	_, err := b.ExecuteActivity(contract.CleanShoot.Name, contract.ShootInput{})
	require.ErrorContains(t, err, "boom")
	all := b.out.records(t)
	require.Len(t, all, 3, "one intent, one outcome")
	require.Empty(t, all[1].Changed)
	require.Equal(t, []lifecycle.External{known("a", "Present"), known("b", ""), known("c", "")}, all[2].Changed)
}

func TestChangesOfAPanic(t *testing.T) {
	b := newBench(t)
	register(b, contract.CleanShoot, func(ctx context.Context, _ contract.ShootInput) (contract.None, error) {
		return contract.None{}, audited.Change(ctx, thing("a"), func() error { panic("oh") })
	})
	_, err := b.ExecuteActivity(contract.CleanShoot.Name, contract.ShootInput{})
	require.Error(t, err)
	all := b.out.records(t)
	require.Equal(t, OutcomePanic, all[2].Outcome)
	require.Equal(t, []lifecycle.External{known("a", "")}, all[2].Changed)
}

func TestChangesAreBounded(t *testing.T) {
	c, r := &changes{}, &Record{}
	for i := range maxChanged + 7 {
		require.NoError(t, c.Change(func() error { return nil }, []v1.Resource{thing(fmt.Sprint(i))}))
	}
	c.into(r)
	require.Len(t, r.Changed, maxChanged)
	require.Equal(t, 7, r.ChangedMore)
}

// An activity whose workflow names no caller is about the object in its input.
func TestObjectWithoutACaller(t *testing.T) {
	b := newBench(t)
	register(b, contract.AnswerVerb, func(context.Context, contract.VerbAnswer) (contract.None, error) { return contract.None{}, nil })
	register(b, contract.EnsureBalanced, func(context.Context, contract.BalancerRef) (contract.BalancerOutcome, error) {
		return contract.BalancerOutcome{}, nil
	})
	_, err := b.ExecuteActivity(contract.AnswerVerb.Name, contract.VerbAnswer{Ref: contract.ObjectRef{Kind: "Network", Namespace: "infra", Name: "n1", ID: "1"}})
	require.NoError(t, err)
	_, err = b.ExecuteActivity(contract.EnsureBalanced.Name, contract.BalancerRef{Namespace: "tenant", Name: "b1"})
	require.NoError(t, err)
	all := b.out.records(t)
	require.Equal(t, &Object{Kind: "Network", Namespace: "infra", Name: "n1", ID: "1"}, all[1].Object)
	require.Equal(t, &Object{Kind: "Balancer", Namespace: "tenant", Name: "b1"}, all[4].Object)
}
