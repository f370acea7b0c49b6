package garden

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/builders"
	"github.com/tidbcloud/infra-orchestrator/faults"
)

// throttlePause is how long Gardener itself leaves a Shoot that failed by rate
// limits alone (its controller manager's shootRetry.retryDuration).
const throttlePause = 10 * time.Minute

// verdict is what a look at a Shoot means for a wait.
type verdict struct {
	done     bool
	sentence string // what is still missing, when not done
	fault    *faults.Fault
	retry    bool // ask Gardener to try again
}

// judgeReady decides whether a Shoot is ready: the
// current generation was observed, its operation has succeeded, it sleeps if
// and only if it is meant to, and, awake, all of its conditions are True.
//
// Without the generation an update would look finished before it began; and a
// Shoot that Gardener re-syncs every hour goes back to Processing by itself,
// which is waited for, not reported. since is when the wait began: an error
// that is older was told before.
func judgeReady(shoot *gardencorev1beta1.Shoot, since, now time.Time) verdict {
	name := "shoot " + shoot.Namespace + "/" + shoot.Name
	if shoot.DeletionTimestamp != nil {
		return verdict{fault: faults.New(faults.Dependency, "ShootDeleting", name, "it is being deleted, by somebody else").
			WithHint(faults.OwnerOperator, "find out who deleted it; delete the Network, or wait until it is gone and retry")}
	}
	op := shoot.Status.LastOperation
	switch {
	case op == nil:
		return verdict{sentence: name + ": waiting until Gardener has scheduled it"}
	case shoot.Status.ObservedGeneration != shoot.Generation:
		return verdict{sentence: name + ": waiting until Gardener has noticed the change"}
	case op.State != gardencorev1beta1.LastOperationStateSucceeded:
		return judgeOperation(shoot, name, since, now)
	}
	if wanted := hibernationWanted(shoot); wanted != shoot.Status.IsHibernated {
		return verdict{sentence: fmt.Sprintf("%s: waiting until it is %s", name, map[bool]string{true: "asleep", false: "awake"}[wanted])}
	} else if wanted {
		return verdict{done: true} // conditions are not checked while it sleeps
	}
	if missing := unhealthy(shoot); missing != "" {
		return verdict{sentence: name + ": waiting until " + missing}
	}
	return verdict{done: true}
}

func hibernationWanted(shoot *gardencorev1beta1.Shoot) bool {
	h := shoot.Spec.Hibernation
	return h != nil && h.Enabled != nil && *h.Enabled
}

// unhealthy says which conditions are not True, empty when all are.
func unhealthy(shoot *gardencorev1beta1.Shoot) string {
	if len(shoot.Status.Conditions) == 0 {
		return "its health has been checked"
	}
	var bad []string
	for _, c := range shoot.Status.Conditions {
		if c.Status != gardencorev1beta1.ConditionTrue {
			bad = append(bad, fmt.Sprintf("%s (%s)", c.Type, c.Status))
		}
	}
	if len(bad) == 0 {
		return ""
	}
	return "these conditions are True: " + strings.Join(bad, ", ")
}

// judgeOperation decides about an operation that has not succeeded. Gardener
// retries a state Error by itself, so it is reported only when somebody can do
// something about it, and once: after since.
func judgeOperation(shoot *gardencorev1beta1.Shoot, name string, since, now time.Time) verdict {
	op := shoot.Status.LastOperation
	f := faults.FromShoot(failureOf(shoot, name))
	if f == nil {
		return verdict{sentence: fmt.Sprintf("%s %d %%: %s", name, op.Progress, operationText(op))}
	}
	failed := op.State == gardencorev1beta1.LastOperationStateFailed
	switch {
	case f.Class == faults.Throttled:
		return verdict{
			sentence: name + ": the cloud throttles; Gardener tries again " + throttlePause.String() + " after the last attempt",
			// A minute on top: Gardener's own retry goes first.
			retry: failed && now.Sub(op.LastUpdateTime.Time) > throttlePause+time.Minute,
		}
	case f.Class.Retryable():
		return verdict{sentence: fmt.Sprintf("%s %d %%: Gardener retries after an error: %s", name, op.Progress, f.Message)}
	case failed || lastErrorAt(shoot).After(since):
		return verdict{fault: f}
	}
	return verdict{sentence: fmt.Sprintf("%s %d %%: Gardener still retries: %s", name, op.Progress, f.Message)}
}

