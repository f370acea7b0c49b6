// Package exclusion says what may run beside what on one Cluster, or must wait,
// or is refused. It is pure: the webhooks ask it before an object is accepted,
// the operations before they start, and both tell the same words.
package exclusion

import (
	"cmp"
	"fmt"
	"slices"
)

// Want is what wants to start: a row of the matrix.
type Want string

// What may want to start.
const (
	WantImport     Want = "Import"
	WantBackup     Want = "Backup"     // one that a person asks for
	WantAutoBackup Want = "AutoBackup" // one of the schedule
	WantRestore    Want = "Restore"    // into the Cluster
	WantTiCDC      Want = "TiCDC"
	WantScale      Want = "Scale" // any change of the topology
	WantUpgrade    Want = "Upgrade"
	WantPause      Want = "Pause"
	WantDelete     Want = "Delete"    // of the Cluster
	WantHibernate  Want = "Hibernate" // of its Network
)

// Wants lists everything that may want to start, in the order of the matrix.
func Wants() []Want {
	return []Want{
		WantImport, WantBackup, WantAutoBackup, WantRestore, WantTiCDC,
		WantScale, WantUpgrade, WantPause, WantDelete, WantHibernate,
	}
}

// Activity is what runs: a column of the matrix.
type Activity string

// What may run.
const (
	Import  Activity = "Import"
	Backup  Activity = "Backup" // one that a person asked for
	Restore Activity = "Restore"
	TiCDC   Activity = "TiCDC"
	Scale   Activity = "Scale"
	Upgrade Activity = "Upgrade"
	Pausing Activity = "Pausing"
	Paused  Activity = "Paused"
	PITR    Activity = "PITR" // the log is backed up for point-in-time recovery
)

// Activities lists everything that may run, in the order of the matrix.
func Activities() []Activity {
	return []Activity{Import, Backup, Restore, TiCDC, Scale, Upgrade, Pausing, Paused, PITR}
}

// MostTiCDCs is how many TiCDCs may read one Cluster.
const MostTiCDCs = 100

// Request is what wants to start, with what makes a difference about it.
type Request struct {
	Want Want
	// Physical, of an Import: it writes below SQL.
	Physical bool
	// Target, of a TiCDC: the Cluster is where it writes to.
	Target bool
}

// Running is what runs on the Cluster, with what makes a difference about it.
type Running struct {
	Activity Activity
	// Name of the object, for messages; "" for the Cluster's own.
	Name string
	// Physical, of an Import: it writes below SQL.
	Physical bool
	// Source, of a Restore: it reads a backup of the Cluster and writes to
	// another one.
	Source bool
	// Count, of TiCDC: how many there are; 0 counts as one.
	Count int
	// Others, of a Cluster that is paused: other Clusters of the Network are not.
	Others bool
}

// Decision is what becomes of a request.
type Decision string

// Decisions, from the least to the most in the way.
const (
	// Allow: it starts.
	Allow Decision = "Allow"
	// NoOp: it is so already.
	NoOp Decision = "NoOp"
	// StopLog: it starts, and stops the log backup first.
	StopLog Decision = "StopLog"
	// StepBorder: it starts when the running operation's step has ended.
	StepBorder Decision = "StepBorder"
	// Cancel: it starts once the other was cancelled.
	Cancel Decision = "Cancel"
	// Queue: it is accepted and waits.
	Queue Decision = "Queue"
	// Delay: the schedule tries again a little later.
	Delay Decision = "Delay"
	// Skip: the schedule leaves this one out.
	Skip Decision = "Skip"
	// Block: it is accepted, and waits until a person ends the other.
	Block Decision = "Block"
	// Reject: it is refused.
	Reject Decision = "Reject"
)

// order of the decisions, by how much they are in the way.
var order = []Decision{Allow, NoOp, StopLog, StepBorder, Cancel, Queue, Delay, Skip, Block, Reject}

// Outcome is a decision with its reason.
type Outcome struct {
	Decision Decision
	// Running that decides; zero when nothing runs.
	Running Running
	// Reason for conditions, in CamelCase; "" with Allow.
	Reason string
	// Message is one sentence with the way out; "" with Allow.
	Message string
}

