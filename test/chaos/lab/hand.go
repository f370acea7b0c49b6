package lab

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/test/invariants"
)

// What somebody does by hand who has rights in the garden and in a shoot.

const gardenNamespace = "garden-core"

// RemoveShoot deletes the Shoot of a Network as a user of Gardener does, and
// waits until it is gone.
func (l *Lane) RemoveShoot(ctx context.Context, network invariants.Key) error {
	o := l.Checker.Latest(network)
	if o == nil {
		return fmt.Errorf("%s does not exist", network)
	}
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("core.gardener.cloud/v1beta1")
	list.SetKind("ShootList")
	if err := l.Stack.Kube.List(ctx, list, client.InNamespace(gardenNamespace)); err != nil {
		return err
	}
	for _, shoot := range list.Items {
		if shoot.GetAnnotations()[v1.TagID] != o.GetAnnotations()[v1.AnnotationID] {
			continue
		}
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"confirmation.gardener.cloud/deletion":"true"}}}`))
		if err := l.Stack.Kube.Patch(ctx, &shoot, patch); err != nil {
			return err
		}
		return removed(ctx, l.Stack.Kube, &shoot)
	}
	return fmt.Errorf("%s has no Shoot", network)
}

// RemoveDatabase deletes the TidbCluster of a Cluster in its shoot, and waits
// until it is gone.
func (l *Lane) RemoveDatabase(ctx context.Context, cluster invariants.Key) error {
	c, ok := l.Checker.Latest(cluster).(*v1.Cluster)
	if !ok || l.networkOf(c) == nil || l.networkOf(c).Status.Shoot == nil {
		return fmt.Errorf("%s has no shoot", cluster)
	}
	shoot := l.networkOf(c).Status.Shoot
	config := l.Gate.ShootConfig(shoot.Namespace + "/" + shoot.Name)
	if config == nil {
		return fmt.Errorf("the shoot of %s was never opened", cluster)
	}
	kube, err := client.New(config, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		return err
	}
	all, err := (&inside{kube}).list(ctx, "pingcap.com/v1alpha1", "TidbCluster", client.MatchingLabels{v1.TagID: c.Annotations[v1.AnnotationID]})
	if err != nil {
		return err
	}
	if len(all) != 1 {
		return fmt.Errorf("%s has %d TidbClusters", cluster, len(all))
	}
	return removed(ctx, kube, &all[0])
}

// removed deletes an object and waits until it is gone.
func removed(ctx context.Context, c client.Client, o client.Object) error {
	if err := c.Delete(ctx, o); err != nil {
		return err
	}
	for uid := o.GetUID(); ; {
		if err := c.Get(ctx, client.ObjectKeyFromObject(o), o); apierrors.IsNotFound(err) || err == nil && o.GetUID() != uid {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not go: %w", o.GetName(), ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// SpoilCredentials puts a key that AWS does not know into the garden's copies
// of the lane's credentials, as if a rotated key had not reached them.
func (l *Lane) SpoilCredentials(ctx context.Context) error {
	var list corev1.SecretList
	if err := l.Stack.Kube.List(ctx, &list, client.InNamespace(gardenNamespace)); err != nil {
		return err
	}
	spoilt := 0
	for _, s := range list.Items {
		if s.Annotations["infra.cloud.pingcap.com/provider"] != l.Name+"/"+names[v1.KindProvider] {
			continue
		}
		s.Data["accessKeyID"] = []byte("AKIAINVALID000000000")
		if err := l.Stack.Kube.Update(ctx, &s); err != nil {
			return err
		}
		spoilt++
	}
	if spoilt == 0 {
		return fmt.Errorf("the garden has no credentials of %s", l.Name)
	}
	return nil
}
