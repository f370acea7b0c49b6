package round

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/balancing"
	"github.com/tidbcloud/infra-orchestrator/internal/oracle"
)

type oracleCase struct {
	ID    string
	Input struct {
		Replicas                 int32
		PolicyName               string
		TargetOrder              []string
		TargetProportions        map[string]int32
		StartupTimeoutSeconds    *int32
		SelectorMatchLabels      map[string]string
		SelectorMatchExpressions []metav1.LabelSelectorRequirement
		Targets                  []oracleTarget
		Pods                     []oraclePod
		StatusReplicasBefore     int32
	}
	Output           oracleOutput
	OtherOutputsSeen []oracleOutput
}

type oracleTarget struct {
	Name, RefName                   string
	MinReplicas                     int32
	MaxReplicas                     *int32
	ScaleSpecReplicas               int32
	ScaleStatusSelector             string
	GetScaleFails, UpdateScaleFails bool
}

type oraclePod struct {
	Namespace      string
	Labels         map[string]string
	Phase          string
	AgeSeconds     float64
	Terminating    bool
	ReadyCondition *bool
}

type oracleOutput struct {
	ScaleUpdates       map[string]int32
	FinalScaleSpec     map[string]int32
	StatusInfoReturned bool
	StatusReplicas     int32
	StatusSelector     string
	ConditionStatus    string
	ConditionReason    string
	ConditionMessage   string
	Panic              string
}

func (c oracleCase) CaseID() string { return c.ID }

func (c oracleCase) input() Input {
	in := Input{
		Now:  time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC),
		Spec: balancing.Spec{Replicas: c.Input.Replicas, Policy: balancing.Policy{Name: c.Input.PolicyName}},
		Selector: metav1.LabelSelector{
			MatchLabels: c.Input.SelectorMatchLabels, MatchExpressions: c.Input.SelectorMatchExpressions,
		},
	}
	if c.Input.TargetOrder != nil {
		in.Spec.Policy.Priorities = &balancing.Priorities{TargetOrder: c.Input.TargetOrder}
	}
	if c.Input.TargetProportions != nil {
		in.Spec.Policy.Proportions = &balancing.Proportions{TargetProportions: c.Input.TargetProportions}
	}
	if s := c.Input.StartupTimeoutSeconds; s != nil {
		timeout := time.Duration(*s) * time.Second
		in.Counting.StartupTimeout = &timeout
	}
	for _, t := range c.Input.Targets {
		in.Spec.Targets = append(in.Spec.Targets, balancing.Target{Name: t.Name, Min: t.MinReplicas, Max: t.MaxReplicas})
		read := Target{Replicas: t.ScaleSpecReplicas, Selector: t.ScaleStatusSelector}
		if t.GetScaleFails {
			read.ScaleError = errors.New("no scale for " + t.RefName)
		}
		in.Targets = append(in.Targets, read)
	}
	for _, p := range c.Input.Pods {
		if p.Namespace != "default" { // the caller lists the Balancer's namespace only
			continue
		}
		age := time.Duration(p.AgeSeconds * float64(time.Second))
		pod := Pod{Labels: p.Labels, Pod: balancing.Pod{
			Phase: balancing.PodPhase(p.Phase), Created: in.Now.Add(-age), Terminating: p.Terminating, Ordinal: -1,
			Ready: p.Phase == "Running" && (p.ReadyCondition == nil || *p.ReadyCondition),
		}}
		if !pod.Ready {
			pod.NotReadySince = pod.Created
		}
		in.Pods = append(in.Pods, pod)
	}
	return in
}

// run makes a round and plays the API server: every write is tried, in the order of the plan.
func (c oracleCase) run(in Input) oracleOutput {
	plan := Make(in)
	out := oracleOutput{
		ScaleUpdates: map[string]int32{}, FinalScaleSpec: map[string]int32{}, StatusInfoReturned: plan.Observed,
		StatusReplicas: c.Input.StatusReplicasBefore, StatusSelector: plan.Selector, ConditionStatus: "False",
	}
	for _, t := range c.Input.Targets {
		out.FinalScaleSpec[t.RefName] = t.ScaleSpecReplicas
	}
	writeErrors := map[int]error{}
	for _, change := range plan.Changes {
		t := c.Input.Targets[change.Target]
		if t.UpdateScaleFails {
			writeErrors[change.Target] = errors.New("conflict on " + t.RefName)
			continue
		}
		out.ScaleUpdates[t.RefName], out.FinalScaleSpec[t.RefName] = change.To, change.To
	}
	if plan.Observed {
		out.StatusReplicas = plan.Replicas
	}
	condition := plan.Condition(writeErrors)
	if condition.OK {
		out.ConditionStatus = "True"
	}
	out.ConditionReason, out.ConditionMessage = condition.Reason, condition.Message
	return out
}

// seen tells whether the original gave this output in one of its runs.
func (c oracleCase) seen(out oracleOutput) bool {
	return slices.ContainsFunc(append(c.OtherOutputsSeen, c.Output), func(o oracleOutput) bool { return cmp.Equal(o, out) })
}

func TestOracle(t *testing.T) {
	oracle.Run(t, "balancer_process_oracle.jsonl", exceptions, func(c oracleCase) oracle.Verdict {
		in := c.input()
		got := c.run(in)
		if c.seen(got) {
			return oracle.Verdict{}
		}
		return oracle.Verdict{Diff: cmp.Diff(c.Output, got), Cause: c.cause(in, got)}
	})
}

// cause names the mended defect by switching it back and seeing the original's output.
func (c oracleCase) cause(in Input, got oracleOutput) string {
	problems := map[string]bool{}
	for _, p := range balancing.Validate(in.Spec, in.Limits, in.Options) {
		problems[p.Code] = true
	}
	refused := got.ConditionReason == string(SpecValidation) && len(got.ScaleUpdates) == 0
	switch {
	case refused && c.Output.Panic != "" && problems[balancing.UnknownTarget]:
		return causeUnknownName
	case refused && problems[balancing.DuplicateTarget]:
		return causeDuplicateName
	case c.Output.StatusSelector == "<none>" || c.Output.StatusSelector == "<error>":
		unprintable := got
		unprintable.StatusSelector = c.Output.StatusSelector
		if c.seen(unprintable) {
			return causeSelector
		}
	case c.firstFailureEnds(got):
		return causeWritesGoOn
	}
	in.Counting.BlockTerminating = true
	if compatible := c.run(in); c.seen(compatible) || c.firstFailureEnds(compatible) {
		return causeTerminating
	}
	return ""
}

// firstFailureEnds tells whether the original, too, would have written what ours wrote, had it not met the failed
// write first.
func (c oracleCase) firstFailureEnds(got oracleOutput) bool {
	if !strings.HasPrefix(c.Output.ConditionMessage, string(ReplicaCountSetting)) || got.ConditionReason != c.Output.ConditionReason {
		return false
	}
	for ref, n := range c.Output.ScaleUpdates {
		if got.ScaleUpdates[ref] != n {
			return false
		}
	}
	return true
}
