package shoot

import (
	"context"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/activities/audited"
	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/activities/wait"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// CleanShoot removes load balancers and volumes that would outlive the Shoot:
// Gardener does not touch volumes of policy Retain. A Shoot that was never
// ready, or is going already, holds nothing of ours.
func (a *Activities) CleanShoot(ctx context.Context, in contract.ShootInput) (contract.None, error) {
	s, err := a.Shoots.Shoot(ctx, in.Shoot)
	if err != nil {
		return contract.None{}, faults.IgnoreGone(err)
	}
	if s.Annotations[v1.TagID] != in.Owner.ID || !everReady(s) {
		return contract.None{}, nil
	}
	c, err := a.openToDelete(ctx, in.Shoot)
	if err != nil || c == nil {
		return contract.None{}, err
	}
	return contract.None{}, wait.For(ctx, in.Object, a.poll(), nil, c.clean)
}

// everReady reports whether anything of ours can be in the shoot: its creation
// has succeeded once, and its deletion has not begun.
func everReady(s *gardencorev1beta1.Shoot) bool {
	op := s.Status.LastOperation
	if s.DeletionTimestamp != nil || s.Status.UID == "" || op == nil {
		return false
	}
	return op.Type != gardencorev1beta1.LastOperationTypeCreate || op.State == gardencorev1beta1.LastOperationStateSucceeded
}

// clean does what can be done now, and says what is left.
func (c *cluster) clean(ctx context.Context) (done bool, sentence string, err error) {
	var left []string
	var services corev1.ServiceList
	if err := c.list(ctx, &services); err != nil {
		return false, "", err
	}
	for i := range services.Items {
		s := &services.Items[i]
		if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
			continue
		}
		left = append(left, "load balancer "+s.Namespace+"/"+s.Name)
		if err := c.remove(ctx, s); err != nil {
			return false, "", err
		}
	}
	volumes, err := c.releaseVolumes(ctx, func(*corev1.PersistentVolume) bool { return true })
	if err != nil {
		return false, "", err
	}
	claims, err := c.removeClaims(ctx)
	if err != nil {
		return false, "", err
	}
	left = append(append(left, claims...), volumes...)
	return len(left) == 0, "shoot " + c.ref.String() + ": waiting until these are gone: " + wait.Missing(left, 5), nil
}

// removeClaims deletes PersistentVolumeClaims, and lists those that it found.
func (c *cluster) removeClaims(ctx context.Context, options ...client.ListOption) (found []string, err error) {
	var claims corev1.PersistentVolumeClaimList
	if err := c.list(ctx, &claims, options...); err != nil {
		return nil, err
	}
	for i := range claims.Items {
		p := &claims.Items[i]
		found = append(found, "claim "+p.Namespace+"/"+p.Name)
		if err := c.remove(ctx, p); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// releaseVolumes sets the volumes to be deleted with their claims, and lists
// them. A volume whose claim is gone already is deleted by that change.
func (c *cluster) releaseVolumes(ctx context.Context, ours func(*corev1.PersistentVolume) bool) (found []string, err error) {
	var volumes corev1.PersistentVolumeList
	if err := c.list(ctx, &volumes); err != nil {
		return nil, err
	}
	for i := range volumes.Items {
		v := &volumes.Items[i]
		if !ours(v) {
			continue
		}
		found = append(found, "volume "+v.Name)
		if v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
			continue
		}
		next := v.DeepCopy()
		next.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
		err := audited.Change(ctx, present(kindOf(v), "", v.Name).Resource, func() error {
			err := c.Patch(ctx, next, client.MergeFrom(v))
			return faults.IgnoreGone(c.fault(ctx, err, "volume "+v.Name))
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// claimedFrom accepts the volumes of a namespace's claims, also when the claim
// is gone.
func claimedFrom(namespace string) func(*corev1.PersistentVolume) bool {
	return func(v *corev1.PersistentVolume) bool {
		return v.Spec.ClaimRef != nil && strings.EqualFold(v.Spec.ClaimRef.Namespace, namespace)
	}
}
