package lifecycle

import (
	"context"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
)

// Caller is for whom and why an activity runs. It travels in a header of the
// activity, so that the audit (workers/audit) knows what no input says.
// Headers take no part in replay. It holds names and ids, never a secret.
type Caller struct {
	Object contract.ObjectRef `json:"object"`
	// By is the field manager that last wrote the object's spec, or the person
	// whose verb the operation follows.
	By         string `json:"by,omitempty"`
	Step       string `json:"step,omitempty"`
	Generation int64  `json:"generation,omitempty"`
	// Verb that is being answered, "refused " before it when it was.
	Verb string `json:"verb,omitempty"`
	// Resource is the key in the object's ledger of what the activity is about,
	// and Before what the ledger says of it; see About.
	Resource string    `json:"resource,omitempty"`
	Before   *External `json:"before,omitempty"`
}

// External names something outside of our own API, as the ledger does.
type External struct {
	Provider string `json:"provider"`
	Type     string `json:"type"`
	ID       string `json:"id"`
	State    string `json:"state,omitempty"`
}

type ctxKey string

const (
	// callerHeader names the header.
	callerHeader = "infra-caller"

	askedKey ctxKey = "asked"
	whoKey   ctxKey = "who"
)

// Answering says whose verb the activities of ctx answer, for the audit.
func Answering(ctx workflow.Context, object contract.ObjectRef, generation int64, req temporal.VerbRequest, refused bool) workflow.Context {
	verb := req.Verb
	if refused {
		verb = "refused " + verb
	}
	return workflow.WithValue(ctx, askedKey, Caller{Object: object, By: req.By, Generation: generation, Verb: verb})
}

// WithCaller says who calls the activities of ctx, as of when they start.
func WithCaller(ctx workflow.Context, who func(workflow.Context) Caller) workflow.Context {
	return workflow.WithValue(ctx, whoKey, who)
}

// CallerOf is the caller of an activity that starts in ctx; false where nobody
// in particular has asked.
func callerOf(ctx workflow.Context) (Caller, bool) {
	if c, ok := ctx.Value(askedKey).(Caller); ok {
		return c, true
	}
	who, ok := ctx.Value(whoKey).(func(workflow.Context) Caller)
	if !ok {
		return Caller{}, false
	}
	return who(ctx), true
}

type callerKey struct{}

// CallerOf returns the caller of the activity that runs in ctx; false when its
// workflow names none.
func CallerOf(ctx context.Context) (Caller, bool) {
	c, ok := ctx.Value(callerKey{}).(Caller)
	return c, ok
}

// Propagator carries the Caller from the step to its activities. It belongs
// into the options of the workers' Temporal client.
func Propagator() workflow.ContextPropagator { return propagator{} }

type propagator struct{}

// InjectFromWorkflow implements workflow.ContextPropagator.
func (propagator) InjectFromWorkflow(ctx workflow.Context, w workflow.HeaderWriter) error {
	c, ok := callerOf(ctx)
	if !ok {
		return nil
	}
	p, err := converter.GetDefaultDataConverter().ToPayload(c)
	if err != nil {
		return err
	}
	w.Set(callerHeader, p)
	return nil
}

// Extract implements workflow.ContextPropagator: on the side of the activity.
// A header that cannot be read is as none, since the work must go on.
func (propagator) Extract(ctx context.Context, r workflow.HeaderReader) (context.Context, error) {
	p, ok := r.Get(callerHeader)
	if !ok {
		return ctx, nil
	}
	var c Caller
	if err := converter.GetDefaultDataConverter().FromPayload(p, &c); err != nil {
		return ctx, nil //nolint:nilerr // see above
	}
	return context.WithValue(ctx, callerKey{}, c), nil
}

// Inject implements workflow.ContextPropagator: clients add nothing.
func (propagator) Inject(context.Context, workflow.HeaderWriter) error { return nil }

// ExtractToWorkflow implements workflow.ContextPropagator: workflows know it
// from their input.
func (propagator) ExtractToWorkflow(ctx workflow.Context, _ workflow.HeaderReader) (workflow.Context, error) {
	return ctx, nil
}
