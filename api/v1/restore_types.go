package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ConditionDataRestored says that the Cluster holds the data of the Backup.
const ConditionDataRestored = "DataRestored"

// RestoreSpec fills a new Cluster with the data of a Backup.
//
// +kubebuilder:validation:XValidation:rule="has(self.pointInTime) == has(oldSelf.pointInTime) && (!has(self.pointInTime) || self.pointInTime == oldSelf.pointInTime)",fieldPath=".pointInTime",message="is immutable, also when it was not given at first; create another Restore into another Cluster"
// +kubebuilder:validation:XValidation:rule="!(oldSelf.?cancel.orValue(false) && !self.?cancel.orValue(false))",fieldPath=".cancel",message="cannot be taken back once it is true; create another Restore into another Cluster"
type RestoreSpec struct {
	// ClusterName is the name of the Cluster that gets the data. Its
	// bootstrap.mode is Restore. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another Restore into another Cluster",messageExpression="'was ' + oldSelf + ' and is immutable; create another Restore into another Cluster'"
	ClusterName ReferenceName `json:"clusterName"`
	// BackupName is the name of the Backup. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; create another Restore of another Backup",messageExpression="'was ' + oldSelf + ' and is immutable; create another Restore of another Backup'"
	BackupName ReferenceName `json:"backupName"`
	// PointInTime to restore to, such as 2026-01-02T15:04:05Z. It needs
	// point-in-time recovery of the Backup's Cluster at that time; the time of
	// the Backup by default. Immutable.
	// +optional
	PointInTime *metav1.Time `json:"pointInTime,omitempty"`
	// Cancel stops the restore. The Cluster is of no use then and can only be
	// deleted. It cannot be taken back.
	// +kubebuilder:default=false
	// +optional
	Cancel bool `json:"cancel,omitempty"`
	// DeletionPolicy is part of every kind. The deletion of a Restore never
	// touches data, so both values mean the same.
	// +kubebuilder:default=Delete
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// RestoreStatus is what is observed of a Restore. Conditions: Ready,
// Progressing, Stalled, DataRestored.
type RestoreStatus struct {
	CommonStatus `json:",inline"`
	// OperatorRestore is TiDB Operator's object in the Shoot.
	// +optional
	OperatorRestore *OperatorObject `json:"operatorRestore,omitempty"`
	// RestoredTS is the timestamp of the restored data, a TSO as a string of
	// digits.
	// +optional
	RestoredTS string `json:"restoredTS,omitempty"`
	// Progress in percent.
	// +optional
	Progress int32 `json:"progress,omitempty"`
	// StartedAt is when the restore began.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// CompletedAt is when the restore ended.
	// +optional
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`
}

// Restore fills a new Cluster with the data of a Backup.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=rst,categories=infra
// +kubebuilder:selectablefield:JSONPath=`.spec.clusterName`
// +kubebuilder:selectablefield:JSONPath=`.spec.backupName`
// +kubebuilder:printcolumn:name="CLUSTER",type=string,JSONPath=`.spec.clusterName`
// +kubebuilder:printcolumn:name="BACKUP",type=string,JSONPath=`.spec.backupName`
// +kubebuilder:printcolumn:name="PHASE",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="READY",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="REASON",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="PROGRESS",type=integer,JSONPath=`.status.progress`
// +kubebuilder:printcolumn:name="STEP",type=string,JSONPath=`.status.operation.step`,priority=1
// +kubebuilder:printcolumn:name="WAITING",type=string,JSONPath=`.status.operation.waitingFor`,priority=1
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",fieldPath=".metadata",message="metadata.name must have at most 63 characters: it becomes the value of labels",messageExpression="self.metadata.name + ': metadata.name must have at most 63 characters: it becomes the value of labels'"
type Restore struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   RestoreSpec   `json:"spec"`
	Status RestoreStatus `json:"status,omitempty"`
}

// Common returns the common part of the Restore's status.
func (r *Restore) Common() *CommonStatus { return &r.Status.CommonStatus }

// GetDeletionPolicy returns spec.deletionPolicy, or its default.
func (r *Restore) GetDeletionPolicy() DeletionPolicy { return r.Spec.DeletionPolicy.orDefault() }

// RestoreList is a list of Restores.
// +kubebuilder:object:root=true
type RestoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Restore `json:"items"`
}
