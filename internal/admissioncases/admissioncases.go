// Package admissioncases is the table of what admission refuses: for each rule
// of the schemas of our kinds an object that passes and one that fails, with
// the field and the words of the refusal. The unit tests of api/v1 run it in
// process, those of test/admission against an API server.
//
// The cases are data, one file a kind. A change is a map of dotted paths to
// values; a number in a path is an index, null removes the field.
package admissioncases

import (
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

//go:embed cases/*.yaml
var files embed.FS

// Changes are fields to set, by dotted path; null removes one.
type Changes map[string]any

// Case is one rule.
type Case struct {
	// Name says in a few words what is ruled.
	Name string `json:"name"`
	// From makes the case an update: it is how the object differed from the
	// kind's Object before. Absent, the case is a creation.
	From *Changes `json:"from,omitempty"`
	// Pass is admitted: the kind's Object with these changes.
	Pass Changes `json:"pass,omitempty"`
	// Fail is refused.
	Fail Changes `json:"fail"`
	// Path is the field that the refusal names; empty for the whole object.
	Path string `json:"path"`
	// Says is part of the refusal's words.
	Says string `json:"says"`
	// InProcess says why an API server cannot be asked: another rule refuses
	// From, for now. The case is run in process only.
	InProcess string `json:"inProcess,omitempty"`
}

// Kind is the table of one kind.
type Kind struct {
	// Kind is its name.
	Kind string `json:"kind"`
	// Object is valid and has every field that is supported.
	Object map[string]any `json:"object"`
	// Minimal is valid and has the required fields only.
	Minimal map[string]any `json:"minimal"`
	// Defaults is the spec that Minimal becomes.
	Defaults map[string]any `json:"defaults"`
	// Cases are the rules.
	Cases []Case `json:"cases"`
}

// Load reads the tables of all kinds, in the order of their names.
func Load() ([]Kind, error) {
	names, err := fs.Glob(files, "cases/*.yaml")
	if err != nil {
		return nil, err
	}
	kinds := make([]Kind, 0, len(names))
	for _, name := range names {
		raw, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var k Kind
		if err := yaml.UnmarshalStrict(raw, &k); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		kinds = append(kinds, k)
	}
	return kinds, nil
}

// With returns the kind's Object with changes, as an API server decodes it.
func (k *Kind) With(changes Changes) (map[string]any, error) { return k.make(k.Object, changes) }

// Small returns the kind's Minimal with changes.
func (k *Kind) Small(changes Changes) (map[string]any, error) { return k.make(k.Minimal, changes) }

func (k *Kind) make(base map[string]any, changes Changes) (map[string]any, error) {
	o := map[string]any{"apiVersion": "cloud.pingcap.com/v1", "kind": k.Kind}
	for key, value := range base {
		o[key] = value
	}
	o, err := Whole(o)
	if err != nil {
		return nil, err
	}
	for path, value := range changes {
		if err := set(o, strings.Split(path, "."), value); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return Whole(o)
}

// Whole returns a copy in which whole numbers are int64, as an API server
// decodes them, instead of float64.
func Whole(o map[string]any) (map[string]any, error) {
	raw, err := utiljson.Marshal(o)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	if err := utiljson.Unmarshal(raw, &out); err != nil {
		return nil, err
	}
	return runtime.DeepCopyJSON(out), nil
}

// set puts value at path, making the objects on the way.
func set(at any, path []string, value any) error {
	name, rest := path[0], path[1:]
	if list, ok := at.([]any); ok {
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || i >= len(list) {
			return fmt.Errorf("no item %s in a list of %d", name, len(list))
		}
		if len(rest) == 0 {
			list[i] = value
			return nil
		}
		return set(list[i], rest, value)
	}
	m, ok := at.(map[string]any)
	if !ok {
		return fmt.Errorf("%s is in no object", name)
	}
	switch {
	case len(rest) == 0 && value == nil:
		delete(m, name)
	case len(rest) == 0:
		m[name] = value
	default:
		if m[name] == nil {
			m[name] = map[string]any{}
		}
		return set(m[name], rest, value)
	}
	return nil
}
