package tidboperator

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// hashAnnotation tells whether a StatefulSet's template is up to date, which
// comparing it with defaults filled in by the API server cannot.
const hashAnnotation = "pingcap.com/template-hash"

// owner makes the garbage collector remove things with their TidbCluster.
func owner(tc *unstructured.Unstructured) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{
		APIVersion: tc.GetAPIVersion(), Kind: tc.GetKind(), Name: tc.GetName(), UID: tc.GetUID(), Controller: &yes, BlockOwnerDeletion: &yes,
	}}
}

func meta(tc *unstructured.Unstructured, name, component string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: tc.GetNamespace(), Labels: labels(tc.GetName(), component), OwnerReferences: owner(tc),
	}
}

// configMap holds the component's configuration.
func configMap(tc *unstructured.Unstructured, c *component) *corev1.ConfigMap {
	text := string(c.Config)
	var toml string
	if json.Unmarshal(c.Config, &toml) == nil {
		text = toml
	}
	return &corev1.ConfigMap{
		ObjectMeta: meta(tc, tc.GetName()+"-"+c.name, c.name),
		Data:       map[string]string{"config-file": text, "startup-script": "#!/bin/sh\n"},
	}
}

// services are the headless peer service of every component, and the client
// services of PD and TiDB.
func services(tc *unstructured.Unstructured, c *component) []*corev1.Service {
	port := func(p corev1.ContainerPort, number int32) corev1.ServicePort {
		return corev1.ServicePort{Name: p.Name, Port: number, TargetPort: intstr.FromInt32(p.ContainerPort), Protocol: corev1.ProtocolTCP}
	}
	peer := &corev1.Service{
		ObjectMeta: meta(tc, tc.GetName()+"-"+c.name+"-peer", c.name),
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, Selector: labels(tc.GetName(), c.name), PublishNotReadyAddresses: true,
			Ports: []corev1.ServicePort{port(c.ports[0], c.ports[0].ContainerPort)},
		},
	}
	client := &corev1.Service{
		ObjectMeta: meta(tc, tc.GetName()+"-"+c.name, c.name),
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Selector: labels(tc.GetName(), c.name)},
	}
	switch c.name {
	case "pd":
		client.Spec.Ports = []corev1.ServicePort{port(c.ports[0], 2379)}
	case "tidb":
		number := int32(4000)
		if c.Service != nil {
			if c.Service.Port != 0 {
				number = c.Service.Port
			}
			if c.Service.Type != "" {
				client.Spec.Type = c.Service.Type
			}
		}
		client.Spec.Ports = []corev1.ServicePort{port(c.ports[0], number), port(c.ports[1], 10080)}
	default:
		return []*corev1.Service{peer}
	}
	return []*corev1.Service{peer, client}
}

// statefulSet is what the component should look like.
func statefulSet(tc *unstructured.Unstructured, s *spec, c *component) (*appsv1.StatefulSet, error) {
	own := labels(tc.GetName(), c.name)
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: merged(c.Labels, own), Annotations: c.Annotations},
		Spec: corev1.PodSpec{
			ServiceAccountName: c.ServiceAccount,
			NodeSelector:       merged(s.NodeSelector, c.NodeSelector),
			Tolerations:        append(append([]corev1.Toleration{}, s.Tolerations...), c.Tolerations...),
			Containers: []corev1.Container{{
				Name: c.name, Image: c.image, Ports: c.ports,
				Resources: corev1.ResourceRequirements{Requests: withoutStorage(c.Requests), Limits: withoutStorage(c.Limits)},
			}},
			Volumes: []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: tc.GetName() + "-" + c.name},
			}}}},
		},
	}
	for _, spread := range s.Spread {
		template.Spec.TopologySpreadConstraints = append(template.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			TopologyKey: spread.TopologyKey, MaxSkew: max(spread.MaxSkew, 1), WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: own},
		})
	}
	claims := c.claims(own)
	for _, claim := range claims {
		template.Spec.Containers[0].VolumeMounts = append(template.Spec.Containers[0].VolumeMounts,
			corev1.VolumeMount{Name: claim.Name, MountPath: "/var/lib/" + claim.Name})
	}
	// A changed configuration restarts Pods, as configUpdateStrategy
	// RollingUpdate does by a new name of the ConfigMap.
	text, err := json.Marshal([]any{template, c.Config})
	if err != nil {
		return nil, fmt.Errorf("template of %s: %w", c.name, err)
	}
	sum := sha256.Sum256(text)
	hash := hex.EncodeToString(sum[:8])
	template.Annotations = merged(template.Annotations, map[string]string{hashAnnotation: hash})

	set := &appsv1.StatefulSet{
		ObjectMeta: meta(tc, tc.GetName()+"-"+c.name, c.name),
		Spec: appsv1.StatefulSetSpec{
			Replicas: &c.Replicas, ServiceName: tc.GetName() + "-" + c.name + "-peer",
			PodManagementPolicy: appsv1.ParallelPodManagement, Selector: &metav1.LabelSelector{MatchLabels: own},
			Template: template, VolumeClaimTemplates: claims,
		},
	}
	set.Annotations = map[string]string{hashAnnotation: hash}
	return set, nil
}

// claims are one for PD and TiKV ("requests.storage") and one for each entry of
// TiFlash's storageClaims.
func (c *component) claims(own map[string]string) []corev1.PersistentVolumeClaim {
	claim := func(name string, size resource.Quantity, class *string) corev1.PersistentVolumeClaim {
		return corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: own},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: class,
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: size}},
			},
		}
	}
	var claims []corev1.PersistentVolumeClaim
	if size, ok := c.Requests[corev1.ResourceStorage]; ok && c.name != "tidb" {
		claims = append(claims, claim(c.name, size, c.StorageClassName))
	}
	for i, s := range c.StorageClaims {
		claims = append(claims, claim(fmt.Sprintf("data%d", i), s.Resources.Requests[corev1.ResourceStorage], s.StorageClassName))
	}
	return claims
}

func withoutStorage(list corev1.ResourceList) corev1.ResourceList {
	out := list.DeepCopy()
	delete(out, corev1.ResourceStorage)
	return out
}
