package operation

import (
	"go.temporal.io/sdk/workflow"

	"github.com/tidbcloud/infra-orchestrator/workflows/lifecycle"
)

// About says which entry of the ledger the activities of ctx are about, for
// the audit.
func About(ctx workflow.Context, key string) workflow.Context {
	return workflow.WithValue(ctx, aboutKey, key)
}

// caller is the caller of an activity that starts in ctx.
func (o *operation) caller(ctx workflow.Context) lifecycle.Caller {
	c := lifecycle.Caller{Object: o.in.Object, By: o.in.By, Step: stepOf(ctx).Name, Generation: o.in.Generation}
	c.Resource, _ = ctx.Value(aboutKey).(string)
	for _, r := range o.report.Resources {
		if c.Resource != "" && r.Key == c.Resource {
			c.Before = &lifecycle.External{Provider: r.Provider, Type: r.Type, ID: r.ID, State: string(r.State)}
		}
	}
	return c
}
