package balancing

import (
	"slices"
	"time"
)

// PodPhase is status.phase of a pod.
type PodPhase string

// Phases that count; pods in any other are not replicas.
const (
	PodPending PodPhase = "Pending"
	PodRunning PodPhase = "Running"
)

// Pod is what matters of a pod.
type Pod struct {
	Phase   PodPhase
	Created time.Time
	// Ready tells whether the Ready condition is True.
	Ready bool
	// NotReadySince is when the Ready condition became False or Unknown; zero if the pod is ready or has no such
	// condition.
	NotReadySince time.Time
	// Terminating tells whether the pod has a deletion timestamp.
	Terminating bool
	// Ordinal is the number at the end of the pod's name if its owner is a StatefulSet, else -1.
	Ordinal int32
}

// BlockedScope tells which pods count as blocked once the startup timeout has passed.
type BlockedScope string

const (
	// BlockedNotStarted counts pods that have been Pending for longer. It is the default and the original's rule.
	BlockedNotStarted BlockedScope = "NotStarted"
	// BlockedUnavailable also counts Running pods that have not been ready for longer. It moves load away from pods
	// that hang or crash, and doubles them if their image is broken everywhere.
	BlockedUnavailable BlockedScope = "Unavailable"
)

// Counting configures Count.
type Counting struct {
	// StartupTimeout of the fallback; nil means that nothing ever counts as blocked.
	StartupTimeout *time.Duration
	// Scope defaults to BlockedNotStarted.
	Scope BlockedScope
	// BlockTerminating lets pods that are being deleted count as blocked if they are Pending, as the original does.
	// By default they are only counted as existing: they go, and what replaces them may well start.
	BlockTerminating bool
}

// Summary is what Place and Step know about the pods of a target.
type Summary struct {
	// Total is the number of replicas that exist, started or not.
	Total int32
	// Running is how many of them are in phase Running.
	Running int32
	// Ready is how many of them serve; pods that are being deleted do not count.
	Ready int32
	// Blocked is how many of them have not started (see BlockedScope) within the startup timeout.
	Blocked int32
	// UnreadyOrdinals are the ordinals of pods of a StatefulSet that are not ready, ascending. Nil for other kinds.
	UnreadyOrdinals []int32
	// Ordered tells that replicas are removed by ordinal, the highest first, as a StatefulSet does. Others remove
	// the unready first.
	Ordered bool

	// Desired is spec.replicas of the target's scale now. Only Held and Step need it.
	Desired int32
	// Held tells that the last round expected replicas of this target not to start (Placement.Fallback > 0). Its
	// replicas are then trusted only once they are ready: without that memory, replacements of blocked pods would
	// look healthy for one timeout after each change, and the duplicates would come and go with it.
	Held bool
}

// Count summarises the pods of one target at a time now.
func Count(pods []Pod, now time.Time, c Counting) Summary {
	var s Summary
	for _, p := range pods {
		switch p.Phase {
		case PodRunning:
			s.Running++
		case PodPending:
		default:
			continue
		}
		s.Total++
		if c.blocked(p, now) {
			s.Blocked++
		}
		if p.Ready && !p.Terminating {
			s.Ready++
		} else if p.Ordinal >= 0 {
			s.UnreadyOrdinals = append(s.UnreadyOrdinals, p.Ordinal)
		}
	}
	slices.Sort(s.UnreadyOrdinals)
	return s
}

// blocked: a pod exactly as old as the timeout is not.
func (c Counting) blocked(p Pod, now time.Time) bool {
	if c.StartupTimeout == nil || p.Terminating && !c.BlockTerminating {
		return false
	}
	deadline := now.Add(-*c.StartupTimeout)
	if p.Phase == PodPending {
		return p.Created.Before(deadline)
	}
	return c.Scope == BlockedUnavailable && !p.Ready && !p.NotReadySince.IsZero() && p.NotReadySince.Before(deadline)
}

// fallback is how many of placed replicas are expected not to start: the blocked pods, and those not created yet,
// less those that will be removed (which are taken to be blocked ones). A target without blocked pods has none,
// unless it is held: then every replica asked for and not ready counts.
func (s Summary) fallback(placed int64) int64 {
	var need int64
	if s.Blocked > 0 {
		need = int64(s.Blocked) + placed - int64(s.Total)
	}
	if s.Held {
		// What is placed now but was not asked for yet cannot have failed.
		need = max(need, min(placed, int64(s.Desired))-int64(s.Ready))
	}
	return max(need, 0)
}
