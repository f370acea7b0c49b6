package tracker

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func fixed(suffixes ...string) Factory {
	return NewWithSuffix((&stream{suffixes: suffixes}).next)
}

// A moved instance that comes back is offered again, so that no second object is made.
func TestMovedInstanceIsOfferedAgain(t *testing.T) {
	f := fixed("aaaaaa", "bbbbbb")
	first := f.AllocateFactory("tidb").New("ns", "db").Allocate(0)
	f.Tracker("tidb").Track("ns", first, "other")
	f.Tracker("tidb").Track("ns", first, "db")
	if got := f.AllocateFactory("tidb").New("ns", "db").Allocate(0); got != first {
		t.Errorf("next round offers %q, want %q", got, first)
	}
}

// Nothing remains of a moved instance that is gone.
func TestMovedInstanceLeavesNothingBehind(t *testing.T) {
	f := New()
	tr := f.Tracker("tidb")
	tr.Track("ns", "x", "g1")
	tr.Track("ns", "x", "g2")
	tr.Untrack("ns", "x")
	if got := normal(snapshot(f, "tidb", "ns")); len(got.GroupNames)+len(got.InstanceGroup) != 0 {
		t.Errorf("state after the instance is gone: %+v", got)
	}
}

// An observed name is reserved, and that ends: the reservation lasts as long as the observation.
func TestObservedNamesAreReserved(t *testing.T) {
	f := fixed("aaaaaa", "bbbbbb", "aaaaaa")
	tidb := f.AllocateFactory("tidb")
	if got := tidb.New("ns", "db", "db-aaaaaa").Allocate(0); got != "db-bbbbbb" {
		t.Errorf("allocated %q, want the free db-bbbbbb", got)
	}
	if got := tidb.New("ns", "db", "db-bbbbbb").Allocate(0); got != "db-aaaaaa" {
		t.Errorf("allocated %q, want db-aaaaaa, which nobody observes any more", got)
	}
}

// After 100 draws and for a negative index: no panic.
func TestNoNameIsAnError(t *testing.T) {
	f := fixed("aaaaaa")
	f.Tracker("tidb").Track("ns", "db-aaaaaa", "")
	a := f.AllocateFactory("tidb").New("ns", "db")
	for _, c := range []struct {
		index int
		want  error
	}{{-1, ErrNegativeIndex}, {0, ErrNamesExhausted}} {
		name, err := a.(FallibleAllocator).TryAllocate(c.index)
		if name != "" || !errors.Is(err, c.want) {
			t.Errorf("TryAllocate(%d) = %q, %v, want error %v", c.index, name, err, c.want)
		}
		if got := a.Allocate(c.index); got != "" {
			t.Errorf("Allocate(%d) = %q, want no name", c.index, got)
		}
	}
}

func TestSameObjectPerKind(t *testing.T) {
	f := New()
	if f.Tracker("pd") != f.Tracker("pd") || f.AllocateFactory("pd") != f.AllocateFactory("pd") {
		t.Error("a kind has more than one tracker or allocate factory")
	}
	if f.Tracker("pd") == f.Tracker("tikv") {
		t.Error("two kinds share a tracker")
	}
}

func TestNameFormat(t *testing.T) {
	format := regexp.MustCompile(`^db-[a-z0-9]{6}$`)
	a := New().AllocateFactory("tidb").New("ns", "db")
	for i := range 1000 {
		if name := a.Allocate(i); !format.MatchString(name) {
			t.Fatalf("name %q", name)
		}
	}
}

// Controllers of several groups, and several rounds of one group at once: run with -race. Within a group all see
// the same names, and no two groups share one.
func TestConcurrentUse(t *testing.T) {
	const groups, rounds, instances = 4, 8, 20
	f := New()
	got := make([][][]string, groups)
	var wg sync.WaitGroup
	for g := range groups {
		got[g] = make([][]string, rounds)
		group := fmt.Sprintf("g%d", g%2) // two controllers a group
		for r := range rounds {
			wg.Go(func() {
				a := f.AllocateFactory("tikv").New("ns", group)
				for i := range instances {
					name := a.Allocate(i)
					got[g][r] = append(got[g][r], name)
					f.Tracker("tikv").Track("ns", name, group)
				}
				f.Tracker("tikv").Track("ns", "mover", group)
				f.Tracker("tikv").Untrack("ns", "mover")
			})
		}
	}
	wg.Wait()
	// Index i may name another instance in a round that began in between (the pool is sorted again), but no round
	// has caused a name that the others do not know.
	names := map[string]map[string]bool{"g0": {}, "g1": {}}
	for g := range groups {
		for r := range rounds {
			for _, name := range got[g][r] {
				names[fmt.Sprintf("g%d", g%2)][name] = true
			}
		}
	}
	for g, set := range names {
		if len(set) != instances {
			t.Errorf("group %s got %d names for %d instances", g, len(set), instances)
		}
		pending := f.AllocateFactory("tikv").New("ns", g).(*group).pool
		for _, name := range pending {
			if !set[name] {
				t.Errorf("group %s: pending name %q was given to nobody", g, name)
			}
		}
		if !slices.IsSorted(pending) {
			t.Errorf("pool of %s is not sorted: %q", g, pending)
		}
	}
}

