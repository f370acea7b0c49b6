// Package plain does what the product does in the way that operators are
// usually written: a controller-runtime reconciler for each kind that makes
// the steps one after the other, each an Ensure, and keeps its progress in
// status conditions. It is what the product is measured against.
//
// It is written with care: one metadata patch for finalizer and identity, one
// status patch at the end of a reconciliation and one before each step that
// takes long in a real cloud, no patch when nothing changed, reads from the
// cache without deep copies where it counts, its own status writes filtered
// out, and Clusters woken by their Network through an index.
//
// What it does not have is what Temporal is for: a history, progress of each
// step, verbs, a stall that says who can mend it, fairness, and steps that
// survive the process without being made again.
package plain

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/bridge"
	"github.com/tidbcloud/infra-orchestrator/faults"
	"github.com/tidbcloud/infra-orchestrator/plan"
	"github.com/tidbcloud/infra-orchestrator/test/bench/internal/nullcloud"
)

const (
	// retryAfter is the pause after a fault that somebody must mend.
	retryAfter = 5 * time.Minute
	// waitAgain is the fallback for a lost event of what is waited for.
	waitAgain = time.Minute
)

// errNotYet ends a reconciliation that waits for something else.
var errNotYet = errors.New("waits for another object")

// base is what the reconcilers share.
type base struct {
	client.Client
	cloud  *nullcloud.Cloud
	events events.EventRecorder
	resync func() time.Duration
}

// step is one piece of an operation.
type step struct {
	name string
	long bool // takes long in a real cloud, so status is told before it
	run  func(context.Context) error
}

// job is one reconciliation of one object.
type job struct {
	b      *base
	kind   string
	object v1.Object
	saved  client.Object // as the API server has it
}

func (b *base) start(kind string, o v1.Object) *job {
	return &job{b: b, kind: kind, object: o, saved: o.DeepCopyObject().(client.Object)}
}

func (j *job) ref() contract.ObjectRef {
	return contract.ObjectRef{Kind: j.kind, Namespace: j.object.GetNamespace(), Name: j.object.GetName(), ID: j.object.GetAnnotations()[v1.AnnotationID]}
}

// ensure makes the object: claims it, makes the steps, tells the end.
func (j *job) ensure(ctx context.Context, well v1.Phase, steps []step) (reconcile.Result, error) {
	if err := j.claim(ctx); err != nil {
		return j.conflict(err)
	}
	status := j.object.Common()
	if status.ObservedGeneration == j.object.GetGeneration() {
		return reconcile.Result{RequeueAfter: j.b.resync()}, nil
	}
	if status.ObservedGeneration == 0 {
		status.Phase = v1.PhaseCreating
	} else {
		status.Phase = v1.PhaseUpdating
	}
	ctx = nullcloud.WithObject(ctx, temporal.ObjectID(j.kind, j.object.GetNamespace(), j.object.GetName()))
	if err := j.run(ctx, steps); err != nil {
		return j.stalled(ctx, err)
	}
	status.Phase, status.ObservedGeneration, status.LastError = well, j.object.GetGeneration(), nil
	j.condition(v1.ConditionProgressing, false, "Succeeded", "done")
	j.condition(v1.ConditionStalled, false, "Succeeded", "nothing to mend")
	j.condition(v1.ConditionReady, true, "Ready", j.kind+" is ready")
	j.b.events.Eventf(j.object, nil, "Normal", "Ready", "Ensure", "%s is ready", j.kind)
	if err := j.save(ctx); err != nil {
		return j.conflict(err)
	}
	return reconcile.Result{RequeueAfter: j.b.resync()}, nil
}

