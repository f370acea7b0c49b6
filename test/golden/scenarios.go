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

// Forms, as workflowtest.Forms names them.
const (
	success   = "success"
	stalled   = "stalled"
	cancelled = "cancelled"
	preempted = "preempted"
)

// plan is how to bring a kind's operations into each form.
type plan struct {
	kind   string
	sample string // name of the sample that new objects are made like
	// change makes an update that changes nothing outside; n counts those of
	// one object.
	change func(n int) map[string]any
	// Faults, each in the middle: refuse makes a step stall, hold keeps the
	// activity holdAt running for as long as the fault is on. Without holdAt the
	// operation is met where it is refused: the outcome of a running call is
	// awaited, so an operation whose last call runs cannot be stopped. One
	// without faults has its successful form only.
	refuse, hold map[string]stack.Fault // by verb: Create, Update, Delete
	holdAt       map[string]string
}

var (
	deny = func(operation string) stack.Fault {
		return stack.Fault{Target: "aws", Kind: "deny", Operation: operation}
	}
	// slow is longer than it takes to see the step run and to ask for a verb:
	// the verb meets a call that is under way.
	slow = func(target string) stack.Fault {
		return stack.Fault{Target: target, Kind: "delay", Delay: "4s"}
	}
)

func plans() []plan {
	return []plan{
		{kind: v1.KindProviderType, sample: "aws-gardener", change: func(n int) map[string]any {
			return map[string]any{"timeouts": map[string]any{"wake": fmt.Sprintf("%dm", 30+n)}}
		}},
		{kind: v1.KindProvider, sample: "core-aws",
			change: func(n int) map[string]any {
				return map[string]any{"dns": map[string]any{"parentZoneID": fmt.Sprintf("Z0123456789ABCDEFG%03d", n)}}
			},
			refuse: map[string]stack.Fault{"Create": deny("GetCallerIdentity"), "Update": deny("GetCallerIdentity")},
			hold:   map[string]stack.Fault{"Create": deny("GetCallerIdentity"), "Update": deny("GetCallerIdentity")},
		},
		{kind: v1.KindNetwork, sample: "n1",
			change: func(n int) map[string]any { return map[string]any{"bucket": map[string]any{"retain": n%2 == 1}} },
			refuse: map[string]stack.Fault{"Create": deny("CreateBucket"), "Update": deny("GetCallerIdentity"), "Delete": deny("DeleteBucket")},
			hold:   map[string]stack.Fault{"Create": {Target: "shoot", Kind: "stuck", Phase: "Create"}, "Update": slow("config-service")},
			holdAt: map[string]string{"Create": "garden.WaitShootReady", "Update": "config.FetchNetworkConfig"},
		},
		{kind: v1.KindCluster, sample: "c1",
			change: func(n int) map[string]any { return map[string]any{"displayName": fmt.Sprintf("orders-%d", n)} },
			refuse: map[string]stack.Fault{"Create": deny("CreateRole"), "Update": deny("GetCallerIdentity"), "Delete": deny("DeleteRole")},
			hold:   map[string]stack.Fault{"Create": {Target: "tidb", Kind: "stuck", Component: "tikv"}, "Update": slow("config-service")},
			holdAt: map[string]string{"Create": "shoot.WaitDatabaseReady", "Update": "config.FetchClusterConfig"},
		},
	}
}

// record goes through all kinds: what a kind needs is there before it, made
// like the samples; and it is taken down at the end, last first.
func (r *recorder) record(ctx context.Context) error {
	samples, err := stack.Samples()
	if err != nil {
		return err
	}
	r.samples = samples
	for _, o := range samples {
		if !isOurs(o.GetKind()) {
			if err := r.stack.Apply(ctx, o.DeepCopy()); err != nil {
				return err
			}
		}
	}
	all := plans()
	for i := range all {
		if err := r.kind(ctx, &all[i]); err != nil {
			return fmt.Errorf("%s: %w", all[i].kind, err)
		}
	}
	for i := len(all) - 1; i >= 0; i-- {
		if err := r.remove(ctx, &all[i], all[i].sample, success); err != nil {
			return fmt.Errorf("%s: %w", all[i].kind, err)
		}
	}
	return nil
}

func isOurs(kind string) bool {
	for _, p := range plans() {
		if p.kind == kind {
			return true
		}
	}
	return false
}

// kind leaves the kind's sample Ready, for the kinds after it, and has recorded
// all forms but the successful deletion.
func (r *recorder) kind(ctx context.Context, p *plan) error {
	r.quiet = r.only != "" && r.only != p.kind
	// The sample: Create, then Update.
	if err := r.create(ctx, p, p.sample); err != nil {
		return err
	}
	if err := r.well(ctx, p, p.sample, "Create", success); err != nil {
		return err
	}
	if r.quiet {
		return nil
	}
	if err := r.update(ctx, p, p.sample); err != nil {
		return err
	}
	if err := r.well(ctx, p, p.sample, "Update", success); err != nil {
		return err
	}
	if p.refuse == nil {
		return nil
	}
	return r.forms(ctx, p)
}

// forms makes three further objects: one whose operations stall and are
// retried, one whose operations are cancelled, one that is deleted in the
// middle of its update, after another that is deleted in its creation.
func (r *recorder) forms(ctx context.Context, p *plan) error {
	stalls, cancels, early, late := p.sample+"-stalls", p.sample+"-cancels", p.sample+"-early", p.sample+"-late"
	for _, step := range []func() error{
		func() error {
			return r.stallAndRetry(ctx, p, stalls, "Create", func() error { return r.create(ctx, p, stalls) })
		},
		func() error {
			return r.stallAndRetry(ctx, p, stalls, "Update", func() error { return r.update(ctx, p, stalls) })
		},
		func() error { return r.removeLast(ctx, p, stalls) },

		func() error {
			return r.cancel(ctx, p, cancels, "Create", func() error { return r.create(ctx, p, cancels) })
		},
		func() error { return r.remove(ctx, p, cancels, "") },

		func() error {
			return r.preempt(ctx, p, early, "Create", func() error { return r.create(ctx, p, early) })
		},

		func() error { return r.create(ctx, p, late) },
		func() error { return r.well(ctx, p, late, "Create", "") },
		func() error {
			return r.cancel(ctx, p, late, "Update", func() error { return r.update(ctx, p, late) })
		},
		func() error {
			return r.preempt(ctx, p, late, "Update", func() error { return r.update(ctx, p, late) })
		},
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
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
	for _, o := range r.samples {
		if o.GetKind() != p.kind || o.GetName() != p.sample {
			continue
		}
		o = o.DeepCopy()
		o.SetName(name)
		if label := "cloud.pingcap.com/provider-type"; o.GetLabels()[label] != "" {
			o.SetLabels(map[string]string{label: name})
		}
		return r.stack.Apply(ctx, o)
	}
	return fmt.Errorf("there is no sample %s", p.sample)
}

// update changes the object so that an update is due that changes nothing.
func (r *recorder) update(ctx context.Context, p *plan, name string) error {
	r.changes[p.kind+name]++
	patch, err := json.Marshal(map[string]any{"spec": p.change(r.changes[p.kind+name])})
	if err != nil {
		return err
	}
	return r.stack.Kube.Patch(ctx, bare(p.kind, name), client.RawPatch(types.MergePatchType, patch), client.FieldOwner("golden"))
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
	mend, err := r.fault(ctx, p.refuse[verb])
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
	return r.ended(ctx, p, name, op, stalled)
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
