package shoot

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidbcloud/infra-orchestrator/activities/configservice"
	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/builders"
)

// judgeDatabase says what a TidbCluster still lacks to be ready for the plan;
// empty when it looks ready.
//
// TiDB Operator v1 has no observedGeneration: condition Ready alone may
// describe the previous spec. So each component is compared with what the plan
// wants, and the caller looks twice.
func judgeDatabase(tc *unstructured.Unstructured, plan contract.ClusterPlan, config *configservice.ClusterConfig) string {
	for _, c := range plan.Components {
		if lack := judgeComponent(tc, c, builders.WantedImage(plan, config, c.Name)); lack != "" {
			return c.Name + ": " + lack
		}
	}
	ready, ok := condition(tc, "Ready")
	switch {
	case !ok:
		return "the operator has not reported yet"
	case ready["status"] != "True":
		return fmt.Sprintf("not ready: %v (%v)", ready["message"], ready["reason"])
	}
	return ""
}

func judgeComponent(tc *unstructured.Unstructured, c contract.Component, image string) string {
	status, found, _ := unstructured.NestedMap(tc.Object, "status", c.Name)
	if !found {
		return "waiting until the operator has started it"
	}
	set, found, _ := unstructured.NestedMap(status, "statefulSet")
	if !found {
		return fmt.Sprintf("waiting until its %d Pods are made", c.Replicas)
	}
	replicas, ready := number(set, "replicas"), number(set, "readyReplicas")
	switch {
	case ready != int64(c.Replicas) || replicas != int64(c.Replicas):
		return fmt.Sprintf("%d of %d Pods are ready", ready, c.Replicas)
	case text(set, "currentRevision") != text(set, "updateRevision"):
		return fmt.Sprintf("rolling to the new revision, %d of %d updated", number(set, "updatedReplicas"), c.Replicas)
	case text(status, "phase") != "Normal":
		return "in phase " + text(status, "phase")
	// The operator reports an image only once a Pod of it exists; an empty one
	// proves nothing.
	case text(status, "image") != image:
		return fmt.Sprintf("image is %q, not yet %q", text(status, "image"), image)
	}
	return ""
}

func number(m map[string]any, key string) int64 {
	switch n := m[key].(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return 0
}

func text(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

// databaseStatus is what is observed of a ready database.
func databaseStatus(tc *unstructured.Unstructured, plan contract.ClusterPlan) contract.DatabaseStatus {
	id, _, _ := unstructured.NestedString(tc.Object, "status", "clusterID")
	version, _, _ := unstructured.NestedString(tc.Object, "spec", "version")
	out := contract.DatabaseStatus{ClusterID: id, Version: version, Components: map[string]contract.ComponentStatus{}}
	for _, c := range plan.Components {
		status, _, _ := unstructured.NestedMap(tc.Object, "status", c.Name)
		set, _, _ := unstructured.NestedMap(status, "statefulSet")
		out.Components[c.Name] = contract.ComponentStatus{
			Replicas: int32(number(set, "replicas")), Ready: int32(number(set, "readyReplicas")), Image: text(status, "image"),
		}
	}
	return out
}

// steady remembers since when something has looked good without interruption.
type steady struct{ since time.Time }

// look reports whether it has been good for that long, over two looks at
// least.
func (s *steady) look(good bool, now time.Time, long time.Duration) bool {
	switch {
	case !good:
		s.since = time.Time{}
	case s.since.IsZero():
		s.since = now
	default:
		return now.Sub(s.since) >= long
	}
	return false
}
