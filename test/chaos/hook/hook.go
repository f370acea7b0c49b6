// Package hook lets a test stand at every border of every activity of a
// worker: before the call reaches its system, and after it took effect and
// before anybody hears of it. There the test may let it go on, keep it waiting,
// or have the worker die by SIGKILL.
//
// The worker asks over HTTP and does nothing until it is answered, so a test
// never polls and never comes too late.
package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"syscall"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// Variable is the environment variable with the URL that the worker asks.
const Variable = "CHAOS_URL"

// Moment is a border of an activity.
type Moment string

const (
	// Before: the call has not reached its system.
	Before Moment = "before"
	// After: the call took effect; its answer is not known to Temporal.
	After Moment = "after"
)

// Border says where a worker stands.
type Border struct {
	Moment     Moment `json:"moment"`
	Activity   string `json:"activity"`   // name, such as aws.EnsureBucket
	ActivityID string `json:"activityID"` // unique in the run of the workflow
	Attempt    int32  `json:"attempt"`
	Local      bool   `json:"local,omitempty"`
	Workflow   string `json:"workflow"` // type, such as CreateNetwork
	WorkflowID string `json:"workflowID"`
	RunID      string `json:"runID"`
	// Step and StepState of a report about a running operation; empty for all
	// other activities.
	Step  string            `json:"step,omitempty"`
	State v1.OperationState `json:"state,omitempty"`
	// Failed says, after the call, that it returned an error.
	Failed bool `json:"failed,omitempty"`
}

// Verdict is the answer.
type Verdict string

const (
	// Go: go on. A worker that is kept waiting gets it in the end.
	Go Verdict = "go"
	// Kill: die at once.
	Kill Verdict = "kill"
	// Stall: before the call, fail in its place with a Quota fault, for which
	// an operation stalls.
	Stall Verdict = "stall"
)

// Interceptor asks url at every border.
func Interceptor(url string) interceptor.WorkerInterceptor {
	return &worker{asker: asker{url: url, http: &http.Client{}}}
}

type worker struct {
	interceptor.WorkerInterceptorBase
	asker asker
}

// InterceptActivity implements interceptor.WorkerInterceptor.
func (w *worker) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	i := &inbound{asker: w.asker}
	i.Next = next
	return i
}

type inbound struct {
	interceptor.ActivityInboundInterceptorBase
	asker asker
}

// ExecuteActivity implements interceptor.ActivityInboundInterceptor.
func (i *inbound) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	info := activity.GetInfo(ctx)
	b := Border{
		Moment: Before, Activity: info.ActivityType.Name, ActivityID: info.ActivityID, Attempt: info.Attempt,
		Local: info.IsLocalActivity, WorkflowID: info.WorkflowExecution.ID, RunID: info.WorkflowExecution.RunID,
	}
	if info.WorkflowType != nil {
		b.Workflow = info.WorkflowType.Name
	}
	for _, arg := range in.Args {
		if r, ok := arg.(contract.OperationReport); ok {
			b.Step, b.State = r.Operation.Step, r.Operation.State
		}
	}
	if i.asker.stand(ctx, b) == Stall {
		return nil, faults.New(faults.Quota, "ChaosQuota", b.Activity, "the test says that a quota is used up")
	}
	out, err := i.Next.ExecuteActivity(ctx, in)
	b.Moment, b.Failed = After, err != nil
	i.asker.stand(ctx, b)
	return out, err
}

type asker struct {
	url  string
	http *http.Client
}

// beatEvery keeps waits alive that are kept waiting; the worker's own
// interceptor does it for all others.
const beatEvery = 3 * time.Second

// stand asks and obeys. A test that is gone ends the worker.
func (a asker) stand(ctx context.Context, b Border) Verdict {
	done := make(chan struct{})
	defer close(done)
	if !b.Local {
		go func() {
			t := time.NewTicker(beatEvery)
			defer t.Stop()
			for {
				select {
				case <-done:
					return
				case <-t.C:
					activity.RecordHeartbeat(ctx)
				}
			}
		}()
	}
	verdict, err := a.ask(context.WithoutCancel(ctx), b)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "the chaos test does not answer:", err)
		die()
	case verdict == Kill:
		die()
	}
	return verdict
}

func (a asker) ask(ctx context.Context, b Border) (Verdict, error) {
	body, err := json.Marshal(b)
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return Verdict(text), err
}

// die is SIGKILL: nothing is flushed, nothing is told to anybody.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
