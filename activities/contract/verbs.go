package contract

import (
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	// AnswerVerb writes onto the object what became of a verb: it takes the
	// annotation away that asked for it, sets or removes the pause, and makes
	// the Events. An object with another uid is left alone.
	AnswerVerb = Activity[VerbAnswer, None]{Name: "management.AnswerVerb"}
	// WaitDependencies waits until something has changed that the object needs:
	// its Account, ProviderType, Provider, the Provider's Secret, its Network's
	// spec or condition Ready, the Secret of its root password. It returns one sentence that says what changed.
	WaitDependencies = Activity[DependenciesInput, Change]{Name: "management.WaitDependencies", Wait: true, Long: true}
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
	// AcquireLease asks the keeper's object workflow for the lease or lock. The
	// answer comes at once: it is granted, or the request has a place in the
	// queue, which it keeps when it is asked again. The keeper signals whoever
	// asked when it is granted.
	AcquireLease = Activity[LeaseRequest, LeaseAnswer]{Name: "operations.AcquireLease"}
	// ReleaseLease gives it back, or withdraws a request that waits; one that is
	// neither held nor waited for is success.
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
	// Waiter is the workflow that asks, and is told when it is granted; the
	// holder's operation when empty.
	Waiter string `json:"waiter,omitempty"`
	// Queued: it has been told before that it waits, and shows so.
	Queued bool `json:"queued,omitempty"`
	// Withdraw, with a release: only if it is not granted yet.
	Withdraw bool `json:"withdraw,omitempty"`
}

// LeaseAnswer is what became of a request; the zero value says that it is
// granted.
type LeaseAnswer struct {
	// Place in the queue, from 1; 0 when it is granted.
	Place int `json:"place,omitempty"`
	// Behind is the one just ahead in the queue, and Holds one who has it now:
	// Cluster c13.
	Behind string `json:"behind,omitempty"`
	Holds  string `json:"holds,omitempty"`
}

// Sentence says what the request waits for: 7th for the Shoot of Network
// infra/n1, behind Cluster c13 (Cluster c2 has it). It is empty when it is granted.
func (a LeaseAnswer) Sentence(in LeaseRequest) string {
	if a.Place == 0 {
		return ""
	}
	what := "the lease " + strconv.Quote(in.Name)
	if in.Name == LockShoot {
		what = "the Shoot"
	}
	s := fmt.Sprintf("%s for %s of %s %s/%s", ordinal(a.Place), what, in.Keeper.Kind, in.Keeper.Namespace, in.Keeper.Name)
	switch {
	case a.Behind != "" && a.Holds != "":
		return s + ", behind " + a.Behind + " (" + a.Holds + " has it)"
	case a.Behind != "":
		return s + ", behind " + a.Behind
	case a.Holds != "":
		return s + ", which " + a.Holds + " has"
	}
	return s
}

// ordinal is 1st, 2nd, 11th.
func ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.Itoa(n) + suffix
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
	// Waiter: see LeaseRequest.
	Waiter string `json:"waiter,omitempty"`
}