// Decide compares a request with one thing that runs.
func Decide(r Request, running Running) Outcome {
	d := cell(r, running)
	if d == Allow {
		return Outcome{Decision: Allow, Running: running}
	}
	return Outcome{Decision: d, Running: running, Reason: reason(r, running, d), Message: message(r, running, d)}
}

// DecideAll compares a request with everything that runs on the Cluster, and
// returns the outcome that is most in the way; of equal ones the first.
func DecideAll(r Request, running ...Running) Outcome {
	worst := Outcome{Decision: Allow}
	for _, one := range running {
		if o := Decide(r, one); slices.Index(order, o.Decision) > slices.Index(order, worst.Decision) {
			worst = o
		}
	}
	return worst
}

// Rejections are all outcomes of class Reject, for a message that names
// everything at once.
func Rejections(r Request, running ...Running) []Outcome {
	var out []Outcome
	for _, one := range running {
		if o := Decide(r, one); o.Decision == Reject {
			out = append(out, o)
		}
	}
	return out
}

// matrix holds the cells that depend on row and column only. What is absent is
// in cell.
var matrix = map[Want]map[Activity]Decision{
	WantImport: {
		Import: Queue, Backup: Queue, Restore: Reject, Scale: Queue, Upgrade: Queue, Pausing: Reject, Paused: Reject,
	},
	WantBackup: {
		Import: Reject, Backup: Queue, Restore: Reject, TiCDC: Allow, Scale: Reject, Upgrade: Queue, Pausing: Reject, Paused: Reject, PITR: Allow,
	},
	WantAutoBackup: {
		Import: Delay, Backup: Delay, Restore: Skip, TiCDC: Allow, Scale: Delay, Upgrade: Delay, Pausing: Skip, Paused: Skip, PITR: Allow,
	},
	WantRestore: {
		Import: Reject, Backup: Reject, Restore: Reject, TiCDC: Reject, Scale: Queue, Upgrade: Queue, Pausing: Reject, Paused: Reject, PITR: Reject,
	},
	WantTiCDC: {
		Backup: Allow, Restore: Reject, Scale: Queue, Upgrade: Queue, Pausing: Reject, Paused: Reject,
	},
	WantScale: {
		Import: Queue, Backup: Queue, Restore: Queue, TiCDC: Allow, Scale: Queue, Upgrade: Queue, Pausing: Reject, Paused: Reject, PITR: Allow,
	},
	WantUpgrade: {
		Import: Queue, Backup: Queue, Restore: Queue, TiCDC: Allow, Scale: Queue, Upgrade: Queue, Pausing: Reject, Paused: Reject, PITR: Allow,
	},
	WantPause: {
		Import: Reject, Backup: Reject, Restore: Reject, TiCDC: Reject, Scale: Queue, Upgrade: Queue, Pausing: NoOp, Paused: NoOp, PITR: Reject,
	},
	WantDelete: {
		Import: Cancel, Backup: Cancel, TiCDC: Block, Scale: StepBorder, Upgrade: StepBorder, Pausing: Allow, Paused: Allow, PITR: StopLog,
	},
	WantHibernate: {
		Import: Reject, Backup: Reject, Restore: Reject, TiCDC: Reject, Scale: Reject, Upgrade: Reject, Pausing: Reject,
		// A Cluster with point-in-time recovery is never paused, so that its
		// Network never gets here.
		PITR: Reject,
	},
}

// cell looks up the matrix, and knows the cells with a condition.
func cell(r Request, running Running) Decision {
	reject := func(when bool) Decision {
		if when {
			return Reject
		}
		return Allow
	}
	switch {
	case r.Want == WantImport && (running.Activity == TiCDC || running.Activity == PITR):
		return reject(r.Physical) // what is written below SQL is in no log
	case r.Want == WantTiCDC && running.Activity == Import:
		return reject(running.Physical)
	case r.Want == WantTiCDC && running.Activity == TiCDC:
		return reject(cmp.Or(running.Count, 1) >= MostTiCDCs)
	case r.Want == WantTiCDC && running.Activity == PITR:
		return reject(r.Target)
	case r.Want == WantDelete && running.Activity == Restore && running.Source:
		return Block
	case r.Want == WantDelete && running.Activity == Restore:
		return Cancel
	case r.Want == WantHibernate && running.Activity == Paused:
		return reject(running.Others)
	}
	if d, ok := matrix[r.Want][running.Activity]; ok {
		return d
	}
	return Reject // what nobody has thought of does not run beside anything
}

