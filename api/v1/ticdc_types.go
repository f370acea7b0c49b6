package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Condition types of TiCDC, besides those of every kind.
const (
	ConditionCertificatesReady  = "CertificatesReady"
	ConditionCapturesReady      = "CapturesReady"
	ConditionReplicationHealthy = "ReplicationHealthy"
)

// TiCDCSpec replicates the changes of a Cluster to somewhere else.
//
// +kubebuilder:validation:XValidation:rule="!has(self.downstream.clusterName) || self.downstream.clusterName != self.upstream.clusterName",fieldPath=".downstream.clusterName",message="must be another Cluster than upstream.clusterName: a Cluster cannot replicate to itself"
type TiCDCSpec struct {
	// Network is the name of the Network where it runs. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another TiCDC in another Network",messageExpression="'was ' + oldSelf + ' and is immutable; create another TiCDC in another Network'"
	Network ReferenceName `json:"network"`
	// Upstream is where the changes come from. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another TiCDC of another Cluster"
	Upstream TiCDCUpstream `json:"upstream"`
	// Downstream is where the changes go.
	Downstream TiCDCDownstream `json:"downstream"`
	// Replicas is the number of capture nodes.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=15
	// +kubebuilder:default=2
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// MachineClass of the ProviderType, for the capture nodes.
	// +kubebuilder:default="4C16G"
	// +optional
	MachineClass ClassName `json:"machineClass,omitempty"`
	// Version of TiCDC; the upstream's by default.
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(v[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3})?$')`,message="must be a version of TiCDC, such as v8.5.2; leave it out for that of the upstream"
	// +optional
	Version string `json:"version,omitempty"`
	// Start says from when on changes are replicated. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: the replication has begun; create another TiCDC from another time"
	// +kubebuilder:default={mode: Now}
	// +optional
	Start TiCDCStart `json:"start,omitempty"`
	// FilterRules choose tables, as in TiCDC's table filter; all of them by
	// default. A rule that begins with ! leaves tables out.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:default={"*.*"}
	// +optional
	FilterRules []FilterRule `json:"filterRules,omitempty"`
	// Paused stops the replication. The upstream keeps the changes for 24 hours
	// at most; after that it cannot be resumed.
	// +kubebuilder:default=false
	// +optional
	Paused bool `json:"paused,omitempty"`
	// TLS between the upstream and the capture nodes.
	// +kubebuilder:default={enabled: true, certDuration: "8760h"}
	// +optional
	TLS TiCDCTLS `json:"tls,omitempty"`
	// DeletionPolicy says what happens to external resources on deletion.
	// +kubebuilder:default=Delete
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// FilterRule is a rule of TiCDC's table filter, such as shop.* or !shop.log_*.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:XValidation:rule=`self.matches(r'^!?[^\s!]\S*$')`,message="must be a rule of TiCDC such as shop.* or !shop.log_*, without spaces"
type FilterRule string

// TiCDCUpstream is where the changes come from.
type TiCDCUpstream struct {
	// ClusterName is the name of a Cluster in the Network, or in a Network that
	// is peered with it.
	ClusterName ReferenceName `json:"clusterName"`
}

// TiCDCDownstreamType is the kind of a downstream.
// +kubebuilder:validation:Enum=TiDBCluster;MySQL;Kafka;Storage
type TiCDCDownstreamType string

const (
	DownstreamTiDBCluster TiCDCDownstreamType = "TiDBCluster" // a Cluster of this namespace
	DownstreamMySQL       TiCDCDownstreamType = "MySQL"
	DownstreamKafka       TiCDCDownstreamType = "Kafka"
	DownstreamStorage     TiCDCDownstreamType = "Storage" // a bucket
)

// TiCDCDownstream is where the changes go.
// +kubebuilder:validation:XValidation:rule="(self.type == 'TiDBCluster') == (has(self.clusterName) && size(self.clusterName) > 0)",fieldPath=".clusterName",message="is required with type TiDBCluster and goes with it only; other types have a uri"
// +kubebuilder:validation:XValidation:rule="(self.type == 'TiDBCluster') != (has(self.uri) && size(self.uri) > 0)",fieldPath=".uri",message="is required with types MySQL, Kafka and Storage; type TiDBCluster has a clusterName instead"
// +kubebuilder:validation:XValidation:rule="self.type != 'MySQL' || !has(self.uri) || size(self.uri) == 0 || self.uri.startsWith('mysql://') || self.uri.startsWith('tidb://')",fieldPath=".uri",message="must begin with mysql:// or tidb:// when type is MySQL"
// +kubebuilder:validation:XValidation:rule="self.type != 'Kafka' || !has(self.uri) || size(self.uri) == 0 || self.uri.startsWith('kafka://')",fieldPath=".uri",message="must begin with kafka:// when type is Kafka"
// +kubebuilder:validation:XValidation:rule="self.type != 'Storage' || !has(self.uri) || size(self.uri) == 0 || self.uri.startsWith('s3://') || self.uri.startsWith('gs://')",fieldPath=".uri",message="must begin with s3:// or gs:// when type is Storage"
// +kubebuilder:validation:XValidation:rule="!has(self.uri) || (!self.uri.matches('^[a-z0-9+]+://[^/?]*@') && !self.uri.matches('(?i)[?&](sasl-password|access-key|secret-access-key|session-token|credentials-file)='))",fieldPath=".uri",reason=FieldValueForbidden,message="must not have credentials: they belong into a Secret, see secretRef"
// +kubebuilder:validation:XValidation:rule=`!has(self.uri) || self.uri.matches(r'^([a-z][a-z0-9+]*://\S+)?$')`,fieldPath=".uri",message="must be a URI such as kafka://host:9092/topic"
// +kubebuilder:validation:XValidation:rule="self.type != 'MySQL' || has(self.secretRef)",fieldPath=".secretRef",reason=FieldValueRequired,message="is required with type MySQL: the Secret holds user and password"
// +kubebuilder:validation:XValidation:rule="self.type != 'TiDBCluster' || !has(self.secretRef)",fieldPath=".secretRef",reason=FieldValueForbidden,message="does not go with type TiDBCluster, whose user we make; remove it"
type TiCDCDownstream struct {
	// Type is TiDBCluster, MySQL, Kafka or Storage. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another TiCDC to another type of downstream",messageExpression="'was ' + oldSelf + ' and is immutable; create another TiCDC to another type of downstream'"
	Type TiCDCDownstreamType `json:"type"`
	// ClusterName is the name of the Cluster of type TiDBCluster.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$')`,message="must be the name of a Cluster: lower-case letters, digits, dashes and dots, with a letter or digit at both ends"
	// +optional
	ClusterName string `json:"clusterName,omitempty"`
	// URI of the other types, without credentials, such as
	// kafka://host:9092/topic?partition-num=3.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	URI string `json:"uri,omitempty"`
	// SecretRef names a Secret with the credentials: user and password of
	// MySQL and Kafka, accessKeyID and secretAccessKey or serviceAccount.json
	// of Storage.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
}

// TiCDCStart says from when on changes are replicated.
// +kubebuilder:validation:XValidation:rule="self.mode != 'TSO' || self.?tso.orValue(0) > 0",fieldPath=".tso",reason=FieldValueRequired,message="is required with mode TSO"
// +kubebuilder:validation:XValidation:rule="self.mode == 'TSO' || self.?tso.orValue(0) == 0",fieldPath=".tso",reason=FieldValueForbidden,message="goes with mode TSO only; remove it or set mode to TSO"
type TiCDCStart struct {
	// Mode is Now, or TSO to begin at that timestamp.
	// +kubebuilder:validation:Enum=Now;TSO
	// +kubebuilder:default=Now
	// +optional
	Mode string `json:"mode,omitempty"`
	// TSO of mode TSO; no older than what the upstream still keeps.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TSO int64 `json:"tso,omitempty"`
}

// TiCDCTLS is TLS between the upstream and the capture nodes.
type TiCDCTLS struct {
	// Enabled uses TLS.
	// +kubebuilder:default=true
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// CertDuration is the lifetime of certificates; they are renewed when two
	// thirds have passed.
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,6}(h|m|s))+$') || duration(self) >= duration('24h')",message="must be at least 24h, so that there is time to renew"
	// +kubebuilder:default="8760h"
	// +optional
	CertDuration Duration `json:"certDuration,omitempty"`
}

