package balancing

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	return status
}

func targetStatuses(before []v1alpha1.BalancerTargetStatus, plan round.Plan) []v1alpha1.BalancerTargetStatus {
	out := make([]v1alpha1.BalancerTargetStatus, len(plan.Targets))
	for i, t := range plan.Targets {
		out[i] = v1alpha1.BalancerTargetStatus{
			Name: t.Name, Desired: t.Desired, Observed: t.Observed, Ready: t.Ready, Blocked: t.Blocked, Fallback: t.Fallback,
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
