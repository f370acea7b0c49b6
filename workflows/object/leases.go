package object

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	"github.com/tidbcloud/infra-orchestrator/api/temporal"
)

// leases is what a keeper has granted and what waits, in the order of asking.
// It is pure, and carried from run to run.
type leases struct {
	Granted []contract.Lease `json:"granted,omitempty"`
	Waiting []contract.Lease `json:"waiting,omitempty"`

	turns []contract.Lease // granted to who waited, and who has not been told yet
}

// acquire grants the request, or queues it. Asking again changes nothing, but
// that an object's newer operation takes over what its older one held.
func (l *leases) acquire(in contract.LeaseRequest, now metav1.Time) (granted bool) {
	if at := find(l.Granted, in); at >= 0 {
		takeOver(&l.Granted[at], in)
		return true
	}
	one := contract.Lease{Name: in.Name, Holder: in.Holder, Shared: in.Shared, Since: now, Waiter: in.Waiter}
	if at := find(l.Waiting, in); at >= 0 {
		takeOver(&l.Waiting[at], in)
	} else {
		l.Waiting = append(l.Waiting, one)
	}
	l.grant(now)
	l.turns = slices.DeleteFunc(l.turns, func(one contract.Lease) bool { return find([]contract.Lease{one}, in) >= 0 })
	return l.holds(in)
}

// answer says where a request stands.
func (l *leases) answer(in contract.LeaseRequest) (a contract.LeaseAnswer) {
	if l.holds(in) {
		return a
	}
	for _, one := range l.Waiting {
		if one.Name != in.Name {
			continue
		}
		a.Place++
		if one.Holder.UID == in.Holder.UID {
			break
		}
		a.Behind = one.Holder.Object.Kind + " " + one.Holder.Object.Name
	}
	for _, one := range l.Granted {
		if one.Name == in.Name {
			a.Holds = one.Holder.Object.Kind + " " + one.Holder.Object.Name
			break
		}
	}
	return a
}

// takeOver gives a lease to the object's operation that asks; but not back to
// an earlier one, whose question was on its way for long.
func takeOver(have *contract.Lease, in contract.LeaseRequest) {
	if !temporal.LaterOperation(have.Holder.Operation, in.Holder.Operation) {
		have.Holder.Operation, have.Waiter = in.Holder.Operation, in.Waiter
	}
}

// release takes a lease, or a request that waits, away; but not what a later
// operation of the same object has taken over: the answer to whoever asks may
// have been on its way for long.
func (l *leases) release(in contract.LeaseRequest, now metav1.Time) {
	if at := find(l.Granted, in); at >= 0 && !temporal.LaterOperation(l.Granted[at].Holder.Operation, in.Holder.Operation) {
		l.Granted = slices.Delete(l.Granted, at, at+1)
	}
	if at := find(l.Waiting, in); at >= 0 && !temporal.LaterOperation(l.Waiting[at].Holder.Operation, in.Holder.Operation) {
		l.Waiting = slices.Delete(l.Waiting, at, at+1)
	}
	l.grant(now)
}

// withdraw takes a request away that still waits; what is granted stays.
func (l *leases) withdraw(in contract.LeaseRequest, now metav1.Time) {
	if at := find(l.Waiting, in); at >= 0 && !temporal.LaterOperation(l.Waiting[at].Holder.Operation, in.Holder.Operation) {
		l.Waiting = slices.Delete(l.Waiting, at, at+1)
	}
	l.grant(now) // an exclusive one may have stood before shared ones
}

// holds says whether the request is granted.
func (l *leases) holds(in contract.LeaseRequest) bool { return find(l.Granted, in) >= 0 }

// grant moves what can be granted out of the queue: first come, first served
// for each name, so that shared leases never starve an exclusive one.
func (l *leases) grant(now metav1.Time) {
	var blocked []string
	l.Waiting = slices.DeleteFunc(l.Waiting, func(w contract.Lease) bool {
		if slices.Contains(blocked, w.Name) || !l.free(w) {
			blocked = append(blocked, w.Name)
			return false
		}
		w.Since = now
		l.Granted, l.turns = append(l.Granted, w), append(l.turns, w)
		return true
	})
}

// free says whether nobody holds the name in a way that excludes w.
func (l *leases) free(w contract.Lease) bool {
	return !slices.ContainsFunc(l.Granted, func(g contract.Lease) bool {
		return g.Name == w.Name && !(g.Shared && w.Shared)
	})
}

// holders lists all who hold or wait, granted ones first; sweep takes
// positions of this list.
func (l *leases) holders() (all []contract.Holder) {
	for _, one := range slices.Concat(l.Granted, l.Waiting) {
		all = append(all, one.Holder)
	}
	return all
}

// sweep takes away what vanished holders held; it returns who they were.
func (l *leases) sweep(vanished []int, asked []contract.Holder, now metav1.Time) (gone []string) {
	is := func(one contract.Lease) bool {
		for _, at := range vanished {
			if at < len(asked) && asked[at] == one.Holder {
				return true
			}
		}
		return false
	}
	for _, one := range slices.Concat(l.Granted, l.Waiting) {
		if is(one) {
			gone = append(gone, one.Name+" of "+one.Holder.String())
		}
	}
	l.Granted = slices.DeleteFunc(l.Granted, is)
	l.Waiting = slices.DeleteFunc(l.Waiting, is)
	if len(gone) > 0 {
		l.grant(now)
	}
	return gone
}

// find returns the position of the holder's lease of that name. The holder is
// the object: it runs one operation at a time.
func find(list []contract.Lease, in contract.LeaseRequest) int {
	return slices.IndexFunc(list, func(one contract.Lease) bool {
		return one.Name == in.Name && one.Holder.UID == in.Holder.UID
	})
}
