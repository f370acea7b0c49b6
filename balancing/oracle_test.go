package balancing

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidbcloud/infra-orchestrator/internal/oracle"
)

// exceptions lists every placement that differs from the original's, by cause.
var exceptions = map[string]oracle.Exception{
	"unknown-name-in-order": {
		Quirk: "the original dereferences nil and crashes; ours is an error that names the unknown target",
		IDs:   []string{"bp-0551"},
	},
	"duplicate-target-name": {
		Quirk: "the original lets the last of two targets with one name win; ours is an error that tells the name",
		IDs:   []string{"bp-0568"},
	},
	"minimums-exceed-int32": {
		Quirk: "the original's sum of minimums wraps; ours is an error",
		IDs:   []string{"bp-0572"},
	},
}

type oracleCase struct {
	ID    string
	Input struct {
		PolicyName string
		Replicas   int32
		Targets    []struct {
			Name        string
			MinReplicas int32
			MaxReplicas *int32
		}
		TargetOrder       []string
		TargetProportions map[string]int32
		Summaries         map[string]struct {
			Total, Running           int32
			NotStartedWithinDeadline int32
		}
		PolicyBlockMissing, PolicyInnerFieldMissing bool
	}
	Output oracleOutput
}

type oracleOutput struct {
	Placement        map[string]int32
	MissingReplicas  int32
	OverflowReplicas int32
	Error            string
	Panic            string
}

func (c oracleCase) CaseID() string { return c.ID }

func (c oracleCase) spec() (Spec, []Summary) {
	in := c.Input
	spec := Spec{Replicas: in.Replicas, Policy: Policy{Name: in.PolicyName}}
	summaries := make([]Summary, len(in.Targets))
	for i, t := range in.Targets {
		spec.Targets = append(spec.Targets, Target{Name: t.Name, Min: t.MinReplicas, Max: t.MaxReplicas})
		s := in.Summaries[t.Name]
		summaries[i] = Summary{Total: s.Total, Running: s.Running, Ready: s.Running, Blocked: s.NotStartedWithinDeadline}
	}
	if !in.PolicyBlockMissing {
		spec.Policy.Priorities = &Priorities{TargetOrder: in.TargetOrder}
		spec.Policy.Proportions = &Proportions{TargetProportions: in.TargetProportions}
	}
	return spec, summaries
}

func TestOracle(t *testing.T) {
	oracle.Run(t, "balancer_oracle.jsonl", exceptions, func(c oracleCase) oracle.Verdict {
		spec, summaries := c.spec()
		var got oracleOutput
		placement, err := Place(spec, summaries, Options{})
		if err != nil {
			got.Error = err.Error()
		} else {
			got.Placement = map[string]int32{}
			for i, target := range spec.Targets {
				got.Placement[target.Name] = placement.Replicas[i]
			}
			got.MissingReplicas, got.OverflowReplicas = placement.Missing, placement.Overflow
		}
		return oracle.Verdict{Diff: cmp.Diff(c.Output, got), Cause: cause(c, spec, got)}
	})
}

// cause proves from the input that the case can only document a defect, and that ours refuses it.
func cause(c oracleCase, spec Spec, got oracleOutput) string {
	codes := map[string]bool{}
	for _, p := range Validate(spec, Limits{}, Options{}) {
		codes[p.Code] = true
	}
	switch {
	case got.Error == "":
		return ""
	case c.Output.Panic != "" && codes[UnknownTarget]:
		return "unknown-name-in-order"
	case codes[DuplicateTarget]:
		return "duplicate-target-name"
	case codes[TooManyReplicas]:
		return "minimums-exceed-int32"
	}
	return ""
}
