package tracker

import "slices"

// model is an independent, single-threaded statement of the rules. With its switches on it has the original's
// defects; the oracle test uses that to prove that a difference comes from a mended defect and from nothing else.
type model struct {
	staleGroup     bool // a moved instance keeps its first group in the record
	observedIsFree bool // an observed name that nobody tracked may be generated again

	suffix  func() string
	records map[[3]string]string // kind, namespace, name → group
	names   map[[3]string]map[string]bool
	pending map[[3]string]map[string]bool
	pool    map[[3]string][]string
	seen    map[[3]string][]string // kind, namespace, group → latest observation
}

func newModel(suffix func() string, staleGroup, observedIsFree bool) *model {
	return &model{
		staleGroup: staleGroup, observedIsFree: observedIsFree, suffix: suffix,
		records: map[[3]string]string{}, names: map[[3]string]map[string]bool{}, pending: map[[3]string]map[string]bool{},
		pool: map[[3]string][]string{}, seen: map[[3]string][]string{},
	}
}

func put(m map[[3]string]map[string]bool, key [3]string, name string) {
	if m[key] == nil {
		m[key] = map[string]bool{}
	}
	m[key][name] = true
}

func (m *model) track(kind, ns, name, group string) {
	key := [3]string{kind, ns, name}
	old, known := m.records[key]
	if known && old == group {
		return
	}
	if known {
		delete(m.names[[3]string{kind, ns, old}], name)
	}
	if group != "" {
		put(m.names, [3]string{kind, ns, group}, name)
	}
	if !known || !m.staleGroup {
		m.records[key] = group
	}
}

func (m *model) untrack(kind, ns, name string) {
	key := [3]string{kind, ns, name}
	if old, known := m.records[key]; known {
		delete(m.names[[3]string{kind, ns, old}], name)
		delete(m.records, key)
	}
}

func (m *model) newRound(kind, ns, group string, observed []string) []string {
	key := [3]string{kind, ns, group}
	m.seen[key] = observed
	m.pool[key] = nil
	for name := range m.pending[key] {
		if slices.Contains(observed, name) || !m.names[key][name] {
			delete(m.pending[key], name)
			continue
		}
		m.pool[key] = append(m.pool[key], name)
	}
	slices.Sort(m.pool[key])
	return m.pool[key]
}

func (m *model) allocate(kind, ns, group string, index int) string {
	key := [3]string{kind, ns, group}
	if index < 0 {
		return ""
	}
	if index < len(m.pool[key]) {
		return m.pool[key][index]
	}
	for range 100 {
		name := group + "-" + m.suffix()
		if _, known := m.records[[3]string{kind, ns, name}]; known || m.reserved(kind, ns, name) {
			continue
		}
		m.records[[3]string{kind, ns, name}] = group
		put(m.names, key, name)
		put(m.pending, key, name)
		m.pool[key] = append(m.pool[key], name)
		return name
	}
	return ""
}

func (m *model) reserved(kind, ns, name string) bool {
	if m.observedIsFree {
		return false
	}
	for key, observed := range m.seen {
		if key[0] == kind && key[1] == ns && slices.Contains(observed, name) {
			return true
		}
	}
	return false
}
