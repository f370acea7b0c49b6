package tidboperator

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// spec is the part of TidbCluster.spec that is acted upon.
type spec struct {
	Version         string                               `json:"version"`
	Paused          bool                                 `json:"paused"`
	PVReclaimPolicy corev1.PersistentVolumeReclaimPolicy `json:"pvReclaimPolicy"`
	SuspendAction   *suspendAction                       `json:"suspendAction"`
	NodeSelector    map[string]string                    `json:"nodeSelector"`
	Tolerations     []corev1.Toleration                  `json:"tolerations"`
	Spread          []struct {
		TopologyKey string `json:"topologyKey"`
		MaxSkew     int32  `json:"maxSkew"`
	} `json:"topologySpreadConstraints"`

	PD      *componentSpec `json:"pd"`
	TiKV    *componentSpec `json:"tikv"`
	TiDB    *componentSpec `json:"tidb"`
	TiFlash *componentSpec `json:"tiflash"`
}

type suspendAction struct {
	SuspendStatefulSet bool `json:"suspendStatefulSet"`
}

// componentSpec is common to all components.
type componentSpec struct {
	BaseImage        string              `json:"baseImage"`
	Version          string              `json:"version"`
	Replicas         int32               `json:"replicas"`
	Requests         corev1.ResourceList `json:"requests"`
	Limits           corev1.ResourceList `json:"limits"`
	StorageClassName *string             `json:"storageClassName"`
	StorageClaims    []struct {
		Resources        corev1.VolumeResourceRequirements `json:"resources"`
		StorageClassName *string                           `json:"storageClassName"`
	} `json:"storageClaims"`
	Config         json.RawMessage     `json:"config"`
	ServiceAccount string              `json:"serviceAccount"`
	NodeSelector   map[string]string   `json:"nodeSelector"`
	Tolerations    []corev1.Toleration `json:"tolerations"`
	Labels         map[string]string   `json:"labels"`
	Annotations    map[string]string   `json:"annotations"`
	SuspendAction  *suspendAction      `json:"suspendAction"`
	Service        *struct {
		Type corev1.ServiceType `json:"type"`
		Port int32              `json:"port"`
	} `json:"service"`
}

// component is one component of one TidbCluster.
type component struct {
	name string
	*componentSpec
	image string
	ports []corev1.ContainerPort
}

// defaultPorts are those of the official images.
var defaultPorts = map[string][]corev1.ContainerPort{
	"pd":      {{Name: "client", ContainerPort: 2379}, {Name: "server", ContainerPort: 2380}},
	"tikv":    {{Name: "server", ContainerPort: 20160}, {Name: "status", ContainerPort: 20180}},
	"tiflash": {{Name: "tiflash", ContainerPort: 3930}, {Name: "proxy", ContainerPort: 20170}},
	"tidb":    {{Name: "server", ContainerPort: 4000}, {Name: "status", ContainerPort: 10080}},
}

// Orders of v1: which component is started and upgraded after which, and
// which is suspended after which.
var (
	startOrder   = []string{"pd", "tiflash", "tikv", "tidb"}
	suspendOrder = []string{"tidb", "tiflash", "tikv", "pd"}
	// needs says whose members must be healthy before a component is made.
	needs = map[string][]string{"tikv": {"pd"}, "tiflash": {"pd"}, "tidb": {"pd", "tikv"}}
)

// decode reads a TidbCluster.
func decode(o *unstructured.Unstructured) (*spec, map[string]*component, error) {
	raw, err := json.Marshal(o.Object["spec"])
	if err != nil {
		return nil, nil, fmt.Errorf("tidbcluster %s/%s: %w", o.GetNamespace(), o.GetName(), err)
	}
	var s spec
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, nil, fmt.Errorf("tidbcluster %s/%s: %w", o.GetNamespace(), o.GetName(), err)
	}
	if s.PVReclaimPolicy == "" {
		s.PVReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	}
	components := map[string]*component{}
	for name, c := range map[string]*componentSpec{"pd": s.PD, "tikv": s.TiKV, "tidb": s.TiDB, "tiflash": s.TiFlash} {
		if c == nil {
			continue
		}
		version := c.Version
		if version == "" {
			version = s.Version
		}
		base := c.BaseImage
		if base == "" {
			base = "pingcap/" + name
		}
		components[name] = &component{name: name, componentSpec: c, image: base + ":" + version, ports: defaultPorts[name]}
	}
	return &s, components, nil
}

// suspended reports whether a component is wanted without Pods.
func (s *spec) suspended(c *component) bool {
	action := s.SuspendAction
	if c.SuspendAction != nil {
		action = c.SuspendAction
	}
	return action != nil && action.SuspendStatefulSet
}
