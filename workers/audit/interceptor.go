package audit

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
)

// maxBy bounds what a sender of a verb says of itself.
const maxBy = 256

// auditor surrounds every activity that mutates something. It stands inside
// the workers' own interceptor, which turns its fault into Temporal's.
type auditor struct {
	interceptor.WorkerInterceptorBase
	log      *Log
	failures prometheus.Counter
}

// NewInterceptor returns an interceptor that writes to the log, and registers
// the metric infra_audit_write_failures_total. Without a log there is none.
func NewInterceptor(l *Log, r prometheus.Registerer) (interceptor.WorkerInterceptor, error) {
	if l == nil {
		return nil, nil
	}
	a := &auditor{log: l, failures: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "infra_audit_write_failures_total", Help: "Audit records that could not be written; what they are about was not done, or is done again.",
	})}
	return a, r.Register(a.failures)
}

// InterceptActivity implements interceptor.WorkerInterceptor.
func (a *auditor) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	i := &inbound{auditor: a}
	i.Next = next
	return i
}

type inbound struct {
	interceptor.ActivityInboundInterceptorBase
	auditor *auditor
}

// ExecuteActivity implements interceptor.ActivityInboundInterceptor.
func (i *inbound) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	info := activity.GetInfo(ctx)
	if effect, _ := contract.EffectOf(info.ActivityType.Name); effect != contract.Mutates {
		return i.Next.ExecuteActivity(ctx, in)
	}
	r := record(ctx, info)
	if err := i.auditor.write(r, StageIntent); err != nil {
		return nil, err
	}
	start, ended := i.auditor.log.now(), false
	defer func() {
		if !ended { // the activity panics; whoever called sees to that
			r.conclude(OutcomePanic, "", i.auditor.log.now().Sub(start))
			_ = i.auditor.write(r, StageOutcome)
		}
	}()
	out, err := i.Next.ExecuteActivity(ctx, in)
	ended = true
	outcome, code := outcomeOf(err)
	r.conclude(outcome, code, i.auditor.log.now().Sub(start))
	if err == nil {
		r.After = after(info.ActivityType.Name, out)
	}
	if werr := i.auditor.write(r, StageOutcome); werr != nil && err == nil {
		return nil, werr
	}
	return out, err
}

// write writes the record at a stage. Its error is a fault that is retried:
// within the step's budget first, and then as a stall for the operator.
func (a *auditor) write(r Record, s Stage) error {
	r.Stage = s
	err := a.log.write(r)
	if err == nil {
		return nil
	}
	a.failures.Inc()
	done := "nothing was done"
	if s == StageOutcome {
		done = "the call is repeated, which does nothing twice"
	}
	return faults.New(faults.Transient, "AuditLogUnavailable", a.log.where, "%s; %s", err, done).
		WithHint(faults.OwnerOperator, "give the worker's audit log space and rights (--audit-log); the operation goes on by itself")
}

// record is what is known before the call.
func record(ctx context.Context, info activity.Info) Record {
	r := Record{
		Call:      fmt.Sprintf("%s/%s/%d", info.WorkflowExecution.RunID, info.ActivityID, info.Attempt),
		Operation: info.WorkflowExecution.ID, Activity: info.ActivityType.Name, Attempt: info.Attempt,
	}
	if info.WorkflowType != nil {
		r.OperationType = info.WorkflowType.Name
	}
	c, ok := lifecycle.CallerOf(ctx)
	if !ok {
		return r
	}
	r.By, r.Step, r.Verb, r.Generation, r.Resource, r.Before = c.By[:min(len(c.By), maxBy)], c.Step, c.Verb, c.Generation, c.Resource, c.Before
	r.Object = &Object{Kind: c.Object.Kind, Namespace: c.Object.Namespace, Name: c.Object.Name, ID: c.Object.ID}
	return r
}

func (r *Record) conclude(outcome, code string, took time.Duration) {
	ms := took.Milliseconds()
	r.Outcome, r.Code, r.DurationMS = outcome, code, &ms
}

// outcomeOf is the outcome of an attempt, and the code of its fault.
func outcomeOf(err error) (outcome, code string) {
	switch f := faults.As(err); {
	case err == nil:
		return OutcomeOK, ""
	case errors.Is(err, context.Canceled):
		return OutcomeCancelled, ""
	case f != nil:
		return string(f.Class), f.Code
	default:
		return string(faults.Transient), "Unclassified"
	}
}

// after is what the call has found or made: the field Resource of its output.
// A deletion that says nothing has proven that it is gone, but for that of a
// Shoot, which only asks Gardener.
func after(name string, out any) *After {
	if v := reflect.ValueOf(out); v.Kind() == reflect.Struct {
		if field := v.FieldByName("Resource"); field.IsValid() {
			if res, ok := field.Interface().(v1.Resource); ok && res.ID != "" {
				return &After{&lifecycle.External{Provider: res.Provider, Type: res.Type, ID: res.ID, State: string(res.State)}}
			}
		}
	}
	if name != contract.DeleteShoot.Name && strings.HasPrefix(name[strings.LastIndexByte(name, '.')+1:], "Delete") {
		return &After{}
	}
	return nil
}
