package balancing

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidbcloud/infra-orchestrator/api/balancer/v1alpha1"
	"github.com/tidbcloud/infra-orchestrator/balancing/round"
)

// statusOf is the status after a round over a Balancer at a generation, given
// the status before. What a failed round could not see keeps its value.
func statusOf(before v1alpha1.BalancerStatus, generation int64, plan round.Plan, condition round.Condition, now time.Time) v1alpha1.BalancerStatus {
	status := *before.DeepCopy()
	status.Selector, status.ObservedGeneration = plan.Selector, generation
	if plan.Observed {
		status.Replicas = plan.Replicas
		status.Targets = targetStatuses(before.Targets, plan)
	}
	if plan.Failure == nil {
		status.MissingReplicas, status.OverflowReplicas = plan.Missing, plan.Overflow
	}
	c := metav1.Condition{
		Type: v1alpha1.ConditionBalancing, Status: metav1.ConditionFalse, Reason: condition.Reason, Message: cut(condition.Message),
		ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now),
	}
	if condition.OK {
		c.Status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&status.Conditions, c)
	if !plan.Observed {
		return status
	}
	if c := contestedCondition(status, plan, now); c != nil {
		meta.SetStatusCondition(&status.Conditions, *c)
	}
	return status
}

func targetStatuses(before []v1alpha1.BalancerTargetStatus, plan round.Plan) []v1alpha1.BalancerTargetStatus {
	out := make([]v1alpha1.BalancerTargetStatus, len(plan.Targets))
	for i, t := range plan.Targets {
		out[i] = v1alpha1.BalancerTargetStatus{
			Name: t.Name, Desired: t.Desired, Observed: t.Observed, Ready: t.Ready, Blocked: t.Blocked, Fallback: t.Fallback,
			LastSet: lastSet(t.Set), Contest: contestStatus(t.Contest),
		}
		if plan.Failure == nil {
			continue
		}
		// A failed round has no goal, and must not forget who is held.
		for _, old := range before {
			if old.Name == t.Name {
				out[i].Fallback = old.Fallback
			}
		}
	}
	return out
}

func lastSet(s *round.Setting) *v1alpha1.TargetSetting {
	if s == nil {
		return nil
	}
	return &v1alpha1.TargetSetting{Replicas: s.Replicas, UID: types.UID(s.Object), Time: metav1.NewTime(s.At)}
}

func contestStatus(c *round.Contest) *v1alpha1.TargetContest {
	if c == nil {
		return nil
	}
	out := &v1alpha1.TargetContest{
		By: c.By, Autoscaler: c.Autoscaler, From: c.From, To: c.To, Times: c.Times, LastTime: metav1.NewTime(c.Last), LeftAlone: c.Left,
	}
	if !c.Until.IsZero() {
		until := metav1.NewTime(c.Until)
		out.Until = &until
	}
	return out
}

// contestedCondition tells of others who scale targets; nil as long as nobody
// ever did.
func contestedCondition(status v1alpha1.BalancerStatus, plan round.Plan, now time.Time) *metav1.Condition {
	c := &metav1.Condition{
		Type: v1alpha1.ConditionContested, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonSettled,
		Message: "Nobody else scales a target", ObservedGeneration: status.ObservedGeneration, LastTransitionTime: metav1.NewTime(now),
	}
	var told []string
	for _, t := range plan.Targets {
		if t.Contest == nil {
			continue
		}
		if c.Reason != v1alpha1.ReasonLeftAlone {
			c.Reason = v1alpha1.ReasonOverruled
		}
		if t.Contest.Left {
			c.Reason = v1alpha1.ReasonLeftAlone
		}
		told = append(told, t.Contest.Sentence(t.Name))
	}
	if len(told) > 0 {
		c.Status, c.Message = metav1.ConditionTrue, cut(strings.Join(told, ". "))
	} else if meta.FindStatusCondition(status.Conditions, c.Type) == nil {
		return nil
	}
	return c
}

// maxMessage bounds the condition and Events, whose messages have 1,024 bytes.
const maxMessage = 1000

func cut(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	end := maxMessage
	for end > 0 && s[end]&0xC0 == 0x80 { // not inside a character
		end--
	}
	return s[:end] + " …"
}
