package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ProviderTypeSpec is what a cloud offers here: regions, machine and storage
// classes, limits and timeouts.
//
// +kubebuilder:validation:XValidation:rule="self.cloud != 'AWS' || self.storageClasses.all(s, s.type in ['gp2', 'gp3', 'io1', 'io2'])",fieldPath=".storageClasses",message="have types of AWS only when cloud is AWS: gp2, gp3, io1, io2"
// +kubebuilder:validation:XValidation:rule="self.cloud != 'GCP' || self.storageClasses.all(s, !(s.type in ['gp2', 'gp3', 'io1', 'io2']))",fieldPath=".storageClasses",message="have types of GCP only when cloud is GCP: pd-standard, pd-balanced, pd-ssd, hyperdisk-balanced"
type ProviderTypeSpec struct {
	// Cloud is the cloud provider. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another ProviderType for another cloud",messageExpression="'was ' + oldSelf + ' and is immutable; create another ProviderType for another cloud'"
	// +kubebuilder:validation:XValidation:rule="self != 'GCP'",message="set cloud to AWS: cloud GCP is not supported yet"
	Cloud Cloud `json:"cloud"`
	// Backend runs the Kubernetes clusters. Gardener is the only one. Immutable.
	// +kubebuilder:validation:Enum=Gardener
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another ProviderType for another backend",messageExpression="'was ' + oldSelf + ' and is immutable; create another ProviderType for another backend'"
	// +kubebuilder:default=Gardener
	// +optional
	Backend string `json:"backend,omitempty"`
	// Gardener says how Shoots are made.
	Gardener GardenerSettings `json:"gardener"`
	// Regions that Networks may be in.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Regions []Region `json:"regions"`
	// MachineClasses are the machine sizes that Clusters and Networks choose
	// from.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	MachineClasses []MachineClass `json:"machineClasses"`
	// StorageClasses are the kinds of volumes that Clusters choose from. The
	// first one without provisioned IOPS (not io1, io2) is also that of the
	// nodes' own disks.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	StorageClasses []StorageClass `json:"storageClasses"`
	// NetworkLimits bound the address ranges of Networks.
	// +kubebuilder:default={minPrefix: 16, maxPrefix: 23}
	// +optional
	NetworkLimits NetworkLimits `json:"networkLimits,omitempty"`
	// Timeouts of steps, and idle times.
	// +kubebuilder:default={}
	// +optional
	Timeouts Timeouts `json:"timeouts,omitempty"`
	// DeletionPolicy is part of every kind. A ProviderType owns nothing outside
	// of this API, so both values mean the same.
	// +kubebuilder:default=Delete
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// GardenerSettings say how Shoots are made.
type GardenerSettings struct {
	// CloudProfile that Shoots refer to.
	CloudProfile CloudProfileReference `json:"cloudProfile"`
	// NetworkingType is the network plugin of Shoots.
	// +kubebuilder:validation:Enum=calico;cilium
	// +kubebuilder:default=calico
	// +optional
	NetworkingType string `json:"networkingType,omitempty"`
	// KubernetesVersion of Networks that do not choose one.
	KubernetesVersion KubernetesVersion `json:"kubernetesVersion"`
	// SeedName pins Shoots to a Seed; Gardener chooses when it is empty.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$')`,message="must be the name of a Seed: lower-case letters, digits and dashes, with a letter or digit at both ends"
	// +optional
	SeedName string `json:"seedName,omitempty"`
	// CredentialsKind is the kind of object that binds credentials to Shoots.
	// +kubebuilder:validation:Enum=CredentialsBinding;SecretBinding
	// +kubebuilder:default=CredentialsBinding
	// +optional
	CredentialsKind string `json:"credentialsKind,omitempty"`
}

// CloudProfileReference names a cloud profile in the garden.
type CloudProfileReference struct {
	// Kind is CloudProfile, or NamespacedCloudProfile of the project.
	// +kubebuilder:validation:Enum=CloudProfile;NamespacedCloudProfile
	// +kubebuilder:default=CloudProfile
	// +optional
	Kind string `json:"kind,omitempty"`
	// Name of the profile.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')`,message="must be the name of a cloud profile: lower-case letters, digits, dashes and dots, with a letter or digit at both ends"
	Name string `json:"name"`
}

// Region is a region that Networks may be in.
type Region struct {
	// Name of the region in the cloud.
	Name RegionName `json:"name"`
	// Zones of the region, in the order in which Networks use them. Production
	// Networks need at least 3.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=6
	Zones []ZoneName `json:"zones"`
	// Deprecated refuses new Networks; existing ones go on.
	// +optional
	Deprecated bool `json:"deprecated,omitempty"`
}

// ComponentName is a component of a Cluster in the API's spelling.
// +kubebuilder:validation:Enum=TiDB;TiKV;PD;TiFlash;TiCDC
type ComponentName string

const (
	ComponentTiDB    ComponentName = "TiDB"
	ComponentTiKV    ComponentName = "TiKV"
	ComponentPD      ComponentName = "PD"
	ComponentTiFlash ComponentName = "TiFlash"
	ComponentTiCDC   ComponentName = "TiCDC"
)

// MachineClass is a machine size.
type MachineClass struct {
	// Name, such as 8C32G.
	Name ClassName `json:"name"`
	// VCPU is the number of virtual CPUs.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	VCPU int32 `json:"vcpu"`
	// Memory in whole Gi, such as 32Gi.
	Memory StorageSize `json:"memory"`
	// MachineType in the cloud, such as m5.2xlarge.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z0-9][-a-z0-9.]*$')`,message="must be a machine type of the cloud, such as m5.2xlarge"
	MachineType string `json:"machineType"`
	// Components that may run on it. A Network's system pool may use any class.
	// +listType=set
	// +kubebuilder:validation:MaxItems=5
	// +optional
	Components []ComponentName `json:"components,omitempty"`
}

// StorageClass is a kind of volume.
// +kubebuilder:validation:XValidation:rule="!isQuantity(self.minSize) || !isQuantity(self.maxSize) || quantity(self.minSize).compareTo(quantity(self.maxSize)) <= 0",fieldPath=".minSize",message="minSize must not be greater than maxSize",messageExpression="self.minSize + ' is greater than ' + self.maxSize + ': minSize must not be greater than maxSize'"
// +kubebuilder:validation:XValidation:rule="!(self.type in ['io1', 'io2']) || has(self.iops)",fieldPath=".iops",reason=FieldValueRequired,message="types io1 and io2 need iops"
// +kubebuilder:validation:XValidation:rule="self.type in ['gp3', 'hyperdisk-balanced'] || !has(self.throughput)",fieldPath=".throughput",reason=FieldValueForbidden,message="only types gp3 and hyperdisk-balanced have a throughput; remove it"
// +kubebuilder:validation:XValidation:rule="!self.type.startsWith('pd-') || !has(self.iops)",fieldPath=".iops",reason=FieldValueForbidden,message="volumes of types pd-standard, pd-balanced and pd-ssd have no iops of their own, they grow with the size; remove it"
type StorageClass struct {
	// Name, such as Standard.
	Name ClassName `json:"name"`
	// Type of volume in the cloud: gp2, gp3, io1, io2 on AWS; pd-standard,
	// pd-balanced, pd-ssd, hyperdisk-balanced on GCP.
	// +kubebuilder:validation:Enum=gp2;gp3;io1;io2;pd-standard;pd-balanced;pd-ssd;hyperdisk-balanced
	Type string `json:"type"`
	// IOPS of a volume; the cloud's default when absent.
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=256000
	// +optional
	IOPS int32 `json:"iops,omitempty"`
	// Throughput of a volume in MiB/s; the cloud's default when absent.
	// +kubebuilder:validation:Minimum=125
	// +kubebuilder:validation:Maximum=2000
	// +optional
	Throughput int32 `json:"throughput,omitempty"`
	// MinSize of volumes of TiKV and TiFlash. PD's may be smaller.
	// +kubebuilder:default="10Gi"
	// +optional
	MinSize StorageSize `json:"minSize,omitempty"`
	// MaxSize of any volume.
	// +kubebuilder:default="16Ti"
	// +optional
	MaxSize StorageSize `json:"maxSize,omitempty"`
	// ResizeCooldown is the shortest time between two changes of a volume.
	// +kubebuilder:default="6h"
	// +optional
	ResizeCooldown Duration `json:"resizeCooldown,omitempty"`
}

// NetworkLimits bound the address ranges of Networks.
// +kubebuilder:validation:XValidation:rule="self.minPrefix <= self.maxPrefix",fieldPath=".minPrefix",message="minPrefix must not be greater than maxPrefix",messageExpression="'%d is greater than %d: minPrefix must not be greater than maxPrefix'.format([self.minPrefix, self.maxPrefix])"
type NetworkLimits struct {
	// VPCCIDRs are the ranges that a VPC's range must lie in.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:default={"10.250.0.0/15","172.16.0.0/12","192.168.0.0/16"}
	// +optional
	VPCCIDRs []CIDR `json:"vpcCIDRs,omitempty"`
	// MinPrefix is the prefix length of the largest VPC.
	// +kubebuilder:validation:Minimum=8
	// +kubebuilder:validation:Maximum=28
	// +kubebuilder:default=16
	// +optional
	MinPrefix int32 `json:"minPrefix,omitempty"`
	// MaxPrefix is the prefix length of the smallest VPC.
	// +kubebuilder:validation:Minimum=8
	// +kubebuilder:validation:Maximum=28
	// +kubebuilder:default=23
	// +optional
	MaxPrefix int32 `json:"maxPrefix,omitempty"`
}

// Timeouts of steps: when one is overdue, the operation says so and goes on
// waiting. And idle times.
type Timeouts struct {
	// ShootCreate is the time for a Shoot to become ready.
	// +kubebuilder:default="60m"
	// +optional
	ShootCreate Duration `json:"shootCreate,omitempty"`
	// ShootDelete is the time for a Shoot to be gone.
	// +kubebuilder:default="90m"
	// +optional
	ShootDelete Duration `json:"shootDelete,omitempty"`
	// Wake is the time for a hibernated Shoot to become ready.
	// +kubebuilder:default="30m"
	// +optional
	Wake Duration `json:"wake,omitempty"`
	// ClusterCreate is the time for a database to become ready.
	// +kubebuilder:default="60m"
	// +optional
	ClusterCreate Duration `json:"clusterCreate,omitempty"`
	// PeerAccept is the time for the other side to accept a peering.
	// +kubebuilder:default="168h"
	// +optional
	PeerAccept Duration `json:"peerAccept,omitempty"`
	// PausedMax is the longest time that a Cluster may be paused.
	// +kubebuilder:default="168h"
	// +optional
	PausedMax Duration `json:"pausedMax,omitempty"`
	// HibernateIdle is the idle time after which Networks hibernate.
	// +kubebuilder:default="2h"
	// +optional
	HibernateIdle Duration `json:"hibernateIdle,omitempty"`
}

// ProviderTypeStatus is what is observed of a ProviderType. Conditions: Ready,
// InUse.
type ProviderTypeStatus struct {
	CommonStatus `json:",inline"`
	// Providers is the number of Providers of this type.
	// +optional
	Providers int32 `json:"providers,omitempty"`
}

// ProviderType is what a cloud offers here.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ptype,categories=infra
// +kubebuilder:selectablefield:JSONPath=`.spec.cloud`
// +kubebuilder:printcolumn:name="CLOUD",type=string,JSONPath=`.spec.cloud`
// +kubebuilder:printcolumn:name="BACKEND",type=string,JSONPath=`.spec.backend`
// +kubebuilder:printcolumn:name="PROVIDERS",type=integer,JSONPath=`.status.providers`
// +kubebuilder:printcolumn:name="PHASE",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="REASON",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="STEP",type=string,JSONPath=`.status.operation.step`,priority=1
// +kubebuilder:printcolumn:name="WAITING",type=string,JSONPath=`.status.operation.waitingFor`,priority=1
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",fieldPath=".metadata",message="metadata.name must have at most 63 characters: it becomes the value of labels",messageExpression="self.metadata.name + ': metadata.name must have at most 63 characters: it becomes the value of labels'"
type ProviderType struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ProviderTypeSpec   `json:"spec"`
	Status ProviderTypeStatus `json:"status,omitempty"`
}

// Common returns the common part of the ProviderType's status.
func (p *ProviderType) Common() *CommonStatus { return &p.Status.CommonStatus }

// GetDeletionPolicy returns spec.deletionPolicy, or its default.
func (p *ProviderType) GetDeletionPolicy() DeletionPolicy { return p.Spec.DeletionPolicy.orDefault() }

// ProviderTypeList is a list of ProviderTypes.
// +kubebuilder:object:root=true
type ProviderTypeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProviderType `json:"items"`
}
