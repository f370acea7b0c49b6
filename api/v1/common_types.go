package v1

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Keys of labels, annotations and finalizers. Those under
// infra.cloud.pingcap.com are ours; users write only the ones marked "user".
const (
	LabelProviderType = "cloud.pingcap.com/provider-type"
	LabelProvider     = "cloud.pingcap.com/provider"
	LabelNetwork      = "cloud.pingcap.com/network"
	LabelCluster      = "cloud.pingcap.com/cluster"

	// AnnotationID holds the identity that the bridge mints once. Cloud names,
	// tags and tokens derive from it, not from metadata.uid, so that a restore
	// from a backup of this API adopts what exists.
	AnnotationID = "infra.cloud.pingcap.com/id"
	// AnnotationIDMintedFor holds the metadata.uid of the object that the
	// identity was minted for. Where it differs from metadata.uid the object was
	// restored with its identity, and what carries the identity may be older
	// than the object.
	AnnotationIDMintedFor = "infra.cloud.pingcap.com/id-minted-for"
	// AnnotationOperation (user) asks for a verb: retry, reconcile, cancel ....
	AnnotationOperation = "infra.cloud.pingcap.com/operation"
	// AnnotationPaused (user) freezes the object at the next step border.
	AnnotationPaused = "infra.cloud.pingcap.com/paused"
	// AnnotationMigrated (user) marks an object that another control plane made.
	AnnotationMigrated = "infra.cloud.pingcap.com/migrated"
	// AnnotationForceDelete (user) must hold metadata.uid to count.
	AnnotationForceDelete = "infra.cloud.pingcap.com/force-delete"

	// FinalizerPrefix is followed by the lower-case kind.
	FinalizerPrefix = "infra.cloud.pingcap.com/"

	// TagID, TagKind, TagName and TagEnv mark every external resource, in the
	// call that creates it. On Gardener and Kubernetes objects they are
	// annotations, except TagID, which is a label too, to be listed by.
	TagID   = "infra.cloud.pingcap.com/id"
	TagKind = "infra.cloud.pingcap.com/kind"
	TagName = "infra.cloud.pingcap.com/name"
	TagEnv  = "infra.cloud.pingcap.com/env"
)

// Phase is for people and printer columns; machines use conditions.
type Phase string

const (
	// No operation has begun, or the kind is not carried out yet.
	PhasePending Phase = "Pending"
	// The first operation runs.
	PhaseCreating Phase = "Creating"
	// Every kind but Cluster, when it is well.
	PhaseNormal Phase = "Normal"
	// An Update or a reconcile runs, of every kind but Cluster. What
	// exists goes on working.
	PhaseUpdating Phase = "Updating"
	// A deletion runs, also while it is stalled or waits for those
	// that use the object.
	PhaseDeleting Phase = "Deleting"
	// A creation is stalled, and tries again by itself; or an
	// operation was cancelled, or terminated in Temporal, and waits for retry or a
	// change of the spec. Condition Ready says which. It is never a final state.
	PhaseFailed Phase = "Failed"

	// The Shoot is being put to sleep. Not set yet.
	PhaseHibernating Phase = "Hibernating"
	// The Shoot sleeps. Not set yet.
	PhaseHibernated Phase = "Hibernated"
	// The Shoot is being woken. Not set yet.
	PhaseWakingUp Phase = "WakingUp"

	// A Cluster, when it is well.
	PhaseAvailable Phase = "Available"
	// A Cluster is filled out of a Backup. Not set yet.
	PhaseRestoring Phase = "Restoring"
	// An Update or a reconcile of a Cluster runs. The database goes
	// on working.
	PhaseModifying Phase = "Modifying"
	// A Cluster gets another version. Not set yet.
	PhaseUpgrading Phase = "Upgrading"
	// An Import into a Cluster runs. Not set yet.
	PhaseImporting Phase = "Importing"
	// A Cluster is being paused. Not set yet.
	PhasePausing Phase = "Pausing"
	// A Cluster's database is stopped, its data is kept. Not set yet,
	// and not what the annotation paused does.
	PhasePaused Phase = "Paused"
	// A Cluster that was paused is being started. Not set yet.
	PhaseResuming Phase = "Resuming"
	// A Cluster's database does not answer. Not set yet.
	PhaseUnavailable Phase = "Unavailable"

	// Phases of NetworkPeer.

	// A NetworkPeer is asked of the cloud. Not set yet.
	PhaseRequesting Phase = "Requesting"
	// The other side has to accept a NetworkPeer. Not
	// set yet.
	PhaseWaitingForAcceptance Phase = "WaitingForAcceptance"
	// Routes of a NetworkPeer are made. Not set yet.
	PhaseProvisioning Phase = "Provisioning"
	// A NetworkPeer, when it is well. Not set yet.
	PhaseActive Phase = "Active"
	// A NetworkPeer has lost something that it had. Not set yet.
	PhaseDegraded Phase = "Degraded"

	// Phases of the finite jobs: Backup, Restore and Import.

	// A job's Cluster is not there, or not ready. Not set
	// yet.
	PhaseWaitingForCluster Phase = "WaitingForCluster"
	// What a job needs is made. Not set yet.
	PhasePreparing Phase = "Preparing"
	// What a job has done is looked at. Not set yet.
	PhaseVerifying Phase = "Verifying"
	// A Backup or Restore is done. Not set yet.
	PhaseSucceeded Phase = "Succeeded"
	// An Import is done. Not set yet.
	PhaseCompleted Phase = "Completed"
	// A job is being ended. Not set yet.
	PhaseCancelling Phase = "Cancelling"
	// A job was ended before it was done. Not set yet.
	PhaseCancelled Phase = "Cancelled"

	// Phases of TiCDC; Running is Backup's too.

	// A TiCDC or a Backup runs. Not set yet.
	PhaseRunning Phase = "Running"
	// A TiCDC is being changed. Not set yet.
	PhaseEditing Phase = "Editing"
	// A TiCDC runs, and reports errors. Not set yet.
	PhaseWarning Phase = "Warning"
)

