package lab

import (
	"context"
	"fmt"
	"slices"

	"go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/test/chaos/hook"
	"github.com/tidbcloud/infra-orchestrator/test/invariants"
)

// Step is a step of an operation with the calls that it makes, as a trace shows
// them. Of steps that run at the same time the last one has all calls.
type Step struct {
	Workflow, Name string
	Calls          []Boundary
}

// Steps lists the steps in a trace in order, by type of workflow. The first run
// of each workflow counts.
func Steps(trace []Passed) map[string][]Step {
	out := map[string][]Step{}
	first := map[string]string{}
	seen := map[Boundary]bool{}
	for _, p := range trace {
		if p.Moment != hook.Before || slices.Contains(Kinds, p.Workflow) {
			continue
		}
		if first[p.Workflow] == "" {
			first[p.Workflow] = p.RunID
		}
		if first[p.Workflow] != p.RunID {
			continue
		}
		all := out[p.Workflow]
		switch {
		case p.Step != "" && p.State == v1.OperationRunning && (len(all) == 0 || all[len(all)-1].Name != p.Step):
			out[p.Workflow] = append(all, Step{Workflow: p.Workflow, Name: p.Step})
		case !p.Local && len(all) > 0:
			b := Boundary{Workflow: p.Workflow, Activity: p.Activity, Call: p.Call, Moment: hook.Before}
			if !seen[b] {
				seen[b] = true
				all[len(all)-1].Calls = append(all[len(all)-1].Calls, b)
			}
		}
	}
	return out
}

// Verb asks an object's workflow for a verb. refused is the sentence of a
// refusal.
func (l *Lane) Verb(ctx context.Context, key invariants.Key, verb string) (reply, refused string, err error) {
	h, err := l.Stack.Temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: WorkflowID(key), UpdateName: temporal.UpdateVerb, WaitForStage: client.WorkflowUpdateStageCompleted,
		Args: []any{temporal.VerbRequest{Verb: verb, By: "chaos"}},
	})
	if err != nil {
		return "", "", fmt.Errorf("%s %s: %w", verb, key, err)
	}
	var answer temporal.VerbReply
	if err := h.Get(ctx, &answer); err != nil {
		if ctx.Err() != nil {
			return "", "", fmt.Errorf("%s %s: %w", verb, key, err)
		}
		return "", err.Error(), nil
	}
	return answer.Text, "", nil
}

// VerbByAnnotation asks for a verb as people do with kubectl, and waits until
// the annotation is taken away. refused is the Event of a refusal.
func (l *Lane) VerbByAnnotation(ctx context.Context, key invariants.Key, verb string) (refused string, err error) {
	before, err := l.refusals(ctx, key)
	if err != nil {
		return "", err
	}
	asked, err := l.Annotate(ctx, key, v1.AnnotationOperation, verb)
	if err != nil {
		return "", err
	}
	if _, err := l.Checker.Await(ctx, key, func(o v1.Object) bool {
		if o == nil {
			return true
		}
		seen, err := versionOf(o)
		return err == nil && seen > asked && o.GetAnnotations()[v1.AnnotationOperation] == ""
	}); err != nil {
		return "", fmt.Errorf("the annotation %s=%s stays: %w", v1.AnnotationOperation, verb, err)
	}
	after, err := l.refusals(ctx, key)
	for name, message := range after {
		if _, old := before[name]; !old {
			return message, err
		}
	}
	return "", err
}

// refusals are the Events of refused verbs, by name.
func (l *Lane) refusals(ctx context.Context, key invariants.Key) (map[string]string, error) {
	var list corev1.EventList
	err := l.Stack.Kube.List(ctx, &list, kube.InNamespace(key.Namespace))
	out := map[string]string{}
	for _, e := range list.Items {
		if e.Reason == "VerbRefused" && e.InvolvedObject.Kind == key.Kind && e.InvolvedObject.Name == key.Name {
			out[e.Name] = e.Message
		}
	}
	return out, err
}
