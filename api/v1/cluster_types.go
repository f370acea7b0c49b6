package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterSpec is a TiDB database in a Network.
//
// +kubebuilder:validation:XValidation:rule="self.bootstrap.mode != 'Empty' || has(self.rootPasswordSecretRef)",fieldPath=".rootPasswordSecretRef",reason=FieldValueRequired,message="rootPasswordSecretRef is required: an empty Cluster starts with the root password of that Secret"
// +kubebuilder:validation:XValidation:rule="!(self.paused != oldSelf.paused && self.topology != oldSelf.topology)",message="paused and topology must not change in one update; change one, wait for Ready, then the other"
// +kubebuilder:validation:XValidation:rule="!(oldSelf.paused && self.paused) || (self.topology == oldSelf.topology && self.version == oldSelf.version && self.endpoints == oldSelf.endpoints)",message="topology, version and endpoints are frozen while the Cluster is paused; set paused to false first"
// +kubebuilder:validation:XValidation:rule="self.topology == oldSelf.topology",fieldPath=".topology",reason=FieldValueForbidden,message="keep topology as it was: scaling a Cluster is not supported yet"
// +kubebuilder:validation:XValidation:rule="self.version == oldSelf.version",fieldPath=".version",reason=FieldValueForbidden,message="keep version as it was: upgrading a Cluster is not supported yet"
// +kubebuilder:validation:XValidation:rule="self.backupPolicy == oldSelf.backupPolicy",fieldPath=".backupPolicy",reason=FieldValueForbidden,message="keep backupPolicy as it was: changing the backup policy of a Cluster is not supported yet"
// +kubebuilder:validation:XValidation:rule="has(self.rootPasswordSecretRef) == has(oldSelf.rootPasswordSecretRef) && (!has(self.rootPasswordSecretRef) || self.rootPasswordSecretRef.name == oldSelf.rootPasswordSecretRef.name)",fieldPath=".rootPasswordSecretRef",reason=FieldValueForbidden,message="keep rootPasswordSecretRef as it was: rotating the root password is not supported yet"
// +kubebuilder:validation:XValidation:rule="!has(self.pausePolicy)",fieldPath=".pausePolicy",reason=FieldValueForbidden,message="remove pausePolicy: pausing is not supported yet"
type ClusterSpec struct {
	// Network is the name of the Network. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another Cluster in another Network",messageExpression="'was ' + oldSelf + ' and is immutable; create another Cluster in another Network'"
	Network ReferenceName `json:"network"`
	// DisplayName is the Cluster's name for people, 4 to 64 characters.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[A-Za-z0-9][-A-Za-z0-9]{2,62}[A-Za-z0-9]$')`,message="must be 4 to 64 letters, digits and dashes, with a letter or digit at both ends"
	// +optional
	DisplayName string `json:"displayName,omitempty"`
	// Version of TiDB, such as v8.5.2. It can be raised, never lowered.
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^v[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}$')`,message="must be a version of TiDB, such as v8.5.2"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^v[0-9]+[.][0-9]+[.][0-9]+$') || self == oldSelf || (int(self.substring(1).split('.')[0]) * 1000000 + int(self.substring(1).split('.')[1]) * 1000 + int(self.substring(1).split('.')[2])) > (int(oldSelf.substring(1).split('.')[0]) * 1000000 + int(oldSelf.substring(1).split('.')[1]) * 1000 + int(oldSelf.substring(1).split('.')[2]))",message="can be raised, never lowered: TiDB cannot be downgraded",messageExpression="'is lower than ' + oldSelf + ': can be raised, never lowered: TiDB cannot be downgraded'"
	Version string `json:"version"`
	// Operator is the generation of TiDB Operator. Immutable.
	// +kubebuilder:validation:Enum=V1;V2
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another Cluster with another operator",messageExpression="'was ' + oldSelf + ' and is immutable; create another Cluster with another operator'"
	// +kubebuilder:validation:XValidation:rule="self != 'V2'",message="set operator to V1: operator V2 is not supported yet"
	// +kubebuilder:default=V1
	// +optional
	Operator string `json:"operator,omitempty"`
	// Topology is the number and the size of the nodes.
	Topology Topology `json:"topology"`
	// Port of the database. Immutable.
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=65535
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another Cluster with another port",messageExpression="'was %d and is immutable; create another Cluster with another port'.format([oldSelf])"
	// +kubebuilder:validation:XValidation:rule="self != 10080",message="must not be 10080, where TiDB serves its status; 4000 is usual"
	// +kubebuilder:default=4000
	// +optional
	Port int32 `json:"port,omitempty"`
	// RootPasswordSecretRef names a Secret whose key "password" holds the
	// database root user's password, 8 to 64 characters. It is used when the
	// Cluster is bootstrapped.
	// +optional
	RootPasswordSecretRef *SecretReference `json:"rootPasswordSecretRef,omitempty"`
	// Paused stops the database and keeps its data.
	// +kubebuilder:validation:XValidation:rule="!self",message="set paused to false: pausing is not supported yet"
	// +kubebuilder:default=false
	// +optional
	Paused bool `json:"paused,omitempty"`
	// PausePolicy says how long a pause may last.
	// +optional
	PausePolicy *PausePolicy `json:"pausePolicy,omitempty"`
	// Bootstrap says how the database gets its first data. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another Cluster",messageExpression="'was mode ' + oldSelf.mode + ' and is immutable; create another Cluster'"
	// +kubebuilder:default={mode: Empty}
	// +optional
	Bootstrap Bootstrap `json:"bootstrap,omitempty"`
	// Encryption of the volumes at rest. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another Cluster with another encryption",messageExpression="'was mode ' + oldSelf.mode + ' and is immutable; create another Cluster with another encryption'"
	// +kubebuilder:default={mode: ServiceManaged}
	// +optional
	Encryption Encryption `json:"encryption,omitempty"`
	// Endpoints are the ways into the database.
	// +kubebuilder:default={public: {enabled: false}, private: {enabled: true}}
	// +optional
	Endpoints Endpoints `json:"endpoints,omitempty"`
	// BackupPolicy says when the database is backed up by itself.
	// +kubebuilder:default={schedule: Daily, timeUTC: "02:00", retentionDays: 7, pitr: false}
	// +optional
	BackupPolicy BackupPolicy `json:"backupPolicy,omitempty"`
	// RetainBackups keeps backups when the Cluster is deleted.
	// +kubebuilder:default=true
	// +optional
	RetainBackups *bool `json:"retainBackups,omitempty"`
	// ChangeWindow says when changes are made.
	// +kubebuilder:validation:Enum=Immediate;MaintenanceWindow
	// +kubebuilder:validation:XValidation:rule="self != 'MaintenanceWindow'",message="set changeWindow to Immediate: waiting for the maintenance window is not supported yet"
	// +kubebuilder:default=Immediate
	// +optional
	ChangeWindow string `json:"changeWindow,omitempty"`
	// DeletionPolicy says what happens to external resources on deletion.
	// +kubebuilder:default=Delete
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// Topology is the number and the size of a Cluster's nodes. Each node runs on
// a machine of its own; they are spread over the Network's first three zones.
type Topology struct {
	// PD stores the cluster's metadata.
	PD PDTopology `json:"pd"`
	// TiDB answers SQL.
	TiDB TiDBTopology `json:"tidb"`
	// TiKV stores rows.
	TiKV TiKVTopology `json:"tikv"`
	// TiFlash stores columns. Not possible with TiDB or TiKV of 4 vCPU.
	// +optional
	TiFlash *TiFlashTopology `json:"tiflash,omitempty"`
}

