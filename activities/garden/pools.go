package garden

import (
	"context"
	"slices"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/builders"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// EnsureWorkerPools adds or updates the cluster's pools in the Shoot.
func (a *Activities) EnsureWorkerPools(ctx context.Context, in contract.WorkerPoolsInput) (contract.Outcome, error) {
	names := make([]string, 0, len(in.Pools))
	for _, pool := range in.Pools {
		names = append(names, pool.Name)
	}
	err := a.changePools(ctx, in.Shoot, true, func(p gardencorev1beta1.Provider) ([]gardencorev1beta1.Worker, error) {
		wanted, err := workerPools(p.Type, in)
		if err != nil {
			return nil, err
		}
		return mergePools(in, p.Workers, wanted)
	})
	return contract.Outcome{Resource: v1.Resource{
		Provider: "garden", Type: "Shoot::WorkerPools", ID: in.Shoot.String() + "/" + strings.Join(names, ","), State: v1.ResourcePresent,
	}}, err
}

// workerPools are the cluster's pools as the Shoot's own cloud wants them.
func workerPools(providerType string, in contract.WorkerPoolsInput) ([]gardencorev1beta1.Worker, error) {
	wanted := make([]gardencorev1beta1.Worker, 0, len(in.Pools))
	for _, pool := range in.Pools {
		w, err := builders.WorkerPoolOn(providerType, pool)
		if err != nil {
			return nil, err
		}
		w.Labels[contract.LabelPoolOwner] = in.Cluster.ID
		wanted = append(wanted, *w)
	}
	return wanted, nil
}

// DeleteWorkerPools removes the cluster's pools from the Shoot. A Shoot that is
// gone, or going, takes them along.
func (a *Activities) DeleteWorkerPools(ctx context.Context, in contract.WorkerPoolsInput) (contract.None, error) {
	return contract.None{}, a.changePools(ctx, in.Shoot, false, func(p gardencorev1beta1.Provider) ([]gardencorev1beta1.Worker, error) {
		return slices.DeleteFunc(slices.Clone(p.Workers), func(w gardencorev1beta1.Worker) bool {
			return w.Labels[contract.LabelPoolOwner] == in.Cluster.ID
		}), nil
	})
}

// changePools changes the list of pools and nothing else, against the version
// of the Shoot that the change was made from.
func (a *Activities) changePools(ctx context.Context, ref contract.ShootRef, needed bool, change func(gardencorev1beta1.Provider) ([]gardencorev1beta1.Worker, error)) error {
	const attempts = 8
	var err error
	for range attempts {
		shoot, readErr := read(ctx, a.Live, ref)
		if readErr != nil {
			return readErr
		}
		if shoot == nil || shoot.DeletionTimestamp != nil {
			if !needed {
				return nil
			}
			return faults.New(faults.Dependency, "NoShoot", shootName(ref), "it does not exist, or is being deleted, so it takes no worker pools").
				WithHint(faults.OwnerUser, "see to the Network; delete this Cluster if the Network is to go")
		}
		next := shoot.DeepCopy()
		if next.Spec.Provider.Workers, err = change(shoot.Spec.Provider); err != nil {
			return err
		}
		if sameWorkers(shoot.Spec.Provider.Workers, next.Spec.Provider.Workers) {
			return nil
		}
		err = a.Client.Patch(ctx, next, client.MergeFromWithOptions(shoot, client.MergeFromWithOptimisticLock{}))
		if err = faults.FromKubernetes(err, "worker pools of "+shootName(ref)); !faults.Is(err, faults.Throttled) {
			return err
		}
	}
	return err
}

// mergePools gives our pools the wanted shape and leaves all others, and what
// Gardener has filled in, as they are. A pool of that name that is not this
// cluster's is a Conflict.
func mergePools(in contract.WorkerPoolsInput, have, wanted []gardencorev1beta1.Worker) ([]gardencorev1beta1.Worker, error) {
	out := make([]gardencorev1beta1.Worker, 0, len(have)+len(wanted))
	for _, w := range have {
		out = append(out, *w.DeepCopy())
	}
	for _, want := range wanted {
		at := slices.IndexFunc(out, func(w gardencorev1beta1.Worker) bool { return w.Name == want.Name })
		if at < 0 {
			out = append(out, want)
			continue
		}
		if owner := out[at].Labels[contract.LabelPoolOwner]; owner != in.Cluster.ID {
			return nil, faults.New(faults.Conflict, "ForeignPool", shootName(in.Shoot), "worker pool %s belongs to another owner (identity %q); it was left alone", want.Name, owner).
				WithHint(faults.OwnerOperator, "remove that pool if nobody needs it, then retry")
		}
		update(&out[at], want)
	}
	return out, nil
}

// update sets what a pool's plan decides. Machine image, architecture and
// container runtime are Gardener's; zones are immutable.
func update(have *gardencorev1beta1.Worker, want gardencorev1beta1.Worker) {
	have.Minimum, have.Maximum = want.Minimum, want.Maximum
	have.Machine.Type = want.Machine.Type
	have.MaxSurge, have.MaxUnavailable = want.MaxSurge, want.MaxUnavailable
	if have.Volume == nil {
		have.Volume = &gardencorev1beta1.Volume{}
	}
	have.Volume.Type, have.Volume.VolumeSize, have.Volume.Encrypted = want.Volume.Type, want.Volume.VolumeSize, want.Volume.Encrypted
	if have.Labels == nil {
		have.Labels = map[string]string{}
	}
	for k, v := range want.Labels {
		have.Labels[k] = v
	}
	have.Taints = want.Taints
	have.SystemComponents = want.SystemComponents
}
