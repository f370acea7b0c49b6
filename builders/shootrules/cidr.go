package shootrules

import (
	"net/netip"
	"strconv"
)

// network is a range with the field that it came from.
type network struct {
	path   string
	text   string
	prefix netip.Prefix // invalid when the text is not canonical IPv4
}

func newNetwork(path, text string) network {
	p, err := netip.ParsePrefix(text)
	if err != nil || !p.Addr().Is4() || p != p.Masked() {
		p = netip.Prefix{}
	}
	return network{path: path, text: text, prefix: p}
}

func (n network) valid() bool { return n.prefix.IsValid() }

// within reports whether n lies in outer. Ranges that are not valid have been
// reported and count as within.
func (n network) within(outer network) bool {
	if !n.valid() || !outer.valid() {
		return true
	}
	return outer.prefix.Bits() <= n.prefix.Bits() && outer.prefix.Contains(n.prefix.Addr())
}

func (n network) overlaps(other network) bool {
	return n.valid() && other.valid() && n.prefix.Overlaps(other.prefix)
}

// overlapping calls found for each range that overlaps one before it.
func overlapping(ranges []network, found func(string, any)) {
	for i, n := range ranges {
		for _, other := range ranges[:i] {
			if n.overlaps(other) {
				found(n.path, n.text+", "+other.path+" "+other.text)
			}
		}
	}
}

// networking are the ranges of spec.networking that are given.
func (s *subject) networking() (nodes, pods, services network) {
	n := s.shoot.Spec.Networking
	if n == nil {
		return network{}, network{}, network{}
	}
	of := func(name string, v *string) network {
		if v == nil {
			return network{}
		}
		return newNetwork("spec.networking."+name, *v)
	}
	return of("nodes", n.Nodes), of("pods", n.Pods), of("services", n.Services)
}

// at is the path of a worker pool.
func at(i int) string { return workersPath + "[" + strconv.Itoa(i) + "]" }

// item is the path of an element of a list.
func item(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }
