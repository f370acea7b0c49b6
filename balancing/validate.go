package balancing

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a Balancer.
type Problem struct {
	// Code is a stable CamelCase word, fit for a metric or a condition's reason.
	Code string
	// Sentence tells the Balancer's author what is wrong and what to do.
	Sentence string
}

// Codes of problems.
const (
	DuplicateTarget    = "DuplicateTarget"
	DuplicateReference = "DuplicateReference" // found by package round
	MinExceedsMax      = "MinExceedsMax"
	NegativeReplicas   = "NegativeReplicas"
	TooManyReplicas    = "TooManyReplicas"
	UnknownTarget      = "UnknownTarget"
	DuplicateOrder     = "DuplicateOrder"
	NegativeWeight     = "NegativeWeight"
	NoPositiveWeight   = "NoPositiveWeight"
	NoProgress         = "NoProgress"
	UnknownOption      = "UnknownOption"
)

// Validate returns what is wrong with a Balancer, in the order of its fields; nothing may be scaled while there is
// a problem. A policy that is unknown or lacks its block is left to Place, whose error the original's users know.
func Validate(spec Spec, limits Limits, options Options) []Problem {
	v := &validation{}
	names := v.targets(spec)
	switch spec.Policy.Name {
	case PolicyPriority:
		if spec.Policy.Priorities != nil {
			v.order(spec.Policy.Priorities.TargetOrder, names)
		}
	case PolicyProportional:
		if spec.Policy.Proportions != nil {
			v.weights(spec.Policy.Proportions.TargetProportions, names)
		}
	}
	v.limits(limits)
	if _, err := roundingOf(options.Rounding); err != nil {
		v.add(UnknownOption, "%v: use %s, %s or %s.", err, DHondt, SainteLague, LargestRemainder)
	}
	if err := rank(nil, options); err != nil {
		v.add(UnknownOption, "%v: use %s or %s.", err, TieBreakName, TieBreakHash)
	}
	return v.problems
}

// Sentences joins problems for a condition's message.
func Sentences(problems []Problem) string {
	parts := make([]string, len(problems))
	for i, p := range problems {
		parts[i] = p.Sentence
	}
	return strings.Join(parts, " ")
}

type validation struct{ problems []Problem }

func (v *validation) add(code, format string, args ...any) {
	v.problems = append(v.problems, Problem{Code: code, Sentence: fmt.Sprintf(format, args...)})
}

func (v *validation) targets(spec Spec) map[string]bool {
	names, minimums := map[string]bool{}, int64(0)
	if spec.Replicas < 0 {
		v.add(NegativeReplicas, "replicas is %d: it must not be negative.", spec.Replicas)
	}
	for _, t := range spec.Targets {
		if names[t.Name] {
			v.add(DuplicateTarget, "More than one target is named %q: give each its own name.", t.Name)
		}
		names[t.Name] = true
		if t.Min < 0 || t.Max != nil && *t.Max < 0 {
			v.add(NegativeReplicas, "Target %q has a negative minReplicas or maxReplicas.", t.Name)
		} else if t.Max != nil && t.Min > *t.Max {
			v.add(MinExceedsMax, "Target %q has minReplicas %d above maxReplicas %d.", t.Name, t.Min, *t.Max)
		}
		minimums += int64(t.Min)
	}
	if minimums > math.MaxInt32 {
		v.add(TooManyReplicas, "minReplicas of all targets add up to %d: at most %d is possible.", minimums, math.MaxInt32)
	}
	return names
}

func (v *validation) order(order []string, names map[string]bool) {
	seen := map[string]bool{}
	for _, name := range order {
		if !names[name] {
			v.add(UnknownTarget, "targetOrder names %q, which is not a target: remove it or add the target.", name)
		}
		if seen[name] {
			v.add(DuplicateOrder, "targetOrder names %q more than once.", name)
		}
		seen[name] = true
	}
}

func (v *validation) weights(weights map[string]int32, names map[string]bool) {
	positive := len(weights) == 0 // an empty map is a policy of minimums only, which the original accepts
	for _, name := range slices.Sorted(maps.Keys(weights)) {
		if !names[name] {
			v.add(UnknownTarget, "targetProportions names %q, which is not a target: remove it or add the target.", name)
		}
		if weights[name] < 0 {
			v.add(NegativeWeight, "targetProportions gives %q the weight %d: it must not be negative.", name, weights[name])
		}
		positive = positive || weights[name] > 0
	}
	if !positive {
		v.add(NoPositiveWeight, "targetProportions has no weight above 0, so that no target may grow beyond minReplicas.")
	}
}

func (v *validation) limits(l Limits) {
	if l.MaxSurge != nil && *l.MaxSurge < 0 || l.MaxUnavailable != nil && *l.MaxUnavailable < 0 {
		v.add(NegativeReplicas, "maxSurge and maxUnavailable must not be negative.")
	}
	if l.MaxSurge != nil && *l.MaxSurge == 0 && l.MaxUnavailable != nil && *l.MaxUnavailable == 0 {
		v.add(NoProgress, "maxSurge and maxUnavailable are both 0, so that no replica could ever move: raise one.")
	}
}