// TiCDCStatus is what is observed of a TiCDC. Conditions: Ready, Progressing,
// Stalled, CertificatesReady, CapturesReady, ReplicationHealthy.
type TiCDCStatus struct {
	CommonStatus `json:",inline"`
	// CheckpointTSO up to which everything has been replicated, a TSO as a
	// string of digits.
	// +optional
	CheckpointTSO string `json:"checkpointTSO,omitempty"`
	// CheckpointLag is how far the downstream is behind.
	// +optional
	CheckpointLag string `json:"checkpointLag,omitempty"`
	// Captures are the capture nodes.
	// +optional
	Captures *TiCDCCaptures `json:"captures,omitempty"`
	// GCSafepointUntil is how long the upstream keeps changes for a replication
	// that does not go on.
	// +optional
	GCSafepointUntil *metav1.Time `json:"gcSafepointUntil,omitempty"`
	// CertNotAfter is when the certificates expire.
	// +optional
	CertNotAfter *metav1.Time `json:"certNotAfter,omitempty"`
	// Errors of the changefeed.
	// +listType=atomic
	// +optional
	Errors []TiCDCError `json:"errors,omitempty"`
}

// TiCDCCaptures counts capture nodes.
type TiCDCCaptures struct {
	// Ready ones.
	Ready int32 `json:"ready"`
	// Total number.
	Total int32 `json:"total"`
}

