package management

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// entry is one of metadata.managedFields; at is in seconds.
func entry(manager, subresource string, at int64, fields string) metav1.ManagedFieldsEntry {
	e := metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, FieldsV1: &metav1.FieldsV1{}}
	e.FieldsV1.SetRawString(fields)
	if at > 0 {
		e.Time = &metav1.Time{Time: time.Unix(at, 0)}
	}
	return e
}

func TestManagers(t *testing.T) {
	const (
		spec = `{"f:metadata":{"f:labels":{}},"f:spec":{".":{},"f:region":{}}}`
		verb = `{"f:metadata":{"f:annotations":{"f:infra.cloud.pingcap.com/operation":{}}}}`
		id   = `{"f:metadata":{"f:annotations":{"f:infra.cloud.pingcap.com/id":{}},"f:finalizers":{}}}`
	)
	for name, c := range map[string]struct {
		fields     []metav1.ManagedFieldsEntry
		last, verb string
	}{
		"nobody":                           {},
		"who applied":                      {[]metav1.ManagedFieldsEntry{entry("argocd-controller", "", 10, spec)}, "argocd-controller", ""},
		"the newest, not the last":         {[]metav1.ManagedFieldsEntry{entry("kubectl-edit", "", 20, spec), entry("argocd-controller", "", 10, spec)}, "kubectl-edit", ""},
		"of two in one second the later":   {[]metav1.ManagedFieldsEntry{entry("a", "", 10, spec), entry("b", "", 10, spec)}, "b", ""},
		"the bridge's identity is not one": {[]metav1.ManagedFieldsEntry{entry("kubectl-create", "", 10, spec), entry("infra-bridge", "", 11, id)}, "kubectl-create", ""},
		"nor is status": {[]metav1.ManagedFieldsEntry{
			entry("kubectl-create", "", 10, spec), entry("infra-provider-object", "status", 12, `{"f:status":{}}`), entry("somebody", "status", 13, `{"f:spec":{}}`),
		}, "kubectl-create", ""},
		"a verb leaves the spec's": {[]metav1.ManagedFieldsEntry{entry("argocd-controller", "", 10, spec), entry("kubectl-annotate", "", 20, verb)}, "argocd-controller", "kubectl-annotate"},
		"ours never asks":          {[]metav1.ManagedFieldsEntry{entry("infra-provider-verbs", "", 20, verb)}, "", ""},
		"no time, no fields":       {[]metav1.ManagedFieldsEntry{{Manager: "x"}, entry("a", "", 0, spec)}, "a", ""},
	} {
		require.Equal(t, c.last, lastManager(c.fields), name)
		require.Equal(t, c.verb, verbManager(c.fields), name)
	}
}
