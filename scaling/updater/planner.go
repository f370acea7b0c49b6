package updater

import (
	"errors"
	"fmt"
	"slices"
)

// Verb is what is to be done with an instance.
type Verb string

const (
	// Create makes a new instance at the wanted revision. Creating one that exists already must be harmless.
	Create Verb = "Create"
	// Apply brings an existing instance to the wanted revision and keeps its name and zone.
	Apply Verb = "Apply"
	// CallBack makes an instance that was asked to leave stay, at the wanted revision.
	CallBack Verb = "CallBack"
	// Defer marks an instance to be removed when the update is done.
	Defer Verb = "Defer"
	// TakeOffline asks an instance to leave, and takes the mark of Defer from it so that it can be called back.
	TakeOffline Verb = "TakeOffline"
	// Delete removes an instance.
	Delete Verb = "Delete"
)

// Step is one thing to do.
type Step struct {
	Verb     Verb
	Instance string
	// Zone of a created instance; "" without zones.
	Zone string
}

// Naming names new instances by index from 0, as tracker.Allocator does.
type Naming interface {
	Allocate(index int) string
}

// Config of a Planner.
type Config struct {
	// Names of new instances.
	Names Naming
	// Availability tells the executor whether a removed instance served.
	Availability Availability
	// ScaleIn and Update are the policies by which instances are chosen; nil means BasePolicies.
	ScaleIn, Update []Policy
	// NextZone returns the zone of a new instance, given those of the group by now (all, and the updated ones of
	// them); nil for groups without zones.
	NextZone func(all, updated []Instance) (string, error)
	// NoInPlace replaces outdated instances instead of changing them.
	NoInPlace bool
	// Offline tells that instances of this kind are asked to leave before they are deleted.
	Offline bool
}

// ErrNoName says that no name was to be had for a new instance.
var ErrNoName = errors.New("no name for the new instance")

// Planner is an Actor that writes steps down.
type Planner struct {
	config Config
	sets   Sets
	named  int
	steps  []Step
}

// Plan returns the steps from the observed sets to what is wanted. wait tells that more follows once something has
// become available, been created or gone. On an error, the steps up to it may be done.
func Plan(sets Sets, wanted Counts, config Config, options Options) (steps []Step, wait bool, err error) {
	if config.ScaleIn == nil {
		config.ScaleIn = BasePolicies()
	}
	if config.Update == nil {
		config.Update = BasePolicies()
	}
	p := &Planner{config: config, sets: Sets{
		Updated: slices.Clone(sets.Updated), Outdated: slices.Clone(sets.Outdated),
		BeingOffline: slices.Clone(sets.BeingOffline), Deleted: slices.Clone(sets.Deleted),
	}}
	counts := sets.Counts(config.Availability)
	counts.Desired, counts.MaxSurge, counts.MaxUnavailable = wanted.Desired, wanted.MaxSurge, wanted.MaxUnavailable
	wait, err = Execute(counts, p, options)
	return p.steps, wait, err
}

func (p *Planner) do(verb Verb, i Instance) {
	p.steps = append(p.steps, Step{Verb: verb, Instance: i.Name, Zone: i.Zone})
}

// ScaleOut implements Actor: it calls back an instance that is leaving, or makes a new one.
func (p *Planner) ScaleOut() error {
	if back, ok := Choose(p.sets.BeingOffline, nil); ok {
		remove(&p.sets.BeingOffline, back.Name)
		p.do(CallBack, back)
		p.sets.Updated = append(p.sets.Updated, back)
		return nil
	}
	fresh := Instance{Name: p.config.Names.Allocate(p.named), Priority: LowestPriority}
	if fresh.Name == "" {
		return fmt.Errorf("%w: it is number %d of this round", ErrNoName, p.named+1)
	}
	p.named++
	if p.config.NextZone != nil {
		zone, err := p.config.NextZone(append(slices.Clone(p.sets.Updated), p.sets.Outdated...), p.sets.Updated)
		if err != nil {
			return fmt.Errorf("choose the zone of %s: %w", fresh.Name, err)
		}
		fresh.Zone = zone
	}
	p.do(Create, fresh)
	p.sets.Updated = append(p.sets.Updated, fresh)
	return nil
}

// Update implements Actor. Where instances cannot be changed in place, one is deleted and another made at once, so
// that the surge is kept.
func (p *Planner) Update(unavailable bool) error {
	candidates := p.sets.Outdated
	if unavailable {
		candidates = PreferNotRunning(candidates)
	}
	chosen, ok := Choose(candidates, p.config.Update)
	if !ok {
		return fmt.Errorf("no outdated instance to update (unavailable: %t)", unavailable)
	}
	remove(&p.sets.Outdated, chosen.Name)
	if p.config.NoInPlace {
		p.remove(chosen)
		return p.ScaleOut()
	}
	p.do(Apply, chosen)
	chosen.Ready = false
	p.sets.Updated = append(p.sets.Updated, chosen)
	return nil
}

// ScaleInUpdated implements Actor.
func (p *Planner) ScaleInUpdated() (available bool, err error) {
	chosen, ok := Choose(p.sets.Updated, p.config.ScaleIn)
	if !ok {
		return false, errors.New("no instance at the wanted revision to remove")
	}
	remove(&p.sets.Updated, chosen.Name)
	p.remove(chosen)
	return p.config.Availability.Available(chosen), nil
}

// ScaleInOutdated implements Actor.
func (p *Planner) ScaleInOutdated() (available bool, err error) {
	chosen, ok := Choose(p.sets.Outdated, p.config.ScaleIn)
	if !ok {
		return false, errors.New("no outdated instance to remove")
	}
	remove(&p.sets.Outdated, chosen.Name)
	p.do(Defer, chosen)
	p.sets.Deleted = append(p.sets.Deleted, chosen)
	return !chosen.NotRunning, nil
}

// Cleanup implements Actor.
func (p *Planner) Cleanup() error {
	for _, i := range p.sets.Deleted {
		p.remove(i)
	}
	p.sets.Deleted = nil
	return nil
}

func (p *Planner) remove(i Instance) {
	if p.config.Offline && !i.Offline && !i.Offlined {
		p.do(TakeOffline, i)
		return
	}
	p.do(Delete, i)
}

func remove(set *[]Instance, name string) {
	*set = slices.DeleteFunc(*set, func(i Instance) bool { return i.Name == name })
}
