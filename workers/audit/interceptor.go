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

	"github.com/tidbcloud/infra-orchestrator/activities/audited"
	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
)

// maxBy bounds what a sender of a verb says of itself.
const maxBy = 256

// auditor surrounds every activity: one that mutates something as a whole, of
// any other the single changes that it says it makes. It stands inside
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
	r := record(ctx, info, in.Args)
	if effect, _ := contract.EffectOf(info.ActivityType.Name); effect != contract.Mutates {
		return i.Next.ExecuteActivity(audited.With(ctx, &apart{auditor: i.auditor, base: r}), in)
	}
	var out any
	err := i.auditor.around(&r, func(c *changes) (err error) {
		if out, err = i.Next.ExecuteActivity(audited.With(ctx, c), in); err == nil {
			r.After = after(info.ActivityType.Name, out)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// around writes the intent, calls do, and writes the outcome. The error of do
// goes before that of the log.
func (a *auditor) around(r *Record, do func(*changes) error) error {
	if err := a.write(*r, StageIntent); err != nil {
		return err
	}
	c, start, ended := &changes{}, a.log.now(), false
	defer func() {
		if !ended { // it panics; whoever called sees to that
			r.conclude(OutcomePanic, "", a.log.now().Sub(start))
			c.into(r)
			_ = a.write(*r, StageOutcome)
		}
	}()
	err := do(c)
	ended = true
	outcome, code := outcomeOf(err)
	r.conclude(outcome, code, a.log.now().Sub(start))
	c.into(r)
	if werr := a.write(*r, StageOutcome); werr != nil && err == nil {
		return werr
	}
	return err
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
func record(ctx context.Context, info activity.Info, args []any) Record {
	r := Record{
		Call:      fmt.Sprintf("%s/%s/%d", info.WorkflowExecution.RunID, info.ActivityID, info.Attempt),
		Operation: info.WorkflowExecution.ID, Activity: info.ActivityType.Name, Attempt: info.Attempt,
	}
	if info.WorkflowType != nil {
		r.OperationType = info.WorkflowType.Name
	}
	c, ok := lifecycle.CallerOf(ctx)
	if !ok {
		r.Object = objectOf(args)
		return r
	}
	r.By, r.Step, r.Verb, r.Generation, r.Resource, r.Before = c.By[:min(len(c.By), maxBy)], c.Step, c.Verb, c.Generation, c.Resource, c.Before
	r.Object = object(c.Object)
	return r
}

func object(ref contract.ObjectRef) *Object {
	return &Object{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, ID: ref.ID}
}

// objectOf is the object of an activity whose workflow names no caller, by its
// input: the object is what it changes.
func objectOf(args []any) *Object {
	for _, arg := range args {
		switch in := arg.(type) {
		case contract.ObjectRef:
			return object(in)
		case contract.VerbAnswer:
			return object(in.Ref)
		case contract.BalancerRef:
			return &Object{Kind: "Balancer", Namespace: in.Namespace, Name: in.Name}
		}
	}
	return nil
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
				return &After{external(res)}
			}
		}
	}
	if name != contract.DeleteShoot.Name && strings.HasPrefix(name[strings.LastIndexByte(name, '.')+1:], "Delete") {
		return &After{}
	}
	return nil
}
