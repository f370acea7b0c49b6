package tidboperator

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// syncVolumes keeps the volumes of a cluster at its pvReclaimPolicy (default
// Retain), whatever others have set; v1 does so in every round.
func (o *operator) syncVolumes(ctx context.Context, tc *unstructured.Unstructured) error {
	policy, ok, _ := unstructured.NestedString(tc.Object, "spec", "pvReclaimPolicy")
	if !ok || policy == "" {
		policy = string(corev1.PersistentVolumeReclaimRetain)
	}
	var claims corev1.PersistentVolumeClaimList
	if err := o.client.List(ctx, &claims, client.InNamespace(tc.GetNamespace()), client.MatchingLabels{
		"app.kubernetes.io/managed-by": "tidb-operator", "app.kubernetes.io/instance": tc.GetName(),
	}); err != nil {
		return err
	}
	for _, claim := range claims.Items {
		if claim.Spec.VolumeName == "" {
			continue
		}
		var pv corev1.PersistentVolume
		if err := o.client.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, &pv); err != nil {
			if client.IgnoreNotFound(err) != nil {
				return err
			}
			continue
		}
		if string(pv.Spec.PersistentVolumeReclaimPolicy) == policy {
			continue
		}
		before := pv.DeepCopy()
		pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimPolicy(policy)
		if err := o.client.Patch(ctx, &pv, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
