package main

import (
	"context"
	"fmt"
	"strings"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/test/stack"
)

// Forms, as workflowtest.Forms names them.
const (
	success   = "success"
	stalled   = "stalled"
	cancelled = "cancelled"
	preempted = "preempted"
	forced    = "forced"
	retained  = "retained"

	shootFailed = "shoot-failed"
	dependents  = "dependents"
	replaced    = "replaced"
	attached    = "attached"
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
	// awaited, so an operation whose last call runs cannot be stopped.
	refuse, hold map[string]stack.Fault // by verb: Create, Update, Delete
	holdAt       map[string]string
	// use makes something that uses an object, for kinds whose deletion can only
	// wait for that; end takes it away.
	use func(ctx context.Context, r *recorder, name string) (end func() error, err error)
	// more are forms that only this kind has.
	more func(r *recorder, p *plan) []scene
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
		}, holdAt: map[string]string{"Delete": "management.WaitUnused"}, use: useType},
		{kind: v1.KindProvider, sample: "core-aws",
			change: func(n int) map[string]any {
				return map[string]any{"dns": map[string]any{"parentZoneID": fmt.Sprintf("Z0123456789ABCDEFG%03d", n)}}
			},
			refuse: map[string]stack.Fault{"Create": deny("GetCallerIdentity"), "Update": deny("GetCallerIdentity")},
			hold:   map[string]stack.Fault{"Create": deny("GetCallerIdentity"), "Update": deny("GetCallerIdentity")},
			holdAt: map[string]string{"Delete": "management.WaitUnused"}, use: useProvider,
		},
		{kind: v1.KindNetwork, sample: "n1",
			change: func(n int) map[string]any { return map[string]any{"bucket": map[string]any{"retain": n%2 == 1}} },
			refuse: map[string]stack.Fault{"Create": deny("CreateBucket"), "Update": deny("GetCallerIdentity"), "Delete": deny("DeleteBucket")},
			hold:   map[string]stack.Fault{"Create": {Target: "shoot", Kind: "stuck", Phase: "Create"}, "Update": slow("config-service")},
			holdAt: map[string]string{"Create": "garden.WaitShootReady", "Update": "config.FetchNetworkConfig"},
			more:   networkScenes,
		},
		{kind: v1.KindCluster, sample: "c1",
			change: func(n int) map[string]any { return map[string]any{"displayName": fmt.Sprintf("orders-%d", n)} },
			refuse: map[string]stack.Fault{"Create": deny("CreateRole"), "Update": deny("GetCallerIdentity"), "Delete": deny("DeleteRole")},
			hold:   map[string]stack.Fault{"Create": {Target: "tidb", Kind: "stuck", Component: "tikv"}, "Update": slow("config-service")},
			holdAt: map[string]string{"Create": "shoot.WaitDatabaseReady", "Update": "config.FetchClusterConfig"},
			more:   clusterScenes,
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
		if planOf(o.GetKind()) == nil {
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
	r.quiet = r.only != "" && r.only != v1.KindProviderType
	return r.play(ctx, &all[0], typeScenes(r, &all[0]))
}

// planOf is the plan of a kind; nil when it is none of ours.
func planOf(kind string) *plan {
	for _, p := range plans() {
		if p.kind == kind {
			return &p
		}
	}
	return nil
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
	scenes := []scene{{"the sample's update", []string{"Update"}, func(ctx context.Context) error {
		if err := r.update(ctx, p, p.sample); err != nil {
			return err
		}
		return r.well(ctx, p, p.sample, "Update", success)
	}}}
	if p.refuse != nil {
		scenes = append(scenes, r.forms(p)...)
	}
	scenes = append(scenes, r.deletions(p)...)
	if p.more != nil {
		scenes = append(scenes, p.more(r, p)...)
	}
	return r.play(ctx, p, scenes)
}

// scene is a part of the recording that stands by itself: it has its own
// objects, and leaves nothing that disturbs the others.
type scene struct {
	name string
	// makes are its histories: Create.stalled; Update for the successful form.
	makes []string
	play  func(ctx context.Context) error
}

// play plays the scenes that are to be recorded.
func (r *recorder) play(ctx context.Context, p *plan, scenes []scene) error {
	for _, s := range scenes {
		there := r.missing
		for _, m := range s.makes {
			verb, form, ok := strings.Cut(m, ".")
			if !ok {
				form = success
			}
			there = there && r.has(p.kind, "Object"+verb+p.kind, form) && (form == attached || r.has(p.kind, verb+p.kind, form))
		}
		if r.quiet || there {
			continue
		}
		fmt.Printf("%s: %s\n", p.kind, s.name)
		if err := s.play(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}
