package tracker

import (
	"fmt"
	"slices"
	"sync"
)

// maxDraws bounds the search for a free name. With 36^6 suffixes a hundred misses mean a broken generator.
const maxDraws = 100

// New returns a Factory that draws random suffixes.
func New() Factory { return NewWithSuffix(randomSuffix) }

// NewWithSuffix returns a Factory whose names end in the given generator's suffixes; it must be safe for concurrent
// use. Tests use it for fixed names, and callers with a name limit for shorter suffixes.
func NewWithSuffix(suffix func() string) Factory {
	return &factory{suffix: suffix, kinds: map[string]*kind{}}
}

type factory struct {
	suffix func() string

	mu    sync.Mutex
	kinds map[string]*kind
}

func (f *factory) Tracker(name string) Tracker { return f.kind(name) }

func (f *factory) AllocateFactory(name string) AllocateFactory { return f.kind(name) }

func (f *factory) kind(name string) *kind {
	f.mu.Lock()
	defer f.mu.Unlock()
	k, ok := f.kinds[name]
	if !ok {
		k = &kind{suffix: f.suffix, namespaces: map[string]*namespace{}}
		f.kinds[name] = k
	}
	return k
}

// kind is both the Tracker and the AllocateFactory of one kind.
type kind struct {
	suffix func() string

	mu         sync.Mutex
	namespaces map[string]*namespace
}

func (k *kind) namespace(name string) *namespace {
	k.mu.Lock()
	defer k.mu.Unlock()
	n, ok := k.namespaces[name]
	if !ok {
		n = &namespace{records: map[string]string{}, observed: map[string]int{}, groups: map[string]*group{}}
		k.namespaces[name] = n
	}
	return n
}

func (k *kind) Track(ns, name, group string) { k.namespace(ns).track(name, group) }

func (k *kind) Untrack(ns, name string) { k.namespace(ns).untrack(name) }

func (k *kind) New(ns, groupName string, instanceNames ...string) Allocator {
	n := k.namespace(ns)
	n.mu.Lock()
	defer n.mu.Unlock()
	g := n.group(groupName)
	if g.newName == nil {
		g.newName = func() string { return groupName + "-" + k.suffix() }
	}
	n.observe(g, instanceNames)
	return g
}

// namespace holds the state of one kind in one namespace. Its lock guards everything below it, the groups included:
// record and group of a name always change in one step.
type namespace struct {
	mu       sync.Mutex
	records  map[string]string // instance name → its present group, "" = unmanaged
	observed map[string]int    // instance name → number of groups whose latest observation has it
	groups   map[string]*group
}

// group is the Allocator of one group.
type group struct {
	ns      *namespace
	name    string
	newName NewNameFunc

	names    map[string]struct{} // recorded under this group
	pending  map[string]struct{} // handed out and not observed yet
	observed []string            // latest observation, without duplicates
	pool     []string            // what Allocate answers this round, by index
}

func (n *namespace) group(name string) *group {
	g, ok := n.groups[name]
	if !ok {
		g = &group{ns: n, name: name, names: map[string]struct{}{}, pending: map[string]struct{}{}}
		n.groups[name] = g
	}
	return g
}

func (n *namespace) track(name, groupName string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if old, ok := n.records[name]; ok {
		if old == groupName {
			return
		}
		n.leave(name, old)
	}
	n.records[name] = groupName
	if groupName != "" {
		n.group(groupName).names[name] = struct{}{}
	}
}

func (n *namespace) untrack(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if old, ok := n.records[name]; ok {
		n.leave(name, old)
		delete(n.records, name)
	}
}

// leave takes a name out of a group. The name stays in pending and pool until the group's next round, so that the
// indices of a round under way do not shift.
func (n *namespace) leave(name, groupName string) {
	if g, ok := n.groups[groupName]; ok {
		delete(g.names, name)
	}
}

// observe starts a round of g.
func (n *namespace) observe(g *group, instanceNames []string) {
	for _, name := range g.observed {
		if n.observed[name]--; n.observed[name] == 0 {
			delete(n.observed, name)
		}
	}
	g.observed = slices.Clone(instanceNames)
	slices.Sort(g.observed)
	g.observed = slices.Compact(g.observed)
	for _, name := range g.observed {
		n.observed[name]++
		delete(g.pending, name)
	}
	g.pool = g.pool[:0]
	for name := range g.pending {
		if _, ok := g.names[name]; !ok {
			delete(g.pending, name)
			continue
		}
		g.pool = append(g.pool, name)
	}
	slices.Sort(g.pool)
}

// Allocate implements Allocator.
func (g *group) Allocate(index int) string {
	name, err := g.TryAllocate(index)
	if err != nil {
		return ""
	}
	return name
}

// TryAllocate implements FallibleAllocator.
func (g *group) TryAllocate(index int) (string, error) {
	if index < 0 {
		return "", fmt.Errorf("name instance %d of group %q: %w", index, g.name, ErrNegativeIndex)
	}
	g.ns.mu.Lock()
	defer g.ns.mu.Unlock()
	if index < len(g.pool) {
		return g.pool[index], nil
	}
	for range maxDraws {
		name := g.newName()
		if g.ns.taken(name) {
			continue
		}
		g.ns.records[name] = g.name
		g.names[name] = struct{}{}
		g.pending[name] = struct{}{}
		g.pool = append(g.pool, name)
		return name, nil
	}
	return "", fmt.Errorf("name instance %d of group %q: %w after %d draws", index, g.name, ErrNamesExhausted, maxDraws)
}

// taken also looks at observations: right after a start they know names that nobody has tracked yet.
func (n *namespace) taken(name string) bool {
	if _, ok := n.records[name]; ok {
		return true
	}
	return n.observed[name] > 0
}
