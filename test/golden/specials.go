package main

import (
	"context"
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/test/stack"
)

// Forms that one kind has only, since one step of it goes another way there.

func networkScenes(r *recorder, p *plan) []scene {
	fails, orphan := p.sample+"-fails", p.sample+"-orphan"
	shoot := func(phase, code string) stack.Fault {
		return stack.Fault{Target: "shoot", Kind: "error", Phase: phase, Codes: []string{code}}
	}
	return []scene{
		{"Shoots that fail", []string{"Create." + shootFailed, "Delete." + dependents}, func(ctx context.Context) error {
			err := r.stallAndRetryFor(ctx, p, fails, "Create", shoot("Create", "ERR_INFRA_QUOTA_EXCEEDED"), shootFailed,
				func() error { return r.create(ctx, p, fails) })
			if err != nil {
				return err
			}
			return r.stallAndRetryFor(ctx, p, fails, "Delete", shoot("Delete", "ERR_INFRA_DEPENDENCIES"), dependents,
				func() error { return r.delete(ctx, p, fails) })
		}},
		{"an object workflow attaches", []string{"Create." + attached}, func(ctx context.Context) error { return r.attach(ctx, p, orphan) }},
	}
}

// attach terminates an object workflow whose operation runs: the next one finds
// the operation running.
func (r *recorder) attach(ctx context.Context, p *plan, name string) error {
	release, err := r.fault(ctx, p.hold["Create"])
	if err != nil {
		return err
	}
	if err := r.create(ctx, p, name); err != nil {
		return err
	}
	if _, err := r.holds(ctx, p, name, "Create"); err != nil {
		return err
	}
	object := temporal.ObjectID(p.kind, namespace, name)
	if err := r.stack.Temporal.TerminateWorkflow(ctx, object, "", "recorded"); err != nil {
		return err
	}
	// The bridge signals for this annotation, which asks for nothing.
	if err := r.annotate(ctx, p.kind, name, v1.AnnotationPaused, "false"); err != nil {
		return err
	}
	run := ""
	err = until(ctx, object+" attaches", func() (is bool, err error) {
		run, is, err = r.runs(ctx, object, "operations.WaitOperation")
		return is, err
	})
	if err != nil {
		return err
	}
	if err := release(); err != nil {
		return err
	}
	if err := r.well(ctx, p, name, "", ""); err != nil {
		return err
	}
	h, err := r.objectRun(ctx, object, run, func(e *historypb.HistoryEvent) bool {
		return e.GetEventType() == enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED
	})
	if err != nil {
		return err
	}
	return errors.Join(r.write(p.kind, "ObjectCreate"+p.kind, attached, h), r.remove(ctx, p, name, ""))
}

func clusterScenes(r *recorder, p *plan) []scene {
	return []scene{{"other machines", []string{"Update." + replaced}, func(ctx context.Context) error { return r.replace(ctx, p, p.sample+"-moves") }}}
}

// replace has a Cluster follow its machine class to another machine type, and
// puts the class back.
func (r *recorder) replace(ctx context.Context, p *plan, name string) error {
	if err := r.made(ctx, p, name); err != nil {
		return err
	}
	if err := r.machines(ctx, "r5.2xlarge"); err != nil {
		return err
	}
	if err := r.update(ctx, p, name); err != nil {
		return err
	}
	if err := r.well(ctx, p, name, "Update", replaced); err != nil {
		return err
	}
	return errors.Join(r.machines(ctx, "m5.xlarge"), r.remove(ctx, p, name, ""))
}

// machines gives the class of TiDB's and TiKV's machines a machine type.
func (r *recorder) machines(ctx context.Context, machineType string) error {
	p := planOf(v1.KindProviderType)
	patch := client.RawPatch(types.JSONPatchType, fmt.Appendf(nil, `[{"op":"test","path":"/spec/machineClasses/1/name","value":"4C16G"},
		{"op":"replace","path":"/spec/machineClasses/1/machineType","value":%q}]`, machineType))
	if err := r.stack.Kube.Patch(ctx, bare(p.kind, p.sample), patch); err != nil {
		return err
	}
	return r.well(ctx, p, p.sample, "", "")
}

