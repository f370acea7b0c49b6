package management

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	return contract.None{}, faults.New(faults.Throttled, "Conflict", ref.String(), "its finalizers keep changing")
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
	at := slices.Index(o.GetFinalizers(), v1.Finalizer(ref.Kind))
	if at < 0 || o.GetAnnotations()[v1.AnnotationID] != ref.ID {
		return true, nil
	}
	// The tests make sure that it is the same object and the same entry.
	path := fmt.Sprintf("/metadata/finalizers/%d", at)
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": o.GetUID()},
		{"op": "test", "path": path, "value": v1.Finalizer(ref.Kind)},
		{"op": "remove", "path": path},
	})
	if err != nil {
		return false, err
	}
	err = a.Client.Patch(ctx, o, client.RawPatch(types.JSONPatchType, patch))
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return true, nil
	case apierrors.IsInvalid(err), apierrors.IsConflict(err): // a test failed
		return false, nil
	}
	return false, faults.FromKubernetes(err, ref.String())
}
