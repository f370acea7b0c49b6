package lifecycle

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WithCondition returns the list with c in it; the transition time stays when
// the status does.
func WithCondition(list []metav1.Condition, c metav1.Condition) []metav1.Condition {
	list = slices.Clone(list)
	for i, old := range list {
		if old.Type != c.Type {
			continue
		}
		if old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		list[i] = c
		return list
	}
	return append(list, c)
}

// Reasons of the condition Progressing after an operation that gave way to
// another one.
const (
	ReasonPreempted  = "Preempted"
	ReasonSuperseded = "Superseded"
)