// Condition types that every kind has. Positive polarity, except Stalled and
// DeletionBlocked.
const (
	ConditionReady           = "Ready"
	ConditionProgressing     = "Progressing"
	ConditionStalled         = "Stalled"
	ConditionDeletionBlocked = "DeletionBlocked"
	// ConditionWorkflowFailing is True while workers fail to go on with the
	// object's workflow or its operation's, which therefore tell nothing. The
	// bridge writes it, and takes it away.
	ConditionWorkflowFailing = "WorkflowFailing"
)

// DeletionPolicy says what happens to external resources on deletion.
// +kubebuilder:validation:Enum=Delete;Retain
type DeletionPolicy string

const (
	DeletionPolicyDelete DeletionPolicy = "Delete"
	DeletionPolicyRetain DeletionPolicy = "Retain"
)

func (p DeletionPolicy) orDefault() DeletionPolicy {
	if p == "" {
		return DeletionPolicyDelete
	}
	return p
}

// OperationState is the state of an operation.
type OperationState string

const (
	// Its steps run, or it is held by a pause.
	OperationRunning OperationState = "Running"
	// All of its steps are done, or were left out by skip.
	OperationSucceeded OperationState = "Succeeded"
	// It ended in Temporal without having chosen to, mostly since
	// somebody terminated its workflow. It waits for retry.
	OperationFailed OperationState = "Failed"
	// It was cancelled, and what a creation has made is being
	// undone; also while that is stalled.
	OperationCancelling OperationState = "Cancelling"
	// It was cancelled and waits for retry; or it gave way to a
	// deletion or a newer generation. Condition Progressing says which.
	OperationCancelled OperationState = "Cancelled"
	// It is stalled. It waits for somebody, see condition
	// Stalled, and tries again by itself.
	OperationBlocked OperationState = "Blocked"
)

// CommonStatus is the part of status that every kind has. Each field has one
// writer: the object workflow owns observedGeneration, phase and the condition
// Ready; the operation workflow owns operation, lastError, resources and the
// other conditions; the wait in progress owns operation.waitingFor.
type CommonStatus struct {
	// ObservedGeneration is the generation whose operation has finished.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Phase is a summary for people.
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// Conditions are for machines; Ready is True only for the current generation.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Operation is the running operation, or the last one.
	// +optional
	Operation *OperationStatus `json:"operation,omitempty"`
	// LastError is the failure that the operation waits on; cleared on success.
	// +optional
	LastError *LastError `json:"lastError,omitempty"`
	// Resources lists every external resource of the object.
	// +optional
	// +listType=map
	// +listMapKey=key
	Resources []Resource `json:"resources,omitempty"`
}

