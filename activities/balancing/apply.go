package balancing

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/balancer/v1alpha1"
	"github.com/tidbcloud/infra-orchestrator/balancing"
	"github.com/tidbcloud/infra-orchestrator/balancing/round"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// fieldOwner of what is written to Balancers.
const fieldOwner = client.FieldOwner("infra-balancer")

// writeTries bounds how often a conflict is met with another look.
const writeTries = 4

// EnsureBalanced implements the contract. The Balancer and its scales are read
// live and planned again: what the sweep saw may be old, and an earlier attempt
// may have made the changes already.
func (a *Activities) EnsureBalanced(ctx context.Context, ref contract.BalancerRef) (contract.BalancerOutcome, error) {
	b, err := a.live(ctx, ref)
	if b == nil || err != nil {
		return contract.BalancerOutcome{}, err // gone: nothing to balance
	}
	if b.Spec.Replicas == nil {
		if err := a.setDefaultReplicas(ctx, b); err != nil {
			return contract.BalancerOutcome{}, err
		}
	}
	plan, scales := a.planLive(ctx, b)
	a.tellContests(b, plan)
	errs := a.write(ctx, b, &plan, scales)
	changed := summary(b, plan, errs)
	if changed != "" {
		a.Events.Event(b, corev1.EventTypeNormal, ReasonScaled, cut("replicas changed: "+changed))
	}
	condition := plan.Condition(errs)
	out := contract.BalancerOutcome{Changed: changed}
	if !condition.OK {
		out.Failure = cut(condition.Message)
		if condition.Reason != string(round.TargetContested) { // which is told already
			a.Events.Event(b, corev1.EventTypeWarning, ReasonUnable, out.Failure)
		}
	}
	// Written even when the spec has changed meanwhile: the status is also the
	// memory of which targets are held.
	generation := b.Generation
	return out, a.setStatus(ctx, b, func(now *v1alpha1.Balancer) v1alpha1.BalancerStatus {
		return statusOf(now.Status, generation, plan, condition, a.now())
	})
}

// live reads a Balancer past the cache; nil if there is none.
func (a *Activities) live(ctx context.Context, ref contract.BalancerRef) (*v1alpha1.Balancer, error) {
	b := &v1alpha1.Balancer{}
	err := a.Client.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, b)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // nil says that there is none
	}
	return b, faults.FromKubernetes(err, "balancer "+ref.String())
}

// setDefaultReplicas writes spec.replicas of a Balancer that has none, so that
// autoscalers can read and write its scale. Whoever else sets it, wins.
func (a *Activities) setDefaultReplicas(ctx context.Context, b *v1alpha1.Balancer) error {
	before := b.DeepCopy()
	n := specOf(b).Replicas
	b.Spec.Replicas = &n
	err := a.Client.Patch(ctx, b, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), fieldOwner)
	return faults.FromKubernetes(err, "spec.replicas of balancer "+nameOf(b))
}

// planLive plans with the scales as they are, and returns them.
func (a *Activities) planLive(ctx context.Context, b *v1alpha1.Balancer) (round.Plan, []liveScale) {
	scales := make([]liveScale, len(b.Spec.Targets))
	var wg sync.WaitGroup
	for i, t := range b.Spec.Targets {
		wg.Go(func() { scales[i] = readLive(ctx, a.Scales, targetKey{b.Namespace, t.ScaleTargetRef}) })
	}
	wg.Wait()
	writers := a.writersOf(ctx, b, scales)
	read := func(i int) round.Target {
		t := scales[i].target(b.Spec.Targets[i].ScaleTargetRef)
		t.Writer = writers[i]
		return t
	}
	keys := make([]string, len(scales))
	for i, t := range b.Spec.Targets {
		keys[i] = keyOf(t.ScaleTargetRef)
	}
	return planOne(b, read, indexPods(a.Cache, b.Namespace, keys, selectorsOf(scales)...), a.now()), scales
}

// selectorsOf parses the selectors of the scales; none if one of them cannot be
// read, which the round will tell.
func selectorsOf(scales []liveScale) []labels.Selector {
	out := make([]labels.Selector, 0, len(scales))
	for _, l := range scales {
		s, err := labels.Parse(l.scale.Status.Selector)
		if l.err != nil || err != nil {
			return nil
		}
		out = append(out, s)
	}
	return out
}

