package tidboperator

import (
	"context"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/dev/control"
	"github.com/tidbcloud/infra-orchestrator/dev/gardenlet"
)

// Times at speed 1. resync is v1's resync, shortened from 30 s, so that faults
// that are switched on and off show soon.
const (
	memberStart = 800 * time.Millisecond // from a ready Pod to a healthy member
	initializer = 700 * time.Millisecond
	backupRun   = 2 * time.Second
	pollBusy    = 200 * time.Millisecond
	resync      = 2 * time.Second
)

// operator serves one shoot.
type operator struct {
	client client.Client
	live   client.Reader
	shoot  gardenlet.ShootInfo
	faults *control.Registry
	speed  float64

	mu sync.Mutex
	// ready is when something was first seen in a state, by UID and state: the
	// API has seconds only, which is too coarse here.
	ready map[string]time.Time
}

// reconcile looks whether the operator runs at all, then syncs one object.
func (op *operator) reconcile(ctx context.Context, kind string, req ctrl.Request, sync syncFunc) (ctrl.Result, error) {
	o := newObject(kind)
	if err := op.client.Get(ctx, req.NamespacedName, o); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	running, err := op.available(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !running {
		return ctrl.Result{RequeueAfter: resync / 4}, nil
	}
	after, err := sync(ctx, o)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return ctrl.Result{RequeueAfter: op.scaled(pollBusy)}, nil
	}
	return ctrl.Result{RequeueAfter: after}, err
}

func (op *operator) scaled(d time.Duration) time.Duration {
	return max(time.Duration(float64(d)/op.speed), 10*time.Millisecond)
}

// since is how long a thing has been in a state, from the first look at it.
func (op *operator) since(uid, state string) time.Duration {
	op.mu.Lock()
	defer op.mu.Unlock()
	key, now := uid+"/"+state, time.Now()
	first, ok := op.ready[key]
	if !ok {
		op.ready[key] = now
		return 0
	}
	return now.Sub(first)
}

// forget drops what since remembers of a thing that left the state.
func (op *operator) forget(uid, state string) {
	op.mu.Lock()
	defer op.mu.Unlock()
	delete(op.ready, uid+"/"+state)
}

func (op *operator) stuck(o client.Object, component string) bool {
	return op.faults.Stuck(control.TargetTiDB, control.Subject{
		Shoot: op.shoot.TechnicalID, ShootName: op.shoot.Name, Namespace: o.GetNamespace(), Name: o.GetName(), Component: component,
	})
}

// writeStatus puts the whole object, as v1 does for kinds without a status
// subresource. It writes nothing when nothing changed.
func (op *operator) writeStatus(ctx context.Context, o *unstructured.Unstructured, status map[string]any) error {
	before, _, _ := unstructured.NestedMap(o.Object, "status")
	if equality.Semantic.DeepEqual(before, status) {
		return nil
	}
	next := o.DeepCopy()
	next.Object["status"] = status
	return op.client.Update(ctx, next)
}

// healthy reports whether a Pod's member has started: some time after the Pod
// became ready.
func (op *operator) healthy(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil {
			return op.since(string(pod.UID), "ready") >= op.scaled(memberStart)
		}
	}
	op.forget(string(pod.UID), "ready")
	return false
}

// labels are v1's labels of all that belongs to a TidbCluster.
func labels(tc, component string) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name": "tidb-cluster", "app.kubernetes.io/managed-by": "tidb-operator",
		"app.kubernetes.io/instance": tc, "app.kubernetes.io/component": component,
	}
}

// merged lays maps over each other, later ones on top.
func merged(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range all {
		maps.Copy(out, m)
	}
	return out
}