// PDTopology is the number and the size of PD's nodes.
type PDTopology struct {
	// Replicas is 1, 3 or 5.
	// +kubebuilder:validation:XValidation:rule="self in [1, 3, 5]",message="must be 1, 3 or 5, so that a majority is clear"
	Replicas int32 `json:"replicas"`
	// MachineClass of the ProviderType.
	MachineClass ClassName `json:"machineClass"`
	// Storage of each node.
	// +kubebuilder:default={size: "20Gi", class: "Standard"}
	// +optional
	Storage Storage `json:"storage,omitempty"`
}

// TiDBTopology is the number and the size of TiDB's nodes.
type TiDBTopology struct {
	// Replicas is at least 1.
	// +kubebuilder:validation:Minimum=1
	Replicas int32 `json:"replicas"`
	// MachineClass of the ProviderType. One of 4 vCPU goes with TiKV of 4 vCPU.
	MachineClass ClassName `json:"machineClass"`
}

// TiKVTopology is the number and the size of TiKV's nodes.
type TiKVTopology struct {
	// Replicas is a multiple of 3.
	// +kubebuilder:validation:Minimum=3
	// +kubebuilder:validation:XValidation:rule="self % 3 == 0",message="must be a multiple of 3: one node in each of three zones"
	Replicas int32 `json:"replicas"`
	// MachineClass of the ProviderType.
	MachineClass ClassName `json:"machineClass"`
	// Storage of each node. It can grow, never shrink.
	Storage Storage `json:"storage"`
}

// TiFlashTopology is the number and the size of TiFlash's nodes.
type TiFlashTopology struct {
	// Replicas; 0 is none.
	// +kubebuilder:validation:Minimum=0
	Replicas int32 `json:"replicas"`
	// MachineClass of the ProviderType.
	MachineClass ClassName `json:"machineClass"`
	// Storage of each node. It can grow, never shrink.
	Storage Storage `json:"storage"`
}

