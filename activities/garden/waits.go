package garden

import (
	"context"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/activities/wait"
	"github.com/tidbcloud/infra-orchestrator/activities/wake"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// pollEvery is the fallback for lost events; waits are woken by the cache.
const pollEvery = 15 * time.Second

// WaitShootReady waits until the Shoot is ready for its current generation.
func (a *Activities) WaitShootReady(ctx context.Context, in contract.ShootInput) (contract.ShootStatus, error) {
	var status contract.ShootStatus
	err := a.watch(ctx, in, func(shoot *gardencorev1beta1.Shoot, since, now time.Time) verdict {
		switch {
		case shoot == nil:
			return verdict{fault: faults.New(faults.Gone, "NotFound", shootName(in.Shoot), "it does not exist any more").
				WithHint(faults.OwnerOperator, "find out who deleted it; reconcile the Network to make a new one")}
		case !owns(in.Owner, shoot):
			return verdict{fault: faults.As(foreign(in.Shoot, shoot))}
		}
		status = statusOf(shoot)
		return judgeReady(shoot, since, now)
	})
	return status, err
}

// WaitShootGone waits until the Shoot does not exist. One that is not the
// owner's is no concern of it.
func (a *Activities) WaitShootGone(ctx context.Context, in contract.ShootInput) (contract.None, error) {
	return contract.None{}, a.watch(ctx, in, func(shoot *gardencorev1beta1.Shoot, since, now time.Time) verdict {
		if shoot == nil || !owns(in.Owner, shoot) {
			return verdict{done: true}
		}
		return judgeGone(shoot, since, now)
	})
}

// shootWait is a wait for a Shoot.
type shootWait struct {
	activities *Activities
	in         contract.ShootInput
	judge      func(shoot *gardencorev1beta1.Shoot, since, now time.Time) verdict
	since      time.Time // it began
}

// watch judges the Shoot at each event.
func (a *Activities) watch(ctx context.Context, in contract.ShootInput, judge func(shoot *gardencorev1beta1.Shoot, since, now time.Time) verdict) error {
	woken, stop := a.Wake.Subscribe(wake.Key{Kind: "Shoot", Namespace: in.Shoot.Namespace, Name: in.Shoot.Name})
	defer stop()
	w := &shootWait{activities: a, in: in, judge: judge, since: time.Now()}
	return wait.For(ctx, in.Object, pollEvery, woken, w.look)
}

// look judges the Shoot of the cache, and whatever ends the wait once more
// live: the cache may be behind a write of another worker.
func (w *shootWait) look(ctx context.Context) (done bool, sentence string, err error) {
	a := w.activities
	var v verdict
	for look, reader := range []client.Reader{a.Client, a.Live} {
		shoot, err := read(ctx, reader, w.in.Shoot)
		if err != nil {
			return false, "", err
		}
		v = w.judge(shoot, w.since, time.Now())
		if !v.done && v.fault == nil && !v.retry {
			return false, v.sentence, nil
		}
		if look == 0 {
			continue
		}
		if v.retry {
			return false, v.sentence, a.retry(ctx, shoot)
		}
		if v.fault != nil && v.fault.Class == faults.Auth {
			if going, err := a.refused(ctx, shoot); going || err != nil {
				return false, shootName(w.in.Shoot) + ": Gardener tries again with the Provider's credentials", err
			}
		}
	}
	if v.fault != nil {
		return false, "", v.fault
	}
	return v.done, v.sentence, nil
}
