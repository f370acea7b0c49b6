package bridge

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// APIVersion is the group and version of the kinds.
var APIVersion = schema.GroupVersion{Group: "cloud.pingcap.com", Version: "v1"}

// kinds that have a lifecycle, hence an object workflow. An Account has none:
// it is only read.
var kinds = []string{"ProviderType", "Provider", "Network", "Cluster"}

// Kinds returns the kinds that the bridge watches. The name of a kind is also
// the type of its object workflow.
func Kinds() []schema.GroupVersionKind {
	gvks := make([]schema.GroupVersionKind, 0, len(kinds))
	for _, k := range kinds {
		gvks = append(gvks, APIVersion.WithKind(k))
	}
	return gvks
}
