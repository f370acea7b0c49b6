package balancing

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/balancer/v1alpha1"
	"github.com/tidbcloud/infra-orchestrator/balancing/round"
)

// snapshot is what the cache held when a sweep began to look.
type snapshot struct {
	cache   Cache
	targets targetReader
	keys    map[string][]string       // of targets, by namespace
	pods    map[string]*podIndex      // by namespace, made when first asked for
	scalers map[string]autoscalerList // by namespace, where it matters
	now     time.Time
}

// look takes a snapshot for these Balancers.
func (a *Activities) look(ctx context.Context, balancers []*v1alpha1.Balancer) *snapshot {
	s := &snapshot{cache: a.Cache, targets: targetReader{cache: a.Cache}, keys: map[string][]string{}, pods: map[string]*podIndex{}, now: a.now()}
	for _, b := range balancers {
		for _, t := range b.Spec.Targets {
			s.keys[b.Namespace] = append(s.keys[b.Namespace], keyOf(t.ScaleTargetRef))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, prefetchTimeout)
	defer cancel()
	s.targets.prefetch(ctx, a.Scales, balancers)
	s.scalers = a.autoscalersOf(ctx, balancers)
	return s
}

func (s *snapshot) podsOf(namespace string) *podIndex {
	x, ok := s.pods[namespace]
	if !ok {
		x = indexPods(s.cache, namespace, s.keys[namespace])
		s.pods[namespace] = x
	}
	return x
}

func (s *snapshot) plan(b *v1alpha1.Balancer) round.Plan {
	read := func(i int) round.Target {
		ref := b.Spec.Targets[i].ScaleTargetRef
		t := s.targets.read(b.Namespace, ref)
		if list, looked := s.scalers[b.Namespace]; looked {
			refer(&t.Writer, list.all, list.err, ref)
		}
		return t
	}
	return planOne(b, read, s.podsOf(b.Namespace), s.now)
}

// PlanBalancers implements the contract.
func (a *Activities) PlanBalancers(ctx context.Context, in contract.PlanBalancersInput) (contract.BalancersPlan, error) {
	began := time.Now()
	all := a.Cache.Balancers()
	slices.SortFunc(all, func(x, y *v1alpha1.Balancer) int { return cmp.Compare(nameOf(x), nameOf(y)) })
	if in.After != "" {
		first, _ := slices.BinarySearchFunc(all, in.After+"\x00", func(b *v1alpha1.Balancer, after string) int {
			return cmp.Compare(nameOf(b), after)
		})
		all = all[first:]
	}
	s := a.look(ctx, all)
	if ctx.Err() != nil {
		return contract.BalancersPlan{}, ctx.Err()
	}
	var out contract.BalancersPlan
	for i, b := range all {
		a.consider(s, b, &out)
		full := len(out.Changes) == contract.MaxPlannedChanges || len(out.Reports) == contract.MaxPlannedReports
		if full && i+1 < len(all) {
			out.Next = nameOf(b)
			break
		}
	}
	a.Metrics.planned(out, time.Since(began))
	return out, nil
}

// consider adds one Balancer to the plan.
func (a *Activities) consider(s *snapshot, b *v1alpha1.Balancer, out *contract.BalancersPlan) {
	out.Looked++
	plan := s.plan(b)
	ref := contract.BalancerRef{Namespace: b.Namespace, Name: b.Name}
	if failure := cmp.Or(plan.Failure, plan.LeftAlone()); failure != nil {
		out.Failing++
		a.Metrics.failed(failure.Phase)
		// What is left alone was told when it began; repeated for days it would
		// use up the Events that an object may have.
		if plan.Failure != nil {
			a.Events.Event(b, corev1.EventTypeWarning, ReasonUnable, cut(failure.Error()))
		}
	}
	switch {
	case b.Spec.Replicas == nil:
		out.Changes = append(out.Changes, contract.BalancerChange{BalancerRef: ref, Summary: fmt.Sprintf("replicas %d", specOf(b).Replicas)})
	case len(plan.Changes) > 0:
		out.Changes = append(out.Changes, contract.BalancerChange{BalancerRef: ref, Summary: summary(b, plan, nil)})
	case plan.News: // to be looked at live
		out.Changes = append(out.Changes, contract.BalancerChange{BalancerRef: ref, Summary: "somebody else scales a target, or has stopped"})
	case !equality.Semantic.DeepEqual(b.Status, statusOf(b.Status, b.Generation, plan, plan.Condition(nil), s.now)):
		out.Reports = append(out.Reports, ref)
	}
}

func nameOf(b *v1alpha1.Balancer) string { return b.Namespace + "/" + b.Name }
