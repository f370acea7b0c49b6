package bridge

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// Kinds returns the kinds that the bridge watches: those with an object
// workflow. The name of a kind is also the type of its workflow. The others have
// a notice, see notices.go.
func Kinds() (gvks []schema.GroupVersionKind) {
	for _, k := range v1.Kinds() {
		if k.HasWorkflow {
			gvks = append(gvks, v1.GroupVersion.WithKind(k.Name))
		}
	}
	return gvks
}

// HasWorkflow reports whether a kind has an object workflow. Only that takes
// the kind's finalizer away.
func HasWorkflow(kind string) bool {
	k, _ := v1.KindOf(kind)
	return k.HasWorkflow
}
