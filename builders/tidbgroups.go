package builders

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidbcloud/infra-orchestrator/activities/configservice"
	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

const (
	// OperatorV1 and OperatorV2 are the values of ClusterPlan.Operator.
	OperatorV1 = "V1"
	OperatorV2 = "V2"

	coreAPIVersion = "core.pingcap.com/v1alpha1"
	brAPIVersion   = "br.pingcap.com/v1alpha1"
)

// The types below are the part that we write of TiDB Operator's v2 API
// (core.pingcap.com/v1alpha1, release 2.1); tests check them against its CRDs.
type clusterSpec struct {
	// UpgradePolicy Default upgrades PD, TiProxy, TiFlash, TiKV, TiDB in that
	// order.
	UpgradePolicy string         `json:"upgradePolicy"`
	SuspendAction *suspendAction `json:"suspendAction,omitempty"`
}

type suspendAction struct {
	SuspendCompute bool `json:"suspendCompute"`
}

type groupSpec struct {
	Cluster          nameRef          `json:"cluster"`
	Replicas         int32            `json:"replicas"`
	SchedulePolicies []schedulePolicy `json:"schedulePolicies,omitempty"`
	Template         groupTemplate    `json:"template"`
}

type nameRef struct {
	Name string `json:"name"`
}

type schedulePolicy struct {
	Type         string       `json:"type"`
	EvenlySpread evenlySpread `json:"evenlySpread"`
}

type evenlySpread struct {
	Topologies []spreadTopology `json:"topologies"`
}

type spreadTopology struct {
	Topology map[string]string `json:"topology"`
}

type groupTemplate struct {
	Metadata templateMetadata `json:"metadata"`
	Spec     instanceSpec     `json:"spec"`
}

type templateMetadata struct {
	Labels map[string]string `json:"labels,omitempty"`
}

type instanceSpec struct {
	Version   string                         `json:"version"`
	Image     string                         `json:"image"`
	Resources map[corev1.ResourceName]string `json:"resources"`
	Config    string                         `json:"config,omitempty"`
	Volumes   []instanceVolume               `json:"volumes,omitempty"`
	Overlay   *instanceOverlay               `json:"overlay,omitempty"`
}

type instanceVolume struct {
	Name             string          `json:"name"`
	Mounts           []instanceMount `json:"mounts"`
	Storage          string          `json:"storage"`
	StorageClassName string          `json:"storageClassName,omitempty"`
}

type instanceMount struct {
	Type string `json:"type"`
}

type instanceOverlay struct {
	Pod podOverlay `json:"pod"`
}

type podOverlay struct {
	Spec podOverlaySpec `json:"spec"`
}

type podOverlaySpec struct {
	NodeSelector       map[string]string   `json:"nodeSelector,omitempty"`
	Tolerations        []corev1.Toleration `json:"tolerations,omitempty"`
	ServiceAccountName string              `json:"serviceAccountName,omitempty"`
}

// groupKinds are the kinds of components' groups.
var groupKinds = map[string]string{"pd": "PDGroup", "tikv": "TiKVGroup", "tidb": "TiDBGroup", "tiflash": "TiFlashGroup"}

// Cluster is the database of a Cluster for TiDB Operator v2; Groups are its
// components. suspended stops all Pods and keeps all volumes.
func Cluster(plan contract.ClusterPlan, suspended bool) (*unstructured.Unstructured, error) {
	const longest = 37 // the operator's limit
	if len(plan.Name) > longest {
		return nil, invalid(plan.Ref.String(), "the name %q is longer than %d characters", plan.Name, longest)
	}
	spec := clusterSpec{UpgradePolicy: "Default"}
	if suspended {
		spec.SuspendAction = &suspendAction{SuspendCompute: true}
	}
	return object(plan, coreAPIVersion, "Cluster", plan.Name, map[string]any{"spec": spec})
}

