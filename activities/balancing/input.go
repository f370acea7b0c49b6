package balancing

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tidbcloud/infra-orchestrator/api/balancer/v1alpha1"
	"github.com/tidbcloud/infra-orchestrator/balancing"
	"github.com/tidbcloud/infra-orchestrator/balancing/round"
)

// inputOf translates a Balancer and what was read for it. Status tells which
// targets are held, those that the last round expected not to start, and which
// are contested.
func inputOf(b *v1alpha1.Balancer, targets []round.Target, pods []round.Pod, now time.Time) round.Input {
	in := round.Input{
		Now: now, Spec: specOf(b), Options: optionsOf(b), Counting: countingOf(b.Spec.Policy.Fallback),
		Selector: b.Spec.Selector, Targets: targets, Pods: pods,
	}
	in.Limits = limitsOf(b.Spec.Rebalancing, in.Spec.Replicas)
	before := make(map[string]v1alpha1.BalancerTargetStatus, len(b.Status.Targets))
	for _, t := range b.Status.Targets {
		before[t.Name] = t
	}
	for i := range in.Targets {
		t := before[in.Spec.Targets[i].Name]
		in.Targets[i].Held, in.Targets[i].Set, in.Targets[i].Contest = t.Fallback > 0, settingOf(t.LastSet), contestOf(t.Contest)
	}
	return in
}

func settingOf(s *v1alpha1.TargetSetting) *round.Setting {
	if s == nil {
		return nil
	}
	return &round.Setting{Replicas: s.Replicas, Object: string(s.UID), At: s.Time.Time}
}

func contestOf(c *v1alpha1.TargetContest) *round.Contest {
	if c == nil {
		return nil
	}
	out := &round.Contest{
		By: c.By, Autoscaler: c.Autoscaler, From: c.From, To: c.To, Times: c.Times, Last: c.LastTime.Time, Left: c.LeftAlone,
	}
	if c.Until != nil {
		out.Until = c.Until.Time
	}
	return out
}

func specOf(b *v1alpha1.Balancer) balancing.Spec {
	spec := balancing.Spec{Targets: make([]balancing.Target, len(b.Spec.Targets)), Policy: balancing.Policy{Name: b.Spec.Policy.PolicyName}}
	for i, t := range b.Spec.Targets {
		spec.Targets[i] = balancing.Target{Name: t.Name, Max: t.MaxReplicas}
		if t.MinReplicas != nil {
			spec.Targets[i].Min = *t.MinReplicas
		}
	}
	if p := b.Spec.Policy.Priorities; p != nil {
		spec.Policy.Priorities = &balancing.Priorities{TargetOrder: p.TargetOrder}
	}
	if p := b.Spec.Policy.Proportions; p != nil {
		spec.Policy.Proportions = &balancing.Proportions{TargetProportions: p.TargetProportions}
	}
	if spec.Replicas = balancing.DefaultReplicas(spec.Targets); b.Spec.Replicas != nil {
		spec.Replicas = *b.Spec.Replicas
	}
	return spec
}

func optionsOf(b *v1alpha1.Balancer) balancing.Options {
	o := balancing.Options{Seed: b.Namespace + "/" + b.Name}
	if p := b.Spec.Policy.Proportions; p != nil {
		o.Rounding, o.TieBreak = balancing.Rounding(p.Rounding), balancing.TieBreak(p.TieBreak)
	}
	return o
}

func countingOf(f *v1alpha1.Fallback) balancing.Counting {
	if f == nil {
		return balancing.Counting{}
	}
	timeout := time.Duration(f.StartupTimeoutSeconds) * time.Second
	return balancing.Counting{StartupTimeout: &timeout, Scope: balancing.BlockedScope(f.Scope)}
}

// limitsOf resolves percentages as Deployments do: the surge is rounded up,
// what may be unavailable down, and when that leaves 0 and 0, one may be
// unavailable.
func limitsOf(r *v1alpha1.Rebalancing, replicas int32) balancing.Limits {
	if r == nil {
		return balancing.Limits{}
	}
	l := balancing.Limits{MaxSurge: limit(r.MaxSurge, replicas, true), MaxUnavailable: limit(r.MaxUnavailable, replicas, false)}
	byPercent := isPercent(r.MaxSurge) || isPercent(r.MaxUnavailable)
	if byPercent && l.MaxSurge != nil && *l.MaxSurge == 0 && l.MaxUnavailable != nil && *l.MaxUnavailable == 0 {
		*l.MaxUnavailable = 1
	}
	return l
}

func isPercent(v *intstr.IntOrString) bool { return v != nil && v.Type == intstr.String }

// limit is the number, nil if there is none. Admission has checked its form; a
// malformed one becomes a negative number, which validation refuses.
func limit(v *intstr.IntOrString, replicas int32, up bool) *int32 {
	if v == nil {
		return nil
	}
	resolved := int32(-1)
	if n, err := intstr.GetScaledValueFromIntOrPercent(v, int(replicas), up); err == nil {
		resolved = int32(min(max(n, -1), math.MaxInt32))
	}
	return &resolved
}
