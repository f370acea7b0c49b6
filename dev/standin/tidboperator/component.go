package tidboperator

import (
	"encoding/json"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// component is the part of a component's spec that the stand-in acts on.
type component struct {
	name             string
	BaseImage        string              `json:"baseImage"`
	Version          string              `json:"version"`
	Replicas         int32               `json:"replicas"`
	Requests         corev1.ResourceList `json:"requests"`
	StorageClassName string              `json:"storageClassName"`
	ServiceAccount   string              `json:"serviceAccount"`
	NodeSelector     map[string]string   `json:"nodeSelector"`
	Tolerations      []corev1.Toleration `json:"tolerations"`
	Labels           map[string]string   `json:"labels"`
	StorageClaims    []struct {
		Resources        corev1.VolumeResourceRequirements `json:"resources"`
		StorageClassName string                            `json:"storageClassName"`
	} `json:"storageClaims"`
}

var ports = map[string]int32{"pd": 2379, "tikv": 20160, "tidb": 4000, "tiflash": 3930}

// componentOf reads a component's spec; false when the cluster has none of it.
func componentOf(tc *unstructured.Unstructured, name string) (component, bool, error) {
	c := component{name: name}
	raw, ok, _ := unstructured.NestedMap(tc.Object, "spec", name)
	if !ok {
		return c, false, nil
	}
	b, err := json.Marshal(raw)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil {
		return c, false, fmt.Errorf("spec.%s: %w", name, err)
	}
	if c.Version == "" {
		c.Version, _, _ = unstructured.NestedString(tc.Object, "spec", "version")
	}
	return c, true, nil
}

func (c component) image() string {
	base := c.BaseImage
	if base == "" {
		base = "pingcap/" + c.name
	}
	return base + ":" + c.Version
}

// labels that TiDB Operator puts on all that it makes (T1: pkg/label/label.go).
func labels(tc *unstructured.Unstructured, c component) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name": "tidb-cluster", "app.kubernetes.io/managed-by": "tidb-operator",
		"app.kubernetes.io/instance": tc.GetName(), "app.kubernetes.io/component": c.name,
	}
}

func objectMeta(tc *unstructured.Unstructured, c component, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: tc.GetNamespace(), Name: name, Labels: labels(tc, c),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(tc, pingcap("TidbCluster"))},
	}
}

func services(tc *unstructured.Unstructured, c component) []client.Object {
	name := tc.GetName() + "-" + c.name
	port := []corev1.ServicePort{{Name: "client", Port: ports[c.name]}}
	return []client.Object{
		&corev1.Service{ObjectMeta: objectMeta(tc, c, name), Spec: corev1.ServiceSpec{Selector: labels(tc, c), Ports: port}},
		&corev1.Service{ObjectMeta: objectMeta(tc, c, name+"-peer"), Spec: corev1.ServiceSpec{
			Selector: labels(tc, c), Ports: port, ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true}},
	}
}

// statefulSet of a component.
func statefulSet(tc *unstructured.Unstructured, c component) (*appsv1.StatefulSet, error) {
	requests := maps.Clone(c.Requests)
	storage, hasStorage := requests[corev1.ResourceStorage]
	delete(requests, corev1.ResourceStorage)
	podLabels := labels(tc, c)
	maps.Copy(podLabels, c.Labels)
	name := tc.GetName() + "-" + c.name
	set := &appsv1.StatefulSet{
		ObjectMeta: objectMeta(tc, c, name),
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To(c.Replicas), ServiceName: name + "-peer", PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector: &metav1.LabelSelector{MatchLabels: labels(tc, c)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: podLabels},
				Spec: corev1.PodSpec{
					ServiceAccountName: c.ServiceAccount, NodeSelector: c.NodeSelector, Tolerations: c.Tolerations,
					Containers: []corev1.Container{{Name: c.name, Image: c.image(), Resources: corev1.ResourceRequirements{Requests: requests}}},
				},
			},
		},
	}
	if hasStorage && c.name != "tidb" {
		addClaim(set, c.name, storage, c.StorageClassName)
	}
	for i, claim := range c.StorageClaims {
		addClaim(set, fmt.Sprintf("data%d", i), claim.Resources.Requests[corev1.ResourceStorage], claim.StorageClassName)
	}
	return set, nil
}

func addClaim(set *appsv1.StatefulSet, name string, size resource.Quantity, class string) {
	claim := corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: set.Labels},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: size}},
		},
	}
	if class != "" {
		claim.Spec.StorageClassName = &class
	}
	set.Spec.VolumeClaimTemplates = append(set.Spec.VolumeClaimTemplates, claim)
	container := &set.Spec.Template.Spec.Containers[0]
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/var/lib/" + name})
}

// componentStatus is status.<component>: phase, a copy of the StatefulSet's
// status, members or stores, and the image once a Pod runs it.
func componentStatus(tc *unstructured.Unstructured, c component, set *appsv1.StatefulSet, phase string, healthy bool, old map[string]any) (map[string]any, error) {
	copied, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&set.Status)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	maps.Copy(out, old)
	out["phase"], out["statefulSet"] = phase, copied
	if set.Status.ReadyReplicas > 0 {
		out["image"] = c.image()
	}
	members := map[string]any{}
	for i := range set.Status.ReadyReplicas {
		pod := fmt.Sprintf("%s-%s-%d", tc.GetName(), c.name, i)
		switch c.name {
		case "pd", "tidb":
			members[pod] = map[string]any{"name": pod, "health": healthy}
		default:
			state := "Down"
			if healthy {
				state = "Up"
			}
			id := fmt.Sprint(i + 1)
			members[id] = map[string]any{"id": id, "podName": pod, "ip": pod + "." + set.Spec.ServiceName, "state": state, "leaderCount": int64(0)}
		}
	}
	switch c.name {
	case "pd":
		out["members"] = members
		if healthy {
			out["leader"] = members[fmt.Sprintf("%s-pd-0", tc.GetName())]
			out["synced"] = true
		}
	case "tidb":
		out["members"] = members
	default:
		out["stores"], out["synced"] = members, healthy
	}
	return out, nil
}
