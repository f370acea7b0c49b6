package control

import (
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/tidbcloud/infra-orchestrator/dev/gardenlet"
)

// Registry holds the faults that are on. All methods are safe for concurrent
// use; the zero value is not usable, use NewRegistry. Its method Shoot makes it
// the gardenlet.Faults of the stack.
type Registry struct {
	now func() time.Time

	mu      sync.Mutex
	last    int
	faults  []*Fault
	changed chan struct{}
}

var _ gardenlet.Faults = (*Registry)(nil)

// NewRegistry returns a registry with nothing switched on.
func NewRegistry() *Registry {
	return &Registry{now: time.Now, changed: make(chan struct{})}
}

// Add switches a fault on and returns it with its ID. Later faults are asked
// after earlier ones.
func (r *Registry) Add(f Fault) (Fault, error) {
	if err := f.Validate(); err != nil {
		return Fault{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	f.ID, f.Hits, f.Expires = "f"+strconv.Itoa(r.last), 0, nil
	f.complete()
	if f.Rate > 0 {
		f.allowance = rate.NewLimiter(rate.Limit(f.Rate), max(int(f.Rate), 1))
	}
	if f.For > 0 {
		end := r.now().Add(time.Duration(f.For))
		f.Expires = &end
	}
	r.faults = append(r.faults, &f)
	r.announce()
	return f, nil
}

// Remove switches one fault off and reports whether it was there.
func (r *Registry) Remove(id string) bool {
	return r.removeIf(func(f *Fault) bool { return f.ID == id }) > 0
}

// Clear switches all faults of a target off, or all when target is empty, and
// returns how many there were.
func (r *Registry) Clear(target Target) int {
	return r.removeIf(func(f *Fault) bool { return target == "" || f.Target == target })
}

func (r *Registry) removeIf(drop func(*Fault) bool) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := len(r.faults)
	r.faults = slices.DeleteFunc(r.faults, drop)
	if len(r.faults) != before {
		r.announce()
	}
	return before - len(r.faults)
}

// List returns the faults that are on, oldest first.
func (r *Registry) List() []Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expire()
	list := make([]Fault, 0, len(r.faults))
	for _, f := range r.faults {
		list = append(list, *f)
	}
	return list
}

// Strike returns the first fault that fits the subject and counts the hit; a
// fault whose Count is used up is removed.
func (r *Registry) Strike(target Target, s Subject) (Fault, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expire()
	for i, f := range r.faults {
		if f.Target != target || f.Kind == KindEventual || !f.matches(s) || f.spares(r.now()) {
			continue
		}
		r.hit(i)
		return *f, true
	}
	return Fault{}, false
}

// hit counts a hit of the fault at i. The caller holds the lock.
func (r *Registry) hit(i int) {
	f := r.faults[i]
	f.Hits++
	if f.Count > 0 && f.Hits >= f.Count {
		r.faults = slices.Delete(r.faults, i, i+1)
		r.announce()
	}
}

// Eventual returns the first fault of KindEventual that fits the subject.
// Whether it strikes is known to the stand-in only, which then calls Hit.
func (r *Registry) Eventual(target Target, s Subject) (Fault, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expire()
	for _, f := range r.faults {
		if f.Target == target && f.Kind == KindEventual && f.matches(s) {
			return *f, true
		}
	}
	return Fault{}, false
}

// Hit counts a hit of a fault that Eventual has returned.
func (r *Registry) Hit(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.IndexFunc(r.faults, func(f *Fault) bool { return f.ID == id }); i >= 0 {
		r.hit(i)
	}
}

// Stuck reports whether a stuck state is on for the subject.
func (r *Registry) Stuck(target Target, s Subject) bool {
	f, ok := r.Strike(target, s)
	return ok && f.Kind == KindStuck
}

// Changed returns a channel that is closed at the next change of the set of
// faults. A fault that expires closes it only when somebody looks.
func (r *Registry) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// Shoot implements gardenlet.Faults.
func (r *Registry) Shoot(namespace, name, phase string) (gardenlet.Fault, bool) {
	f, ok := r.Strike(TargetShoot, Subject{Namespace: namespace, Name: name, ShootName: name, Phase: phase})
	if !ok {
		return gardenlet.Fault{}, false
	}
	kind := map[Kind]gardenlet.FaultKind{
		KindStuck: gardenlet.FaultStuck, KindError: gardenlet.FaultError, KindDelay: gardenlet.FaultDelay,
	}[f.Kind]
	return gardenlet.Fault{
		Kind: kind, Progress: f.Progress, Codes: f.Codes, Message: f.Message, Delay: time.Duration(f.Delay),
	}, true
}

// expire drops faults whose time is over. The caller holds the lock.
func (r *Registry) expire() {
	now, before := r.now(), len(r.faults)
	r.faults = slices.DeleteFunc(r.faults, func(f *Fault) bool { return f.Expires != nil && !now.Before(*f.Expires) })
	if len(r.faults) != before {
		r.announce()
	}
}

// announce wakes those who wait on Changed. The caller holds the lock.
func (r *Registry) announce() {
	close(r.changed)
	r.changed = make(chan struct{})
}