// TiCDCError is an error of the changefeed.
type TiCDCError struct {
	// Code of TiCDC, such as CDC:ErrGCTTLExceeded.
	Code string `json:"code"`
	// Message of TiCDC.
	// +optional
	Message string `json:"message,omitempty"`
}

// TiCDC replicates the changes of a Cluster to somewhere else.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=cdc,categories=infra
// +kubebuilder:selectablefield:JSONPath=`.spec.network`
// +kubebuilder:selectablefield:JSONPath=`.spec.upstream.clusterName`
// +kubebuilder:printcolumn:name="UPSTREAM",type=string,JSONPath=`.spec.upstream.clusterName`
// +kubebuilder:printcolumn:name="DOWNSTREAM",type=string,JSONPath=`.spec.downstream['clusterName','type']`
// +kubebuilder:printcolumn:name="PHASE",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="LAG",type=string,JSONPath=`.status.checkpointLag`
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="REASON",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="STEP",type=string,JSONPath=`.status.operation.step`,priority=1
// +kubebuilder:printcolumn:name="WAITING",type=string,JSONPath=`.status.operation.waitingFor`,priority=1
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",fieldPath=".metadata",message="metadata.name must have at most 63 characters: it becomes the value of labels",messageExpression="self.metadata.name + ': metadata.name must have at most 63 characters: it becomes the value of labels'"
type TiCDC struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   TiCDCSpec   `json:"spec"`
	Status TiCDCStatus `json:"status,omitempty"`
}

// Common returns the common part of the TiCDC's status.
func (c *TiCDC) Common() *CommonStatus { return &c.Status.CommonStatus }

// GetDeletionPolicy returns spec.deletionPolicy, or its default.
func (c *TiCDC) GetDeletionPolicy() DeletionPolicy { return c.Spec.DeletionPolicy.orDefault() }

// TiCDCList is a list of TiCDCs.
// +kubebuilder:object:root=true
type TiCDCList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TiCDC `json:"items"`
}
