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
	PhasePending  Phase = "Pending"
	PhaseCreating Phase = "Creating"
	PhaseNormal   Phase = "Normal" // everything but Cluster, when it is well
	PhaseUpdating Phase = "Updating"
	PhaseDeleting Phase = "Deleting"
	PhaseFailed   Phase = "Failed"

	PhaseHibernating Phase = "Hibernating"
	PhaseHibernated  Phase = "Hibernated"
	PhaseWakingUp    Phase = "WakingUp"

	PhaseAvailable   Phase = "Available" // Cluster, when it is well
	PhaseRestoring   Phase = "Restoring"
	PhaseModifying   Phase = "Modifying"
	PhaseUpgrading   Phase = "Upgrading"
	PhaseImporting   Phase = "Importing"
	PhasePausing     Phase = "Pausing"
	PhasePaused      Phase = "Paused"
	PhaseResuming    Phase = "Resuming"
	PhaseUnavailable Phase = "Unavailable"

	// Phases of NetworkPeer.
	PhaseRequesting           Phase = "Requesting"
	PhaseWaitingForAcceptance Phase = "WaitingForAcceptance"
	PhaseProvisioning         Phase = "Provisioning"
	PhaseActive               Phase = "Active" // NetworkPeer, when it is well
	PhaseDegraded             Phase = "Degraded"

	// Phases of the finite jobs: Backup, Restore and Import.
	PhaseWaitingForCluster Phase = "WaitingForCluster"
	PhasePreparing         Phase = "Preparing"
	PhaseVerifying         Phase = "Verifying"
	PhaseSucceeded         Phase = "Succeeded" // Backup and Restore, when they are done
	PhaseCompleted         Phase = "Completed" // Import, when it is done
	PhaseCancelling        Phase = "Cancelling"
	PhaseCancelled         Phase = "Cancelled"

	// Phases of TiCDC; Running is Backup's too.
	PhaseRunning Phase = "Running"
	PhaseEditing Phase = "Editing"
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
	OperationRunning    OperationState = "Running"
	OperationSucceeded  OperationState = "Succeeded"
	OperationFailed     OperationState = "Failed"
	OperationCancelling OperationState = "Cancelling"
	OperationCancelled  OperationState = "Cancelled"
	OperationBlocked    OperationState = "Blocked" // stalled: waits for somebody, see condition Stalled
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
	StepPending   StepState = "Pending"
	StepRunning   StepState = "Running"
	StepSucceeded StepState = "Succeeded"
	StepStalled   StepState = "Stalled"
	StepSkipped   StepState = "Skipped"
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
	ResourcePresent  ResourceState = "Present"
	ResourceDeleting ResourceState = "Deleting"
	ResourceRetained ResourceState = "Retained"
	ResourceOrphaned ResourceState = "Orphaned"
	ResourceForeign  ResourceState = "Foreign"
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
