// Package balancing is the workflow of the Balancers: a short sweep over all of
// them, started by a Temporal Schedule and at once for a changed one.
//
// A sweep is a plan (one local activity over caches) and one activity for each
// Balancer that needs a change. With nothing to do it takes six events.
package balancing

import (
	"fmt"
	"strings"
	"time"

	sdktemporal "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

const (
	// planTimeout bounds the plan of 10,000 Balancers, including scales that
	// have to be read live.
	planTimeout = time.Minute
	// applyTimeout bounds one attempt at one Balancer, and changeTimeout all of
	// them: a target that does not answer must not hold the next sweep up. What
	// is not done then is planned again.
	applyTimeout     = 20 * time.Second
	changeTimeout    = 25 * time.Second
	heartbeatTimeout = 15 * time.Second
	// reportTimeout bounds one attempt at the statuses of one portion.
	reportTimeout = 2 * time.Minute
	// portionSize is how many statuses one activity writes.
	portionSize = 250
	// attempts of each activity; the next sweep is the real repetition.
	attempts = 2
	// defaultConcurrency holds for a sweep that was started by hand.
	defaultConcurrency = 100
	// told is how many changes the result lists.
	told = 100
)

// Result is what a sweep did, for the UI.
type Result struct {
	Balancers int      `json:"balancers"`
	Failing   int      `json:"failing,omitempty"`
	Changed   []string `json:"changed,omitempty"` // "default/web: a 3→5, b 7→5"
	Failed    []string `json:"failed,omitempty"`  // "default/web: sentence"
	Reported  int      `json:"reported,omitempty"`
}

// BalanceReplicas is one sweep. A failure at one Balancer is that Balancer's:
// the sweep itself fails only when it cannot plan.
func BalanceReplicas(ctx workflow.Context, in temporal.Sweep) (Result, error) {
	plan, err := planned(ctx, in.After)
	if err != nil {
		return Result{}, err
	}
	s := &sweep{result: Result{Balancers: plan.Looked, Failing: plan.Failing}}
	s.details(ctx, len(plan.Changes))
	s.apply(ctx, plan.Changes, in.Concurrency)
	s.report(ctx, plan.Reports)
	s.details(ctx, 0)
	if ctx.Err() != nil {
		return s.result, ctx.Err()
	}
	if plan.Next != "" {
		in.After = plan.Next
		return s.result, workflow.NewContinueAsNewError(ctx, temporal.WorkflowBalanceReplicas, in)
	}
	return s.result, nil
}

func planned(ctx workflow.Context, after string) (plan contract.BalancersPlan, err error) {
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: planTimeout, RetryPolicy: &sdktemporal.RetryPolicy{MaximumAttempts: attempts},
	})
	err = workflow.ExecuteLocalActivity(ctx, contract.PlanBalancers.Name, contract.PlanBalancersInput{After: after}).Get(ctx, &plan)
	return plan, err
}

type sweep struct{ result Result }

// apply changes Balancers, some at a time, each for itself.
func (s *sweep) apply(ctx workflow.Context, changes []contract.BalancerChange, concurrency int) {
	if concurrency < 1 {
		concurrency = defaultConcurrency
	}
	slots, all := workflow.NewSemaphore(ctx, int64(concurrency)), workflow.NewWaitGroup(ctx)
	for _, c := range changes {
		if slots.Acquire(ctx, 1) != nil {
			break // cancelled
		}
		all.Add(1)
		workflow.GoNamed(ctx, c.String(), func(ctx workflow.Context) {
			defer all.Done()
			defer slots.Release(1)
			s.applyOne(ctx, c)
		})
	}
	all.Wait(ctx)
}

func (s *sweep) applyOne(ctx workflow.Context, c contract.BalancerChange) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		// The id stands in the audit log, too: one activity a Balancer and run.
		ActivityID: c.String(), TaskQueue: contract.QueueBalancing, Summary: c.String() + ": " + c.Summary,
		StartToCloseTimeout: applyTimeout, ScheduleToCloseTimeout: changeTimeout, HeartbeatTimeout: heartbeatTimeout,
		RetryPolicy: &sdktemporal.RetryPolicy{MaximumAttempts: attempts},
	})
	var out contract.BalancerOutcome
	err := workflow.ExecuteActivity(ctx, contract.EnsureBalanced.Name, c.BalancerRef).Get(ctx, &out)
	if err != nil {
		out.Failure = faults.FromTemporal(err).Error()
	}
	if out.Changed != "" {
		s.result.Changed = tell(s.result.Changed, c.String()+": "+out.Changed)
	}
	if out.Failure != "" {
		s.result.Failed = tell(s.result.Failed, c.String()+": "+out.Failure)
	}
}

// report writes what changed without us, such as numbers of ready pods.
func (s *sweep) report(ctx workflow.Context, refs []contract.BalancerRef) {
	all := workflow.NewWaitGroup(ctx)
	for len(refs) > 0 {
		portion := refs[:min(portionSize, len(refs))]
		refs = refs[len(portion):]
		all.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer all.Done()
			s.reportPortion(ctx, portion)
		})
	}
	all.Wait(ctx)
}

func (s *sweep) reportPortion(ctx workflow.Context, refs []contract.BalancerRef) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue: contract.QueueBalancing, Summary: reportSummary(refs),
		StartToCloseTimeout: reportTimeout, HeartbeatTimeout: heartbeatTimeout,
		RetryPolicy: &sdktemporal.RetryPolicy{MaximumAttempts: attempts},
	})
	var out contract.StatusesOutcome
	err := workflow.ExecuteActivity(ctx, contract.ApplyBalancerStatuses.Name, contract.BalancerStatusesInput{Balancers: refs}).Get(ctx, &out)
	if err != nil {
		s.result.Failed = tell(s.result.Failed, reportSummary(refs)+": "+faults.FromTemporal(err).Error())
	}
	s.result.Reported += out.Written
}

func reportSummary(refs []contract.BalancerRef) string {
	if len(refs) == 1 {
		return "status of " + refs[0].String()
	}
	return fmt.Sprintf("status of %d Balancers, %s …", len(refs), refs[0])
}

func tell(list []string, line string) []string {
	if len(list) == told {
		return list
	}
	return append(list, line)
}

// details shows the sweep in the UI; it takes no event.
func (s *sweep) details(ctx workflow.Context, planned int) {
	var b strings.Builder
	fmt.Fprintf(&b, "**%d** Balancers, **%d** cannot be balanced", s.result.Balancers, s.result.Failing)
	if planned > 0 {
		fmt.Fprintf(&b, ", **%d** are being changed", planned)
	}
	for _, line := range s.result.Changed {
		b.WriteString("\n- " + line)
	}
	for _, line := range s.result.Failed {
		b.WriteString("\n- failed: " + line)
	}
	workflow.SetCurrentDetails(ctx, b.String())
}
