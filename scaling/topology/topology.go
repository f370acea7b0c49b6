// Package topology chooses zones for new instances, and instances to remove, so that zones stay in the wanted ratio.
// It is pure and works with whole numbers only.
package topology

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Zone is a place for instances, with the share that it should get.
type Zone struct {
	Name string
	// Weight defaults to 1. A zone of weight 0 is meant to hold no more than the one instance of an empty zone.
	Weight *int32
}

// Scheduler keeps the zone of every instance. Instances that are going away should not be in it.
//
// The zero value has no zones; use New. A Scheduler is not safe for concurrent use.
type Scheduler struct {
	zones     []zone
	index     map[string]int    // of zones, by name
	instances map[string]string // instance → zone, which may be unknown
	weights   int64
	total     int64 // instances in known zones
}

type zone struct {
	name   string
	weight int64
	count  int64
}

// New returns a Scheduler over zones, in their order of preference. It fails for a name that occurs twice and for a
// negative weight.
func New(zones ...Zone) (*Scheduler, error) {
	s := &Scheduler{index: map[string]int{}, instances: map[string]string{}}
	for i, z := range zones {
		if _, twice := s.index[z.Name]; twice {
			return nil, fmt.Errorf("zone %q is listed twice", z.Name)
		}
		weight := int64(1)
		if z.Weight != nil {
			weight = int64(*z.Weight)
		}
		if weight < 0 {
			return nil, fmt.Errorf("zone %q has the negative weight %d", z.Name, weight)
		}
		s.index[z.Name] = i
		s.zones = append(s.zones, zone{name: z.Name, weight: weight})
		s.weights += weight
	}
	return s, nil
}

// Add records an instance and its zone. An instance that is known already moves.
func (s *Scheduler) Add(instance, zoneName string) {
	s.Remove(instance)
	s.instances[instance] = zoneName
	if i, known := s.index[zoneName]; known {
		s.zones[i].count++
		s.total++
	}
}

// Remove forgets an instance; an unknown one is ignored.
func (s *Scheduler) Remove(instance string) {
	zoneName, ok := s.instances[instance]
	if !ok {
		return
	}
	delete(s.instances, instance)
	if i, known := s.index[zoneName]; known {
		s.zones[i].count--
		s.total--
	}
}

// NextAdd returns the zones where an instance is missing most, in the order of the zones; nil without zones. An
// empty zone counts as lacking one more instance than there are zones, so that no zone starves.
func (s *Scheduler) NextAdd() []string {
	var best []string
	lacking := s.each(func(z zone) (int64, bool) {
		count := z.count
		if count == 0 {
			count = -int64(len(s.zones))
		}
		return z.weight*s.total - count*s.weights, true
	})
	for i, most := range lacking {
		if most {
			best = append(best, s.zones[i].name)
		}
	}
	return best
}

// NextRemove returns the instances of which one should go first, sorted by name; nil without instances. Instances in
// unknown zones come first, then those in the zones that have most beyond their share. The last
// instance of a zone counts as lacking in the same way, so that zones are emptied last.
func (s *Scheduler) NextRemove() []string {
	var strangers []string
	for instance, zoneName := range s.instances {
		if _, known := s.index[zoneName]; !known {
			strangers = append(strangers, instance)
		}
	}
	if len(strangers) > 0 {
		slices.Sort(strangers)
		return strangers
	}
	crowded := s.each(func(z zone) (int64, bool) {
		count := z.count
		if count == 1 {
			count = -int64(len(s.zones))
		}
		return count*s.weights - s.total*z.weight, z.count > 0
	})
	var best []string
	for _, instance := range slices.Sorted(maps.Keys(s.instances)) {
		if crowded[s.index[s.instances[instance]]] {
			best = append(best, instance)
		}
	}
	return best
}

// each tells of every zone whether it has the largest score among those that take part.
func (s *Scheduler) each(score func(zone) (int64, bool)) []bool {
	marks, found, best := make([]bool, len(s.zones)), false, int64(0)
	for i, z := range s.zones {
		n, ok := score(z)
		if !ok {
			continue
		}
		if !found || n > best {
			clear(marks)
			found, best = true, n
		}
		marks[i] = n == best
	}
	return marks
}

// Choose returns the zone of the next instance during a replacement: all knows every instance, updated only those of
// the new revision. It is the first zone that is best for both, else the first that is best for all.
func Choose(all, updated *Scheduler) (string, error) {
	candidates := all.NextAdd()
	if len(candidates) == 0 {
		return "", errors.New("there is no zone to choose from")
	}
	wanted := updated.NextAdd()
	if i := slices.IndexFunc(candidates, func(name string) bool { return slices.Contains(wanted, name) }); i >= 0 {
		return candidates[i], nil
	}
	return candidates[0], nil
}
