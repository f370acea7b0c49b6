package garden

import (
	"context"
	"slices"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/builders"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// EnsureWorkerPools adds the cluster's pools to the Shoot, or makes them larger.
// Nothing gets less here: that is for RetireWorkerPools.
func (a *Activities) EnsureWorkerPools(ctx context.Context, in contract.WorkerPoolsInput) (contract.Outcome, error) {
	workers, err := a.changePools(ctx, in.Shoot, true, func(p gardencorev1beta1.Provider) ([]gardencorev1beta1.Worker, error) {
		wanted, err := workerPools(p.Type, in)
		if err != nil {
			return nil, err
		}
		return mergePools(in, p.Workers, wanted)
	})
	return poolsOutcome(in, workers), err
}

// RetireWorkerPools removes the pools that others have replaced, and makes those
// that stay as small as they are to be.
func (a *Activities) RetireWorkerPools(ctx context.Context, in contract.WorkerPoolsInput) (contract.Outcome, error) {
	workers, err := a.changePools(ctx, in.Shoot, true, func(p gardencorev1beta1.Provider) ([]gardencorev1beta1.Worker, error) {
		return retirePools(in, p.Workers)
	})
	return poolsOutcome(in, workers), err
}

// poolsOutcome is the ledger's entry for all pools that the cluster has.
func poolsOutcome(in contract.WorkerPoolsInput, workers []gardencorev1beta1.Worker) contract.Outcome {
	var names []string
	for _, w := range workers {
		if ownsPool(in.Cluster, w) {
			names = append(names, w.Name)
		}
	}
	return contract.Outcome{Resource: v1.Resource{
		Provider: "garden", Type: "Shoot::WorkerPools", ID: in.Shoot.String() + "/" + strings.Join(names, ","), State: v1.ResourcePresent,
	}}
}

func ownsPool(cluster contract.ObjectRef, w gardencorev1beta1.Worker) bool {
	return w.Labels[contract.LabelPoolOwner] == cluster.ID
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
	_, err := a.changePools(ctx, in.Shoot, false, func(p gardencorev1beta1.Provider) ([]gardencorev1beta1.Worker, error) {
		return slices.DeleteFunc(slices.Clone(p.Workers), func(w gardencorev1beta1.Worker) bool { return ownsPool(in.Cluster, w) }), nil
	})
	return contract.None{}, err
}

// changePools changes the list of pools and nothing else, against the version
// of the Shoot that the change was made from. It returns the list.
func (a *Activities) changePools(ctx context.Context, ref contract.ShootRef, needed bool, change func(gardencorev1beta1.Provider) ([]gardencorev1beta1.Worker, error)) ([]gardencorev1beta1.Worker, error) {
	const attempts = 8
	var err error
	for range attempts {
		shoot, readErr := read(ctx, a.Live, ref)
		if readErr != nil {
			return nil, readErr
		}
		if shoot == nil || shoot.DeletionTimestamp != nil {
			if !needed {
				return nil, nil
			}
			return nil, noShoot(ref)
		}
		next := shoot.DeepCopy()
		if next.Spec.Provider.Workers, err = change(shoot.Spec.Provider); err != nil {
			return nil, err
		}
		workers := next.Spec.Provider.Workers
		if sameWorkers(shoot.Spec.Provider.Workers, workers) {
			return workers, nil
		}
		err = a.Client.Patch(ctx, next, client.MergeFromWithOptions(shoot, client.MergeFromWithOptimisticLock{}))
		if err = faults.FromKubernetes(err, "worker pools of "+shootName(ref)); !faults.Is(err, faults.Throttled) {
			return workers, err
		}
	}
	return nil, err
}

func noShoot(ref contract.ShootRef) error {
	return faults.New(faults.Dependency, "NoShoot", shootName(ref), "it does not exist, or is being deleted, so it takes no worker pools").
		WithHint(faults.OwnerUser, "see to the Network; delete this Cluster if the Network is to go")
}

// mergePools adds our pools, brings those that are there to the wanted shape,
// and leaves all others, and what Gardener has filled in, as they are. New Pods
// are kept off pools to retire. A pool of a wanted name that is not this
// cluster's is a Conflict.
func mergePools(in contract.WorkerPoolsInput, have, wanted []gardencorev1beta1.Worker) ([]gardencorev1beta1.Worker, error) {
	out := make([]gardencorev1beta1.Worker, 0, len(have)+len(wanted))
	for _, w := range have {
		w = *w.DeepCopy()
		if ownsPool(in.Cluster, w) && slices.Contains(in.Retire, w.Name) && !slices.ContainsFunc(w.Taints, retiring) {
			w.Taints = append(w.Taints, corev1.Taint{Key: contract.TaintRetiring, Effect: corev1.TaintEffectPreferNoSchedule})
		}
		out = append(out, w)
	}
	for _, want := range wanted {
		at := slices.IndexFunc(out, func(w gardencorev1beta1.Worker) bool { return w.Name == want.Name })
		if at < 0 {
			out = append(out, want)
			continue
		}
		if !ownsPool(in.Cluster, out[at]) {
			return nil, faults.New(faults.Conflict, "ForeignPool", shootName(in.Shoot), "worker pool %s belongs to another owner (identity %q); it was left alone", want.Name, out[at].Labels[contract.LabelPoolOwner]).
				WithHint(faults.OwnerOperator, "reconcile the Cluster: its pool then gets another name")
		}
		update(&out[at], want)
	}
	return out, nil
}

func retiring(t corev1.Taint) bool { return t.Key == contract.TaintRetiring }

// update sets what a pool's plan decides and what a pool may change without new
// machines: who wants other machines gets another pool. It may grow; it shrinks
// when whatever ran on its nodes has left.
func update(have *gardencorev1beta1.Worker, want gardencorev1beta1.Worker) {
	have.Minimum, have.Maximum = max(have.Minimum, want.Minimum), max(have.Maximum, want.Maximum)
	have.MaxSurge, have.MaxUnavailable = want.MaxSurge, want.MaxUnavailable
	if have.Labels == nil {
		have.Labels = map[string]string{}
	}
	for k, v := range want.Labels {
		have.Labels[k] = v
	}
	have.Taints = want.Taints
	have.SystemComponents = want.SystemComponents
}
