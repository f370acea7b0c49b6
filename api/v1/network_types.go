package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NetworkSpec is a region's container of Clusters: a VPC with a Shoot in it.
// Optional fields that are immutable can be neither added nor removed later, as
// their default is in use already.
//
// +kubebuilder:validation:XValidation:rule="has(self.account) == has(oldSelf.account) && (!has(self.account) || self.account == oldSelf.account)",fieldPath=".account",message="is immutable, also when it was not given at first: it is that of the Provider",messageExpression="'was ' + (has(oldSelf.account) ? oldSelf.account : 'not given') + ' and is immutable, also when it was not given at first: it is that of the Provider'"
// +kubebuilder:validation:XValidation:rule="has(self.tenantProject) == has(oldSelf.tenantProject) && (!has(self.tenantProject) || self.tenantProject == oldSelf.tenantProject)",fieldPath=".tenantProject",message="is immutable, also when it was not given at first; create another Network for another project",messageExpression="'was ' + (has(oldSelf.tenantProject) ? oldSelf.tenantProject : 'not given') + ' and is immutable, also when it was not given at first; create another Network for another project'"
// +kubebuilder:validation:XValidation:rule="has(self.shootName) == has(oldSelf.shootName) && (!has(self.shootName) || self.shootName == oldSelf.shootName)",fieldPath=".shootName",message="is immutable, also when it was not given at first: Gardener cannot rename a Shoot; create another Network",messageExpression="'was ' + (has(oldSelf.shootName) ? oldSelf.shootName : 'not given') + ' and is immutable, also when it was not given at first: Gardener cannot rename a Shoot; create another Network'"
// +kubebuilder:validation:XValidation:rule="has(self.zones) == has(oldSelf.zones) && (!has(self.zones) || self.zones == oldSelf.zones)",fieldPath=".zones",reason=FieldValueForbidden,message="keep zones as they were: adding zones to a Network is not supported yet"
// +kubebuilder:validation:XValidation:rule="has(self.kubernetesVersion) == has(oldSelf.kubernetesVersion) && (!has(self.kubernetesVersion) || self.kubernetesVersion == oldSelf.kubernetesVersion)",fieldPath=".kubernetesVersion",reason=FieldValueForbidden,message="keep kubernetesVersion as it was: changing the version of a Network is not supported yet"
// +kubebuilder:validation:XValidation:rule="self.purpose == oldSelf.purpose",fieldPath=".purpose",reason=FieldValueForbidden,message="keep purpose as it was: changing the purpose of a Network is not supported yet"
// +kubebuilder:validation:XValidation:rule="self.maintenanceWindow == oldSelf.maintenanceWindow",fieldPath=".maintenanceWindow",reason=FieldValueForbidden,message="keep maintenanceWindow as it was: changing the window of a Network is not supported yet"
// +kubebuilder:validation:XValidation:rule="self.systemPool == oldSelf.systemPool",fieldPath=".systemPool",reason=FieldValueForbidden,message="keep systemPool as it was: changing the system pool of a Network is not supported yet"
// +kubebuilder:validation:XValidation:rule="!has(self.existingVPC)",fieldPath=".existingVPC",reason=FieldValueForbidden,message="remove existingVPC, so that the Network gets a VPC of its own: an existing VPC is not supported yet"
// +kubebuilder:validation:XValidation:rule="!has(self.gcp)",fieldPath=".gcp",reason=FieldValueForbidden,message="remove gcp: cloud GCP is not supported yet"
// +kubebuilder:validation:XValidation:rule="has(self.existingVPC) == has(oldSelf.existingVPC) && (!has(self.existingVPC) || self.existingVPC == oldSelf.existingVPC)",fieldPath=".existingVPC",message="is immutable, also when it was not given at first; create another Network in that VPC"
// +kubebuilder:validation:XValidation:rule="has(self.gcp) == has(oldSelf.gcp) && (!has(self.gcp) || self.gcp == oldSelf.gcp)",fieldPath=".gcp",message="is immutable, also when it was not given at first; create another Network"
type NetworkSpec struct {
	// Provider is the name of the Provider. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another Network in another Provider",messageExpression="'was ' + oldSelf + ' and is immutable; create another Network in another Provider'"
	Provider ReferenceName `json:"provider"`
	// Account is the Provider's Account, and must be it when given. Immutable.
	// +optional
	Account ReferenceName `json:"account,omitempty"`
	// TenantProject is the tenant's project in TiDB Cloud. Immutable.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[A-Za-z0-9-]+$')`,message="must be letters, digits and dashes, such as 1234"
	// +optional
	TenantProject string `json:"tenantProject,omitempty"`
	// Region is one of the ProviderType's regions. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another Network in another region",messageExpression="'was ' + oldSelf + ' and is immutable; create another Network in another region'"
	Region RegionName `json:"region"`
	// Zones of the region, in order of use; all of the region by default. Zones
	// can be appended, never removed.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=6
	// +kubebuilder:validation:XValidation:rule="oldSelf.all(z, z in self)",message="zones can be appended, never removed",messageExpression="'were %s: zones can be appended, never removed'.format([oldSelf])"
	// +optional
	Zones []ZoneName `json:"zones,omitempty"`
	// ShootName is the name of the Shoot; with the project's name it has at
	// most 21 characters. Default: n- and 7 hexadecimal digits of the SHA-256
	// of namespace/name. Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[a-z]([-a-z0-9]*[a-z0-9])?$')`,message="must be lower-case letters, digits and dashes, beginning with a letter and not ending with a dash"
	// +optional
	ShootName string `json:"shootName,omitempty"`
	// CIDR are the address ranges of the VPC, of Pods and of Services, which must
	// not overlap. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another Network with other ranges",messageExpression="'was vpc ' + oldSelf.vpc + ', pods ' + oldSelf.pods + ', services ' + oldSelf.services + ' and is immutable; create another Network with other ranges'"
	// +kubebuilder:default={vpc: "10.250.0.0/16", pods: "100.64.0.0/11", services: "100.104.0.0/13"}
	// +optional
	CIDR NetworkCIDR `json:"cidr,omitempty"`
	// ExistingVPC puts the Network into a VPC that exists already.
	// +optional
	ExistingVPC *ExistingVPC `json:"existingVPC,omitempty"`
	// KubernetesVersion of the Shoot; the ProviderType's by default. It can be
	// raised by one minor version at a time, never lowered.
	// +kubebuilder:validation:XValidation:rule="!self.matches('^1[.][0-9]+') || int(self.split('.')[1]) >= int(oldSelf.split('.')[1])",message="can be raised, never lowered",messageExpression="'is lower than ' + oldSelf + ': can be raised, never lowered'"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^1[.][0-9]+') || int(self.split('.')[1]) <= int(oldSelf.split('.')[1]) + 1",message="can be raised by one minor version at a time",messageExpression="'is more than one above ' + oldSelf + ': can be raised by one minor version at a time'"
	// +optional
	KubernetesVersion KubernetesVersion `json:"kubernetesVersion,omitempty"`
	// Purpose of the Shoot. Production needs at least 3 zones.
	// +kubebuilder:validation:Enum=evaluation;testing;development;production
	// +kubebuilder:default=production
	// +optional
	Purpose string `json:"purpose,omitempty"`
	// MaintenanceWindow is when Gardener may maintain the Shoot.
	// +kubebuilder:default={begin: "220000+0000", end: "230000+0000"}
	// +optional
	MaintenanceWindow MaintenanceWindow `json:"maintenanceWindow,omitempty"`
	// SystemPool is the worker pool of everything that is not a Cluster.
	// +kubebuilder:default={machineClass: "4C16G", minimum: 2, maximum: 3}
	// +optional
	SystemPool SystemPool `json:"systemPool,omitempty"`
	// Hibernation says when the Network sleeps.
	// +optional
	Hibernation *HibernationPolicy `json:"hibernation,omitempty"`
	// DNS of the Network's Clusters. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another Network with another visibility",messageExpression="'was ' + oldSelf.visibility + ' and is immutable; create another Network with another visibility'"
	// +kubebuilder:default={visibility: Private}
	// +optional
	DNS NetworkDNS `json:"dns,omitempty"`
	// GCP holds what only Networks on GCP have.
	// +optional
	GCP *GCPNetwork `json:"gcp,omitempty"`
	// Bucket holds backups and imports.
	// +kubebuilder:default={retain: true}
	// +optional
	Bucket NetworkBucket `json:"bucket,omitempty"`
	// O11y is the observability agent. It is effective only when the
	// controllers run with --enable-o11y-agent.
	// +kubebuilder:default={enabled: true}
	// +optional
	O11y NetworkO11y `json:"o11y,omitempty"`
	// DeletionPolicy says what happens to external resources on deletion.
	// +kubebuilder:default=Delete
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// NetworkCIDR are the address ranges of a Network. They must not overlap.
// +kubebuilder:validation:XValidation:rule="!isCIDR(self.vpc) || !isCIDR(self.pods) || !(cidr(self.vpc).containsCIDR(cidr(self.pods)) || cidr(self.pods).containsCIDR(cidr(self.vpc)))",message="vpc and pods must not overlap",messageExpression="self.vpc + ' and ' + self.pods + ': vpc and pods must not overlap'"
// +kubebuilder:validation:XValidation:rule="!isCIDR(self.vpc) || !isCIDR(self.services) || !(cidr(self.vpc).containsCIDR(cidr(self.services)) || cidr(self.services).containsCIDR(cidr(self.vpc)))",message="vpc and services must not overlap",messageExpression="self.vpc + ' and ' + self.services + ': vpc and services must not overlap'"
// +kubebuilder:validation:XValidation:rule="!isCIDR(self.pods) || !isCIDR(self.services) || !(cidr(self.pods).containsCIDR(cidr(self.services)) || cidr(self.services).containsCIDR(cidr(self.pods)))",message="pods and services must not overlap",messageExpression="self.pods + ' and ' + self.services + ': pods and services must not overlap'"
type NetworkCIDR struct {
	// VPC is the range of the VPC, within the ProviderType's networkLimits;
	// 10.250.0.0/16 by default. Peers cannot have a range that overlaps it.
	// +kubebuilder:default="10.250.0.0/16"
	// +optional
	VPC CIDR `json:"vpc,omitempty"`
	// Pods is the range of Pods; 100.64.0.0/11 by default. It sets how many nodes
	// there can be.
	// +kubebuilder:default="100.64.0.0/11"
	// +optional
	Pods CIDR `json:"pods,omitempty"`
	// Services is the range of Services; 100.104.0.0/13 by default.
	// +kubebuilder:default="100.104.0.0/13"
	// +optional
	Services CIDR `json:"services,omitempty"`
}

// ExistingVPC names a VPC that exists already.
// +kubebuilder:validation:XValidation:rule="has(self.id) != has(self.name)",message="exactly one of id and name must be set: id of a VPC on AWS, name of a network on GCP"
type ExistingVPC struct {
	// ID of the VPC (AWS).
	// +kubebuilder:validation:MaxLength=63
	// +optional
	ID string `json:"id,omitempty"`
	// Name of the network (GCP).
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Name string `json:"name,omitempty"`
	// Subnets to use; none means that Gardener makes them.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=18
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	Subnets []string `json:"subnets,omitempty"`
}

// MaintenanceWindow is a daily time window of 30 minutes to 6 hours.
type MaintenanceWindow struct {
	// Begin as HHMMSS+ZONE, such as 220000+0000.
	// +kubebuilder:validation:MaxLength=11
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^([01][0-9]|2[0-3])[0-5][0-9][0-5][0-9][+-]([01][0-9]|2[0-3])[0-5][0-9]$')`,message="must be a time as HHMMSS+ZONE, such as 220000+0000"
	// +kubebuilder:default="220000+0000"
	// +optional
	Begin string `json:"begin,omitempty"`
	// End as HHMMSS+ZONE, such as 230000+0000.
	// +kubebuilder:validation:MaxLength=11
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^([01][0-9]|2[0-3])[0-5][0-9][0-5][0-9][+-]([01][0-9]|2[0-3])[0-5][0-9]$')`,message="must be a time as HHMMSS+ZONE, such as 230000+0000"
	// +kubebuilder:default="230000+0000"
	// +optional
	End string `json:"end,omitempty"`
}

// SystemPool is the worker pool of everything that is not a Cluster.
// +kubebuilder:validation:XValidation:rule="self.minimum <= self.maximum",fieldPath=".minimum",message="minimum must not be greater than maximum",messageExpression="'%d is greater than %d: minimum must not be greater than maximum'.format([self.minimum, self.maximum])"
type SystemPool struct {
	// MachineClass of the nodes.
	// +kubebuilder:default="4C16G"
	// +optional
	MachineClass ClassName `json:"machineClass,omitempty"`
	// Minimum number of nodes, over all zones.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=30
	// +kubebuilder:default=2
	// +optional
	Minimum int32 `json:"minimum,omitempty"`
	// Maximum number of nodes, over all zones.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=30
	// +kubebuilder:default=3
	// +optional
	Maximum int32 `json:"maximum,omitempty"`
}

// HibernationMode says when a Network sleeps.
// +kubebuilder:validation:Enum=Auto;Never;Always
type HibernationMode string

const (
	// HibernationAuto sleeps when nothing has run for idleAfter.
	HibernationAuto HibernationMode = "Auto"
	// HibernationNever never sleeps.
	HibernationNever HibernationMode = "Never"
	// HibernationAlways sleeps at once; no Cluster may run.
	HibernationAlways HibernationMode = "Always"
)

// HibernationPolicy says when a Network sleeps.
// +kubebuilder:validation:XValidation:rule="!has(self.idleAfter)",fieldPath=".idleAfter",reason=FieldValueForbidden,message="remove idleAfter: hibernation is not supported yet"
type HibernationPolicy struct {
	// Mode: Auto, Never or Always.
	// +kubebuilder:validation:XValidation:rule="self == 'Never'",message="set mode to Never or remove hibernation: modes Auto and Always are not supported yet"
	Mode HibernationMode `json:"mode"`
	// IdleAfter is the idle time before mode Auto hibernates.
	// +optional
	IdleAfter Duration `json:"idleAfter,omitempty"`
}

// DNSVisibility says who can resolve the names of Clusters.
// +kubebuilder:validation:Enum=Private;Public;None
type DNSVisibility string

const (
	DNSPrivate DNSVisibility = "Private" // only the VPC, and those it is shared with
	DNSPublic  DNSVisibility = "Public"  // the Internet
	DNSNone    DNSVisibility = "None"    // there is no zone; Clusters have the names of load balancers only
)

// NetworkDNS says who can resolve the names of Clusters.
type NetworkDNS struct {
	// Visibility of the Network's zone. A Public zone must be delegated by hand
	// in the parent zone, to status.dnsZone.nameServers.
	// +kubebuilder:default=Private
	// +optional
	Visibility DNSVisibility `json:"visibility,omitempty"`
}

// GCPNetwork holds what only Networks on GCP have.
type GCPNetwork struct {
	// PSCNATCIDR is the range of Private Service Connect; its prefix length,
	// 16 to 20, sets how many connections there can be. Immutable.
	// +kubebuilder:validation:XValidation:rule="!isCIDR(self) || (cidr(self).prefixLength() >= 16 && cidr(self).prefixLength() <= 20)",message="must have a prefix length of 16 to 20"
	// +optional
	PSCNATCIDR CIDR `json:"pscNATCIDR,omitempty"`
}

// NetworkBucket is the bucket of backups and imports.
type NetworkBucket struct {
	// Retain keeps the bucket when it holds objects as the Network is deleted.
	// +kubebuilder:default=true
	// +optional
	Retain *bool `json:"retain,omitempty"`
}

// NetworkO11y is the observability agent.
type NetworkO11y struct {
	// Enabled wants the agent.
	// +kubebuilder:default=true
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
}

// Network is a region's container of Clusters: a VPC with a Shoot in it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=net,categories=infra
// +kubebuilder:selectablefield:JSONPath=`.spec.provider`
// +kubebuilder:selectablefield:JSONPath=`.spec.region`
// +kubebuilder:printcolumn:name="PROVIDER",type=string,JSONPath=`.spec.provider`
// +kubebuilder:printcolumn:name="REGION",type=string,JSONPath=`.spec.region`
// +kubebuilder:printcolumn:name="PHASE",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="REASON",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="STEP",type=string,JSONPath=`.status.operation.step`
// +kubebuilder:printcolumn:name="WAITING",type=string,JSONPath=`.status.operation.waitingFor`,priority=1
// +kubebuilder:printcolumn:name="SHOOT",type=string,JSONPath=`.status.shoot.name`
// +kubebuilder:printcolumn:name="AWAKE",type=string,JSONPath=`.status.conditions[?(@.type=="Awake")].status`
// +kubebuilder:printcolumn:name="CLUSTERS",type=integer,JSONPath=`.status.clusters.total`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",fieldPath=".metadata",message="metadata.name must have at most 63 characters: it becomes the value of labels",messageExpression="self.metadata.name + ': metadata.name must have at most 63 characters: it becomes the value of labels'"
type Network struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   NetworkSpec   `json:"spec"`
	Status NetworkStatus `json:"status,omitempty"`
}

// Common returns the common part of the Network's status.
func (n *Network) Common() *CommonStatus { return &n.Status.CommonStatus }

// GetDeletionPolicy returns spec.deletionPolicy, or its default.
func (n *Network) GetDeletionPolicy() DeletionPolicy { return n.Spec.DeletionPolicy.orDefault() }

// NetworkList is a list of Networks.
// +kubebuilder:object:root=true
type NetworkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Network `json:"items"`
}
