package admissioncases

import (
	"embed"
	"fmt"
	"io/fs"

	"sigs.k8s.io/yaml"
)

//go:embed webhooks/*.yaml
var webhookFiles embed.FS

// World is what the objects of webhook cases refer to.
type World struct {
	// Objects exist, with their status.
	Objects []map[string]any `json:"objects"`
}

// WebhookCase is one rule that looks at more than one object, or at one before
// and after a change. Whoever runs it puts the world in place first.
type WebhookCase struct {
	// Name says in a few words what is ruled.
	Name string `json:"name"`
	// Given changes objects of the world, by kind/name, before the request that
	// is refused; null takes an object away. With metadata.deletionTimestamp an
	// object is being deleted.
	Given map[string]*Changes `json:"given,omitempty"`
	// From makes the case an update: how the object differed before.
	From *Changes `json:"from,omitempty"`
	// Delete makes the case a deletion: it is allowed, with a warning.
	Delete bool `json:"delete,omitempty"`
	// Pass is admitted in the world without Given: the file's Object with these
	// changes. Absent with PassGiven.
	Pass Changes `json:"pass,omitempty"`
	// PassGiven has Pass asked in the world with Given, too.
	PassGiven bool `json:"passGiven,omitempty"`
	// Fail is refused in the world with Given.
	Fail Changes `json:"fail,omitempty"`
	// Path is the field that the refusal names.
	Path string `json:"path,omitempty"`
	// Says is part of the refusal's words.
	Says string `json:"says,omitempty"`
	// Warns is part of a warning; the request is then allowed.
	Warns string `json:"warns,omitempty"`
	// InProcess says why an API server cannot be asked, such as a rule of the
	// schema that refuses the object for now.
	InProcess string `json:"inProcess,omitempty"`
}

// WebhookKind is the table of one kind.
type WebhookKind struct {
	Kind string `json:"kind"`
	// Object is admitted in the world.
	Object map[string]any `json:"object"`
	Cases  []WebhookCase  `json:"cases"`
}

// With returns the kind's Object with changes, as an API server decodes it.
func (k *WebhookKind) With(changes Changes) (map[string]any, error) {
	return (&Kind{Kind: k.Kind, Object: k.Object}).With(changes)
}

// Change returns a copy of an object with changes.
func Change(o map[string]any, changes Changes) (map[string]any, error) {
	kind, _ := o["kind"].(string)
	return (&Kind{Kind: kind, Object: o}).With(changes)
}

// LoadWebhooks reads the world, and the tables of all kinds in the order of
// their files.
func LoadWebhooks() (World, []WebhookKind, error) {
	const world = "webhooks/world.yaml"
	var w World
	if err := readWebhooks(world, &w); err != nil {
		return w, nil, err
	}
	names, err := fs.Glob(webhookFiles, "webhooks/*.yaml")
	if err != nil {
		return w, nil, err
	}
	var kinds []WebhookKind
	for _, name := range names {
		if name == world {
			continue
		}
		var k WebhookKind
		if err := readWebhooks(name, &k); err != nil {
			return w, nil, err
		}
		kinds = append(kinds, k)
	}
	return w, kinds, nil
}

func readWebhooks(name string, into any) error {
	raw, err := webhookFiles.ReadFile(name)
	if err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict(raw, into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
