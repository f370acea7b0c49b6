package management

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// RemoveFinalizer removes our finalizer from the object with the identity of
// ref. No such object, or no such finalizer, is success. Others' finalizers
// stay.
func (a *Activities) RemoveFinalizer(ctx context.Context, ref contract.ObjectRef) (contract.None, error) {
	const attempts = 5
	var err error
	for range attempts {
		var done bool
		if done, err = a.removeFinalizer(ctx, ref); done || err != nil {
			return contract.None{}, err
		}
	}
	return contract.None{}, faults.New(faults.Throttled, "Conflict", ref.String(), "others keep writing it")
}

// removeFinalizer tries once; done is false when the object changed meanwhile.
func (a *Activities) removeFinalizer(ctx context.Context, ref contract.ObjectRef) (done bool, err error) {
	o, err := newObject(ref.Kind)
	if err != nil {
		return false, err
	}
	if _, err := get(ctx, a.Live, ref.Namespace, ref.Name, o); err != nil {
		return faults.Is(err, faults.Gone), faults.IgnoreGone(err)
	}
	if !controllerutil.ContainsFinalizer(o, v1.Finalizer(ref.Kind)) {
		return true, nil
	}
	switch id := o.GetAnnotations()[v1.AnnotationID]; {
	case id == "" && o.GetDeletionTimestamp() != nil:
		return false, faults.New(faults.Dependency, "IdentityMissing", ref.String(), "its annotation %s was taken away, so its finalizer stays", v1.AnnotationID).
			WithHint(faults.OwnerUser, "put it back: "+ref.ID)
	case id != ref.ID: // another object has the name
		return true, nil
	}
	// The version makes sure that nobody else's finalizer is written over.
	before := o.DeepCopyObject().(client.Object)
	controllerutil.RemoveFinalizer(o, v1.Finalizer(ref.Kind))
	err = a.Client.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return true, nil
	case apierrors.IsConflict(err):
		return false, nil
	}
	return false, faults.FromKubernetes(err, ref.String())
}
