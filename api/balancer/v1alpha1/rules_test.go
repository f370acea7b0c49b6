package v1alpha1_test

import (
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tidbcloud/infra-orchestrator/api/v1/crdtest"
)

// original is a manifest as the original's users have it: every field that it
// had, and none that was added.
const original = `
apiVersion: balancer.x-k8s.io/v1alpha1
kind: Balancer
metadata: {name: web, namespace: default}
spec:
  replicas: 10
  selector: {matchLabels: {srv: web}}
  targets:
  - {name: a, minReplicas: 1, maxReplicas: 20, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web-a}}
  - {name: b, scaleTargetRef: {kind: StatefulSet, name: web-b}}
  policy:
    policyName: proportional
    proportions: {targetProportions: {a: 70, b: 30}}
    priorities: {targetOrder: [a, b]}
    fallback: {startupTimeoutSeconds: 60}`

type set map[string]any

type removed struct{}

var remove = removed{}

func load(t *testing.T) *crdtest.Kind {
	t.Helper()
	kind, err := compiled()
	require.NoError(t, err)
	return kind
}

var compiled = sync.OnceValues(func() (*crdtest.Kind, error) {
	raw, err := os.ReadFile(crdFile)
	if err != nil {
		return nil, err
	}
	crd, err := crdtest.Parse(raw)
	if err != nil {
		return nil, err
	}
	return crdtest.New(crd)
})

func object(t *testing.T, changes set) map[string]any {
	t.Helper()
	o, err := crdtest.Decode([]byte(original))
	require.NoError(t, err)
	for path, value := range changes {
		fields := strings.Split(path, ".")
		if value == remove {
			unstructured.RemoveNestedField(o, fields...)
			continue
		}
		raw, err := utiljson.Marshal(value)
		require.NoError(t, err)
		var generic any
		require.NoError(t, utiljson.Unmarshal(raw, &generic))
		require.NoError(t, unstructured.SetNestedField(o, generic, fields...))
	}
	return o
}

func target(name string, changes set) map[string]any {
	t := map[string]any{"name": name, "scaleTargetRef": map[string]any{"kind": "Deployment", "name": name}}
	for k, v := range changes {
		t[k] = v
	}
	return t
}

func targets(list ...map[string]any) []any {
	out := make([]any, len(list))
	for i, t := range list {
		out[i] = t
	}
	return out
}

// rule has one object that is admitted (none: the manifest as it is) and one
// that is refused with a message.
type rule struct {
	pass, fail set
	says       string
}

var rules = map[string]rule{
	"replicas are optional":       {pass: set{"spec.replicas": remove}, fail: set{"spec.replicas": -1}, says: "spec.replicas"},
	"selector may be empty":       {pass: set{"spec.selector": map[string]any{}}, fail: set{"spec.selector": remove}, says: "spec.selector: Required value"},
	"two targets":                 {fail: set{"spec.targets": targets(target("a", nil))}, says: "should have at least 2 items"},
	"names differ":                {fail: set{"spec.targets": targets(target("a", nil), target("a", nil), target("b", nil))}, says: "Duplicate value"},
	"min up to max":               {pass: set{"spec.targets": targets(target("a", set{"minReplicas": 2, "maxReplicas": 2}), target("b", nil))}, fail: set{"spec.targets": targets(target("a", set{"minReplicas": 3, "maxReplicas": 2}), target("b", nil))}, says: "minReplicas must not exceed maxReplicas"},
	"known policies":              {pass: set{"spec.policy.policyName": "priority"}, fail: set{"spec.policy.policyName": "random"}, says: "policyName must be priority or proportional"},
	"priority has an order":       {fail: set{"spec.policy.policyName": "priority", "spec.policy.priorities": remove}, says: "policy priority needs priorities"},
	"proportional has weights":    {pass: set{"spec.policy.priorities": remove}, fail: set{"spec.policy.proportions": remove}, says: "policy proportional needs proportions"},
	"order of targets":            {pass: set{"spec.policy.priorities.targetOrder": []any{"x", "y"}}, fail: set{"spec.policy.policyName": "priority", "spec.policy.priorities.targetOrder": []any{"a", "x"}}, says: "targetOrder may only list names of targets"},
	"order without repetition":    {fail: set{"spec.policy.priorities.targetOrder": []any{"a", "b", "a"}}, says: "Duplicate value"},
	"weights of targets":          {pass: set{"spec.policy.proportions.targetProportions": set{"a": 1, "b": 0}}, fail: set{"spec.policy.proportions.targetProportions": set{"a": 1, "x": 1}}, says: "targetProportions may only list names of targets"},
	"weights are not negative":    {fail: set{"spec.policy.proportions.targetProportions": set{"a": 1, "b": -1}}, says: "weights must not be negative"},
	"one weight counts":           {fail: set{"spec.policy.proportions.targetProportions": set{"a": 0, "b": 0}}, says: "at least one weight must be above 0"},
	"rounding is known":           {pass: set{"spec.policy.proportions.rounding": "SainteLague"}, fail: set{"spec.policy.proportions.rounding": "Up"}, says: `supported values: "DHondt", "SainteLague", "LargestRemainder"`},
	"tie-break is known":          {pass: set{"spec.policy.proportions.tieBreak": "Hash"}, fail: set{"spec.policy.proportions.tieBreak": "Coin"}, says: `supported values: "Name", "Hash"`},
	"scope of fallback is known":  {pass: set{"spec.policy.fallback.scope": "Unavailable"}, fail: set{"spec.policy.fallback.scope": "All"}, says: `supported values: "NotStarted", "Unavailable"`},
	"timeout is not negative":     {pass: set{"spec.policy.fallback.startupTimeoutSeconds": 0}, fail: set{"spec.policy.fallback.startupTimeoutSeconds": -1}, says: "startupTimeoutSeconds"},
	"something may move":          {pass: set{"spec.rebalancing": set{"maxSurge": 0, "maxUnavailable": "10%"}}, fail: set{"spec.rebalancing": set{"maxSurge": 0, "maxUnavailable": "0%"}}, says: "maxSurge and maxUnavailable must not both be 0"},
	"a number is not quoted":      {pass: set{"spec.rebalancing": set{"maxSurge": 5}}, fail: set{"spec.rebalancing": set{"maxSurge": "5"}}, says: "maxSurge"},
	"limits are numbers or parts": {pass: set{"spec.rebalancing": set{"maxSurge": "25%"}}, fail: set{"spec.rebalancing": set{"maxSurge": "some"}}, says: "maxSurge"},
	"limits are not negative":     {pass: set{"spec.rebalancing": set{"maxUnavailable": 3}}, fail: set{"spec.rebalancing": set{"maxUnavailable": -3}}, says: "limits must not be negative"},
}

