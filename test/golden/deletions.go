package main

import (
	"context"
	"errors"

	enumspb "go.temporal.io/api/enums/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// deletions are those that somebody meets. Each is held up before, most of them
// at their end, so that a deletion that leaves things behind leaves little.
func (r *recorder) deletions(p *plan) []scene {
	resists, goes, stays := p.sample+"-resists", p.sample+"-goes", p.sample+"-stays"
	return []scene{
		{"a deletion that cannot be cancelled", []string{"Delete.cancelled"}, func(ctx context.Context) error { return r.resist(ctx, p, resists) }},
		{"a forced deletion overtakes another", []string{"Delete.preempted", "Delete.forced"}, func(ctx context.Context) error { return r.force(ctx, p, goes) }},
		{"a deletion with Retain", []string{"Delete.retained"}, func(ctx context.Context) error { return r.retain(ctx, p, stays) }},
	}
}

// heldUp makes an object and begins its deletion, which cannot end until away
// is called; one that has stalled needs a retry then.
func (r *recorder) heldUp(ctx context.Context, p *plan, name string) (operation string, away func() error, err error) {
	if err := r.made(ctx, p, name); err != nil {
		return "", nil, err
	}
	if p.use != nil {
		away, err = p.use(ctx, r, name)
	} else {
		away, err = r.fault(ctx, p.refuse["Delete"])
	}
	if err != nil {
		return "", nil, err
	}
	if err := r.delete(ctx, p, name); err != nil {
		return "", nil, err
	}
	operation, err = r.holds(ctx, p, name, "Delete")
	return operation, away, err
}

// resist asks Temporal to cancel a deletion, as "Request Cancellation" in its
// UI does: it is refused, and the deletion ends well.
func (r *recorder) resist(ctx context.Context, p *plan, name string) error {
	op, away, err := r.heldUp(ctx, p, name)
	if err != nil {
		return err
	}
	if err := r.stack.Temporal.CancelWorkflow(ctx, op, ""); err != nil {
		return err
	}
	if err := r.heard(ctx, op); err != nil {
		return err
	}
	if err := away(); err != nil {
		return err
	}
	if p.use == nil {
		if err := r.verb(ctx, temporal.ObjectID(p.kind, namespace, name), temporal.VerbRetry); err != nil {
			return err
		}
	}
	if err := r.ended(ctx, p, name, op, cancelled); err != nil {
		return err
	}
	return r.gone(ctx, p.kind, name)
}

// heard waits until a workflow has been told that it shall be cancelled.
func (r *recorder) heard(ctx context.Context, workflowID string) error {
	return until(ctx, workflowID+" hears of its cancellation", func() (bool, error) {
		h, err := r.stack.History(ctx, workflowID, "")
		asked := false
		for _, e := range h.GetEvents() {
			switch e.GetEventType() {
			case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
				asked = true
			case enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
				if asked {
					return true, nil
				}
			}
		}
		return false, errors.Join(err, errors.New("not in its history"))
	})
}

// force lets an object go at once, although its deletion is held up.
func (r *recorder) force(ctx context.Context, p *plan, name string) error {
	op, away, err := r.heldUp(ctx, p, name)
	if err != nil {
		return err
	}
	if err := r.forceAway(ctx, p, name); err != nil {
		return err
	}
	if err := r.ended(ctx, p, name, op, preempted); err != nil {
		return err
	}
	last, err := r.latest(ctx, p.kind, name, "Delete")
	if err != nil {
		return err
	}
	return errors.Join(r.save(ctx, p.kind, last, forced), away())
}

// forceAway has an object that is being deleted go, as docs/operations.md says.
func (r *recorder) forceAway(ctx context.Context, p *plan, name string) error {
	o := bare(p.kind, name)
	if err := r.delete(ctx, p, name); err != nil {
		return err
	}
	if err := r.stack.Kube.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return err
	}
	if err := r.annotate(ctx, p.kind, name, v1.AnnotationForceDelete, string(o.GetUID())); err != nil {
		return err
	}
	return r.gone(ctx, p.kind, name)
}

// retain deletes an object that shall keep what it has. Where that is something,
// its owner thinks of it when the deletion has stalled and little is left: the
// deletion that runs gives way to one for the new spec.
func (r *recorder) retain(ctx context.Context, p *plan, name string) error {
	keep := map[string]any{"spec": map[string]any{"deletionPolicy": v1.DeletionPolicyRetain}}
	if p.use != nil {
		if err := r.made(ctx, p, name); err != nil {
			return err
		}
		if err := r.patch(ctx, p.kind, name, keep); err != nil {
			return err
		}
		if err := r.well(ctx, p, name, "", ""); err != nil {
			return err
		}
		return r.remove(ctx, p, name, retained)
	}
	op, away, err := r.heldUp(ctx, p, name)
	if err != nil {
		return err
	}
	if err := r.patch(ctx, p.kind, name, keep); err != nil {
		return err
	}
	if err := r.gone(ctx, p.kind, name); err != nil {
		return err
	}
	last, err := r.latest(ctx, p.kind, name, "Delete", op)
	if err != nil {
		return err
	}
	return errors.Join(r.save(ctx, p.kind, last, retained), away())
}

// useType makes a Provider of a ProviderType.
func useType(ctx context.Context, r *recorder, name string) (end func() error, err error) {
	p := planOf(v1.KindProvider)
	user := p.sample + "-user"
	err = r.like(ctx, p.kind, p.sample, user, func(o *unstructured.Unstructured) error {
		return unstructured.SetNestedField(o.Object, name, "spec", "type")
	})
	if err == nil {
		err = r.well(ctx, p, user, "", "")
	}
	return func() error { return r.remove(ctx, p, user, "") }, err
}

// useProvider makes a Network of a Provider that is paused, so that nothing of
// it exists.
func useProvider(ctx context.Context, r *recorder, name string) (end func() error, err error) {
	p := planOf(v1.KindNetwork)
	user := p.sample + "-user"
	err = r.like(ctx, p.kind, p.sample, user, func(o *unstructured.Unstructured) error {
		o.SetAnnotations(map[string]string{v1.AnnotationPaused: "true"})
		return unstructured.SetNestedField(o.Object, name, "spec", "provider")
	})
	return func() error {
		if err := r.delete(ctx, p, user); err != nil {
			return err
		}
		if err := r.annotate(ctx, p.kind, user, v1.AnnotationPaused, nil); err != nil {
			return err
		}
		return r.gone(ctx, p.kind, user)
	}, err
}
