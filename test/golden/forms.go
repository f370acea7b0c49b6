package main

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/test/stack"
)

// forms makes three further objects: one whose operations stall and are
// retried, one whose operations are cancelled, one that is deleted in the
// middle of its update, after another that is deleted in its creation.
func (r *recorder) forms(p *plan) []scene {
	stalls, cancels, early, late := p.sample+"-stalls", p.sample+"-cancels", p.sample+"-early", p.sample+"-late"
	create := func(ctx context.Context, name string) func() error {
		return func() error { return r.create(ctx, p, name) }
	}
	update := func(ctx context.Context, name string) func() error {
		return func() error { return r.update(ctx, p, name) }
	}
	stalling := scene{"stalls and retries", []string{"Create.stalled", "Update.stalled"}, func(ctx context.Context) error {
		if err := r.stallAndRetry(ctx, p, stalls, "Create", create(ctx, stalls)); err != nil {
			return err
		}
		if err := r.stallAndRetry(ctx, p, stalls, "Update", update(ctx, stalls)); err != nil {
			return err
		}
		return r.removeLast(ctx, p, stalls)
	}}
	if _, ok := p.refuse["Delete"]; ok {
		stalling.makes = append(stalling.makes, "Delete.stalled")
	}
	return []scene{
		stalling,
		{"a cancelled creation", []string{"Create.cancelled"}, func(ctx context.Context) error {
			if err := r.cancel(ctx, p, cancels, "Create", create(ctx, cancels)); err != nil {
				return err
			}
			return r.remove(ctx, p, cancels, "")
		}},
		{"a preempted creation", []string{"Create.preempted"}, func(ctx context.Context) error {
			return r.preempt(ctx, p, early, "Create", create(ctx, early))
		}},
		{"a cancelled, then a preempted update", []string{"Update.cancelled", "Update.preempted"}, func(ctx context.Context) error {
			if err := r.made(ctx, p, late); err != nil {
				return err
			}
			if err := r.cancel(ctx, p, late, "Update", update(ctx, late)); err != nil {
				return err
			}
			return r.preempt(ctx, p, late, "Update", update(ctx, late))
		}},
	}
}

// made creates an object like the sample and waits until it is Ready.
func (r *recorder) made(ctx context.Context, p *plan, name string) error {
	if err := r.create(ctx, p, name); err != nil {
		return err
	}
	return r.well(ctx, p, name, "Create", "")
}

// removeLast deletes an object; where its deletion can stall, it does.
func (r *recorder) removeLast(ctx context.Context, p *plan, name string) error {
	if _, ok := p.refuse["Delete"]; !ok {
		return r.remove(ctx, p, name, "")
	}
	return r.stallAndRetry(ctx, p, name, "Delete", func() error { return r.delete(ctx, p, name) })
}

// create applies an object like the sample.
func (r *recorder) create(ctx context.Context, p *plan, name string) error {
	return r.like(ctx, p.kind, p.sample, name, nil)
}

// like applies an object like a sample, after a change.
func (r *recorder) like(ctx context.Context, kind, sample, name string, change func(*unstructured.Unstructured) error) error {
	for _, o := range r.samples {
		if o.GetKind() != kind || o.GetName() != sample {
			continue
		}
		o = o.DeepCopy()
		o.SetName(name)
		if label := "cloud.pingcap.com/provider-type"; o.GetLabels()[label] != "" {
			o.SetLabels(map[string]string{label: name})
		}
		if change != nil {
			if err := change(o); err != nil {
				return err
			}
		}
		return r.stack.Apply(ctx, o)
	}
	return fmt.Errorf("there is no sample %s", sample)
}

// update changes the object so that an update is due that changes nothing.
func (r *recorder) update(ctx context.Context, p *plan, name string) error {
	r.changes[p.kind+name]++
	return r.patch(ctx, p.kind, name, map[string]any{"spec": p.change(r.changes[p.kind+name])})
}

func (r *recorder) patch(ctx context.Context, kind, name string, change any) error {
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}
	return r.stack.Kube.Patch(ctx, bare(kind, name), client.RawPatch(types.MergePatchType, patch), client.FieldOwner("golden"))
}

func (r *recorder) annotate(ctx context.Context, kind, name, key string, value any) error {
	return r.patch(ctx, kind, name, map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
}

func (r *recorder) delete(ctx context.Context, p *plan, name string) error {
	return client.IgnoreNotFound(r.stack.Kube.Delete(ctx, bare(p.kind, name)))
}

func bare(kind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(v1.GroupVersion.WithKind(kind))
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// stallAndRetry begins an operation that is refused something, waits for the
// stall, mends it and asks the object for a retry.
func (r *recorder) stallAndRetry(ctx context.Context, p *plan, name, verb string, begin func() error) error {
	return r.stallAndRetryFor(ctx, p, name, verb, p.refuse[verb], stalled, begin)
}

func (r *recorder) stallAndRetryFor(ctx context.Context, p *plan, name, verb string, f stack.Fault, form string, begin func() error) error {
	mend, err := r.fault(ctx, f)
	if err != nil {
		return err
	}
	if err := begin(); err != nil {
		return err
	}
	op, err := r.stalls(ctx, p.kind, name, verb)
	if err != nil {
		return err
	}
	if err := mend(); err != nil {
		return err
	}
	if err := r.verb(ctx, temporal.ObjectID(p.kind, namespace, name), temporal.VerbRetry); err != nil {
		return err
	}
	return r.ended(ctx, p, name, op, form)
}

// cancel begins an operation, and cancels it while a step is held: through the
// operation itself, as people do who look at it in the Temporal UI.
func (r *recorder) cancel(ctx context.Context, p *plan, name, verb string, begin func() error) error {
	return r.interrupt(ctx, p, name, verb, begin, cancelled, func(op string) error {
		return r.verb(ctx, op, temporal.VerbCancel)
	})
}

// preempt begins an operation and deletes the object while a step is held.
func (r *recorder) preempt(ctx context.Context, p *plan, name, verb string, begin func() error) error {
	err := r.interrupt(ctx, p, name, verb, begin, preempted, func(string) error { return r.delete(ctx, p, name) })
	if err != nil {
		return err
	}
	return r.gone(ctx, p.kind, name)
}

func (r *recorder) interrupt(ctx context.Context, p *plan, name, verb string, begin func() error, form string, act func(operation string) error) error {
	release, err := r.fault(ctx, p.hold[verb])
	if err != nil {
		return err
	}
	if err := begin(); err != nil {
		return err
	}
	op, err := r.holds(ctx, p, name, verb)
	if err != nil {
		return err
	}
	if err := act(op); err != nil {
		return err
	}
	if form == preempted {
		// It ends while the fault is on, or else the step might be done first.
		// A cancellation is heard at once, and undoing needs the fault gone.
		if err := r.closed(ctx, op); err != nil {
			return err
		}
	}
	if err := release(); err != nil {
		return err
	}
	return r.ended(ctx, p, name, op, form)
}

// remove deletes an object and waits until it is gone. form names what the
// deletion is recorded as; empty for not at all.
func (r *recorder) remove(ctx context.Context, p *plan, name, form string) error {
	if err := r.delete(ctx, p, name); err != nil {
		return err
	}
	if err := r.gone(ctx, p.kind, name); err != nil || form == "" {
		return err
	}
	r.quiet = r.only != "" && r.only != p.kind
	id, err := r.latest(ctx, p.kind, name, "Delete")
	if err != nil {
		return err
	}
	return r.save(ctx, p.kind, id, form)
}
