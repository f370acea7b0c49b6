package topology

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidbcloud/infra-orchestrator/internal/oracle"
)

type oracleCase struct {
	ID      string
	Zones   []string
	Weights []*int32
	Ops     []struct {
		Op, Name, Zone string
		Result         []string
	}
}

func (c oracleCase) CaseID() string { return c.ID }

// TestOracle has no exceptions.
func TestOracle(t *testing.T) {
	oracle.Run(t, "topology_oracle.jsonl", nil, func(c oracleCase) oracle.Verdict {
		zones := make([]Zone, len(c.Zones))
		for i, name := range c.Zones {
			zones[i].Name = name
			if i < len(c.Weights) {
				zones[i].Weight = c.Weights[i]
			}
		}
		s, err := New(zones...)
		if err != nil {
			return oracle.Verdict{Diff: err.Error()}
		}
		for i, o := range c.Ops {
			var got []string
			switch o.Op {
			case "add":
				s.Add(o.Name, o.Zone)
				continue
			case "del":
				s.Remove(o.Name)
				continue
			case "nextAdd":
				got = s.NextAdd()
			case "nextDel":
				got = s.NextRemove()
			}
			if !slices.Equal(got, o.Result) {
				return oracle.Verdict{Diff: fmt.Sprintf("operation %d %s: %s", i, o.Op, cmp.Diff(o.Result, got))}
			}
		}
		return oracle.Verdict{}
	})
}

// However instances come and go by the scheduler's own choices, equal zones differ by at most one.
func TestEqualZonesStayEven(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s, err := New(Zone{Name: "a"}, Zone{Name: "b"}, Zone{Name: "c"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2000 {
		if candidates := s.NextRemove(); len(candidates) > 0 && r.IntN(5) < 2 {
			s.Remove(candidates[r.IntN(len(candidates))])
		} else {
			s.Add(fmt.Sprint("i", i), s.NextAdd()[0])
		}
		counts := []int64{s.zones[0].count, s.zones[1].count, s.zones[2].count}
		if slices.Max(counts)-slices.Min(counts) > 1 {
			t.Fatalf("after %d operations: %v", i, counts)
		}
	}
}

// pingcap/tidb-operator 6136: with surge 1 the replacement of one instance a zone ends with one a zone.
func TestReplacementKeepsZones(t *testing.T) {
	zones := []Zone{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	all, _ := New(zones...)
	updated, _ := New(zones...)
	for _, z := range zones {
		all.Add("old-"+z.Name, z.Name)
	}
	for i := range 3 {
		zone, err := Choose(all, updated)
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprint("new-", i)
		all.Add(name, zone)
		updated.Add(name, zone)
		leaving := slices.DeleteFunc(all.NextRemove(), func(n string) bool { return n[:3] == "new" })
		if len(leaving) == 0 {
			t.Fatalf("no old instance is among those to remove after %s in %s", name, zone)
		}
		all.Remove(leaving[0])
	}
	for _, z := range all.zones {
		if z.count != 1 {
			t.Errorf("zone %s has %d instances", z.name, z.count)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	negative := int32(-1)
	for _, zones := range [][]Zone{{{Name: "a"}, {Name: "a"}}, {{Name: "a", Weight: &negative}}} {
		if _, err := New(zones...); err == nil {
			t.Errorf("%+v was accepted", zones)
		}
	}
	empty, _ := New()
	if _, err := Choose(empty, empty); err == nil {
		t.Error("a zone was chosen out of none")
	}
}

func BenchmarkNextAdd(b *testing.B) {
	s, _ := New(Zone{Name: "a"}, Zone{Name: "b"}, Zone{Name: "c"})
	for i := range 100 {
		s.Add(fmt.Sprint(i), "a")
	}
	for b.Loop() {
		s.NextAdd()
	}
}