// judgeGone decides about a Shoot that is to vanish and still exists.
func judgeGone(shoot *gardencorev1beta1.Shoot, since, now time.Time) verdict {
	name := "shoot " + shoot.Namespace + "/" + shoot.Name
	op := shoot.Status.LastOperation
	switch {
	case shoot.DeletionTimestamp == nil:
		return verdict{fault: faults.New(faults.Dependency, "ShootNotDeleting", name, "it was to be deleted, but its deletion was never accepted").
			WithHint(faults.OwnerOperator, "retry the operation's step that deletes it")}
	case op == nil, op.Type != gardencorev1beta1.LastOperationTypeDelete, shoot.Status.ObservedGeneration != shoot.Generation:
		return verdict{sentence: name + ": waiting until Gardener has noticed the deletion"}
	}
	return judgeOperation(shoot, name, since, now)
}

func operationText(op *gardencorev1beta1.LastOperation) string {
	if text := strings.TrimSpace(op.Description); text != "" {
		return text
	}
	return fmt.Sprintf("%s is %s", op.Type, op.State)
}

func failureOf(shoot *gardencorev1beta1.Shoot, name string) faults.ShootFailure {
	op := shoot.Status.LastOperation
	f := faults.ShootFailure{Resource: name, Operation: string(op.Type), State: string(op.State), Description: op.Description}
	for _, e := range shoot.Status.LastErrors {
		codes := make([]string, 0, len(e.Codes))
		for _, c := range e.Codes {
			codes = append(codes, string(c))
		}
		f.Errors = append(f.Errors, faults.ShootError{Description: e.Description, Codes: codes})
	}
	return f
}

func lastErrorAt(shoot *gardencorev1beta1.Shoot) time.Time {
	at := shoot.Status.LastOperation.LastUpdateTime.Time
	for _, e := range shoot.Status.LastErrors {
		if e.LastUpdateTime != nil && e.LastUpdateTime.After(at) {
			at = e.LastUpdateTime.Time
		}
	}
	return at
}

// statusOf is what a Network publishes of its Shoot.
func statusOf(shoot *gardencorev1beta1.Shoot) contract.ShootStatus {
	s := contract.ShootStatus{
		Exists:             true,
		UID:                string(shoot.UID),
		TechnicalID:        shoot.Status.TechnicalID,
		StatusUID:          string(shoot.Status.UID),
		Generation:         shoot.Generation,
		ObservedGeneration: shoot.Status.ObservedGeneration,
		Hibernated:         shoot.Status.IsHibernated,
		Zones:              zonesOf(shoot),
	}
	if shoot.Status.SeedName != nil {
		s.SeedName = *shoot.Status.SeedName
	}
	if op := shoot.Status.LastOperation; op != nil {
		s.OperationType, s.OperationState, s.Progress = string(op.Type), string(op.State), op.Progress
	}
	for _, address := range shoot.Status.AdvertisedAddresses {
		if address.Name == constants.AdvertisedAddressServiceAccountIssuer {
			s.Issuer = address.URL
		}
	}
	return s
}

// zonesOf lists the zones that the Shoot has subnets in; without a readable
// configuration, those of its workers.
func zonesOf(shoot *gardencorev1beta1.Shoot) (zones []string) {
	var infra builders.AWSInfrastructureConfig
	if raw := shoot.Spec.Provider.InfrastructureConfig; raw != nil && json.Unmarshal(raw.Raw, &infra) == nil {
		for _, z := range infra.Networks.Zones {
			zones = append(zones, z.Name)
		}
	}
	if len(zones) > 0 {
		return zones
	}
	for _, w := range shoot.Spec.Provider.Workers {
		zones = append(zones, w.Zones...)
	}
	slices.Sort(zones)
	return slices.Compact(zones)
}
