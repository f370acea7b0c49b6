package lifecycle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
)

func TestWithConditionKeepsTransitionTime(t *testing.T) {
	old, now := metav1.NewTime(time.Unix(100, 0)), metav1.NewTime(time.Unix(200, 0))
	list := []metav1.Condition{{Type: "Stalled", Status: metav1.ConditionFalse, LastTransitionTime: old}}
	same := WithCondition(list, metav1.Condition{Type: "Stalled", Status: metav1.ConditionFalse, Reason: "New", LastTransitionTime: now})
	assert.Equal(t, old, same[0].LastTransitionTime)
	assert.Equal(t, "New", same[0].Reason)
	changed := WithCondition(list, metav1.Condition{Type: "Stalled", Status: metav1.ConditionTrue, LastTransitionTime: now})
	assert.Equal(t, now, changed[0].LastTransitionTime)
	assert.Len(t, WithCondition(list, metav1.Condition{Type: "Progressing"}), 2)
	assert.Empty(t, list[0].Reason, "the list given is left alone")
}

func TestTitle(t *testing.T) {
	in := Input{Object: contract.ObjectRef{Kind: "Network", Namespace: "infra", Name: "n1"}, Verb: Create, Facts: Facts{Cloud: "AWS", Region: "us-west-2"}}
	assert.Equal(t, "Create Network infra/n1 on AWS us-west-2", in.Title())
	in.Object.Kind, in.Facts.Network = "Cluster", "n1"
	assert.Equal(t, "Create Cluster infra/n1 in network n1", in.Title())
	in.Facts = Facts{}
	assert.Equal(t, "Create Cluster infra/n1", in.Title())
}
