package gardenlet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	gardenerutils "github.com/gardener/gardener/pkg/utils/gardener"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// projectLabel is on the namespace of every Gardener project.
const projectLabel = "project.gardener.cloud/name"

// soon asks for another look at once.
var soon = reconcile.Result{RequeueAfter: time.Millisecond}

// reconciler drives Shoots. A call runs a whole operation, as in gardenlet.
type reconciler struct {
	opts     Options
	client   client.Client
	live     client.Reader // past the cache: operations must not act on old news
	clusters *clusters

	mu       sync.Mutex
	attempts map[string]int // failed attempts in a row, by namespace/name
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	shoot := &gardencorev1beta1.Shoot{}
	if err := r.live.Get(ctx, req.NamespacedName, shoot); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	switch decide(shoot) {
	case actBind:
		return soon, r.bind(ctx, shoot)
	case actFinalize:
		return reconcile.Result{}, r.finalize(ctx, shoot)
	case actOperate:
		return r.operate(ctx, shoot)
	case actCare:
		return r.care(ctx, shoot)
	default:
		return reconcile.Result{}, nil
	}
}

// wanted lets those events through that can ask for something: what the
// stand-in itself writes into a status must not cut the pause between two
// attempts short.
func wanted() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
	}}
}

// bind does gardener-scheduler's part, and has the Shoot operated on at once.
func (r *reconciler) bind(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	bound := shoot.DeepCopy()
	bound.Spec.SeedName = &r.opts.SeedName
	if err := r.client.SubResource("binding").Update(ctx, bound); err != nil {
		return fmt.Errorf("bind shoot %s to seed %s: %w", client.ObjectKeyFromObject(shoot), r.opts.SeedName, err)
	}
	return nil
}

// finalize lets a Shoot go whose deletion has succeeded, or that never was more
// than an object.
func (r *reconciler) finalize(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	if err := r.dropAccess(ctx, shoot); err != nil {
		return err
	}
	base := shoot.DeepCopy()
	controllerutil.RemoveFinalizer(shoot, finalizer)
	return client.IgnoreNotFound(r.client.Patch(ctx, shoot, client.MergeFrom(base)))
}

// operate runs one attempt of the operation that is due.
func (r *reconciler) operate(ctx context.Context, shoot *gardencorev1beta1.Shoot) (reconcile.Result, error) {
	if controllerutil.AddFinalizer(shoot, finalizer) && shoot.DeletionTimestamp == nil {
		base := shoot.DeepCopy()
		controllerutil.RemoveFinalizer(base, finalizer)
		if err := r.client.Patch(ctx, shoot, client.MergeFrom(base)); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
	}
	technicalID, err := r.technicalID(ctx, shoot)
	if err != nil {
		return reconcile.Result{}, err
	}
	op := newOperation(r, shoot, technicalID)
	err = op.run(ctx)
	key := client.ObjectKeyFromObject(shoot).String()
	switch {
	case err == nil && op.phase == PhaseDelete:
		r.succeeded(key)
		return soon, nil
	case err == nil:
		r.succeeded(key)
		return reconcile.Result{RequeueAfter: r.opts.Pace.scale(carePause)}, nil
	case errors.Is(err, errSuperseded), apierrors.IsNotFound(err):
		return soon, nil
	case ctx.Err() != nil:
		return reconcile.Result{}, nil // the devstack stops; the next run starts over
	}
	ctrl.LoggerFrom(ctx).Info("Operation failed", "shoot", key, "phase", op.phase, "error", err.Error())
	state, statusErr := op.fail(ctx, err)
	if statusErr != nil {
		return reconcile.Result{}, statusErr
	}
	if state == gardencorev1beta1.LastOperationStateFailed {
		r.succeeded(key)
		return reconcile.Result{RequeueAfter: r.opts.Pace.scale(carePause)}, nil
	}
	return reconcile.Result{RequeueAfter: r.opts.Pace.scale(r.pause(key))}, nil
}

// technicalID is fixed once it is in the status.
func (r *reconciler) technicalID(ctx context.Context, shoot *gardencorev1beta1.Shoot) (string, error) {
	if shoot.Status.TechnicalID != "" {
		return shoot.Status.TechnicalID, nil
	}
	namespace := &corev1.Namespace{}
	if err := r.live.Get(ctx, client.ObjectKey{Name: shoot.Namespace}, namespace); err != nil {
		return "", err
	}
	project := namespace.Labels[projectLabel]
	if project == "" {
		return "", fmt.Errorf("namespace %s has no label %s: it belongs to no Gardener project", shoot.Namespace, projectLabel)
	}
	return gardenerutils.ComputeTechnicalID(project, shoot), nil
}

// pause before the next attempt of an operation in state Error: 2 s, doubled
// with each attempt, at most 16 s. Gardener's are longer, and nobody learns from
// waiting for them.
func (r *reconciler) pause(key string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.attempts[key]
	r.attempts[key] = n + 1
	return 2 * time.Second << min(n, 3)
}

func (r *reconciler) succeeded(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.attempts, key)
}
