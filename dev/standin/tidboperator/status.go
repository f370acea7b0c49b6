package tidboperator

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// buildStatus is the whole status of a TidbCluster. Times of what did not
// change are kept.
func buildStatus(tc *unstructured.Unstructured, s *spec, states map[string]*state) map[string]any {
	old, _, _ := unstructured.NestedMap(tc.Object, "status")
	status := map[string]any{}
	for key, value := range old {
		status[key] = value
	}
	now := time.Now().UTC().Format(time.RFC3339)
	for name, st := range states {
		before, _, _ := unstructured.NestedMap(tc.Object, "status", name)
		status[name] = componentStatus(tc, st, before, now)
	}
	if states["pd"].complete() && status["clusterID"] == nil {
		status["clusterID"] = clusterID(string(tc.GetUID()))
	}
	status["conditions"] = readyCondition(old, s, states, now)
	return status
}

// clusterID is a number as PD makes them, from the object's UID.
func clusterID(uid string) string {
	sum := sha256.Sum256([]byte(uid))
	return strconv.FormatUint(7_000_000_000_000_000_000+binary.BigEndian.Uint64(sum[:8])%1_000_000_000_000_000_000, 10)
}

func componentStatus(tc *unstructured.Unstructured, st *state, before map[string]any, now string) map[string]any {
	status := map[string]any{}
	for key, value := range before {
		status[key] = value
	}
	status["phase"] = st.phase
	if st.c.name != "tidb" {
		status["synced"] = st.set != nil
	}
	if st.set == nil || st.phase == phaseSuspend && len(st.pods) == 0 {
		for _, gone := range []string{"statefulSet", "members", "stores", "leader", "image"} {
			delete(status, gone)
		}
		return status
	}
	if set, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&st.set.Status); err == nil {
		// A Pod is ready for v1 when its member answers the probe.
		well := min(int64(len(st.well)), int64(st.set.Status.ReadyReplicas))
		delete(set, "readyReplicas")
		delete(set, "availableReplicas")
		if well > 0 {
			set["readyReplicas"], set["availableReplicas"] = well, well
		}
		status["statefulSet"] = set
	}
	if image := oldestImage(st); image != "" {
		status["image"] = image
	}
	switch st.c.name {
	case "pd":
		members(tc, st, status, before, now)
	case "tidb":
		tidbMembers(st, status, before, now)
	default:
		stores(tc, st, status, before, now)
		status["bootStrapped"] = st.c.name == "tikv" && len(st.well) > 0
		if st.c.name != "tikv" {
			delete(status, "bootStrapped")
		}
	}
	return status
}

// oldestImage is the image of the Pod that was not replaced yet, so that the
// new one shows when all have it.
func oldestImage(st *state) string {
	for _, pod := range st.pods {
		if len(pod.Spec.Containers) > 0 && pod.Spec.Containers[0].Image != st.c.image {
			return pod.Spec.Containers[0].Image
		}
	}
	if len(st.pods) == 0 {
		return ""
	}
	return st.c.image
}

// stamp keeps the transition time of an entry whose value did not change.
func stamp(entry, old map[string]any, key, now string) {
	entry["lastTransitionTime"] = now
	if old != nil && old[key] == entry[key] && old["lastTransitionTime"] != nil {
		entry["lastTransitionTime"] = old["lastTransitionTime"]
	}
}

func entryOf(before map[string]any, field, key string) map[string]any {
	entry, _, _ := unstructured.NestedMap(before, field, key)
	return entry
}

// numericID is a stable number for a member or store.
func numericID(tc *unstructured.Unstructured, pod *corev1.Pod) uint64 {
	sum := sha256.Sum256([]byte(string(tc.GetUID()) + pod.Name))
	return binary.BigEndian.Uint64(sum[:8])
}

