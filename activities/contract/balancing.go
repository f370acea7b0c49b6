package contract

import "github.com/tidbcloud/infra-orchestrator/api/temporal"

// QueueBalancing serves the workflow BalanceReplicas and its activities, apart
// from all else: they need rights in all namespaces.
const QueueBalancing = temporal.QueueBalancing

// Balancers.
var (
	// PlanBalancers (local) looks at all Balancers after a given one, from
	// caches, and says which of them need something. Scales of kinds that are
	// not cached are read live. It tells of failures by Events, nothing else.
	PlanBalancers = Activity[PlanBalancersInput, BalancersPlan]{Name: "balancing.PlanBalancers"}
	// EnsureBalanced plans one Balancer again, with its scales read live, and
	// makes the changes. A target that cannot be changed is told in the
	// Balancer's status and is no fault of the activity.
	EnsureBalanced = Activity[BalancerRef, BalancerOutcome]{Name: "balancing.EnsureBalanced"}
	// ApplyBalancerStatuses brings the status of Balancers up to date of which
	// nothing else has to be changed.
	ApplyBalancerStatuses = Activity[BalancerStatusesInput, StatusesOutcome]{Name: "balancing.ApplyBalancerStatuses"}
)

// Bounds of a plan, so that it stays well under 100 KB. What exceeds them is
// left to the next page.
const (
	MaxPlannedChanges = 200
	MaxPlannedReports = 1000
)

// BalancerRef names a Balancer.
type BalancerRef struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// String is namespace/name, for messages and as the order of a sweep.
func (b BalancerRef) String() string { return b.Namespace + "/" + b.Name }

// PlanBalancersInput says where to go on.
type PlanBalancersInput struct {
	After string `json:"after,omitempty"` // namespace/name; empty: from the first
}

// BalancersPlan is what is to be done.
type BalancersPlan struct {
	// Looked is how many Balancers were looked at, Failing how many of them
	// cannot be balanced.
	Looked  int `json:"looked"`
	Failing int `json:"failing,omitempty"`
	// Changes are the Balancers that need a change, in the order of their names.
	Changes []BalancerChange `json:"changes,omitempty"`
	// Reports are those that need their status written only.
	Reports []BalancerRef `json:"reports,omitempty"`
	// Next is where the next page begins, empty when this is the last.
	Next string `json:"next,omitempty"`
}

// BalancerChange is a Balancer that needs a change.
type BalancerChange struct {
	BalancerRef
	// Summary is what changes: "a 3→5, b 7→5".
	Summary string `json:"summary"`
}

// BalancerOutcome is what became of a change.
type BalancerOutcome struct {
	// Changed is what was done: "a 3→5, b 7→5"; empty when nothing was.
	Changed string `json:"changed,omitempty"`
	// Failure is what the condition Balancing says when it is False.
	Failure string `json:"failure,omitempty"`
}

// BalancerStatusesInput names the Balancers.
type BalancerStatusesInput struct {
	Balancers []BalancerRef `json:"balancers"`
}

// StatusesOutcome counts the statuses.
type StatusesOutcome struct {
	Written int `json:"written"`
	Failed  int `json:"failed,omitempty"`
}
