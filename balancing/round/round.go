// Package round is one round over one Balancer, pure: from what was read (specification, scales, pods) to the
// writes to make and the status to tell. The caller reads before and writes after.
//
//	plan := round.Make(input)
//	for _, change := range plan.Changes { errs[change.Target] = write(change) } // all of them, in this order
//	condition := plan.Condition(errs)
//
// Rounds of different Balancers share nothing, and a panic inside one becomes its own failure.
package round

import (
	"errors"
	"fmt"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tidbcloud/infra-orchestrator/balancing"
)

// Input is what was read for a round.
type Input struct {
	Now      time.Time
	Spec     balancing.Spec
	Options  balancing.Options
	Limits   balancing.Limits
	Counting balancing.Counting
	// Selector is spec.selector; it has to match the pods of every target.
	Selector metav1.LabelSelector
	// Targets by index of Spec.Targets.
	Targets []Target
	// Pods of the Balancer's namespace; those that match no target may be left out.
	Pods []Pod
}

// Target is what was read of one target.
type Target struct {
	// ScaleError is why the scale could not be read; the other fields are then meaningless.
	ScaleError error
	// Replicas is spec.replicas of the scale.
	Replicas int32
	// Selector is status.selector of the scale.
	Selector string
	// Owner identifies the target as Pod.Owner does; "" if unknown.
	Owner string
	// Ordered tells that the target removes its highest ordinals first, as a StatefulSet does.
	Ordered bool
	// Held tells that the last round's plan had Fallback > 0 for this target; keep it in the status.
	Held bool
	// Object is the UID of the object.
	Object string
	// Set and Contest are what the last round's plan had for this target; keep them in the status.
	Set     *Setting
	Contest *Contest
	// Writer is who wrote Replicas.
	Writer Writer
}

// Pod is a pod of the Balancer's namespace.
type Pod struct {
	balancing.Pod
	Labels map[string]string
	// Owner identifies the scalable object that the pod belongs to (through its controller owners), "" if unknown.
	// A pod whose owner is another one than the target's is not counted, whatever its labels are.
	Owner string
}

// Plan is the outcome of a round.
type Plan struct {
	// Changes to write, in this order. A failed one does not stop the next.
	Changes []balancing.Change
	// Failure is why nothing is changed; nil if the round went well.
	Failure *Failure
	// Observed tells whether the pods could be counted; if not, status.replicas keeps its value.
	Observed bool
	// Replicas is status.replicas.
	Replicas int32
	// Selector is status.selector: always parseable and never empty, as autoscalers want it.
	Selector string
	// Targets is the status of each target, by index of Spec.Targets; nil if the pods could not be counted.
	Targets []TargetStatus
	// News tells that Set or Contest of a target are others than before. What was read from a cache may be old, so
	// that only a round over live scales may say so in the status.
	News bool
	// Missing and Overflow are those of the placement.
	Missing, Overflow int32
}

// TargetStatus tells of one target.
type TargetStatus struct {
	Name string
	// Desired is the goal, and Fallback how many of them are expected not to start.
	Desired, Fallback int32
	// Observed, Ready and Blocked are numbers of pods.
	Observed, Ready, Blocked int32
	// Set is what the Balancer wrote last, and still stands; Contest tells of somebody else who scales the target.
	Set     *Setting
	Contest *Contest
}

// Make computes the plan of a round.
func Make(in Input) (plan Plan) {
	selector, err := metav1.LabelSelectorAsSelector(&in.Selector)
	plan.Selector = selectorText(selector, err)
	defer func() {
		if cause := recover(); cause != nil {
			plan.Changes = nil
			plan.Failure = &Failure{Phase: Internal, Err: fmt.Errorf("this is a defect of the balancer, report it: %v", cause)}
		}
	}()
	if err := scaleError(in.Targets); err != nil {
		return plan.failed(ScaleSubresourcePolling, err)
	}
	if err != nil {
		return plan.failed(PodLabelsChecking, errIncorrectSelector)
	}
	summaries, failure := count(in, selector)
	if failure != nil {
		plan.Failure = failure
		return plan
	}
	plan.observed(in, summaries)
	return plan.decide(in, summaries)
}

