package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ConditionDataAvailable says that the data of a Backup can be restored.
const ConditionDataAvailable = "DataAvailable"

// BackupType says who asked for a Backup.
// +kubebuilder:validation:Enum=Manual;Auto
type BackupType string

const (
	BackupManual BackupType = "Manual" // somebody
	BackupAuto   BackupType = "Auto"   // the Cluster's backupPolicy
)

// BackupSpec is a copy of a Cluster's data. It outlives the Cluster.
//
// +kubebuilder:validation:XValidation:rule="!(oldSelf.?cancel.orValue(false) && !self.?cancel.orValue(false))",fieldPath=".cancel",message="cannot be taken back once it is true; create another Backup"
type BackupSpec struct {
	// ClusterName is the name of the Cluster that is backed up. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another Backup of another Cluster",messageExpression="'was ' + oldSelf + ' and is immutable; create another Backup of another Cluster'"
	ClusterName ReferenceName `json:"clusterName"`
	// Type is Manual, or Auto when the Cluster's backupPolicy asked for it.
	// Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another Backup of another type",messageExpression="'was ' + oldSelf + ' and is immutable; create another Backup of another type'"
	// +kubebuilder:default=Manual
	// +optional
	Type BackupType `json:"type,omitempty"`
	// Storage says where the data is put. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another Backup in another place",messageExpression="'was bucket ' + (has(oldSelf.bucket) ? oldSelf.bucket : 'default') + ', prefix ' + (has(oldSelf.prefix) ? oldSelf.prefix : 'default') + ' and is immutable; create another Backup in another place'"
	// +kubebuilder:default={}
	// +optional
	Storage BackupStorage `json:"storage,omitempty"`
	// Encryption of the data at rest. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another Backup with another key",messageExpression="'was ' + (has(oldSelf.keyARN) ? oldSelf.keyARN : 'the key of the Cluster') + ' and is immutable; create another Backup with another key'"
	// +kubebuilder:default={}
	// +optional
	Encryption BackupEncryption `json:"encryption,omitempty"`
	// Retention is how long the Backup is kept after it has succeeded, in hours
	// such as 168h; 0s keeps it until somebody deletes it. By default a Manual one
	// is kept, and an Auto one goes by the Cluster's backupPolicy.
	// +optional
	Retention Duration `json:"retention,omitempty"`
	// RateLimitMiBps limits the data that each TiKV node uploads, in MiB/s; 0 is
	// no limit. Immutable.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: it is used when the backup starts; create another Backup",messageExpression="'was %d and is immutable: it is used when the backup starts; create another Backup'.format([oldSelf])"
	// +kubebuilder:default=0
	// +optional
	RateLimitMiBps int32 `json:"rateLimitMiBps,omitempty"`
	// DeletionPolicy says what happens to the data on deletion.
	// +kubebuilder:default=Delete
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
	// Cancel stops the backup and removes what it has written. It cannot be
	// taken back.
	// +kubebuilder:default=false
	// +optional
	Cancel bool `json:"cancel,omitempty"`
}

// BackupStorage says where the data of a Backup is put.
type BackupStorage struct {
	// Bucket; the Network's by default.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^([a-z0-9][-a-z0-9.]{1,61}[a-z0-9])?$')`,message="must be the name of a bucket: 3 to 63 lower-case letters, digits, dashes and dots; leave it out for that of the Network"
	// +optional
	Bucket string `json:"bucket,omitempty"`
	// Prefix of the objects, without a leading slash; made of the identities of
	// Cluster and Backup by default. Nothing else may write under it.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^([A-Za-z0-9_.=-]+(/[A-Za-z0-9_.=-]+)*/?)?$')`,message="must be a path without a leading slash, of letters, digits and _ . = -, such as team-a/nightly"
	// +optional
	Prefix string `json:"prefix,omitempty"`
}

// BackupEncryption is the key of a Backup's data.
type BackupEncryption struct {
	// KeyARN of the KMS key; the Cluster's by default.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+)?$')`,message="must be the ARN of a KMS key, such as arn:aws:kms:us-west-2:123456789012:key/1234abcd; leave it out for the key of the Cluster"
	// +optional
	KeyARN string `json:"keyARN,omitempty"`
}