// remove makes the steps of a deletion and lets the object go.
func (j *job) remove(ctx context.Context, steps []step) (reconcile.Result, error) {
	finalizer := v1.Finalizer(j.kind)
	if !controllerutil.ContainsFinalizer(j.object, finalizer) {
		return reconcile.Result{}, nil
	}
	j.object.Common().Phase = v1.PhaseDeleting
	if err := j.run(ctx, steps); err != nil {
		return j.stalled(ctx, err)
	}
	before := j.object.DeepCopyObject().(client.Object)
	controllerutil.RemoveFinalizer(j.object, finalizer)
	err := j.b.Patch(ctx, j.object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	return j.conflict(client.IgnoreNotFound(err))
}

func (j *job) run(ctx context.Context, steps []step) error {
	for _, s := range steps {
		if s.long {
			j.condition(v1.ConditionProgressing, true, s.name, "step "+s.name+" runs")
			j.condition(v1.ConditionReady, false, string(j.object.Common().Phase), "step "+s.name+" runs")
			if err := j.save(ctx); err != nil {
				return err
			}
		}
		if err := s.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// claim adds finalizer and identity in one patch.
func (j *job) claim(ctx context.Context) error {
	before := j.object.DeepCopyObject().(client.Object)
	changed := controllerutil.AddFinalizer(j.object, v1.Finalizer(j.kind))
	if j.object.GetAnnotations()[v1.AnnotationID] == "" {
		annotations := j.object.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[v1.AnnotationID] = bridge.RandomID()
		j.object.SetAnnotations(annotations)
		changed = true
	}
	if !changed {
		return nil
	}
	if err := j.b.Patch(ctx, j.object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	j.saved = j.object.DeepCopyObject().(client.Object)
	return nil
}

// save patches status when it differs from what the API server has.
func (j *job) save(ctx context.Context) error {
	if equality.Semantic.DeepEqual(j.saved, j.object) {
		return nil
	}
	if err := j.b.Status().Patch(ctx, j.object, client.MergeFrom(j.saved)); err != nil {
		return err
	}
	j.saved = j.object.DeepCopyObject().(client.Object)
	return nil
}

// stalled tells a fault. Passing ones go to the rate-limited queue.
func (j *job) stalled(ctx context.Context, err error) (reconcile.Result, error) {
	if errors.Is(err, errNotYet) {
		return reconcile.Result{RequeueAfter: waitAgain}, j.save(ctx)
	}
	f := faults.As(err)
	if f == nil || f.Class.Retryable() {
		return j.conflict(err)
	}
	j.condition(v1.ConditionStalled, true, string(f.Class), f.Human())
	j.condition(v1.ConditionReady, false, string(f.Class), f.Human())
	j.b.events.Eventf(j.object, nil, "Warning", "Stalled", "Ensure", "%s", f.Human())
	return reconcile.Result{RequeueAfter: retryAfter}, j.save(ctx)
}

// conflict asks for another look when the cache was behind.
func (j *job) conflict(err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: 100 * time.Millisecond}, nil
	}
	return reconcile.Result{}, err
}

func (j *job) condition(kind string, ok bool, reason, message string) {
	status := metav1.ConditionFalse
	if ok {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&j.object.Common().Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: j.object.GetGeneration(),
	})
}

// record writes a resource into the ledger.
func (j *job) record(key string, r v1.Resource) {
	status, now := j.object.Common(), metav1.Now()
	r.Key, r.At = key, &now
	for i := range status.Resources {
		if status.Resources[i].Key == key {
			status.Resources[i] = r
			return
		}
	}
	status.Resources = append(status.Resources, r)
}

// made makes an Ensure call and records what it made.
func made[In any](ctx context.Context, j *job, key string, a contract.Activity[In, contract.Outcome], in In) (v1.Resource, error) {
	out, err := nullcloud.Call(ctx, j.b.cloud, a, in)
	if err == nil {
		j.record(key, out.Resource)
	}
	return out.Resource, err
}

// call makes a call whose answer nobody needs.
func call[In, Out any](ctx context.Context, j *job, a contract.Activity[In, Out], in In) error {
	_, err := nullcloud.Call(ctx, j.b.cloud, a, in)
	return err
}

// inputs are what a plan is made from.
type inputs struct {
	provider *v1.Provider
	kind     *v1.ProviderType
	account  *v1.Account
	options  plan.Options
}

// inputs reads from the cache what stands behind a Provider, and counts the
// Account's usage.
func (b *base) inputs(ctx context.Context, o client.Object, provider string) (in inputs, err error) {
	in = inputs{provider: &v1.Provider{}, kind: &v1.ProviderType{}, account: &v1.Account{}, options: plan.Options{Env: "bench"}}
	ns := o.GetNamespace()
	if err := b.Get(ctx, client.ObjectKey{Namespace: ns, Name: provider}, in.provider); err != nil {
		return in, err
	}
	if err := b.Get(ctx, client.ObjectKey{Namespace: ns, Name: string(in.provider.Spec.Type)}, in.kind); err != nil {
		return in, err
	}
	if err := b.Get(ctx, client.ObjectKey{Namespace: ns, Name: string(in.provider.Spec.Account)}, in.account); err != nil {
		return in, err
	}
	var providers v1.ProviderList
	var networks v1.NetworkList
	var clusters v1.ClusterList
	for _, list := range []client.ObjectList{&providers, &networks, &clusters} {
		if err := b.List(ctx, list, client.InNamespace(ns), client.UnsafeDisableDeepCopy); err != nil {
			return in, err
		}
	}
	in.options.Usage = plan.UsageOf(in.account.Name, providers.Items, networks.Items, clusters.Items, string(o.GetUID()))
	return in, nil
}