func members(tc *unstructured.Unstructured, st *state, status, before map[string]any, now string) {
	all := map[string]any{}
	var leader map[string]any
	for i := range st.pods {
		pod := &st.pods[i]
		entry := map[string]any{
			"name": pod.Name, "id": strconv.FormatUint(numericID(tc, pod), 10), "health": slices.Contains(st.well, pod.Name),
			"clientURL": fmt.Sprintf("http://%s.%s-pd-peer.%s.svc:2379", pod.Name, tc.GetName(), tc.GetNamespace()),
		}
		stamp(entry, entryOf(before, "members", pod.Name), "health", now)
		all[pod.Name] = entry
		if entry["health"] == true && (leader == nil || pod.Name < leader["name"].(string)) {
			leader = entry
		}
	}
	status["members"] = all
	delete(status, "leader")
	if leader != nil {
		status["leader"] = leader
	}
}

func stores(tc *unstructured.Unstructured, st *state, status, before map[string]any, now string) {
	all := map[string]any{}
	for i := range st.pods {
		pod := &st.pods[i]
		id := strconv.FormatUint(numericID(tc, pod)%100000, 10)
		entry := map[string]any{
			"id": id, "podName": pod.Name, "state": "Down", "leaderCount": int64(0),
			"ip": fmt.Sprintf("%s.%s-%s-peer.%s.svc", pod.Name, tc.GetName(), st.c.name, tc.GetNamespace()),
		}
		if slices.Contains(st.well, pod.Name) {
			entry["state"] = "Up"
			if st.c.name == "tikv" {
				entry["leaderCount"] = int64(10)
			}
		}
		stamp(entry, entryOf(before, "stores", id), "state", now)
		all[id] = entry
	}
	status["stores"] = all
}

func tidbMembers(st *state, status, before map[string]any, now string) {
	all := map[string]any{}
	for i := range st.pods {
		pod := &st.pods[i]
		entry := map[string]any{"name": pod.Name, "health": slices.Contains(st.well, pod.Name), "node": pod.Spec.NodeName}
		stamp(entry, entryOf(before, "members", pod.Name), "health", now)
		all[pod.Name] = entry
	}
	status["members"] = all
}

// unhealthy is v1's reason and message for an incomplete component.
var unhealthy = []struct{ component, reason, message string }{
	{"pd", "PDUnhealthy", "PD(s) are not healthy"},
	{"tikv", "TiKVStoreNotUp", "TiKV store(s) are not up"},
	{"tidb", "TiDBUnhealthy", "TiDB(s) are not healthy"},
	{"tiflash", "TiFlashStoreNotUp", "TiFlash store(s) are not up"},
}

// readyCondition follows v1's tidb_cluster_condition_updater: StatefulSets
// first, then members.
func readyCondition(old map[string]any, s *spec, states map[string]*state, now string) []any {
	value, reason, message := "True", "Ready", "TiDB cluster is fully up and running"
	for _, u := range unhealthy {
		if st := states[u.component]; reason == "Ready" && st != nil && !st.complete() {
			value, reason, message = "False", u.reason, u.message
		}
	}
	for _, st := range states {
		if !s.suspended(st.c) && !st.settled() || st.phase == phaseUpgrade || st.phase == phaseScale {
			value, reason, message = "False", "StatefulSetNotUpToDate", "Statefulset(s) are in progress"
		}
	}
	entry := map[string]any{
		"type": "Ready", "status": value, "reason": reason, "message": message, "lastTransitionTime": now, "lastUpdateTime": now,
	}
	list, _, _ := unstructured.NestedSlice(map[string]any{"status": old}, "status", "conditions")
	for i, item := range list {
		have, ok := item.(map[string]any)
		if !ok || have["type"] != "Ready" {
			continue
		}
		if have["status"] == value {
			entry["lastTransitionTime"] = have["lastTransitionTime"]
			if have["reason"] == reason && have["message"] == message {
				entry["lastUpdateTime"] = have["lastUpdateTime"]
			}
		}
		list[i] = entry
		return list
	}
	return append(list, entry)
}
