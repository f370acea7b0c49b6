package shoot

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/activities/wait"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// order of kinds in a bundle: what others need comes first. Kinds that are not
// named come last.
var order = []string{"CustomResourceDefinition", "Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ConfigMap", "Secret", "Service"}

// BootstrapShoot applies the bundle, CRDs first and established before the
// rest. Applying it again changes nothing.
//
// The API server answers the first create of a kind within 2 s of its CRD
// being established 2 s late; the first database comes long after.
func (a *Activities) BootstrapShoot(ctx context.Context, in contract.BootstrapInput) (contract.None, error) {
	bundle, err := a.Documents.NetworkConfig(ctx, in.ConfigHash)
	if err != nil {
		return contract.None{}, err
	}
	c, err := a.open(ctx, in.Shoot)
	if err != nil {
		return contract.None{}, err
	}
	manifests := sorted(bundle.Manifests)
	for i := range manifests {
		if isCRD(manifests[i]) {
			if err := c.apply(ctx, &manifests[i]); err != nil {
				return contract.None{}, err
			}
		}
	}
	for i := range manifests {
		if isCRD(manifests[i]) {
			err = c.established(ctx, &manifests[i])
		} else {
			err = c.apply(ctx, &manifests[i])
		}
		if err != nil {
			return contract.None{}, err
		}
	}
	return contract.None{}, nil
}

func isCRD(u unstructured.Unstructured) bool { return u.GetKind() == "CustomResourceDefinition" }

func sorted(in []unstructured.Unstructured) []unstructured.Unstructured {
	out := slices.Clone(in)
	slices.SortStableFunc(out, func(x, y unstructured.Unstructured) int { return rank(x) - rank(y) })
	return out
}

func rank(u unstructured.Unstructured) int {
	if at := slices.Index(order, u.GetKind()); at >= 0 {
		return at
	}
	return len(order)
}

// established waits until the API server serves the CRD: a second or so.
func (c *cluster) established(ctx context.Context, crd *unstructured.Unstructured) error {
	const patience = 30 * time.Second
	have := &unstructured.Unstructured{}
	have.SetGroupVersionKind(crd.GroupVersionKind())
	for deadline := time.Now().Add(patience); ; {
		if _, err := c.find(ctx, have, "", crd.GetName()); err != nil {
			return err
		}
		if conditionTrue(have, "Established") {
			return nil
		}
		if time.Now().After(deadline) {
			return faults.New(faults.Transient, "NotEstablished", "CRD "+crd.GetName()+" in shoot "+c.ref.String(), "the API server does not serve it yet")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// conditionTrue reports whether status.conditions has the type with status True.
func conditionTrue(u *unstructured.Unstructured, kind string) bool {
	c, ok := condition(u, kind)
	return ok && c["status"] == "True"
}

func condition(u *unstructured.Unstructured, kind string) (map[string]any, bool) {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, one := range conditions {
		if c, ok := one.(map[string]any); ok && c["type"] == kind {
			return c, true
		}
	}
	return nil, false
}

// WaitBootstrapped waits until every Deployment of the bundle is available.
func (a *Activities) WaitBootstrapped(ctx context.Context, in contract.BootstrapInput) (contract.None, error) {
	bundle, err := a.Documents.NetworkConfig(ctx, in.ConfigHash)
	if err != nil {
		return contract.None{}, err
	}
	c, err := a.open(ctx, in.Shoot)
	if err != nil {
		return contract.None{}, err
	}
	woken, stop := c.events(ctx, &appsv1.DeploymentList{})
	defer stop()
	return contract.None{}, wait.For(ctx, in.Owner, a.poll(), woken, func(ctx context.Context) (bool, string, error) {
		var missing []string
		for _, m := range bundle.Manifests {
			if m.GetKind() != "Deployment" {
				continue
			}
			d := &appsv1.Deployment{}
			exists, err := c.find(ctx, d, m.GetNamespace(), m.GetName())
			if err != nil {
				return false, "", err
			}
			if state := rollout(d, exists); state != "" {
				missing = append(missing, m.GetNamespace()+"/"+m.GetName()+" "+state)
			}
		}
		return len(missing) == 0, "shoot " + in.Shoot.String() + ": waiting for deployments: " + wait.Missing(missing, 3), nil
	})
}

// rollout says what a Deployment lacks; empty when it is available in its
// current form.
func rollout(d *appsv1.Deployment, exists bool) string {
	if !exists {
		return "(does not exist)"
	}
	wanted := int32(1)
	if d.Spec.Replicas != nil {
		wanted = *d.Spec.Replicas
	}
	s := d.Status
	if s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == wanted && s.AvailableReplicas == wanted {
		return ""
	}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return "(" + c.Message + ")"
		}
	}
	if s.UpdatedReplicas != wanted || s.ObservedGeneration < d.Generation {
		return fmt.Sprintf("(%d of %d updated)", s.UpdatedReplicas, wanted)
	}
	return fmt.Sprintf("(%d of %d available)", s.AvailableReplicas, wanted)
}
