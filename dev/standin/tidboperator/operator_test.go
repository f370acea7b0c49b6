package tidboperator

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func sampleCluster() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "pingcap.com/v1alpha1", "kind": "TidbCluster",
		"metadata": map[string]any{"namespace": "tidb-1", "name": "db", "uid": "u-1"},
		"spec": map[string]any{
			"version": "v8.5.2",
			"pd":      map[string]any{"baseImage": "pingcap/pd", "replicas": int64(1), "requests": map[string]any{"cpu": "750m", "storage": "20Gi"}, "storageClassName": "standard-1"},
			"tidb":    map[string]any{"baseImage": "pingcap/tidb", "version": "v8.5.2-hotfix", "replicas": int64(2)},
		},
	}}
}

func TestStatefulSetOfComponent(t *testing.T) {
	tc := sampleCluster()
	pd, ok, err := componentOf(tc, "pd")
	if err != nil || !ok {
		t.Fatalf("pd: %v %v", ok, err)
	}
	set, err := statefulSet(tc, pd)
	if err != nil {
		t.Fatal(err)
	}
	if set.Name != "db-pd" || set.Spec.Template.Spec.Containers[0].Image != "pingcap/pd:v8.5.2" {
		t.Errorf("name %s, image %s", set.Name, set.Spec.Template.Spec.Containers[0].Image)
	}
	if len(set.Spec.VolumeClaimTemplates) != 1 || set.Spec.VolumeClaimTemplates[0].Labels["app.kubernetes.io/instance"] != "db" {
		t.Errorf("claims %+v", set.Spec.VolumeClaimTemplates)
	}
	if _, has := set.Spec.Template.Spec.Containers[0].Resources.Requests[corev1.ResourceStorage]; has {
		t.Error("storage is no request of a container")
	}
	if _, ok, _ := componentOf(tc, "tiflash"); ok {
		t.Error("a component without spec does not exist")
	}
	tidb, _, _ := componentOf(tc, "tidb")
	if got := tidb.image(); got != "pingcap/tidb:v8.5.2-hotfix" {
		t.Errorf("image %s: a component's version goes before the cluster's", got)
	}
}

func TestReadyAccumulatesOneCondition(t *testing.T) {
	status, t0 := map[string]any{}, time.Unix(1000, 0)
	setReady(status, "tikv", t0)
	setReady(status, "tikv", t0.Add(time.Minute))
	list := status["conditions"].([]any)
	c := list[0].(map[string]any)
	if len(list) != 1 || c["reason"] != "TiKVStoreNotUp" || c["lastUpdateTime"] != t0.UTC().Format(time.RFC3339) {
		t.Errorf("conditions %v", list)
	}
	setReady(status, "", t0.Add(2*time.Minute))
	c = status["conditions"].([]any)[0].(map[string]any)
	if c["status"] != "True" || c["lastTransitionTime"] != t0.Add(2*time.Minute).UTC().Format(time.RFC3339) {
		t.Errorf("condition %v", c)
	}
}

func TestStatusShowsImageOnlyOfReadyPods(t *testing.T) {
	tc := sampleCluster()
	pd, _, _ := componentOf(tc, "pd")
	set, _ := statefulSet(tc, pd)
	s, err := componentStatus(tc, pd, set, "Normal", false, nil)
	if err != nil || s["image"] != nil {
		t.Errorf("no Pod is ready: %v %v", s, err)
	}
	set.Status = appsv1.StatefulSetStatus{Replicas: 1, ReadyReplicas: 1}
	s, err = componentStatus(tc, pd, set, "Normal", true, map[string]any{"passwordInitialized": true})
	if err != nil || s["image"] != "pingcap/pd:v8.5.2" || s["passwordInitialized"] != true || s["leader"] == nil {
		t.Errorf("status %v %v", s, err)
	}
}
