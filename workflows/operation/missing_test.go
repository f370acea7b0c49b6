package operation_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
	"github.com/tidbcloud/infra-orchestrator/workflows/operation"
	"github.com/tidbcloud/infra-orchestrator/workflows/workflowtest"
)

// beside is a kind whose creation waits for two things at the same time, which
// two steps make one after the other.
func beside() lifecycle.Kind {
	does := func(a contract.Activity[contract.ShootInput, contract.ShootStatus]) func(workflow.Context) error {
		return func(ctx workflow.Context) error {
			_, err := operation.Do(ctx, a, contract.ShootInput{})
			return err
		}
	}
	makes := func(a contract.Activity[contract.NetworkPlan, contract.Outcome]) func(workflow.Context) error {
		return func(ctx workflow.Context) error {
			_, err := operation.Do(ctx, a, contract.NetworkPlan{})
			return err
		}
	}
	return creation(func(ctx workflow.Context, in lifecycle.Input) (lifecycle.Result, error) {
		return operation.Run(ctx, in,
			operation.Step{Name: "MakeFirst", Run: makes(contract.EnsureBinding)},
			operation.Step{Name: "MakeSecond", Run: makes(contract.EnsureShoot)},
			operation.Together(
				operation.Step{Name: "WaitSecond", Run: does(contract.WaitShootReady), Remake: "MakeSecond"},
				operation.Step{Name: "WaitFirst", Run: does(contract.ObserveShoot), Remake: "MakeFirst"},
			),
		)
	})
}

// creation is a kind that can only be created.
func creation(create lifecycle.Operation) lifecycle.Kind {
	return lifecycle.Kind{Name: "Network", Well: v1.PhaseNormal,
		Phases:     map[lifecycle.Verb]v1.Phase{lifecycle.Create: v1.PhaseCreating},
		Operations: map[lifecycle.Verb]lifecycle.Operation{lifecycle.Create: create}}
}

// Of steps beside each other that all miss something the earliest maker is gone
// back to, once each has ended.
func TestStepsBesideEachOtherGoBackTogether(t *testing.T) {
	for name, both := range map[string]bool{"one": false, "both": true} {
		t.Run(name, func(t *testing.T) {
			e := workflowtest.NewEnv(t, beside())
			e.Before = func(activity string, _ int) error {
				made := func(maker string) bool {
					return len(slices.DeleteFunc(e.Journal(), func(n string) bool { return n != maker })) > 1
				}
				switch {
				case activity == contract.WaitShootReady.Name && !made(contract.EnsureShoot.Name),
					activity == contract.ObserveShoot.Name && both && !made(contract.EnsureBinding.Name):
					return faults.New(faults.Gone, "NotFound", activity, "it is gone")
				}
				return nil
			}
			e.Rest(time.Hour)
			e.RunObject()
			s := e.Current()
			require.Equal(t, v1.OperationSucceeded, s.Operation.State)
			require.Len(t, s.Operation.Steps, 4)
			for _, step := range s.Operation.Steps {
				require.Equal(t, v1.StepSucceeded, step.State, step.Name)
			}
			firsts := len(slices.DeleteFunc(e.Journal(), func(n string) bool { return n != contract.EnsureBinding.Name }))
			require.Equal(t, both, firsts > 1)
			for _, r := range e.Reports() {
				require.Nil(t, r.LastError)
			}
		})
	}
}

// Each activity of a step looks for something else, so what one has missed and
// found leaves the next its patience; two that miss by turns are told.
func TestEachActivityOfAStepHasItsPatience(t *testing.T) {
	kind := creation(func(ctx workflow.Context, in lifecycle.Input) (lifecycle.Result, error) {
		return operation.Run(ctx, in,
			operation.Step{Name: "Make", Run: func(ctx workflow.Context) error {
				_, err := operation.Do(ctx, contract.EnsureBinding, contract.NetworkPlan{})
				return err
			}},
			operation.Step{Name: "Both", Remake: "Make", Run: func(ctx workflow.Context) error {
				if _, err := operation.Do(ctx, contract.EnsureShoot, contract.NetworkPlan{}); err != nil {
					return err
				}
				_, err := operation.Do(ctx, contract.WaitShootReady, contract.ShootInput{})
				return err
			}},
		)
	})
	gone := faults.New(faults.Gone, "NotFound", "the thing", "it is gone")
	e := workflowtest.NewEnv(t, kind)
	e.Before = func(activity string, times int) error {
		if times == 1 && activity != contract.EnsureBinding.Name {
			return gone
		}
		return nil
	}
	e.Rest(time.Hour)
	e.RunObject()
	require.Equal(t, v1.OperationSucceeded, e.Current().Operation.State)
	for _, r := range e.Reports() {
		require.Nil(t, r.LastError)
		require.False(t, slices.ContainsFunc(r.Events, func(ev contract.Event) bool { return ev.Reason == "Recreated" }))
	}

	e = workflowtest.NewEnv(t, kind)
	e.Before = func(activity string, times int) error {
		if activity == contract.WaitShootReady.Name || activity == contract.EnsureShoot.Name && times%2 == 1 {
			return gone
		}
		return nil
	}
	e.Rest(time.Hour)
	e.RunObject()
	require.Equal(t, v1.OperationBlocked, e.Current().Operation.State)
	require.Less(t, len(e.Journal()), 500)
}
