package contract

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

var (
	// AnswerVerb writes onto the object what became of a verb: it takes the
	// annotation away that asked for it, sets or removes the pause, and makes
	// the Events. An object with another uid is left alone.
	AnswerVerb = Activity[VerbAnswer, None]{Name: "management.AnswerVerb"}
	// WaitDependencies waits until something has changed that the object needs:
	// its Account, ProviderType, Provider, the Provider's Secret, its Network's
	// spec or condition Ready, the Secret of its root password. It returns one sentence that says what changed.
	WaitDependencies = Activity[DependenciesInput, Change]{Name: "management.WaitDependencies", Wait: true}
)

// DependenciesInput says whose dependencies, and since when.
type DependenciesInput struct {
	Ref ObjectRef `json:"ref"`
	// Since is when the attempt began that stalled: what has changed after that
	// was not seen by it.
	Since metav1.Time `json:"since"`
	// Used are the versions that the attempt has read, by kind/name. What has
	// another one now has changed; Since is for what is not among them.
	Used map[string]string `json:"used,omitempty"`
}

// VerbAnswer is the input of AnswerVerb.
type VerbAnswer struct {
	Ref ObjectRef `json:"ref"`
	UID string    `json:"uid"`
	// Consume removes the annotation v1.AnnotationOperation if it has this value.
	Consume string `json:"consume,omitempty"`
	// Pause sets (true) or removes (false) the annotation v1.AnnotationPaused.
	Pause  *bool   `json:"pause,omitempty"`
	Events []Event `json:"events,omitempty"`
}

// Change says what has changed, in one sentence.
type Change struct {
	What string `json:"what"`
}

// Names of what a Network keeps for others.
const (
	// LeaseRunning keeps a Network awake; shared.
	LeaseRunning = "running"
	// LockShoot is held by whoever changes the Shoot's spec; exclusive.
	LockShoot = "shoot"
)

var (
	// AcquireLease waits until the keeper's object workflow grants the lease or
	// lock. The same holder may acquire it again; that changes nothing.
	AcquireLease = Activity[LeaseRequest, None]{Name: "operations.AcquireLease", Wait: true}
	// ReleaseLease gives it back; one that is not held is success.
	ReleaseLease = Activity[LeaseRequest, None]{Name: "operations.ReleaseLease"}
)

// LeaseRequest names a lease (shared) or lock (exclusive) and its holder.
type LeaseRequest struct {
	// Keeper is the object whose workflow grants it: a Network.
	Keeper ObjectRef `json:"keeper"`
	Name   string    `json:"name"`
	Holder Holder    `json:"holder"`
	// Shared leases go together; an exclusive one is alone.
	Shared bool `json:"shared,omitempty"`
	// Withdraw, with a release: only if it is not granted yet.
	Withdraw bool `json:"withdraw,omitempty"`
}

// Holder is who holds a lease.
type Holder struct {
	Object ObjectRef `json:"object"`
	UID    string    `json:"uid"`
	// Operation, when set, is the workflow that holds a lock: the lock ends
	// with it. Empty: it ends with the object.
	Operation string `json:"operation,omitempty"`
}

// String is how a holder shows in status.leases: Cluster/c1/<uid>.
func (h Holder) String() string { return h.Object.Kind + "/" + h.Object.Name + "/" + h.UID }

// Lease is a lease or lock that is granted, or waited for.
type Lease struct {
	Name   string      `json:"name"`
	Holder Holder      `json:"holder"`
	Shared bool        `json:"shared,omitempty"`
	Since  metav1.Time `json:"since"`
}