// Storage is the volume of a node.
// +kubebuilder:validation:XValidation:rule="!isQuantity(self.size) || quantity(self.size).compareTo(quantity(oldSelf.size)) >= 0",fieldPath=".size",message="size can grow, never shrink",messageExpression="self.size + ' is less than ' + oldSelf.size + ': size can grow, never shrink'"
type Storage struct {
	// Size of the volume.
	Size StorageSize `json:"size"`
	// Class is a storage class of the ProviderType.
	// +kubebuilder:default=Standard
	// +optional
	Class ClassName `json:"class,omitempty"`
}

// PausePolicy says how long a pause may last.
type PausePolicy struct {
	// MaxDuration after which the Cluster resumes by itself, at most the
	// ProviderType's timeouts.pausedMax.
	// +optional
	MaxDuration Duration `json:"maxDuration,omitempty"`
}

// Bootstrap says how the database gets its first data.
type Bootstrap struct {
	// Mode is Empty, or Restore to wait for a Restore.
	// +kubebuilder:validation:Enum=Empty;Restore
	// +kubebuilder:validation:XValidation:rule="self != 'Restore'",message="set mode to Empty: starting from a backup is not supported yet"
	// +kubebuilder:default=Empty
	// +optional
	Mode string `json:"mode,omitempty"`
}

// EncryptionMode says whose key encrypts the volumes.
// +kubebuilder:validation:Enum=None;ServiceManaged;Customer
type EncryptionMode string

const (
	EncryptionNone           EncryptionMode = "None"           // the cloud's default
	EncryptionServiceManaged EncryptionMode = "ServiceManaged" // a key of ours for this Cluster
	EncryptionCustomer       EncryptionMode = "Customer"       // customerKeyARN
)

// Encryption of the volumes at rest.
// +kubebuilder:validation:XValidation:rule="!has(self.mode) || self.mode != 'Customer' || (has(self.customerKeyARN) && size(self.customerKeyARN) > 0)",fieldPath=".customerKeyARN",reason=FieldValueRequired,message="customerKeyARN is required with mode Customer"
// +kubebuilder:validation:XValidation:rule="(has(self.mode) && self.mode == 'Customer') || !has(self.customerKeyARN) || size(self.customerKeyARN) == 0",fieldPath=".customerKeyARN",reason=FieldValueForbidden,message="customerKeyARN goes with mode Customer only; remove it or set mode to Customer"
type Encryption struct {
	// Mode: None, ServiceManaged or Customer.
	// +kubebuilder:default=ServiceManaged
	// +optional
	Mode EncryptionMode `json:"mode,omitempty"`
	// CustomerKeyARN is the KMS key of mode Customer, in the Network's region.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+)?$')`,message="must be the ARN of a KMS key, such as arn:aws:kms:us-west-2:123456789012:key/1234abcd"
	// +optional
	CustomerKeyARN string `json:"customerKeyARN,omitempty"`
}

// Endpoints are the ways into the database.
type Endpoints struct {
	// Public is reached over the Internet.
	// +kubebuilder:default={enabled: false}
	// +optional
	Public PublicEndpoint `json:"public,omitempty"`
	// Private is reached through the cloud's private link.
	// +kubebuilder:default={enabled: true}
	// +optional
	Private PrivateEndpoint `json:"private,omitempty"`
}

// PublicEndpoint is reached over the Internet.
// +kubebuilder:validation:XValidation:rule="!has(self.enabled) || !self.enabled || (has(self.allowCIDRs) && size(self.allowCIDRs) > 0)",fieldPath=".allowCIDRs",reason=FieldValueRequired,message="allowCIDRs is required when the public endpoint is enabled; 0.0.0.0/0 lets everybody in"
type PublicEndpoint struct {
	// Enabled makes the endpoint.
	// +kubebuilder:validation:XValidation:rule="!self",message="set enabled to false: the public endpoint is not supported yet"
	// +kubebuilder:default=false
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// AllowCIDRs are the ranges that may connect.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=60
	// +optional
	AllowCIDRs []CIDR `json:"allowCIDRs,omitempty"`
}

// PrincipalARN is an AWS principal: an account, a user or a role.
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:XValidation:rule=`self.matches(r'^arn:aws[a-z-]*:iam::[0-9]{12}:(root|user/.+|role/.+)$')`,message="must be the ARN of an account, user or role, such as arn:aws:iam::123456789012:root"
type PrincipalARN string

