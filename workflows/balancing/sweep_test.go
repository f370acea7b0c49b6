package balancing_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	"github.com/tidbcloud/infra-orchestrator/faults"
	"github.com/tidbcloud/infra-orchestrator/workflows/balancing"
)

// world answers the activities.
type world struct {
	mu       sync.Mutex
	plans    []contract.BalancersPlan // one a page
	planErr  error
	after    []string
	changed  []string
	running  int
	most     int // of changes at a time
	reported []int
	fail     map[string]error // of EnsureBalanced
	together int              // so many changes run at a time, at first
	met      chan struct{}
}

func (w *world) register(env *testsuite.TestWorkflowEnvironment) {
	env.RegisterWorkflowWithOptions(balancing.BalanceReplicas, workflow.RegisterOptions{Name: temporal.WorkflowBalanceReplicas})
	named := func(name string) activity.RegisterOptions { return activity.RegisterOptions{Name: name} }
	env.RegisterActivityWithOptions(func(_ context.Context, in contract.PlanBalancersInput) (contract.BalancersPlan, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.after = append(w.after, in.After)
		if w.planErr != nil {
			return contract.BalancersPlan{}, faults.ToTemporal(w.planErr)
		}
		return w.plans[min(len(w.after), len(w.plans))-1], nil
	}, named(contract.PlanBalancers.Name))
	env.RegisterActivityWithOptions(func(_ context.Context, ref contract.BalancerRef) (contract.BalancerOutcome, error) {
		w.begin(ref.String())
		w.mu.Lock()
		defer w.mu.Unlock()
		w.running--
		if err := w.fail[ref.String()]; err != nil {
			return contract.BalancerOutcome{}, faults.ToTemporal(err)
		}
		return contract.BalancerOutcome{Changed: "a 3→5, b 7→5"}, nil
	}, named(contract.EnsureBalanced.Name))
	env.RegisterActivityWithOptions(func(_ context.Context, in contract.BalancerStatusesInput) (contract.StatusesOutcome, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.reported = append(w.reported, len(in.Balancers))
		return contract.StatusesOutcome{Written: len(in.Balancers)}, nil
	}, named(contract.ApplyBalancerStatuses.Name))
}

// begin notes that a change runs. The first ones wait for each other when
// together is set.
func (w *world) begin(name string) {
	w.mu.Lock()
	w.changed = append(w.changed, name)
	w.running++
	w.most = max(w.most, w.running)
	first := len(w.changed) <= w.together
	if first && len(w.changed) == w.together {
		close(w.met)
	}
	w.mu.Unlock()
	if first {
		<-w.met
	}
}

func changes(n int) (list []contract.BalancerChange) {
	for i := range n {
		list = append(list, contract.BalancerChange{
			BalancerRef: contract.BalancerRef{Namespace: "default", Name: fmt.Sprintf("web-%02d", i)}, Summary: "a 3→5, b 7→5",
		})
	}
	return list
}

func refs(n int) (list []contract.BalancerRef) {
	for i := range n {
		list = append(list, contract.BalancerRef{Namespace: "default", Name: fmt.Sprintf("web-%04d", i)})
	}
	return list
}

// swept runs one sweep.
func swept(t *testing.T, w *world, in temporal.Sweep) (*testsuite.TestWorkflowEnvironment, balancing.Result) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(slog.New(slog.DiscardHandler))
	env := suite.NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // the machine may be busy
	w.register(env)
	env.ExecuteWorkflow(temporal.WorkflowBalanceReplicas, in)
	require.True(t, env.IsWorkflowCompleted())
	var result balancing.Result
	if env.GetWorkflowError() == nil {
		require.NoError(t, env.GetWorkflowResult(&result))
	}
	return env, result
}

func TestNothingToDo(t *testing.T) {
	w := &world{plans: []contract.BalancersPlan{{Looked: 10_000, Failing: 2}}}
	env, result := swept(t, w, temporal.Sweep{})
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, balancing.Result{Balancers: 10_000, Failing: 2}, result)
	require.Empty(t, w.changed)
	require.Empty(t, w.reported)
}

// A Balancer that fails is told, and touches no other.
func TestFailuresAreIsolated(t *testing.T) {
	w := &world{together: 2, met: make(chan struct{}), plans: []contract.BalancersPlan{{Looked: 5, Changes: changes(5), Reports: refs(600)}}, fail: map[string]error{
		"default/web-01": faults.New(faults.Auth, "Forbidden", "balancer default/web-01", "no rights"),
		"default/web-02": errors.New("a bug"),
	}}
	env, result := swept(t, w, temporal.Sweep{Concurrency: 2})
	require.NoError(t, env.GetWorkflowError())
	require.Len(t, result.Changed, 3)
	require.Contains(t, result.Changed, "default/web-00: a 3→5, b 7→5")
	require.Len(t, result.Failed, 2)
	require.Contains(t, strings.Join(result.Failed, "\n"), "no rights")
	require.Equal(t, 600, result.Reported)
	slices.Sort(w.reported)
	require.Equal(t, []int{100, 250, 250}, w.reported)
	require.Equal(t, 2, w.most, "no more at a time than told")
}

// Workers that serve nothing else have all that a sweep needs.
func TestQueue(t *testing.T) {
	w := &world{plans: []contract.BalancersPlan{{Looked: 1, Changes: changes(1), Reports: refs(1)}}}
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(slog.New(slog.DiscardHandler))
	env := suite.NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // the machine may be busy
	w.register(env)
	var seen []string
	env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
		seen = append(seen, info.ActivityType.Name+" on "+info.TaskQueue)
	})
	env.ExecuteWorkflow(temporal.WorkflowBalanceReplicas, temporal.Sweep{})
	require.NoError(t, env.GetWorkflowError())
	require.Contains(t, seen, "balancing.EnsureBalanced on infra-balancing")
	require.Contains(t, seen, "balancing.ApplyBalancerStatuses on infra-balancing")
}

func TestPages(t *testing.T) {
	w := &world{plans: []contract.BalancersPlan{{Looked: 200, Changes: changes(3), Next: "default/web-02"}}}
	env, _ := swept(t, w, temporal.Sweep{Concurrency: 5, After: "default/a"})
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, env.GetWorkflowError(), &again)
	var next temporal.Sweep
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(again.Input, &next))
	require.Equal(t, temporal.Sweep{Concurrency: 5, After: "default/web-02"}, next)
	require.Len(t, w.changed, 3)
	require.Equal(t, []string{"default/a"}, w.after)
}

// A sweep that cannot plan fails, visibly; the next one is a period away.
func TestPlanFails(t *testing.T) {
	w := &world{planErr: faults.New(faults.Transient, "X", "cache", "broken")}
	env, _ := swept(t, w, temporal.Sweep{})
	require.ErrorContains(t, env.GetWorkflowError(), "broken")
	require.Len(t, w.after, 2)
}

// The golden histories are recorded on the devstack by `make golden`.
func TestReplay(t *testing.T) {
	r := worker.NewWorkflowReplayer()
	r.RegisterWorkflowWithOptions(balancing.BalanceReplicas, workflow.RegisterOptions{Name: temporal.WorkflowBalanceReplicas})
	files, err := filepath.Glob(filepath.Join("testdata", "histories", "*.json"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 2, "one with changes and one with nothing to do: run make golden")
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			require.NoError(t, r.ReplayWorkflowHistoryFromJSONFile(nil, f))
		})
	}
}