// BackupStatus is what is observed of a Backup. Conditions: Ready,
// Progressing, Stalled, DataAvailable, DeletionBlocked.
type BackupStatus struct {
	CommonStatus `json:",inline"`
	// OperatorBackup is TiDB Operator's object in the Shoot.
	// +optional
	OperatorBackup *OperatorObject `json:"operatorBackup,omitempty"`
	// Location of the data, such as s3://bucket/prefix.
	// +optional
	Location string `json:"location,omitempty"`
	// SizeBytes of the data.
	// +optional
	SizeBytes int64 `json:"sizeBytes,omitempty"`
	// CommitTS is the timestamp of the data, a TSO as a string of digits: it has
	// more of them than a number in JSON keeps.
	// +optional
	CommitTS string `json:"commitTS,omitempty"`
	// StartedAt is when the backup began.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// CompletedAt is when the backup ended.
	// +optional
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`
	// ExpiresAt is when the Backup is deleted by itself.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
	// Progress in percent.
	// +optional
	Progress int32 `json:"progress,omitempty"`
	// Cluster is what a Restore must know of the Cluster when that is gone.
	// +optional
	Cluster *BackedUpCluster `json:"cluster,omitempty"`
}

// OperatorObject is an object of TiDB Operator in a Shoot.
type OperatorObject struct {
	// Namespace of the object.
	Namespace string `json:"namespace"`
	// Name of the object.
	Name string `json:"name"`
	// UID of the object.
	// +optional
	UID string `json:"uid,omitempty"`
}

// BackedUpCluster is a Cluster as it was when it was backed up.
type BackedUpCluster struct {
	// UID of the Cluster.
	UID string `json:"uid"`
	// Version of TiDB.
	Version string `json:"version"`
	// Topology of the Cluster.
	// +optional
	Topology *BackedUpTopology `json:"topology,omitempty"`
	// NetworkName of the Cluster.
	NetworkName string `json:"networkName"`
	// Region of the Network.
	Region string `json:"region"`
	// KeyARN that encrypts the data.
	// +optional
	KeyARN string `json:"keyARN,omitempty"`
}

// BackedUpTopology is the part of a topology that decides how large a Cluster
// must be to take the data.
type BackedUpTopology struct {
	// TiDBReplicas is the number of TiDB nodes.
	TiDBReplicas int32 `json:"tidbReplicas"`
	// TiKVReplicas is the number of TiKV nodes.
	TiKVReplicas int32 `json:"tikvReplicas"`
	// TiKVStorage is the size of each TiKV volume.
	TiKVStorage StorageSize `json:"tikvStorage"`
	// TiFlashReplicas is the number of TiFlash nodes.
	// +optional
	TiFlashReplicas int32 `json:"tiflashReplicas,omitempty"`
	// TiFlashStorage is the size of each TiFlash volume.
	// +optional
	TiFlashStorage StorageSize `json:"tiflashStorage,omitempty"`
}

// Backup is a copy of a Cluster's data.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=bk,categories=infra
// +kubebuilder:selectablefield:JSONPath=`.spec.clusterName`
// +kubebuilder:selectablefield:JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="CLUSTER",type=string,JSONPath=`.spec.clusterName`
// +kubebuilder:printcolumn:name="TYPE",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="PHASE",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="REASON",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="SIZE",type=integer,JSONPath=`.status.sizeBytes`
// +kubebuilder:printcolumn:name="COMMITTS",type=string,JSONPath=`.status.commitTS`,priority=1
// +kubebuilder:printcolumn:name="STEP",type=string,JSONPath=`.status.operation.step`,priority=1
// +kubebuilder:printcolumn:name="WAITING",type=string,JSONPath=`.status.operation.waitingFor`,priority=1
// +kubebuilder:printcolumn:name="COMPLETED",type=date,JSONPath=`.status.completedAt`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",fieldPath=".metadata",message="metadata.name must have at most 63 characters: it becomes the value of labels",messageExpression="self.metadata.name + ': metadata.name must have at most 63 characters: it becomes the value of labels'"
type Backup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   BackupSpec   `json:"spec"`
	Status BackupStatus `json:"status,omitempty"`
}

// Common returns the common part of the Backup's status.
func (b *Backup) Common() *CommonStatus { return &b.Status.CommonStatus }

// GetDeletionPolicy returns spec.deletionPolicy, or its default.
func (b *Backup) GetDeletionPolicy() DeletionPolicy { return b.Spec.DeletionPolicy.orDefault() }

// BackupList is a list of Backups.
// +kubebuilder:object:root=true
type BackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Backup `json:"items"`
}
