package operation

import (
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// ProveAbsence is the last check of a deletion: left is what a sweep found
// with the object's identity. What the ledger says is retained does not count.
// Anything else becomes Orphaned in the ledger and stalls the step: an object
// never goes while something of it stays unseen.
func ProveAbsence(ctx workflow.Context, left []v1.Resource) error {
	retained := map[string]bool{}
	for _, r := range operationOf(ctx).report.Resources {
		if r.State == v1.ResourceRetained {
			retained[r.ID] = true
		}
	}
	var orphans []v1.Resource
	for _, r := range left {
		if retained[r.ID] {
			continue
		}
		r.State = v1.ResourceOrphaned
		Record(ctx, fmt.Sprintf("orphan-%d", len(orphans)+1), r)
		orphans = append(orphans, r)
	}
	if len(orphans) == 0 {
		for i := 1; Forgotten(ctx, fmt.Sprintf("orphan-%d", i)); i++ {
		}
		return nil
	}
	return faults.ToTemporal(faults.New(faults.Dependency, "ResourcesLeft", "", "the deletion is done but these resources are left: %s", Names(orphans)).
		WithHint(faults.OwnerOperator, "remove them if they are not needed; the deletion ends when they are gone"))
}

// Forgotten forgets a ledger entry and says whether there was one.
func Forgotten(ctx workflow.Context, key string) bool {
	n := len(operationOf(ctx).report.Resources)
	Forget(ctx, key)
	return len(operationOf(ctx).report.Resources) < n
}

// retain is the step of a deletion with deletionPolicy Retain: everything in
// the ledger is kept, and an Event lists it.
func retain(ctx workflow.Context) error {
	all := operationOf(ctx).report.Resources
	for i := range all {
		all[i].State = v1.ResourceRetained
	}
	tellAll(ctx, "Retained", "deletionPolicy Retain keeps", all)
	return nil
}

// leaveBehind is the step of a forced deletion: everything in the ledger is
// left, and an Event lists it. shared says what others use, too.
func leaveBehind(shared []Shared) func(workflow.Context) error {
	return func(ctx workflow.Context) error {
		all := operationOf(ctx).report.Resources
		told := slices.Clone(all)
		for i := range all {
			if all[i].State != v1.ResourceRetained {
				all[i].State = v1.ResourceOrphaned
			}
			for _, s := range shared {
				if s.Key == all[i].Key {
					told[i].ID += " (" + s.By + ")"
				}
			}
		}
		tellAll(ctx, "LeftBehind", "force-delete leaves behind, for somebody to remove", told)
		return nil
	}
}

// sharedBy collects what the steps say of entries that others use, too.
func sharedBy(steps []Step) (all []Shared) {
	for _, s := range flatten(steps) {
		all = append(all, s.Shared...)
	}
	return all
}

// leftByForce says how many entries of the ledger a forced deletion has left.
func leftByForce(all []v1.Resource) string {
	n := 0
	for _, r := range all {
		if r.State == v1.ResourceOrphaned {
			n++
		}
	}
	switch n {
	case 0:
		return "its ledger was empty, so only what carries its identity can be left"
	case 1:
		return "1 resource of its ledger is left behind, see Event LeftBehind"
	}
	return fmt.Sprintf("%d resources of its ledger are left behind, see Events LeftBehind", n)
}

// How many resources a sentence names, and an Event, which holds 1,024 bytes:
// an ARN has a hundred or more.
const (
	mostNames = 10
	perEvent  = 5
)

// tellAll lists resources in Events, since the ledger goes with the object, and
// says how to find what a call has made whose answer never came.
func tellAll(ctx workflow.Context, reason, what string, all []v1.Resource) {
	id := operationOf(ctx).in.Object.ID
	for some := range slices.Chunk(all, perEvent) {
		Tell(ctx, true, reason, "%s: %s", what, Names(some))
	}
	Tell(ctx, true, reason, "%s: whatever is tagged %s=%s (%d in the ledger)", what, v1.AnnotationID, id, len(all))
}

// Names lists resources for a sentence, at most ten.
func Names(rs []v1.Resource) string {
	var names []string
	for i, r := range rs {
		if i == mostNames {
			names = append(names, fmt.Sprintf("and %d more", len(rs)-i))
			break
		}
		names = append(names, r.Type+" "+r.ID)
	}
	return strings.Join(names, ", ")
}