func TestRules(t *testing.T) {
	kind := load(t)
	for name, r := range rules {
		t.Run(name, func(t *testing.T) {
			require.Empty(t, kind.Create(object(t, r.pass)))
			require.Empty(t, kind.Unknown(object(t, r.pass)))
			require.Contains(t, message(kind.Create(object(t, r.fail))), r.says)
		})
	}
}

func message(errs field.ErrorList) string {
	if len(errs) == 0 {
		return ""
	}
	return errs.ToAggregate().Error()
}

// Whoever adds a rule adds the object that it refuses.
func TestEveryRuleRefusesSomething(t *testing.T) {
	found := 0
	each(load(t).Structural, func(text string) {
		found++
		for _, r := range rules {
			if strings.Contains(text, r.says) {
				return
			}
		}
		t.Errorf("no object is refused with %q", text)
	})
	require.Greater(t, found, 7, "the walk over the schema finds the rules")
}

func each(s *schema.Structural, visit func(message string)) {
	for _, r := range s.XValidations {
		visit(r.Message)
	}
	for name := range s.Properties {
		property := s.Properties[name]
		each(&property, visit)
	}
	if s.Items != nil {
		each(s.Items, visit)
	}
}

func TestDefaults(t *testing.T) {
	spec := load(t).Default(object(t, nil))["spec"].(map[string]any)
	policy := spec["policy"].(map[string]any)
	require.Equal(t, "DHondt", policy["proportions"].(map[string]any)["rounding"])
	require.Equal(t, "Name", policy["proportions"].(map[string]any)["tieBreak"])
	require.Equal(t, "NotStarted", policy["fallback"].(map[string]any)["scope"])
	require.NotContains(t, spec, "rebalancing", "without it everything changes at once, as in the original")
	require.NotContains(t, load(t).Default(object(t, set{"spec.replicas": remove}))["spec"], "replicas", "the balancer sets it: it knows the minimums")
}

// A stored object that the original accepted can still be scaled and gets a
// status, although it could not be created any more.
func TestStoredObjectsKeepTheirRights(t *testing.T) {
	kind := load(t)
	old := object(t, set{"spec.targets": targets(target("a", set{"minReplicas": 3, "maxReplicas": 2}), target("b", nil))})
	require.NotEmpty(t, kind.Create(old))
	scaled := object(t, set{"spec.targets": targets(target("a", set{"minReplicas": 3, "maxReplicas": 2}), target("b", nil)), "spec.replicas": 7})
	require.Empty(t, kind.Update(scaled, old))
}

// Autoscalers read and write these paths.
func TestScaleSubresource(t *testing.T) {
	scale, columns := crd(t)
	require.Equal(t, [3]string{".spec.replicas", ".status.replicas", ".status.selector"}, scale)
	require.Subset(t, columns, []string{"Desired", "Current", "Balancing", "Reason"})
}