// OperationStatus describes an operation.
type OperationStatus struct {
	// ID is the Temporal workflow id of the operation.
	ID string `json:"id"`
	// UID is the metadata.uid of the object that the operation is for. A status
	// that was restored with its object tells of an operation of the former one.
	// +optional
	UID string `json:"uid,omitempty"`
	// Identity is the object's, by which its external resources are found. It is
	// kept here, too, so that one that is changed is noticed.
	// +optional
	Identity string `json:"identity,omitempty"`
	// Type is the verb: Create, Delete, Update, ....
	Type string `json:"type"`
	// Generation of the spec that the operation works towards.
	Generation int64 `json:"generation"`
	// State of the operation.
	State OperationState `json:"state"`
	// Step that runs, or in which the operation was ended; empty when it has
	// succeeded.
	// +optional
	Step string `json:"step,omitempty"`
	// WaitingFor is one sentence: what the step waits for right now.
	// +optional
	WaitingFor string `json:"waitingFor,omitempty"`
	// Progress in percent of the steps; never decreases within an operation.
	// +optional
	Progress int32 `json:"progress,omitempty"`
	// StartedAt is when the operation began.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// StepStartedAt is when the step began.
	// +optional
	StepStartedAt *metav1.Time `json:"stepStartedAt,omitempty"`
	// FinishedAt is when the operation ended, in whatever state.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// Attempts of the current step; grows with each resume after a stall.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
	// Cancellable says whether the verb cancel is accepted in this step.
	// +optional
	Cancellable bool `json:"cancellable,omitempty"`
	// Skippable says whether the verb skip is accepted in this step.
	// +optional
	Skippable bool `json:"skippable,omitempty"`
	// Steps is the whole list, in order, for `infractl describe`.
	// +optional
	// +listType=map
	// +listMapKey=name
	Steps []StepStatus `json:"steps,omitempty"`
}

// Active says whether the operation has not ended.
func (o *OperationStatus) Active() bool {
	return o.State == OperationRunning || o.State == OperationBlocked || o.State == OperationCancelling
}

// StepState is the state of a step.
type StepState string

const (
	// It has not begun.
	StepPending StepState = "Pending"
	// It does something, or waits.
	StepRunning StepState = "Running"
	// It is done.
	StepSucceeded StepState = "Succeeded"
	// It waits for somebody, see lastError.
	StepStalled StepState = "Stalled"
	// Somebody left it out by the verb skip.
	StepSkipped StepState = "Skipped"
	// It was ended before it was done.
	StepCancelled StepState = "Cancelled"
)

// StepStatus describes one step of an operation.
type StepStatus struct {
	// Name of the step.
	Name string `json:"name"`
	// State of the step.
	State StepState `json:"state"`
	// StartedAt is when the step began.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// FinishedAt is when the step ended.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
}

// LastError is a failure in the words of the fault taxonomy.
type LastError struct {
	// Class is one of the fault classes: Throttled, Transient, Quota, ....
	Class string `json:"class"`
	// Code is the failing system's own code.
	// +optional
	Code string `json:"code,omitempty"`
	// Step that failed.
	// +optional
	Step string `json:"step,omitempty"`
	// Owner is who can mend it: user, operator or provider.
	// +optional
	Owner string `json:"owner,omitempty"`
	// Message says what happened to which resource.
	Message string `json:"message"`
	// Hint says what to do.
	// +optional
	Hint string `json:"hint,omitempty"`
	// At is when it failed.
	// +optional
	At *metav1.Time `json:"at,omitempty"`
	// NextRetryAt is when the operation tries again by itself.
	// +optional
	NextRetryAt *metav1.Time `json:"nextRetryAt,omitempty"`
}

// ResourceState is the state of a ledger entry.
type ResourceState string

const (
	// It exists, and is the object's.
	ResourcePresent ResourceState = "Present"
	// It is being removed.
	ResourceDeleting ResourceState = "Deleting"
	// It is kept on purpose.
	ResourceRetained ResourceState = "Retained"
	// It is left, and somebody has to remove it.
	ResourceOrphaned ResourceState = "Orphaned"
	// It is not the object's, and was left alone.
	ResourceForeign ResourceState = "Foreign"
)

// Resource is a ledger entry: one external resource that the object owns.
type Resource struct {
	// Key names the entry within the object, such as "bucket" or "encryption-key".
	Key string `json:"key"`
	// Provider is the system: aws, gcp, garden, shoot.
	Provider string `json:"provider"`
	// Region of the resource; empty when it has none.
	// +optional
	Region string `json:"region,omitempty"`
	// Type in that system's terms, such as "S3::Bucket" or "Shoot".
	Type string `json:"type"`
	// ID in that system: an ARN, an id or namespace/name.
	ID string `json:"id"`
	// State of the resource.
	State ResourceState `json:"state"`
	// At is when the entry was last confirmed.
	// +optional
	At *metav1.Time `json:"at,omitempty"`
}

// Object is a custom resource of this group with the common status.
// +kubebuilder:object:generate=false
type Object interface {
	client.Object
	// Common returns the common part of the object's status.
	Common() *CommonStatus
	// GetDeletionPolicy returns spec.deletionPolicy, or its default.
	GetDeletionPolicy() DeletionPolicy
}

// Finalizer returns the finalizer of a kind, such as
// infra.cloud.pingcap.com/network for "Network".
func Finalizer(kind string) string { return FinalizerPrefix + strings.ToLower(kind) }

// FinalizerCredentials is on the Secrets that Providers refer to, and goes with
// the last reference.
const FinalizerCredentials = FinalizerPrefix + "credentials"
