package admissioncases

import (
	"strings"

	"sigs.k8s.io/yaml"
)

// Examples returns the examples of an API reference in Markdown: the objects of
// its fenced YAML blocks, by kind, as an API server decodes them.
func Examples(markdown string) (map[string]map[string]any, error) {
	examples := map[string]map[string]any{}
	_, rest, found := strings.Cut(markdown, "\n```yaml\n")
	for found {
		block, after, _ := strings.Cut(rest, "\n```")
		o := map[string]any{}
		if err := yaml.UnmarshalStrict([]byte(block), &o); err != nil {
			return nil, err
		}
		o, err := Whole(o)
		if err != nil {
			return nil, err
		}
		kind, _ := o["kind"].(string)
		examples[kind] = o
		_, rest, found = strings.Cut(after, "\n```yaml\n")
	}
	return examples, nil
}
