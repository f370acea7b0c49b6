package hook

import (
	"time"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"
)

// deadAfter is how soon the death of a worker is noticed here. In production it
// is twice that; a test that kills hundreds of workers would do little but wait.
// Waits beat every 3 s, of which the SDK passes one in 5 s on.
const deadAfter = 7 * time.Second

// InterceptWorkflow implements interceptor.WorkerInterceptor.
func (w *worker) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	i := &hurriedInbound{}
	i.Next = next
	return i
}

type hurriedInbound struct {
	interceptor.WorkflowInboundInterceptorBase
}

// Init implements interceptor.WorkflowInboundInterceptor.
func (i *hurriedInbound) Init(next interceptor.WorkflowOutboundInterceptor) error {
	o := &hurriedOutbound{}
	o.Next = next
	return i.Next.Init(o)
}

type hurriedOutbound struct {
	interceptor.WorkflowOutboundInterceptorBase
}

// ExecuteActivity implements interceptor.WorkflowOutboundInterceptor.
func (o *hurriedOutbound) ExecuteActivity(ctx workflow.Context, activityType string, args ...any) workflow.Future {
	if workflow.GetActivityOptions(ctx).HeartbeatTimeout > deadAfter {
		ctx = workflow.WithHeartbeatTimeout(ctx, deadAfter)
	}
	return o.Next.ExecuteActivity(ctx, activityType, args...)
}
