package admission

import (
	"iter"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/plan/exclusion"
)

// Jobs are the objects that do something with a Cluster. Each may be nil for
// none.
type Jobs struct {
	Imports  iter.Seq[*v1.Import]
	Backups  iter.Seq[*v1.Backup]
	Restores iter.Seq[*v1.Restore]
	// Readers are Restores that read a backup of the Cluster.
	Readers iter.Seq[*v1.Restore]
	TiCDCs  iter.Seq[*v1.TiCDC]
}

// RunningOn lists what runs on a Cluster, by what the objects say of
// themselves. One that has not begun does not count: it waits in a queue that
// the operations keep.
func RunningOn(c *v1.Cluster, j Jobs) []exclusion.Running {
	var out []exclusion.Running
	for i := range all(j.Imports) {
		if working(i.Status.Phase) {
			out = append(out, exclusion.Running{Activity: exclusion.Import, Name: i.Name, Physical: i.Spec.Mode != v1.ImportLogical})
		}
	}
	for b := range all(j.Backups) {
		if working(b.Status.Phase) {
			out = append(out, exclusion.Running{Activity: exclusion.Backup, Name: b.Name})
		}
	}
	for r := range all(j.Restores) {
		if working(r.Status.Phase) {
			out = append(out, exclusion.Running{Activity: exclusion.Restore, Name: r.Name})
		}
	}
	for r := range all(j.Readers) {
		if working(r.Status.Phase) {
			out = append(out, exclusion.Running{Activity: exclusion.Restore, Name: r.Name, Source: true})
		}
	}
	out = append(out, replications(j.TiCDCs)...)
	return append(out, ownActivities(c)...)
}

// replications are one entry: what matters is that there are some, and how many.
func replications(ticdcs iter.Seq[*v1.TiCDC]) []exclusion.Running {
	one := exclusion.Running{Activity: exclusion.TiCDC}
	for t := range all(ticdcs) {
		if t.DeletionTimestamp != nil && t.Status.Phase == "" {
			continue // it never began
		}
		if one.Count == 0 {
			one.Name = t.Name
		}
		one.Count++
	}
	if one.Count == 0 {
		return nil
	}
	return []exclusion.Running{one}
}

// ownActivities are those of the Cluster itself.
func ownActivities(c *v1.Cluster) []exclusion.Running {
	var out []exclusion.Running
	switch c.Status.Phase {
	case v1.PhaseModifying:
		if topologyMoves(c) {
			out = append(out, exclusion.Running{Activity: exclusion.Scale})
		}
	case v1.PhaseUpgrading:
		out = append(out, exclusion.Running{Activity: exclusion.Upgrade})
	case v1.PhasePausing:
		out = append(out, exclusion.Running{Activity: exclusion.Pausing})
	case v1.PhasePaused:
		out = append(out, exclusion.Running{Activity: exclusion.Paused})
	}
	if c.Spec.BackupPolicy.PITR {
		out = append(out, exclusion.Running{Activity: exclusion.PITR})
	}
	return out
}

// topologyMoves reports whether nodes come or go. Other modifications, such as
// of endpoints, keep nothing from running.
func topologyMoves(c *v1.Cluster) bool {
	seen, t := c.Status.Observed, c.Spec.Topology
	if seen == nil {
		return true // nobody knows: the safe answer
	}
	differs := func(o *v1.ObservedComponent, want int32) bool {
		return o != nil && (o.Replicas != want || o.Ready != want)
	}
	return differs(seen.PD, t.PD.Replicas) || differs(seen.TiDB, t.TiDB.Replicas) ||
		differs(seen.TiKV, t.TiKV.Replicas) || differs(seen.TiFlash, flashes(t))
}

// working reports whether a job has begun and not ended.
func working(p v1.Phase) bool {
	switch p {
	case "", v1.PhasePending, v1.PhaseWaitingForCluster, v1.PhaseSucceeded, v1.PhaseCompleted, v1.PhaseFailed, v1.PhaseCancelled, v1.PhaseDeleting:
		return false
	}
	return true
}

// ended reports whether a job is over.
func ended(p v1.Phase) bool {
	switch p {
	case v1.PhaseSucceeded, v1.PhaseCompleted, v1.PhaseFailed, v1.PhaseCancelled:
		return true
	}
	return false
}

// all is a sequence that may be nil.
func all[T any](s iter.Seq[T]) iter.Seq[T] {
	if s == nil {
		return func(func(T) bool) {}
	}
	return s
}

// Reads reports whether a Restore reads its Backup, or will.
func Reads(r *v1.Restore) bool {
	return !ended(r.Status.Phase) && (r.DeletionTimestamp == nil || r.Status.Phase != "")
}
