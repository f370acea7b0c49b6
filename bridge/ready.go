package bridge

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// WaitForCaches returns once the metadata of all kinds is in the cache, on the
// standby as on the leader. It fails when a kind cannot be watched.
func WaitForCaches(ctx context.Context, c cache.Cache) error {
	for _, gvk := range Kinds() {
		obj := &metav1.PartialObjectMetadata{}
		obj.SetGroupVersionKind(gvk)
		if _, err := c.GetInformer(ctx, obj); err != nil {
			return fmt.Errorf("watch %s: %w. For the operator: are the CRDs installed, and may the bridge list them?", gvk.Kind, err)
		}
	}
	return nil
}