// Groups are the components of a Cluster for TiDB Operator v2, in the order of
// the plan, each named after its component. Deleting them frees their volumes:
// this operator has no Retain.
func Groups(plan contract.ClusterPlan, config *configservice.ClusterConfig) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	var names []string
	for _, c := range plan.Components {
		u, err := group(plan, c, config)
		if err != nil {
			return nil, err
		}
		out, names = append(out, u), append(names, c.Name)
	}
	for _, needed := range []string{"pd", "tikv", "tidb"} {
		if !slices.Contains(names, needed) {
			return nil, invalid(plan.Ref.String(), "a cluster needs at least one replica of pd, tikv and tidb; %s is missing", needed)
		}
	}
	return out, nil
}

func group(plan contract.ClusterPlan, c contract.Component, config *configservice.ClusterConfig) (*unstructured.Unstructured, error) {
	kind, ok := groupKinds[c.Name]
	if !ok {
		return nil, invalid(plan.Ref.String(), "TiDB Operator v2 clusters have no component %q here", c.Name)
	}
	image := config.Image(c.Name)
	if image == "" {
		return nil, invalid(plan.Ref.String(), "the configuration's image of %s is missing", c.Name)
	}
	resources, err := requests(c)
	if err != nil {
		return nil, invalid(plan.Ref.String(), "%s: %s", c.Name, err)
	}
	delete(resources, corev1.ResourceStorage)
	spec := groupSpec{
		Cluster:          nameRef{plan.Name},
		Replicas:         c.Replicas,
		SchedulePolicies: spread(plan, c),
		Template: groupTemplate{
			Metadata: templateMetadata{Labels: map[string]string{v1.TagID: plan.Ref.ID}},
			Spec: instanceSpec{
				Version: plan.Version, Image: image, Resources: resources, Config: config.TOML(c.Name),
				Overlay: overlay(plan, c),
			},
		},
	}
	switch {
	case c.StorageSize != "":
		spec.Template.Spec.Volumes = []instanceVolume{{
			Name: "data", Mounts: []instanceMount{{Type: "data"}}, Storage: c.StorageSize, StorageClassName: c.StorageClass,
		}}
	case c.Name != "tidb":
		return nil, invalid(plan.Ref.String(), "%s needs a storage size", c.Name)
	}
	return object(plan, coreAPIVersion, kind, c.Name, map[string]any{"spec": spec})
}

// spread puts the replicas into the zones of the component's pools, evenly; of
// the Network, when the plan has no pools.
func spread(plan contract.ClusterPlan, c contract.Component) []schedulePolicy {
	var zones []string
	for _, p := range c.Pools {
		zones = append(zones, p.Zones...)
	}
	if len(zones) == 0 {
		zones = plan.Zones
	}
	var topologies []spreadTopology
	var seen []string
	for _, z := range zones {
		if !slices.Contains(seen, z) {
			seen = append(seen, z)
			topologies = append(topologies, spreadTopology{map[string]string{corev1.LabelTopologyZone: z}})
		}
	}
	if len(topologies) == 0 {
		return nil
	}
	return []schedulePolicy{{Type: "EvenlySpread", EvenlySpread: evenlySpread{topologies}}}
}

// overlay binds the Pods to the cluster's own nodes, and gives those that read
// and write backups the cluster's identity in the cloud.
func overlay(plan contract.ClusterPlan, c contract.Component) *instanceOverlay {
	spec := podOverlaySpec{}
	spec.NodeSelector, spec.Tolerations = placement(plan, c)
	if c.Name == "tikv" || c.Name == "tiflash" {
		spec.ServiceAccountName = contract.ServiceAccountDatabase
	}
	return &instanceOverlay{podOverlay{spec}}
}

// placement is what binds a component's Pods to its own nodes.
func placement(plan contract.ClusterPlan, c contract.Component) (map[string]string, []corev1.Toleration) {
	selector := map[string]string{contract.LabelPoolOwner: plan.Ref.ID}
	if len(c.Pools) == 0 || c.Pools[0].Dedicated == "" {
		return selector, nil
	}
	value := c.Pools[0].Dedicated
	selector[LabelDedicated] = value
	return selector, []corev1.Toleration{{
		Key: LabelDedicated, Operator: corev1.TolerationOpEqual, Value: value, Effect: corev1.TaintEffectNoSchedule,
	}}
}
