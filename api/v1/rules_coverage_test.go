package v1_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/tidbcloud/infra-orchestrator/internal/admissioncases"
)

// Whoever adds a rule adds the object that it refuses: each CEL rule, each
// required field of a spec, each closed list of values and each bound of a
// number or a list has a case at its field with its words.
func TestEveryRuleRefusesSomething(t *testing.T) {
	schemas, tables := load(t)
	rules := 0
	for _, table := range tables {
		eachRule(schemas[table.Kind].Structural, "", func(path, message string) {
			rules++
			require.NotEmpty(t, message, "%s %s: a rule without a message shows CEL to people", table.Kind, path)
			if !asserted(table.Cases, path, message) {
				t.Errorf("%s: no case of internal/admissioncases asserts at %q the refusal %q", table.Kind, path, message)
			}
		})
	}
	require.Greater(t, rules, 300, "the walk over the schemas finds the rules")
}

// There are enough refusals, and each has a message of its own.
func TestNumberOfCases(t *testing.T) {
	_, tables := load(t)
	cases := 0
	for _, table := range tables {
		names := map[string]bool{}
		for _, c := range table.Cases {
			require.False(t, names[c.Name], "%s has two cases %q", table.Kind, c.Name)
			names[c.Name] = true
			require.NotEmpty(t, c.Says)
		}
		cases += len(table.Cases)
	}
	require.GreaterOrEqual(t, cases, 250)
}

var index = regexp.MustCompile(`\[\d+\]`)

func asserted(cases []admissioncases.Case, path, message string) bool {
	for _, c := range cases {
		if index.ReplaceAllString(c.Path, "[]") == path && (strings.Contains(message, c.Says) || strings.Contains(c.Says, message)) {
			return true
		}
	}
	return false
}

// eachRule visits the rules of a schema with the field that a refusal names.
// Status has none that users meet.
func eachRule(s *schema.Structural, path string, visit func(path, message string)) {
	for _, r := range s.XValidations {
		visit(strings.TrimPrefix(path+r.FieldPath, "."), r.Message)
	}
	values(s, path, visit)
	for name := range s.Properties {
		if path == "" && name != "spec" {
			continue
		}
		property := s.Properties[name]
		eachRule(&property, strings.TrimPrefix(path+"."+name, "."), visit)
	}
	if s.Items != nil {
		eachRule(s.Items, path+"[]", visit)
	}
}

// values visits the rules of OpenAPI, in the words of an API server.
func values(s *schema.Structural, path string, visit func(path, message string)) {
	v := s.ValueValidation
	if v == nil {
		return
	}
	for _, name := range v.Required {
		if path != "" {
			visit(path+"."+name, "Required value")
		}
	}
	if len(v.Enum) > 0 {
		quoted := make([]string, 0, len(v.Enum))
		for _, e := range v.Enum {
			quoted = append(quoted, fmt.Sprintf("%q", e.Object))
		}
		visit(path, "supported values: "+strings.Join(quoted, ", "))
	}
	if v.Minimum != nil {
		visit(path, fmt.Sprintf("should be greater than or equal to %v", *v.Minimum))
	}
	if v.Maximum != nil {
		visit(path, fmt.Sprintf("should be less than or equal to %v", *v.Maximum))
	}
	if v.MinItems != nil {
		visit(path, fmt.Sprintf("should have at least %d items", *v.MinItems))
	}
	if v.MaxItems != nil && *v.MaxItems <= 20 { // longer lists make cases that nobody reads
		visit(path, fmt.Sprintf("must have at most %d items", *v.MaxItems))
	}
}

// kubectl explain has a word on every field.
func TestEveryFieldIsExplained(t *testing.T) {
	schemas, tables := load(t)
	for _, table := range tables {
		for _, part := range []string{"spec", "status"} {
			s := schemas[table.Kind].Structural.Properties[part]
			require.NotEmpty(t, s.Description, "%s.%s", table.Kind, part)
			explained(t, &s, table.Kind+"."+part)
		}
	}
}

func explained(t *testing.T, s *schema.Structural, path string) {
	for name := range s.Properties {
		property := s.Properties[name]
		if property.Description == "" {
			t.Errorf("%s.%s has no description", path, name)
		}
		explained(t, &property, path+"."+name)
	}
	if s.Items != nil {
		explained(t, s.Items, path+"[]")
	}
}