func scaleError(targets []Target) error {
	for _, t := range targets {
		if t.ScaleError != nil {
			return t.ScaleError
		}
	}
	return nil
}

// count summarises the pods of each target.
func count(in Input, balancer labels.Selector) ([]balancing.Summary, *Failure) {
	summaries := make([]balancing.Summary, len(in.Targets))
	for i, t := range in.Targets {
		target, err := labels.Parse(t.Selector)
		if err != nil {
			return nil, &Failure{Phase: PodListing, Err: err}
		}
		var pods []balancing.Pod
		for _, p := range in.Pods {
			if !target.Matches(labels.Set(p.Labels)) || p.Owner != "" && t.Owner != "" && p.Owner != t.Owner {
				continue
			}
			if !balancer.Matches(labels.Set(p.Labels)) {
				return nil, &Failure{Phase: PodLabelsChecking, Err: incorrectLabeling(in.Spec.Targets[i].Name)}
			}
			pods = append(pods, p.Pod)
		}
		summaries[i] = balancing.Count(pods, in.Now, in.Counting)
		summaries[i].Desired, summaries[i].Ordered = t.Replicas, t.Ordered
		summaries[i].Held = t.Held && in.Counting.StartupTimeout != nil // a fallback that was switched off ends
	}
	return summaries, nil
}

func (p *Plan) observed(in Input, summaries []balancing.Summary) {
	p.Observed = true
	p.Targets = make([]TargetStatus, len(summaries))
	var total int64
	for i, s := range summaries {
		total += int64(s.Total)
		p.Targets[i] = TargetStatus{
			Name: in.Spec.Targets[i].Name, Desired: s.Desired, Observed: s.Total, Ready: s.Ready, Blocked: s.Blocked,
			Set: in.Targets[i].Set, Contest: in.Targets[i].Contest,
		}
	}
	p.Replicas = int32(min(total, math.MaxInt32))
}

// decide applies the policy. Changes hold only if everything before them went well.
func (p Plan) decide(in Input, summaries []balancing.Summary) Plan {
	problems := append(balancing.Validate(in.Spec, in.Limits, in.Options), sharedOwners(in)...)
	if len(problems) > 0 {
		return p.failed(SpecValidation, errors.New(balancing.Sentences(problems)))
	}
	placement, err := balancing.Place(in.Spec, summaries, in.Options)
	if err != nil {
		return p.failed(ApplyingBalancerPolicy, err)
	}
	wanted, err := balancing.Wanted(in.Spec, in.Options)
	if err != nil {
		return p.failed(ApplyingBalancerPolicy, err)
	}
	p.Missing, p.Overflow = placement.Missing, placement.Overflow
	for i := range p.Targets {
		p.Targets[i].Desired, p.Targets[i].Fallback = placement.Replicas[i], placement.Fallback[i]
	}
	goal, wanted := p.contest(in, placement.Replicas, wanted)
	p.Changes = balancing.Step(goal, wanted, summaries, in.Limits)
	return p
}

// sharedOwners finds targets that scale the same object: each would undo the other's change at every round.
func sharedOwners(in Input) []balancing.Problem {
	var problems []balancing.Problem
	first := map[string]int{}
	for i, t := range in.Targets {
		if before, twice := first[t.Owner]; twice && t.Owner != "" {
			problems = append(problems, balancing.Problem{
				Code: balancing.DuplicateReference,
				Sentence: fmt.Sprintf("Targets %q and %q both refer to %s: remove one.",
					in.Spec.Targets[before].Name, in.Spec.Targets[i].Name, t.Owner),
			})
			continue
		}
		first[t.Owner] = i
	}
	return problems
}

func (p Plan) failed(phase Phase, err error) Plan {
	p.Failure = &Failure{Phase: phase, Err: err}
	return p
}
