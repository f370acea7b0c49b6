// Package bridge carries changes of custom resources into Temporal. For every
// kind it runs the same reconciler, which makes sure that an object has a
// finalizer and an identity and then tells the object's workflow at which
// generation the object is. It decides nothing, waits for nothing and calls no
// cloud: whatever takes time or may fail is the workflow's.
package bridge

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// conflictPause is the time that the cache gets to catch up with the API server.
const conflictPause = 100 * time.Millisecond

// Reconciler is the one reconciler of all kinds; there is one value per kind.
type Reconciler struct {
	// Kind that this value reconciles.
	Kind schema.GroupVersionKind
	// Client reads metadata from the cache and patches it.
	Client client.Client
	// Signaller tells object workflows.
	Signaller *Signaller
	// NewID mints identities; RandomID when nil.
	NewID func() string
	// Resync returns the pause until the object is signalled again although
	// nothing changed; see Jittered.
	Resync func() time.Duration
}

// Reconcile tells the workflow of one object its generation.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(r.Kind)
	if err := r.Client.Get(ctx, req.NamespacedName, obj); err != nil {
		if apierrors.IsNotFound(err) {
			// The workflow mostly knows, since it removed the finalizer. Where
			// somebody else did, it must not rest for ever.
			return reconcile.Result{RequeueAfter: r.Signaller.Gone(ctx, r.Kind.Kind, req.NamespacedName)}, nil
		}
		return reconcile.Result{}, err
	}
	finalizer := v1.Finalizer(r.Kind.Kind)
	if !obj.DeletionTimestamp.IsZero() && !controllerutil.ContainsFinalizer(obj, finalizer) {
		return reconcile.Result{}, nil // never ours, or no longer
	}
	if obj.DeletionTimestamp.IsZero() {
		if err := r.claim(ctx, obj, finalizer); err != nil {
			if apierrors.IsConflict(err) { // the cache is behind; it is no error
				return reconcile.Result{RequeueAfter: conflictPause}, nil
			}
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
	}
	if retry := r.Signaller.Signal(ctx, r.Kind.Kind, obj); retry > 0 {
		return reconcile.Result{RequeueAfter: retry}, nil
	}
	return reconcile.Result{RequeueAfter: r.Resync()}, nil
}

// claim adds what is missing of finalizer and identity, both in one patch, so
// that no object is ever worked on that could vanish or change its identity.
// The optimistic lock keeps two bridges from minting two identities.
func (r *Reconciler) claim(ctx context.Context, obj *metav1.PartialObjectMetadata, finalizer string) error {
	before := obj.DeepCopy()
	changed := controllerutil.AddFinalizer(obj, finalizer)
	// What was claimed once had it: somebody has taken it away.
	stripped := changed && obj.Annotations[v1.AnnotationID] != "" && obj.Annotations[v1.AnnotationIDMintedFor] == string(obj.UID)
	if obj.Annotations[v1.AnnotationID] == "" {
		mint := r.NewID
		if mint == nil {
			mint = RandomID
		}
		metav1.SetMetaDataAnnotation(&obj.ObjectMeta, v1.AnnotationID, mint())
		metav1.SetMetaDataAnnotation(&obj.ObjectMeta, v1.AnnotationIDMintedFor, string(obj.UID))
		changed = true
	}
	if !changed {
		return nil
	}
	err := r.Client.Patch(ctx, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}),
		client.FieldOwner("infra-bridge"))
	if err == nil && stripped {
		r.Signaller.putBack(obj, finalizer)
	}
	return err
}