// FuzzAgainstModel decodes bytes into operations and compares with the single-threaded model.
func FuzzAgainstModel(f *testing.F) {
	f.Add([]byte{2, 0, 3, 0, 3, 1, 0, 8, 0, 2, 2, 0, 3, 0})
	f.Add([]byte{2, 1, 3, 0, 0, 1, 0, 2, 1, 1, 2, 5, 3, 0, 3, 9})
	groups := []string{"db", "kv", ""}
	names := []string{"db-s0", "db-s1", "kv-s0", "db-s2", "alien"}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := sequence{Suffixes: []string{"s0", "s1", "s0", "s2", "s1", "s3", "s4", "s5", "s6", "s7"}}
		for i := 0; i+1 < len(data) && len(c.Ops) < 100; i += 2 {
			arg := int(data[i+1])
			o := op{Kind: "tidb", NS: []string{"n1", "n2"}[arg>>7], Group: groups[arg%2], Name: names[arg%len(names)], Alloc: groups[arg%2]}
			switch data[i] % 4 {
			case 0:
				o.Op, o.Group = "track", groups[arg/8%3]
			case 1:
				o.Op = "untrack"
			case 2:
				o.Op, o.Observed = "new", names[:arg/16%len(names)]
			case 3:
				o.Op, o.Index = "allocate", arg/4%6-1
				if !slices.ContainsFunc(c.Ops, func(p op) bool { return p.Op == "new" && p.Alloc == o.Alloc }) {
					continue
				}
			}
			c.Ops = append(c.Ops, o)
		}
		c.FinalState = []state{{Kind: "tidb", NS: "n1"}, {Kind: "tidb", NS: "n2"}}
		if diff := cmp.Diff(modelled(c, false, false), product(c)); diff != "" {
			t.Errorf("%+v\n%s", c.Ops, diff)
		}
	})
}

// BenchmarkRound is one round of a group: 100 observed instances, 10 new ones.
func BenchmarkRound(b *testing.B) {
	f := New()
	seed := f.AllocateFactory("tikv").New("ns", "kv")
	observed := make([]string, 100)
	for i := range observed {
		observed[i] = seed.Allocate(i)
	}
	b.ReportAllocs()
	for b.Loop() {
		a := f.AllocateFactory("tikv").New("ns", "kv", observed...)
		for i := range 10 {
			a.Allocate(i)
		}
	}
}

// Who runs again with the same seed and the same known names gets the same names, of the length that was asked for.
func TestDerivedSuffixes(t *testing.T) {
	allocate := func(seed string, taken ...string) (names []string) {
		f := NewWithSuffix(Derived(seed, 5))
		for _, name := range taken {
			f.Tracker("tikv").Track("ns", name, "")
		}
		a := f.AllocateFactory("tikv").New("ns", "kv")
		for i := range 3 {
			names = append(names, a.Allocate(i))
		}
		return names
	}
	first := allocate("cluster/1")
	for _, name := range first {
		if !regexp.MustCompile("^kv-[a-z0-9]{5}$").MatchString(name) {
			t.Errorf("name %q", name)
		}
	}
	if again := allocate("cluster/1"); !slices.Equal(first, again) {
		t.Errorf("%v, then %v", first, again)
	}
	if other := allocate("cluster/2"); slices.ContainsFunc(other, func(n string) bool { return slices.Contains(first, n) }) {
		t.Errorf("two seeds share names: %v, %v", first, other)
	}
	if next := allocate("cluster/1", first[1]); next[0] != first[0] || next[1] != first[2] {
		t.Errorf("a taken name is not drawn past: %v, %v", first, next)
	}
}
