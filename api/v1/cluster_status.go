package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Condition types of Cluster, besides those of every kind.
const (
	ConditionInfrastructureReady = "InfrastructureReady"
	ConditionDatabaseReady       = "DatabaseReady"
	ConditionEndpointsReady      = "EndpointsReady"
	ConditionPaused              = "Paused"
	ConditionBackupPolicyActive  = "BackupPolicyActive"
)

// ClusterStatus is what is observed of a Cluster. Conditions: Ready,
// Progressing, Stalled, InfrastructureReady, DatabaseReady, EndpointsReady,
// Paused, BackupPolicyActive, DeletionBlocked.
type ClusterStatus struct {
	CommonStatus `json:",inline"`
	// Observed is what runs.
	// +optional
	Observed *ObservedCluster `json:"observed,omitempty"`
	// Endpoints are where the database answers.
	// +optional
	Endpoints *EndpointsStatus `json:"endpoints,omitempty"`
	// Import is who reads the source of imports.
	// +optional
	Import *ImportIdentity `json:"import,omitempty"`
	// Encryption is the key in use.
	// +optional
	Encryption *EncryptionStatus `json:"encryption,omitempty"`
	// Pools are the worker pools of its components in the Shoot, one a zone for
	// each component. A name is here before the pool is.
	// +listType=map
	// +listMapKey=name
	// +optional
	Pools []WorkerPool `json:"pools,omitempty"`
	// PausedAt is when the Cluster was paused.
	// +optional
	PausedAt *metav1.Time `json:"pausedAt,omitempty"`
	// ScheduledResumeAt is when the Cluster resumes by itself.
	// +optional
	ScheduledResumeAt *metav1.Time `json:"scheduledResumeAt,omitempty"`
	// PauseConsumedGeneration is the generation whose pause has ended by
	// itself; it does not pause again.
	// +optional
	PauseConsumedGeneration int64 `json:"pauseConsumedGeneration,omitempty"`
	// LastStorageChangeAt is when volumes last changed.
	// +optional
	LastStorageChangeAt *StorageChanges `json:"lastStorageChangeAt,omitempty"`
}

// WorkerPool is a worker pool of the Shoot that one component has in one zone.
type WorkerPool struct {
	// Name in the Shoot's spec.provider.workers, such as kv-0f3a9c-x7k2p. A pool
	// keeps its name for life; another machine class means another pool.
	Name string `json:"name"`
	// Component that has it: pd, tidb, tikv, tiflash.
	// +optional
	Component string `json:"component,omitempty"`
	// Zone of its nodes.
	// +optional
	Zone string `json:"zone,omitempty"`
	// MachineType of its nodes, such as m5.xlarge.
	// +optional
	MachineType string `json:"machineType,omitempty"`
	// Nodes that it is to have.
	// +optional
	Nodes int32 `json:"nodes,omitempty"`
	// Retiring says that it goes as soon as its successor has taken over.
	// +optional
	Retiring bool `json:"retiring,omitempty"`
}

// ObservedCluster is what runs.
type ObservedCluster struct {
	// Version of TiDB that runs.
	// +optional
	Version string `json:"version,omitempty"`
	// PD as observed.
	// +optional
	PD *ObservedComponent `json:"pd,omitempty"`
	// TiDB as observed.
	// +optional
	TiDB *ObservedComponent `json:"tidb,omitempty"`
	// TiKV as observed.
	// +optional
	TiKV *ObservedComponent `json:"tikv,omitempty"`
	// TiFlash as observed.
	// +optional
	TiFlash *ObservedComponent `json:"tiflash,omitempty"`
}

// ObservedComponent is what is observed of one component.
type ObservedComponent struct {
	// Replicas that exist.
	Replicas int32 `json:"replicas"`
	// Ready replicas.
	Ready int32 `json:"ready"`
	// Image that runs.
	// +optional
	Image string `json:"image,omitempty"`
}

// EndpointsStatus is where the database answers.
type EndpointsStatus struct {
	// Public endpoint.
	// +optional
	Public *Address `json:"public,omitempty"`
	// Private endpoint.
	// +optional
	Private *PrivateEndpointStatus `json:"private,omitempty"`
}

// Address is a host and a port.
type Address struct {
	// Host name.
	Host string `json:"host"`
	// Port number.
	Port int32 `json:"port"`
}

// PrivateEndpointStatus is a private endpoint as observed.
type PrivateEndpointStatus struct {
	// ServiceName that consumers connect to, such as
	// com.amazonaws.vpce.us-west-2.vpce-svc-0123.
	// +optional
	ServiceName string `json:"serviceName,omitempty"`
	// State of the endpoint service.
	// +optional
	State string `json:"state,omitempty"`
	// Host name inside of the Network.
	// +optional
	Host string `json:"host,omitempty"`
	// Port number.
	// +optional
	Port int32 `json:"port,omitempty"`
	// Connections of consumers.
	// +listType=map
	// +listMapKey=id
	// +optional
	Connections []EndpointConnection `json:"connections,omitempty"`
}

// EndpointConnection is a consumer's connection.
type EndpointConnection struct {
	// ID of the consumer's endpoint.
	ID string `json:"id"`
	// State of the connection.
	State string `json:"state"`
	// Principal that asked for it.
	// +optional
	Principal string `json:"principal,omitempty"`
}

// ImportIdentity is who reads the source of imports: grant it access there.
type ImportIdentity struct {
	// AccountID of the role (AWS).
	// +optional
	AccountID string `json:"accountID,omitempty"`
	// RoleARN of the role (AWS).
	// +optional
	RoleARN string `json:"roleARN,omitempty"`
	// ExternalID that the source's role must ask for (AWS).
	// +optional
	ExternalID string `json:"externalID,omitempty"`
	// ServiceAccountEmail (GCP).
	// +optional
	ServiceAccountEmail string `json:"serviceAccountEmail,omitempty"`
}

// EncryptionStatus is the key in use.
type EncryptionStatus struct {
	// KeyARN of the KMS key.
	// +optional
	KeyARN string `json:"keyARN,omitempty"`
	// KeyState in KMS, such as Enabled.
	// +optional
	KeyState string `json:"keyState,omitempty"`
}

// StorageChanges is when volumes last changed.
type StorageChanges struct {
	// TiKV volumes.
	// +optional
	TiKV *metav1.Time `json:"tikv,omitempty"`
	// TiFlash volumes.
	// +optional
	TiFlash *metav1.Time `json:"tiflash,omitempty"`
}