// tellContests tells by an Event who has overruled the Balancer since the last
// round, and when it is over.
func (a *Activities) tellContests(b *v1alpha1.Balancer, plan round.Plan) {
	for _, t := range plan.Targets {
		before := contestOf(statusOfTarget(b, t.Name).Contest)
		switch {
		case t.Contest != nil && (before == nil || !before.Last.Equal(t.Contest.Last)):
			a.Events.Event(b, corev1.EventTypeWarning, ReasonContested, cut(t.Contest.Sentence(t.Name)))
		case before != nil && before.Left && (t.Contest == nil || !t.Contest.Left):
			a.Events.Event(b, corev1.EventTypeNormal, ReasonContested, fmt.Sprintf("target %s is balanced again", t.Name))
		}
	}
}

// write makes all changes in their order; one that fails does not stop the next.
func (a *Activities) write(ctx context.Context, b *v1alpha1.Balancer, plan *round.Plan, scales []liveScale) map[int]error {
	errs := map[int]error{}
	for _, c := range plan.Changes {
		s := scales[c.Target].scale
		err := a.scale(ctx, b, s, c)
		if err != nil {
			errs[c.Target] = err
		} else {
			plan.Written(c, string(s.UID), a.now())
		}
		a.Metrics.scaled(err)
	}
	return errs
}

// scale sets the replicas of one target. A conflict is no reason to give up as
// long as the number is still the one that the plan is made for: Kubernetes'
// controllers write the status of the same object all the time.
func (a *Activities) scale(ctx context.Context, b *v1alpha1.Balancer, s Scale, c balancing.Change) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("this is a defect of the balancer, report it: %v", cause)
		}
	}()
	for range writeTries {
		if err = a.Scales.Set(ctx, s, c.To, managerOf(b.Name)); err == nil || !apierrors.IsConflict(err) {
			return err
		}
		now, readErr := a.Scales.Get(ctx, s.Namespace, b.Spec.Targets[c.Target].ScaleTargetRef)
		if readErr != nil || now.Spec.Replicas != c.From {
			return err
		}
		s = now
	}
	return err
}

// ApplyBalancerStatuses implements the contract.
func (a *Activities) ApplyBalancerStatuses(ctx context.Context, in contract.BalancerStatusesInput) (contract.StatusesOutcome, error) {
	var balancers []*v1alpha1.Balancer
	for _, ref := range in.Balancers {
		if b := a.Cache.Balancer(ref.Namespace, ref.Name); b != nil {
			balancers = append(balancers, b)
		}
	}
	s := a.look(ctx, balancers)
	for _, b := range balancers {
		s.podsOf(b.Namespace) // before they are shared
	}
	written := make([]bool, len(balancers))
	var wg sync.WaitGroup
	slots := make(chan struct{}, liveReads)
	for i, b := range balancers {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			written[i] = a.setStatus(ctx, b, func(now *v1alpha1.Balancer) v1alpha1.BalancerStatus {
				if now.Generation != b.Generation {
					return now.Status // for the next sweep, which has read its targets
				}
				plan := s.plan(now)
				if plan.News {
					return now.Status // likewise: the cache may be old
				}
				return statusOf(now.Status, now.Generation, plan, plan.Condition(nil), s.now)
			}) == nil
		})
	}
	wg.Wait()
	var out contract.StatusesOutcome
	for _, ok := range written {
		if ok {
			out.Written++
		} else {
			out.Failed++
		}
	}
	return out, ctx.Err()
}

// setStatus writes a status if it differs. A conflict is met with another look
// at the Balancer; a failure is told by an Event, as the original does.
func (a *Activities) setStatus(ctx context.Context, b *v1alpha1.Balancer, status func(*v1alpha1.Balancer) v1alpha1.BalancerStatus) error {
	ref, uid := contract.BalancerRef{Namespace: b.Namespace, Name: b.Name}, b.UID
	var err error
	for range writeTries {
		next := b.DeepCopy()
		next.Status = status(b)
		if equality.Semantic.DeepEqual(b.Status, next.Status) {
			return nil
		}
		err = a.Client.Status().Update(ctx, next, fieldOwner)
		if apierrors.IsNotFound(err) {
			return nil // gone meanwhile: nobody to tell
		}
		if !apierrors.IsConflict(err) {
			break
		}
		now, readErr := a.live(ctx, ref)
		if readErr != nil {
			break
		}
		if now == nil || now.UID != uid {
			return nil
		}
		b = now
	}
	a.Metrics.reported(err)
	if err != nil {
		a.Events.Event(b, corev1.EventTypeWarning, ReasonStatusNotUpdated, cut(err.Error()))
	}
	return faults.FromKubernetes(err, "status of balancer "+ref.String())
}