// typeScenes are of a ProviderType that lacks what is in use. The webhooks
// refuse to take that away; but once a forced deletion has taken the type or
// its Provider, they find no use, and the operations do when it is back. They
// come last: their Network leaves a Shoot.
func typeScenes(r *recorder, p *plan) []scene {
	return []scene{{"a ProviderType that lacks what is in use", []string{
		"Create.stalled", "Create.cancelled", "Create.preempted", "Update.stalled", "Update.cancelled", "Update.preempted",
	}, func(ctx context.Context) error { return r.lack(ctx, p, p.sample+"-lacks") }}}
}

func (r *recorder) lack(ctx context.Context, p *plan, name string) error {
	mend, err := r.inUse(ctx, p, name)
	if err != nil {
		return err
	}
	object := temporal.ObjectID(p.kind, namespace, name)
	provider := planOf(v1.KindProvider)
	create := func() error { return r.lacking(ctx, p, name) }
	update := func() error { return r.update(ctx, p, name) }
	cancel := func(op string) error { return r.verb(ctx, op, temporal.VerbCancel) }
	preempt := func(string) error { return r.forceAway(ctx, p, name) }
	// Without the Provider nobody sees that the region is in use.
	retry := func(string) error {
		if err := r.forceAway(ctx, provider, provider.sample+"-user"); err != nil {
			return err
		}
		return r.verb(ctx, object, temporal.VerbRetry)
	}
	use := func() error { _, err := useType(ctx, r, name); return err }
	for _, step := range []func() error{
		func() error { return r.forceAway(ctx, p, name) },
		func() error { return r.met(ctx, p, name, "Create", create, cancelled, cancel) },
		func() error {
			again := func() error { return r.verb(ctx, object, temporal.VerbRetry) }
			return r.met(ctx, p, name, "Create", again, preempted, preempt)
		},
		func() error { return r.met(ctx, p, name, "Create", create, stalled, retry) },
		use,
		func() error { return r.met(ctx, p, name, "Update", update, cancelled, cancel) },
		func() error { return r.met(ctx, p, name, "Update", update, stalled, retry) },
		use,
		func() error { return r.met(ctx, p, name, "Update", update, preempted, preempt) },
		mend,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// met begins an operation that stalls, does something about it, and saves it.
func (r *recorder) met(ctx context.Context, p *plan, name, verb string, begin func() error, form string, act func(operation string) error) error {
	if err := begin(); err != nil {
		return err
	}
	op, err := r.stalls(ctx, p.kind, name, verb)
	if err != nil {
		return err
	}
	if err := act(op); err != nil {
		return err
	}
	return r.ended(ctx, p, name, op, form)
}

// inUse makes a ProviderType, a Provider of it, and a Network that has come so
// far that it uses a region.
func (r *recorder) inUse(ctx context.Context, p *plan, name string) (mend func() error, err error) {
	if err := r.made(ctx, p, name); err != nil {
		return nil, err
	}
	if _, err := useType(ctx, r, name); err != nil {
		return nil, err
	}
	n := planOf(v1.KindNetwork)
	mend, err = r.fault(ctx, n.hold["Create"])
	if err != nil {
		return nil, err
	}
	err = r.like(ctx, n.kind, n.sample, n.sample+"-lacks", func(o *unstructured.Unstructured) error {
		return unstructured.SetNestedField(o.Object, planOf(v1.KindProvider).sample+"-user", "spec", "provider")
	})
	if err != nil {
		return nil, err
	}
	_, err = r.holds(ctx, n, n.sample+"-lacks", "Create")
	return mend, err
}

// lacking creates the ProviderType with another region.
func (r *recorder) lacking(ctx context.Context, p *plan, name string) error {
	return r.like(ctx, p.kind, p.sample, name, func(o *unstructured.Unstructured) error {
		region := map[string]any{"name": "eu-west-1", "zones": []any{"eu-west-1a"}}
		return unstructured.SetNestedSlice(o.Object, []any{region}, "spec", "regions")
	})
}
