package management

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// ours tells our own field managers from those of people and of GitOps.
func ours(manager string) bool {
	return strings.HasPrefix(manager, "infra-provider") || strings.HasPrefix(manager, "infra-bridge")
}

// lastManager is who last wrote the spec, as far as the object itself knows:
// the field manager, which kubectl, Argo CD and others choose for themselves.
// Empty when only we have written. The user behind it is in the API server's
// audit log; a deletion leaves no trace in the object.
func lastManager(fields []metav1.ManagedFieldsEntry) string {
	return newestManager(fields, func(e metav1.ManagedFieldsEntry) bool { return owns(e, "f:spec") })
}

// verbManager is who set the annotation that asks for a verb.
func verbManager(fields []metav1.ManagedFieldsEntry) string {
	return newestManager(fields, func(e metav1.ManagedFieldsEntry) bool { return owns(e, "f:"+v1.AnnotationOperation) })
}

// newestManager is the manager of the newest entry that matches. Times have
// whole seconds: of two alike, the later in the list counts, which is how the
// API server sorts.
func newestManager(fields []metav1.ManagedFieldsEntry, match func(metav1.ManagedFieldsEntry) bool) string {
	manager, newest := "", metav1.Time{}
	for _, e := range fields {
		if e.Subresource != "" || ours(e.Manager) || !match(e) {
			continue
		}
		at := metav1.Time{}
		if e.Time != nil {
			at = *e.Time
		}
		if manager == "" || !at.Before(&newest) {
			manager, newest = e.Manager, at
		}
	}
	return manager
}

// owns looks for a field's name in the entry's set of fields, without reading
// the whole set.
func owns(e metav1.ManagedFieldsEntry, field string) bool {
	return e.FieldsV1 != nil && strings.Contains(e.FieldsV1.GetRawString(), `"`+field+`":`)
}
