package updater

// Counts is the state of a group in numbers, and what is wanted.
type Counts struct {
	// Updated and Outdated are the numbers of instances at the wanted and at another revision.
	Updated, Outdated int
	// UnavailableUpdated and UnavailableOutdated are how many of them do not serve.
	UnavailableUpdated, UnavailableOutdated int
	// Desired is the wanted number of instances.
	Desired int
	// MaxSurge is how many more may exist during an update, MaxUnavailable how many of Desired may not serve.
	MaxSurge, MaxUnavailable int
}

// Options change the order of decisions. The zero value is the original's.
type Options struct {
	// UpdateFirst updates outdated instances before it scales out, as long as more are available than must be, so
	// that a growing group does not wait for its new instances before the first update. While the group is below
	// Desired, MaxUnavailable is taken of the instances that exist.
	UpdateFirst bool
}

// Actor carries out decisions, or writes them down. An error ends the run.
type Actor interface {
	// ScaleOut adds an instance at the wanted revision.
	ScaleOut() error
	// Update brings one outdated instance to the wanted revision: one that does not serve if unavailable is set.
	Update(unavailable bool) error
	// ScaleInUpdated removes an instance at the wanted revision and tells whether it served.
	ScaleInUpdated() (available bool, err error)
	// ScaleInOutdated takes an outdated instance out of the group and tells whether it served. It goes for good only
	// in Cleanup.
	ScaleInOutdated() (available bool, err error)
	// Cleanup removes for good what was taken out. It is called only once all wanted instances are at the wanted
	// revision and available.
	Cleanup() error
}

// Execute makes decisions until the group is as wanted, or until something has to become available first: then wait
// is true and the next observation should start a new run.
func Execute(c Counts, actor Actor, options Options) (wait bool, err error) {
	r := &run{Counts: c, actor: actor, options: options}
	for r.Updated != r.Desired || r.Outdated != 0 {
		if wait, err := r.step(); wait || err != nil {
			return wait, err
		}
	}
	if r.UnavailableUpdated > 0 {
		return true, nil
	}
	return false, actor.Cleanup()
}

type run struct {
	Counts
	actor   Actor
	options Options
}

func (r *run) actual() int    { return r.Updated + r.Outdated }
func (r *run) available() int { return r.actual() - r.UnavailableUpdated - r.UnavailableOutdated }
func (r *run) minimum() int   { return r.Desired - r.MaxUnavailable }

// step makes one decision.
func (r *run) step() (wait bool, err error) {
	maximum := r.Desired + min(r.MaxSurge, r.Outdated)
	switch {
	case r.actual() < maximum:
		if r.updatesFirst() {
			return false, r.update()
		}
		return false, r.scaleOut()
	case r.actual() == maximum && r.Updated < r.Desired:
		if r.UnavailableOutdated == 0 && r.available() <= r.minimum() {
			return true, nil
		}
		return false, r.update()
	case r.actual() == maximum:
		if r.available() <= r.minimum() && r.UnavailableUpdated > 0 {
			return true, nil
		}
		_, err := r.scaleInOutdated()
		return false, err
	case r.Updated > r.Desired:
		available, err := r.scaleInUpdated()
		return r.lastAvailable(available, err), err
	default:
		available, err := r.scaleInOutdated()
		return r.lastAvailable(available, err), err
	}
}

func (r *run) updatesFirst() bool {
	if !r.options.UpdateFirst || r.Outdated == 0 || r.Updated >= r.Desired {
		return false
	}
	return r.UnavailableOutdated > 0 || r.available() > min(r.Desired, r.actual())-r.MaxUnavailable
}

// lastAvailable: after an available instance was removed, no more may be if too few are left.
func (r *run) lastAvailable(removed bool, err error) bool {
	return err == nil && removed && r.available() <= r.minimum()
}

func (r *run) scaleOut() error {
	r.Updated++
	r.UnavailableUpdated++
	return r.actor.ScaleOut()
}

func (r *run) update() error {
	unavailable := r.UnavailableOutdated > 0
	if unavailable {
		r.UnavailableOutdated--
	}
	r.Outdated--
	r.Updated++
	r.UnavailableUpdated++
	return r.actor.Update(unavailable)
}

func (r *run) scaleInUpdated() (available bool, err error) {
	available, err = r.actor.ScaleInUpdated()
	r.Updated--
	if !available {
		r.UnavailableUpdated = max(r.UnavailableUpdated-1, 0)
	}
	return available, err
}

func (r *run) scaleInOutdated() (available bool, err error) {
	available, err = r.actor.ScaleInOutdated()
	r.Outdated--
	if !available {
		r.UnavailableOutdated = max(r.UnavailableOutdated-1, 0)
	}
	return available, err
}
