package shootrules

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Gardener's limits, in characters.
const (
	longestTogether  = 21 // project and Shoot
	longestProject   = 10
	longestGenerated = 16
	longestWorker    = 15
)

// metadata are the rules for a Shoot's metadata.
var metadata = []rule{{
	id:     "name-length",
	says:   "name and project together must have at most 21 characters",
	wayOut: "choose a shorter spec.shootName",
	check: func(s *subject, found func(string, any)) {
		if len(s.project)+len(s.shoot.Name) > longestTogether {
			found("metadata.name", s.shoot.Name)
		}
	},
}, {
	id:     "name-label",
	says:   "must be a DNS label without two hyphens in a row",
	wayOut: "use lower-case letters, digits and single hyphens",
	check: func(s *subject, found func(string, any)) {
		if name := s.shoot.Name; name == "" && s.shoot.GenerateName == "" {
			found("metadata.name", nil)
		} else if name != "" && (len(validation.IsDNS1123Label(name)) > 0 || strings.Contains(name, "--")) {
			found("metadata.name", name)
		}
	},
}, {
	id:     "generate-name-length",
	says:   "must have at most 16 characters: Gardener adds five",
	wayOut: "set metadata.name instead, a generated name is not found again after a lost answer",
	check: func(s *subject, found func(string, any)) {
		if len(s.shoot.GenerateName) > longestGenerated {
			found("metadata.generateName", s.shoot.GenerateName)
		}
	},
}, {
	id:     "project-name",
	says:   "the project's name must be a DNS label of at most 10 characters without two hyphens in a row",
	wayOut: "use a Gardener project with such a name (Provider.spec.project)",
	check: func(s *subject, found func(string, any)) {
		if len(s.project) > longestProject || len(validation.IsDNS1123Label(s.project)) > 0 || strings.Contains(s.project, "--") {
			found("metadata.namespace", s.project)
		}
	},
}, {
	id:     "namespace",
	says:   "must be garden, or begin with garden-",
	wayOut: "use the namespace of the Gardener project",
	check: func(s *subject, found func(string, any)) {
		if ns := s.shoot.Namespace; ns != "garden" && !strings.HasPrefix(ns, "garden-") {
			found("metadata.namespace", ns)
		}
	},
}}

// creation are the rules for new Shoots only.
var creation = []rule{{
	id:     "no-finalizers",
	says:   "a new Shoot must have no finalizers: Gardener sets its own",
	wayOut: "remove the finalizer",
	check: func(s *subject, found func(string, any)) {
		for i, f := range s.shoot.Finalizers {
			found(item("metadata.finalizers", i), f)
		}
	},
}}
