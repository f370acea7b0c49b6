package round

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// Phase is the part of a round that failed; it is the reason of the condition. Those of the original are ScaleSubresourcePolling to
// PodLabelsChecking, ApplyingBalancerPolicy and ReplicaCountSetting.
type Phase string

// Phases, in the order of a round.
const (
	ScaleSubresourcePolling Phase = "ScaleSubresourcePolling"
	PodListing              Phase = "PodListing"
	PodLabelsChecking       Phase = "PodLabelsChecking"
	SpecValidation          Phase = "SpecValidation"
	ApplyingBalancerPolicy  Phase = "ApplyingBalancerPolicy"
	ReplicaCountSetting     Phase = "ReplicaCountSetting"
	TargetContested         Phase = "TargetContested"
	Internal                Phase = "Internal"
)

// Condition of type Balancing, as the original writes it.
const (
	ConditionType    = "Balancing"
	ReasonCompleted  = "Completed"
	MessageCompleted = "Balancer running OK"
)

// Condition is the outcome of a round for the Balancer's status.
type Condition struct {
	OK      bool // status True or False
	Reason  string
	Message string
}

// Failure tells why a round failed.
type Failure struct {
	Phase Phase
	Err   error
}

// Error implements error in the form of the condition's message.
func (f *Failure) Error() string { return fmt.Sprintf("%s: %v", f.Phase, f.Err) }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Condition returns the condition after the writes. writeErrors holds the error of each failed change by its
// Target; the first in the order of the changes is told.
func (p Plan) Condition(writeErrors map[int]error) Condition {
	failure := p.Failure
	for _, c := range p.Changes {
		if err := writeErrors[c.Target]; err != nil && failure == nil {
			failure = &Failure{Phase: ReplicaCountSetting, Err: err}
		}
	}
	if failure == nil {
		failure = p.LeftAlone()
	}
	if failure != nil {
		return Condition{Reason: string(failure.Phase), Message: failure.Error()}
	}
	return Condition{OK: true, Reason: ReasonCompleted, Message: MessageCompleted}
}

// LeftAlone is the failure to balance targets that are left to somebody else who scales them; nil if there is none.
func (p Plan) LeftAlone() *Failure {
	var all []string
	for _, t := range p.Targets {
		if t.Contest != nil && t.Contest.Left {
			all = append(all, t.Contest.Sentence(t.Name))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return &Failure{Phase: TargetContested, Err: errors.New(strings.Join(all, ". "))}
}

var errIncorrectSelector = errors.New("incorrect selector")

func incorrectLabeling(target string) error {
	return fmt.Errorf("incorrect labeling for pods in target %s", target)
}

// Selectors that stand in where the specification has none that an autoscaler could use: HorizontalPodAutoscalers
// refuse an empty one. No pod has the label.
const (
	everything = "!balancer.x-k8s.io/none"
	nothing    = "balancer.x-k8s.io/none,!balancer.x-k8s.io/none"
)

// selectorText prints a selector so that it can always be parsed. An invalid one matches nothing.
func selectorText(selector labels.Selector, err error) string {
	switch {
	case err != nil:
		return nothing
	case selector.Empty():
		return everything
	}
	return selector.String()
}
