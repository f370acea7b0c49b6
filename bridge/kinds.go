package bridge

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// kinds that have a lifecycle, hence an object workflow. The others have a
// notice, see notices.go.
var kinds = []string{v1.KindProviderType, v1.KindProvider, v1.KindNetwork, v1.KindCluster}

// Kinds returns the kinds that the bridge watches. The name of a kind is also
// the type of its object workflow.
func Kinds() []schema.GroupVersionKind {
	gvks := make([]schema.GroupVersionKind, 0, len(kinds))
	for _, k := range kinds {
		gvks = append(gvks, v1.GroupVersion.WithKind(k))
	}
	return gvks
}

// HasWorkflow reports whether a kind has an object workflow. Only that takes
// the kind's finalizer away.
func HasWorkflow(kind string) bool { return slices.Contains(kinds, kind) }
