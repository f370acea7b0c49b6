package devserver

import (
	"context"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.temporal.io/server/common/dynamicconfig"
)

const (
	crowd      = 40 // activities of the account that has many
	activities = "activities"
)

// many schedules n activities that nobody serves yet. They inherit the
// workflow's priority and fairness key.
func many(ctx workflow.Context, n int) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{TaskQueue: activities, StartToCloseTimeout: time.Minute})
	futures := make([]workflow.Future, n)
	for i := range futures {
		futures[i] = workflow.ExecuteActivity(ctx, "note")
	}
	for _, f := range futures {
		if err := f.Get(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// One activity of an account that has no other comes soon, however many of
// another wait before it; a more urgent one comes first. Activities inherit
// both from their workflow, which the product relies on.
func TestAccountsTakeTurns(t *testing.T) {
	for name, c := range map[string]struct {
		fair          bool
		single        sdk.Priority
		first, latest int // place of the single one among all
	}{
		"its turn":           {true, sdk.Priority{PriorityKey: 3, FairnessKey: "b"}, 0, 5},
		"more urgent":        {true, sdk.Priority{PriorityKey: 1, FairnessKey: "a"}, 0, 1},
		"less urgent":        {true, sdk.Priority{PriorityKey: 5, FairnessKey: "b"}, crowd - 1, crowd},
		"without the option": {false, sdk.Priority{PriorityKey: 3, FairnessKey: "b"}, crowd - 5, crowd},
	} {
		t.Run(name, func(t *testing.T) {
			order := dispatchOrder(t, c.fair, c.single)
			place := slices.Index(order, "single")
			if place < c.first || place > c.latest {
				t.Errorf("the single account's activity came at place %d, not from %d to %d, in %v", place, c.first, c.latest, order)
			}
		})
	}
}

// dispatchOrder lets an activity worker with one slot come only after all
// activities wait, and returns whose it did, in order.
func dispatchOrder(t *testing.T, fair bool, single sdk.Priority) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dynamic := map[string]any{
		// Priority and fairness are exact within a partition only.
		"matching.numTaskqueueReadPartitions": 1, "matching.numTaskqueueWritePartitions": 1,
	}
	if !fair {
		dynamic["matching.enableFairness"] = false
	}
	s, err := Start(ctx, Options{Headless: true, Dynamic: dynamic})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	c, err := s.dial(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	flows := worker.New(c, "workflows", worker.Options{})
	flows.RegisterWorkflow(many)
	if err := flows.Start(); err != nil {
		t.Fatal(err)
	}
	defer flows.Stop()
	crowded := begin(ctx, t, c, "crowd", sdk.Priority{PriorityKey: 3, FairnessKey: "a"}, crowd)
	alone := begin(ctx, t, c, "single", single, 1)

	var mu sync.Mutex
	var order []string
	one := worker.New(c, activities, worker.Options{MaxConcurrentActivityExecutionSize: 1, MaxConcurrentActivityTaskPollers: 1, DisableWorkflowWorker: true})
	one.RegisterActivityWithOptions(func(ctx context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, activity.GetInfo(ctx).WorkflowExecution.ID)
		return nil
	}, activity.RegisterOptions{Name: "note"})
	if err := one.Start(); err != nil {
		t.Fatal(err)
	}
	defer one.Stop()
	for _, run := range []client.WorkflowRun{crowded, alone} {
		if err := run.Get(ctx, nil); err != nil {
			t.Fatal(err)
		}
	}
	return order
}

// begin starts a workflow and waits until its activities wait in their queue.
func begin(ctx context.Context, t *testing.T, c client.Client, id string, p sdk.Priority, n int) client.WorkflowRun {
	t.Helper()
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: "workflows", Priority: p}, many, n)
	if err != nil {
		t.Fatal(err)
	}
	err = poll(ctx, func() error {
		d, err := c.DescribeWorkflowExecution(ctx, id, "")
		if err == nil && len(d.GetPendingActivities()) < n {
			err = context.DeadlineExceeded
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// The file that clusters are to use says the same as the development server,
// in keys that the server knows.
func TestDynamicConfigOfClusters(t *testing.T) {
	file, err := os.ReadFile("../../../../deploy/temporal/dynamic-config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	loaded := dynamicconfig.LoadYamlFile(file)
	if loaded.Err() != nil || len(loaded.Warnings) > 0 {
		t.Fatalf("errors %v, warnings %v", loaded.Err(), loaded.Warnings)
	}
	here := dynamicConfig(nil)
	for key, values := range loaded.Map {
		if len(values) != 1 || values[0].Value != here[key] {
			t.Errorf("%s: %v there, %v here", key, values, here[key])
		}
	}
	if _, ok := loaded.Map[dynamicconfig.MatchingEnableFairness.Key()]; !ok {
		t.Error("fairness is not turned on")
	}
}
