package updater

import (
	"math"
	"strconv"
	"time"
)

// Instance is one observed instance of a group.
type Instance struct {
	Name string
	// Revision of its specification.
	Revision string
	// Zone is where it runs.
	Zone string
	// Terminating tells that it has a deletion timestamp: it is ignored.
	Terminating bool
	// Deferred tells that it was taken out of the group and is removed once the update is done.
	Deferred bool
	// Offline tells that it was asked to leave, Offlined that it has left. Only some kinds know that.
	Offline, Offlined bool
	// Ready tells that it serves, at its present generation, since ReadySince. UpToDate tells that it runs what its
	// specification says.
	Ready      bool
	ReadySince time.Time
	UpToDate   bool
	// NotRunning tells that it is known not to run, at its present generation.
	NotRunning bool
	// Leader tells that its removal makes others elect a leader.
	Leader bool
	// Priority to be removed first: lower goes earlier, see ParsePriority.
	Priority int
}

// LowestPriority is the priority of an instance that has none.
const LowestPriority = math.MaxInt

// ParsePriority reads the value of a priority annotation. Anything but a number from 0 on is LowestPriority.
func ParsePriority(value string) int {
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 {
		return LowestPriority
	}
	return n
}

// Sets are the instances of a group by what may be done with them. An instance is in at most one.
type Sets struct {
	// Updated and Outdated make up the group.
	Updated, Outdated []Instance
	// BeingOffline were asked to leave and have not left; they can be called back.
	BeingOffline []Instance
	// Deleted are out of the group, to be removed for good by Cleanup.
	Deleted []Instance
}

// Split sorts instances by the first rule that fits: terminating ones are ignored; deferred or offlined ones are
// deleted; those asked to leave are being offline; the rest is updated or outdated by revision.
func Split(instances []Instance, revision string) Sets {
	var s Sets
	for _, i := range instances {
		switch {
		case i.Terminating:
		case i.Deferred || i.Offlined:
			s.Deleted = append(s.Deleted, i)
		case i.Offline:
			s.BeingOffline = append(s.BeingOffline, i)
		case i.Revision == revision:
			s.Updated = append(s.Updated, i)
		default:
			s.Outdated = append(s.Outdated, i)
		}
	}
	return s
}

// Availability is the rule for when an instance at the wanted revision counts as available.
type Availability struct {
	Now time.Time
	// MinReady is how long it must have been ready.
	MinReady time.Duration
}

// Available tells whether an instance at the wanted revision is available.
func (a Availability) Available(i Instance) bool {
	return i.Ready && i.UpToDate && a.Now.Sub(i.ReadySince) > a.MinReady
}

// Recheck returns after which time an instance that is ready becomes available without another event; 0 if there is
// none to wait for.
func (a Availability) Recheck(instances []Instance) time.Duration {
	var soonest time.Duration
	for _, i := range instances {
		if !i.Ready || !i.UpToDate || i.Terminating || a.Available(i) {
			continue
		}
		// Available needs longer than MinReady, hence the smallest step more.
		if left := a.MinReady - a.Now.Sub(i.ReadySince) + 1; soonest == 0 || left < soonest {
			soonest = left
		}
	}
	return soonest
}

// Counts fills the numbers of Execute from the sets; the caller adds what is wanted. Outdated instances count as
// unavailable only if they are known not to run: an update would restart them anyway.
func (s Sets) Counts(a Availability) Counts {
	c := Counts{Updated: len(s.Updated), Outdated: len(s.Outdated)}
	for _, i := range s.Updated {
		if !a.Available(i) {
			c.UnavailableUpdated++
		}
	}
	for _, i := range s.Outdated {
		if i.NotRunning {
			c.UnavailableOutdated++
		}
	}
	return c
}