// reason is the same for a request that a webhook refuses and one that an
// operation refuses.
func reason(r Request, running Running, d Decision) string {
	switch d {
	case Queue, Delay, StepBorder:
		return "WaitingFor" + string(running.Activity)
	case Block:
		return "DeletionBlocked"
	case Cancel:
		return "Cancels" + string(running.Activity)
	case Skip:
		return "SkippedFor" + string(running.Activity)
	case NoOp:
		return "Already" + string(running.Activity)
	case StopLog:
		return "StopsLogBackup"
	}
	return string(r.Want) + "NotAllowed"
}

// does is what a request does, in a sentence that says why it cannot.
var does = map[Want]string{
	WantImport:     "an Import cannot start",
	WantBackup:     "a Backup cannot start",
	WantAutoBackup: "a scheduled backup does not start",
	WantRestore:    "a Restore cannot start",
	WantTiCDC:      "a TiCDC cannot start",
	WantScale:      "the topology cannot change",
	WantUpgrade:    "an upgrade cannot start",
	WantPause:      "the Cluster cannot pause",
	WantDelete:     "the Cluster is not deleted yet",
	WantHibernate:  "the Network cannot hibernate",
}

func message(r Request, running Running, d Decision) string {
	switch d {
	case Reject:
		return fmt.Sprintf("%s, %s; %s", is(r, running), does[r.Want], wayOut(r, running))
	case Queue, Delay, StepBorder:
		return fmt.Sprintf("%s; it starts by itself when that has ended", is(r, running))
	case Skip:
		return fmt.Sprintf("%s, so this backup is left out; the schedule goes on with the next one", is(r, running))
	case Block:
		return fmt.Sprintf("%s, %s; %s", is(r, running), does[r.Want], wayOut(r, running))
	case Cancel:
		return fmt.Sprintf("%s; it is cancelled first", is(r, running))
	case StopLog:
		return "the log backup of point-in-time recovery is stopped first"
	}
	return is(r, running) + " already" // NoOp
}

// is says what runs.
func is(r Request, running Running) string {
	name := string(running.Activity)
	if running.Name != "" {
		name += " " + running.Name
	}
	switch running.Activity {
	case Import, Backup:
		return name + " runs on the Cluster"
	case Restore:
		if running.Source {
			return name + " reads a backup of the Cluster"
		}
		return name + " writes to the Cluster"
	case TiCDC:
		if r.Want == WantTiCDC {
			return fmt.Sprintf("the Cluster has %d TiCDCs, the largest number", cmp.Or(running.Count, 1))
		}
		return name + " replicates from or to the Cluster"
	case Scale:
		return "the Cluster's topology is being changed"
	case Upgrade:
		return "the Cluster is being upgraded"
	case Pausing:
		return "the Cluster is pausing"
	case Paused:
		if r.Want == WantHibernate {
			return "not all Clusters of the Network are paused"
		}
		return "the Cluster is paused"
	}
	return "point-in-time recovery is on for the Cluster"
}

// wayOut says what a person can do about what runs.
func wayOut(r Request, running Running) string {
	switch running.Activity {
	case Import, Restore, Backup:
		return "wait until it has ended, or set its spec.cancel"
	case TiCDC:
		if r.Want == WantTiCDC {
			return "delete one of them first"
		}
		if r.Want == WantImport {
			return "set the Import's spec.mode to Logical, or delete the TiCDC first"
		}
		return "delete it first"
	case Scale, Upgrade:
		return "wait until the Cluster is Available again"
	case Pausing:
		return "wait until it is Paused, then set its spec.paused to false"
	case Paused:
		if r.Want == WantHibernate {
			return "pause the others first"
		}
		return "set its spec.paused to false and wait until it is Available"
	}
	if r.Want == WantTiCDC {
		return "replicate to a Cluster without it"
	}
	if r.Want == WantImport {
		return "set the Import's spec.mode to Logical, or spec.backupPolicy.pitr of the Cluster to false"
	}
	return "set spec.backupPolicy.pitr of the Cluster to false first"
}
