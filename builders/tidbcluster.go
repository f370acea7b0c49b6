package builders

import (
	"encoding/json"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tidbcloud/infra-orchestrator/activities/configservice"
	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

const pingcapAPIVersion = "pingcap.com/v1alpha1"

// Names of the objects in a cluster's namespace, beside the TidbCluster.
const (
	ServiceName      = "sql"           // of type LoadBalancer
	InitializerName  = "root-password" // TidbInitializer
	RootPasswordName = "root-password" // Secret, key KeyRoot
	KeyRoot          = "root"
)

// tidbPort is where TiDB listens inside its Pod; the plan's port is that of
// the Services.
const tidbPort = 4000

// The types below are the part that we write of TiDB Operator's v1 API
// (pingcap.com/v1alpha1). They are ours because the operator is not published
// as a module that can be required; tests check them against its CRDs.
type tidbClusterSpec struct {
	Version                    string           `json:"version"`
	Timezone                   string           `json:"timezone"`
	PVReclaimPolicy            string           `json:"pvReclaimPolicy"`
	ConfigUpdateStrategy       string           `json:"configUpdateStrategy"`
	EnableDynamicConfiguration bool             `json:"enableDynamicConfiguration"`
	ImagePullPolicy            string           `json:"imagePullPolicy"`
	Helper                     *helperSpec      `json:"helper,omitempty"`
	TopologySpreadConstraints  []topologySpread `json:"topologySpreadConstraints"`
	PD                         *componentSpec   `json:"pd,omitempty"`
	TiKV                       *componentSpec   `json:"tikv,omitempty"`
	TiDB                       *tidbSpec        `json:"tidb,omitempty"`
	TiFlash                    *tiflashSpec     `json:"tiflash,omitempty"`
}

type helperSpec struct {
	Image string `json:"image"`
}

type topologySpread struct {
	TopologyKey string `json:"topologyKey"`
	MaxSkew     int32  `json:"maxSkew"`
}

type componentSpec struct {
	BaseImage        string                         `json:"baseImage"`
	Version          string                         `json:"version,omitempty"`
	Replicas         int32                          `json:"replicas"`
	Requests         map[corev1.ResourceName]string `json:"requests"`
	StorageClassName string                         `json:"storageClassName,omitempty"`
	Config           any                            `json:"config"`
	ServiceAccount   string                         `json:"serviceAccount,omitempty"`
	NodeSelector     map[string]string              `json:"nodeSelector,omitempty"`
	Tolerations      []corev1.Toleration            `json:"tolerations,omitempty"`
	Labels           map[string]string              `json:"labels,omitempty"`
}

type tidbSpec struct {
	componentSpec `json:",inline"`
	Service       tidbService `json:"service"`
}

type tidbService struct {
	Type string `json:"type"`
	Port int32  `json:"port"`
}

type tiflashSpec struct {
	componentSpec `json:",inline"`
	StorageClaims []storageClaim `json:"storageClaims"`
}

type storageClaim struct {
	Resources        storageResources `json:"resources"`
	StorageClassName string           `json:"storageClassName,omitempty"`
}

type storageResources struct {
	Requests map[corev1.ResourceName]string `json:"requests"`
}

// TidbCluster is the database of a Cluster for TiDB Operator v1.
//
// Volumes are kept (Retain) when the TidbCluster or a claim goes: nobody loses
// data by deleting the wrong object. Our own deletion sets the volumes to
// Delete first, on purpose and step by step.
func TidbCluster(plan contract.ClusterPlan, config *configservice.ClusterConfig) (*unstructured.Unstructured, error) {
	spec := tidbClusterSpec{
		Version:                    plan.Version,
		Timezone:                   "UTC",
		PVReclaimPolicy:            string(corev1.PersistentVolumeReclaimRetain),
		ConfigUpdateStrategy:       "RollingUpdate",
		EnableDynamicConfiguration: true,
		ImagePullPolicy:            string(corev1.PullIfNotPresent),
		TopologySpreadConstraints:  []topologySpread{{TopologyKey: corev1.LabelTopologyZone, MaxSkew: 1}},
	}
	if config.Images.Helper != "" {
		spec.Helper = &helperSpec{Image: config.Images.Helper}
	}
	for _, c := range plan.Components {
		if err := spec.add(plan, c, config); err != nil {
			return nil, err
		}
	}
	if spec.PD == nil || spec.TiKV == nil || spec.TiDB == nil {
		return nil, invalid(plan.Ref.String(), "a cluster needs at least one replica of pd, tikv and tidb")
	}
	return object(plan, pingcapAPIVersion, "TidbCluster", plan.Name, map[string]any{"spec": spec})
}

func (s *tidbClusterSpec) add(plan contract.ClusterPlan, c contract.Component, config *configservice.ClusterConfig) error {
	base, err := component(plan, c, config)
	if err != nil {
		return err
	}
	switch c.Name {
	case "pd":
		s.PD = base
	case "tikv":
		base.ServiceAccount = contract.ServiceAccountDatabase
		s.TiKV = base
	case "tidb":
		s.TiDB = &tidbSpec{componentSpec: *base, Service: tidbService{Type: string(corev1.ServiceTypeClusterIP), Port: plan.Port}}
	case "tiflash":
		s.TiFlash = tiflash(base, c)
	default:
		return invalid(plan.Ref.String(), "TiDB Operator v1 clusters have no component %q here", c.Name)
	}
	return nil
}

// tiflash has its storage in claims, and a config of two files.
func tiflash(base *componentSpec, c contract.Component) *tiflashSpec {
	base.ServiceAccount = contract.ServiceAccountDatabase
	delete(base.Requests, corev1.ResourceStorage)
	base.StorageClassName = ""
	base.Config = map[string]any{"config": base.Config}
	return &tiflashSpec{componentSpec: *base, StorageClaims: []storageClaim{{
		Resources:        storageResources{Requests: map[corev1.ResourceName]string{corev1.ResourceStorage: c.StorageSize}},
		StorageClassName: c.StorageClass,
	}}}
}

func component(plan contract.ClusterPlan, c contract.Component, config *configservice.ClusterConfig) (*componentSpec, error) {
	repository, tag, err := splitImage(config.Image(c.Name))
	if err != nil {
		return nil, invalid(plan.Ref.String(), "the configuration's image of %s: %s", c.Name, err)
	}
	requests, err := requests(c)
	if err != nil {
		return nil, invalid(plan.Ref.String(), "%s: %s", c.Name, err)
	}
	s := &componentSpec{
		BaseImage:        repository,
		Version:          tag,
		Replicas:         c.Replicas,
		Requests:         requests,
		StorageClassName: c.StorageClass,
		Config:           config.TOML(c.Name),
		Labels:           map[string]string{v1.TagID: plan.Ref.ID},
	}
	s.NodeSelector, s.Tolerations = placement(plan, c)
	return s, nil
}

// requests asks for three quarters of the machine: what is left is for the
// kubelet and daemons, and a second Pod never fits on the node.
func requests(c contract.Component) (map[corev1.ResourceName]string, error) {
	memory, err := resource.ParseQuantity(c.Memory)
	if err != nil {
		return nil, err
	}
	memory.Set(memory.Value() / 4 * 3)
	out := map[corev1.ResourceName]string{
		corev1.ResourceCPU:    resource.NewMilliQuantity(int64(c.VCPU)*750, resource.DecimalSI).String(),
		corev1.ResourceMemory: memory.String(),
	}
	if c.StorageSize != "" {
		if _, err := resource.ParseQuantity(c.StorageSize); err != nil {
			return nil, err
		}
		out[corev1.ResourceStorage] = c.StorageSize
	}
	return out, nil
}

type imageError string

func (e imageError) Error() string { return string(e) }

// splitImage separates repository and tag; the operator joins them again. A
// colon before the last slash is a registry's port.
func splitImage(image string) (repository, tag string, err error) {
	if image == "" {
		return "", "", imageError("it is missing")
	}
	if strings.Contains(image, "@") {
		return "", "", imageError(strconv.Quote(image) + " has a digest; TiDB Operator v1 wants repository:tag")
	}
	if at := strings.LastIndex(image, ":"); at > strings.LastIndex(image, "/") {
		return image[:at], image[at+1:], nil
	}
	return image, "", nil
}

// WantedImage is the image that a component's Pods must run.
func WantedImage(plan contract.ClusterPlan, config *configservice.ClusterConfig, component string) string {
	repository, tag, err := splitImage(config.Image(component))
	if err != nil {
		return ""
	}
	if tag == "" {
		tag = plan.Version
	}
	return repository + ":" + tag
}

// object assembles a manifest in the cluster's namespace, with our tags. body
// holds the top-level fields beside the metadata, usually "spec".
func object(plan contract.ClusterPlan, apiVersion, kind, name string, body map[string]any) (*unstructured.Unstructured, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, invalid(plan.Ref.String(), "%s %s does not encode: %s", kind, name, err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{}}
	// This decoder makes integers int64, as unstructured objects want them.
	if err := utiljson.Unmarshal(raw, &u.Object); err != nil {
		return nil, invalid(plan.Ref.String(), "%s %s does not encode: %s", kind, name, err)
	}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetName(name)
	u.SetNamespace(plan.Namespace)
	u.SetLabels(OwnerLabels(plan.Ref))
	u.SetAnnotations(OwnerAnnotations(plan.Ref, plan.Env))
	return u, nil
}
