package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	temporalclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	"github.com/tidbcloud/infra-orchestrator/internal/runtime"
)

// temporalTimeout bounds what describe waits for Temporal: it is an addition.
const temporalTimeout = 2 * time.Second

// attempt is what Temporal knows of a running operation and its object does not.
type attempt struct {
	// Unknown says why Temporal could not tell; all else is then empty.
	Unknown string
	// Status of the workflow, such as "Running".
	Status string
	// Failing says why workers fail to go on with the workflow, and what to do;
	// empty while they do not. TaskAttempts is then above 1.
	Failing      string
	TaskAttempts int32
	Activities   []activityAttempt
}

// activityAttempt is an activity that has not ended.
type activityAttempt struct {
	Name, State string
	Attempt     int32
	Worker      string
	Started     *metav1.Time
	Heartbeat   string
	HeartbeatAt *metav1.Time
	Failure     string
	NextTryAt   *metav1.Time
}

// askTemporal asks about a workflow. It never fails: not to reach Temporal is
// something to show.
func askTemporal(ctx context.Context, workflowID string) *attempt {
	ctx, cancel := context.WithTimeout(ctx, temporalTimeout)
	defer cancel()
	opts, err := runtime.TemporalOptions(slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return &attempt{Unknown: err.Error()}
	}
	c, err := temporalclient.NewLazyClient(opts)
	if err != nil {
		return &attempt{Unknown: err.Error()}
	}
	defer c.Close()
	resp, err := c.DescribeWorkflowExecution(ctx, workflowID, "")
	var none *serviceerror.NotFound
	if errors.As(err, &none) {
		return &attempt{Status: "unknown to Temporal"}
	}
	if err != nil {
		return &attempt{Unknown: fmt.Sprintf("%s, namespace %s: %v", opts.HostPort, opts.Namespace, err)}
	}
	a := &attempt{
		Status:       resp.GetWorkflowExecutionInfo().GetStatus().String(),
		TaskAttempts: resp.GetPendingWorkflowTask().GetAttempt(),
	}
	if a.TaskAttempts > 1 {
		run := resp.GetWorkflowExecutionInfo().GetExecution().GetRunId()
		why, err := temporal.LatestFailure(ctx, c.WorkflowService(), opts.Namespace, workflowID, run)
		if err != nil {
			why.Message = err.Error()
		}
		a.Failing = why.Sentence(workflowID)
	}
	for _, p := range resp.GetPendingActivities() {
		a.Activities = append(a.Activities, toActivityAttempt(p))
	}
	return a
}

func toActivityAttempt(p *workflowpb.PendingActivityInfo) activityAttempt {
	a := activityAttempt{
		Name: p.GetActivityType().GetName(), State: p.GetState().String(), Attempt: p.GetAttempt(),
		Worker: p.GetLastWorkerIdentity(), Heartbeat: sentence(p.GetHeartbeatDetails()), Failure: failureText(p.GetLastFailure()),
	}
	for to, from := range map[**metav1.Time]interface{ AsTime() time.Time }{
		&a.Started: p.GetLastStartedTime(), &a.HeartbeatAt: p.GetLastHeartbeatTime(), &a.NextTryAt: p.GetNextAttemptScheduleTime(),
	} {
		if t := from.AsTime(); t.Unix() > 0 { // an absent time is 1970
			at := metav1.NewTime(t)
			*to = &at
		}
	}
	return a
}

// sentence is the first heartbeat detail when it is text, as ours are.
func sentence(details *commonpb.Payloads) string {
	var s string
	if details == nil || converter.GetDefaultDataConverter().FromPayloads(details, &s) != nil {
		return ""
	}
	return s
}

// failureText is the failure's message and class, innermost cause last.
func failureText(f *failurepb.Failure) string {
	var parts []string
	for ; f != nil; f = f.GetCause() {
		text := f.GetMessage()
		if t := f.GetApplicationFailureInfo().GetType(); t != "" {
			text = t + ": " + text
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ": ")
}

// failingLine says that workers fail to go on with a workflow; nothing when
// they do not, or nobody knows.
func failingLine(a *attempt) string {
	if a == nil || a.Failing == "" {
		return ""
	}
	return fmt.Sprintf("  Attempt %d of a workflow task: %s\n", a.TaskAttempts, oneLine(a.Failing))
}

func attemptLines(a *attempt, now time.Time) string {
	if a == nil {
		return ""
	}
	if a.Unknown != "" {
		return "  not reached, so only what the object says is shown (" + oneLine(a.Unknown) + ")\n"
	}
	text := "  Workflow " + a.Status + "\n"
	text += failingLine(a)
	for _, p := range a.Activities {
		text += fmt.Sprintf("  %s: %s, attempt %d", p.Name, strings.ToLower(p.State), p.Attempt)
		if p.Started != nil {
			text += ", started " + ago(p.Started, now)
		}
		text += "\n"
		rows := [][]string{}
		add := func(label, value string) {
			if value != "" {
				rows = append(rows, []string{label, oneLine(value)})
			}
		}
		add("Worker:", p.Worker)
		if p.HeartbeatAt != nil {
			add("Heartbeat:", strings.TrimSuffix(ago(p.HeartbeatAt, now)+": "+p.Heartbeat, ": "))
		}
		add("Failure:", p.Failure)
		if p.NextTryAt != nil && p.NextTryAt.After(now) {
			add("Next try:", "in "+span(p.NextTryAt.Sub(now)))
		}
		text += columns(rows, "    ")
	}
	return text
}
