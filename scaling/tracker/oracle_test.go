package tracker

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidbcloud/infra-orchestrator/internal/oracle"
)

type op struct {
	Op, Kind, NS, Group, Name, Alloc string
	Observed                         []string
	PendingAfter                     []string
	Index                            int
	Result                           string
	SuffixesDrawn                    int
	Panic                            any
}

type state struct {
	Kind, NS      string
	InstanceGroup map[string]string
	GroupNames    map[string][]string
	GroupPending  map[string][]string
}

type sequence struct {
	ID         string
	Suffixes   []string
	Ops        []op
	FinalState []state
}

func (s sequence) CaseID() string { return s.ID }

// answer is everything that the oracle tells about a run.
type answer struct {
	Results []string // of new (the pool) and allocate (the name and the number of draws), in order
	States  map[string]state
}

// stream feeds the suffixes of a case; the last one repeats.
type stream struct {
	suffixes []string
	drawn    int
}

func (s *stream) next() string {
	i := min(s.drawn, len(s.suffixes)-1)
	s.drawn++
	if i < 0 {
		return ""
	}
	return s.suffixes[i]
}

func TestOracle(t *testing.T) {
	oracle.Run(t, "tracker_oracle.jsonl", exceptions, func(c sequence) oracle.Verdict {
		want := expected(c)
		diff := cmp.Diff(want, product(c))
		if diff == "" {
			return oracle.Verdict{}
		}
		verdict := oracle.Verdict{Diff: diff}
		// The model without the defects must agree with us, and with the defect of the cause with the original.
		if cmp.Diff(modelled(c, false, false), product(c)) != "" {
			return verdict
		}
		switch {
		case slices.ContainsFunc(c.Ops, func(o op) bool { return o.Panic != nil }):
			if cmp.Diff(want, modelled(c, true, true)) == "" {
				verdict.Cause = causePanic
			}
		case cmp.Diff(want, modelled(c, true, false)) == "":
			verdict.Cause = causeMoved
			if slices.Equal(want.Results, product(c).Results) {
				verdict.Cause = causeMovedRecord
			}
		case cmp.Diff(want, modelled(c, false, true)) == "":
			verdict.Cause = causeObserved
		case cmp.Diff(want, modelled(c, true, true)) == "":
			verdict.Cause = causeMoved // both
		}
		return verdict
	})
}

func expected(c sequence) answer {
	a := answer{States: map[string]state{}}
	for _, o := range c.Ops {
		switch o.Op {
		case "new":
			a.Results = append(a.Results, fmt.Sprint(o.PendingAfter))
		case "allocate":
			result := fmt.Sprint(o.Result, o.SuffixesDrawn)
			if o.Panic != nil {
				result = "panic"
			}
			a.Results = append(a.Results, result)
		}
	}
	for _, s := range c.FinalState {
		a.States[s.Kind+"/"+s.NS] = normal(s)
	}
	return a
}

// normal drops empty sets: whether a set was ever touched is no behaviour.
func normal(s state) state {
	empty := func(_ string, v []string) bool { return len(v) == 0 }
	s.GroupNames, s.GroupPending = maps.Clone(s.GroupNames), maps.Clone(s.GroupPending)
	maps.DeleteFunc(s.GroupNames, empty)
	maps.DeleteFunc(s.GroupPending, empty)
	if len(s.InstanceGroup) == 0 {
		s.InstanceGroup = map[string]string{}
	}
	if len(s.GroupNames) == 0 {
		s.GroupNames = map[string][]string{}
	}
	if len(s.GroupPending) == 0 {
		s.GroupPending = map[string][]string{}
	}
	return s
}

// product runs a sequence on the package's own code.
func product(c sequence) answer {
	a := answer{States: map[string]state{}}
	suffixes := &stream{suffixes: c.Suffixes}
	f := NewWithSuffix(suffixes.next)
	handles := map[string]Allocator{}
	for _, o := range c.Ops {
		switch o.Op {
		case "restart":
			f = NewWithSuffix(suffixes.next)
		case "track":
			f.Tracker(o.Kind).Track(o.NS, o.Name, o.Group)
		case "untrack":
			f.Tracker(o.Kind).Untrack(o.NS, o.Name)
		case "new":
			handles[o.Alloc] = f.AllocateFactory(o.Kind).New(o.NS, o.Group, o.Observed...)
			a.Results = append(a.Results, fmt.Sprint(handles[o.Alloc].(*group).pool))
		case "allocate":
			before := suffixes.drawn
			name := handles[o.Alloc].Allocate(o.Index)
			a.Results = append(a.Results, outcome(name, suffixes.drawn-before, "no name"))
		}
	}
	for _, s := range c.FinalState {
		a.States[s.Kind+"/"+s.NS] = normal(snapshot(f, s.Kind, s.NS))
	}
	return a
}

func outcome(name string, drawn int, none string) string {
	if name == "" {
		return none
	}
	return fmt.Sprint(name, drawn)
}

func snapshot(f Factory, kindName, ns string) state {
	n := f.(*factory).kind(kindName).namespace(ns)
	s := state{Kind: kindName, NS: ns, InstanceGroup: maps.Clone(n.records), GroupNames: map[string][]string{}, GroupPending: map[string][]string{}}
	for name, g := range n.groups {
		s.GroupNames[name] = slices.Sorted(maps.Keys(g.names))
		s.GroupPending[name] = slices.Sorted(maps.Keys(g.pending))
	}
	return s
}

// modelled runs a sequence on the model.
func modelled(c sequence, staleGroup, observedIsFree bool) answer {
	a := answer{States: map[string]state{}}
	suffixes := &stream{suffixes: c.Suffixes}
	m := newModel(suffixes.next, staleGroup, observedIsFree)
	none := "no name"
	if staleGroup && observedIsFree { // the original with all its defects
		none = "panic"
	}
	handles := map[string]op{}
	for _, o := range c.Ops {
		switch o.Op {
		case "restart":
			m = newModel(suffixes.next, staleGroup, observedIsFree)
		case "track":
			m.track(o.Kind, o.NS, o.Name, o.Group)
		case "untrack":
			m.untrack(o.Kind, o.NS, o.Name)
		case "new":
			handles[o.Alloc] = o
			a.Results = append(a.Results, fmt.Sprint(m.newRound(o.Kind, o.NS, o.Group, o.Observed)))
		case "allocate":
			h, before := handles[o.Alloc], suffixes.drawn
			a.Results = append(a.Results, outcome(m.allocate(h.Kind, h.NS, h.Group, o.Index), suffixes.drawn-before, none))
		}
	}
	for _, s := range c.FinalState {
		a.States[s.Kind+"/"+s.NS] = normal(m.snapshot(s.Kind, s.NS))
	}
	return a
}

func (m *model) snapshot(kindName, ns string) state {
	s := state{Kind: kindName, NS: ns, InstanceGroup: map[string]string{}, GroupNames: map[string][]string{}, GroupPending: map[string][]string{}}
	for key, g := range m.records {
		if key[0] == kindName && key[1] == ns {
			s.InstanceGroup[key[2]] = g
		}
	}
	for from, to := range map[*map[[3]string]map[string]bool]map[string][]string{&m.names: s.GroupNames, &m.pending: s.GroupPending} {
		for key, set := range *from {
			if key[0] == kindName && key[1] == ns {
				to[key[2]] = slices.Sorted(maps.Keys(set))
			}
		}
	}
	return s
}