// PrivateEndpoint is reached through the cloud's private link.
// +kubebuilder:validation:XValidation:rule="!has(self.consumerProjects)",fieldPath=".consumerProjects",reason=FieldValueForbidden,message="remove consumerProjects: cloud GCP is not supported yet"
// +kubebuilder:validation:XValidation:rule="(has(self.enabled) == has(oldSelf.enabled) && (!has(self.enabled) || self.enabled == oldSelf.enabled)) && (has(self.allowedPrincipals) == has(oldSelf.allowedPrincipals) && (!has(self.allowedPrincipals) || self.allowedPrincipals == oldSelf.allowedPrincipals))",message="keep endpoints as they were: changing the endpoints of a Cluster is not supported yet"
type PrivateEndpoint struct {
	// Enabled makes the endpoint.
	// +kubebuilder:default=true
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// AllowedPrincipals may ask for a connection (AWS).
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	// +optional
	AllowedPrincipals []PrincipalARN `json:"allowedPrincipals,omitempty"`
	// ConsumerProjects may ask for connections (GCP).
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=50
	// +optional
	ConsumerProjects []ConsumerProject `json:"consumerProjects,omitempty"`
}

// ConsumerProject is a GCP project that may ask for connections.
type ConsumerProject struct {
	// ID of the project.
	// +kubebuilder:validation:MaxLength=30
	ID string `json:"id"`
	// Limit is the largest number of connections.
	// +kubebuilder:validation:Minimum=1
	Limit int32 `json:"limit"`
}

// BackupScheduleName says how often automatic backups are made.
// +kubebuilder:validation:Enum=None;Daily;Weekly
type BackupScheduleName string

const (
	BackupNone   BackupScheduleName = "None"
	BackupDaily  BackupScheduleName = "Daily"
	BackupWeekly BackupScheduleName = "Weekly"
)

// BackupPolicy says when the database is backed up by itself.
// +kubebuilder:validation:XValidation:rule="!has(self.schedule) || self.schedule != 'Weekly' || (has(self.pitr) && self.pitr)",fieldPath=".schedule",message="schedule Weekly needs pitr, so that no week is lost; use Daily without it"
type BackupPolicy struct {
	// Schedule: None, Daily or Weekly. Weekly needs PITR.
	// +kubebuilder:default=Daily
	// +optional
	Schedule BackupScheduleName `json:"schedule,omitempty"`
	// TimeUTC is when a backup starts, as HH:MM.
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^([01][0-9]|2[0-3]):[0-5][0-9]$')`,message="must be a time of day as HH:MM, such as 02:00"
	// +kubebuilder:default="02:00"
	// +optional
	TimeUTC string `json:"timeUTC,omitempty"`
	// RetentionDays is how long automatic backups are kept.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3650
	// +kubebuilder:default=7
	// +optional
	RetentionDays int32 `json:"retentionDays,omitempty"`
	// PITR keeps the log too, to restore to any point in time.
	// +kubebuilder:validation:XValidation:rule="!self",message="set pitr to false: point-in-time recovery is not supported yet"
	// +kubebuilder:default=false
	// +optional
	PITR bool `json:"pitr,omitempty"`
}

// Cluster is a TiDB database in a Network.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=tidb,categories=infra
// +kubebuilder:selectablefield:JSONPath=`.spec.network`
// +kubebuilder:printcolumn:name="NETWORK",type=string,JSONPath=`.spec.network`
// +kubebuilder:printcolumn:name="VERSION",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="TIDB",type=integer,JSONPath=`.spec.topology.tidb.replicas`
// +kubebuilder:printcolumn:name="TIKV",type=integer,JSONPath=`.spec.topology.tikv.replicas`
// +kubebuilder:printcolumn:name="TIFLASH",type=integer,JSONPath=`.spec.topology.tiflash.replicas`
// +kubebuilder:printcolumn:name="PHASE",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="REASON",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="STEP",type=string,JSONPath=`.status.operation.step`
// +kubebuilder:printcolumn:name="WAITING",type=string,JSONPath=`.status.operation.waitingFor`,priority=1
// +kubebuilder:printcolumn:name="ENDPOINT",type=string,JSONPath=`.status.endpoints.private.host`,priority=1
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",fieldPath=".metadata",message="metadata.name must have at most 63 characters: it becomes the value of labels",messageExpression="self.metadata.name + ': metadata.name must have at most 63 characters: it becomes the value of labels'"
type Cluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ClusterSpec   `json:"spec"`
	Status ClusterStatus `json:"status,omitempty"`
}

// Common returns the common part of the Cluster's status.
func (c *Cluster) Common() *CommonStatus { return &c.Status.CommonStatus }

// GetDeletionPolicy returns spec.deletionPolicy, or its default.
func (c *Cluster) GetDeletionPolicy() DeletionPolicy { return c.Spec.DeletionPolicy.orDefault() }

// ClusterList is a list of Clusters.
// +kubebuilder:object:root=true
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Cluster `json:"items"`
}
