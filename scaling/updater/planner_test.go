package updater

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidbcloud/infra-orchestrator/scaling/tracker"
)

var now = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// group reads "old a", "new b unready" and so on.
func group(t *testing.T, lines ...string) []Instance {
	t.Helper()
	var out []Instance
	for _, line := range lines {
		words := strings.Fields(line)
		i := Instance{
			Revision: words[0], Name: words[1], Ready: true, ReadySince: now.Add(-time.Hour), UpToDate: true, Priority: LowestPriority,
		}
		for _, word := range words[2:] {
			switch word {
			case "unready":
				i.Ready = false
			case "stopped":
				i.Ready, i.NotRunning = false, true
			case "deferred":
				i.Deferred = true
			case "offline":
				i.Offline = true
			case "offlined":
				i.Offline, i.Offlined = true, true
			case "terminating":
				i.Terminating = true
			case "first":
				i.Priority = ParsePriority("0")
			default:
				t.Fatalf("unknown word %q", word)
			}
		}
		out = append(out, i)
	}
	return out
}

// names allocates n0, n1, …
type names struct{}

func (names) Allocate(index int) string { return fmt.Sprint("n", index) }

// What the original does, but for the outdated instance that it changes in place
// where that is forbidden.
func TestPlan(t *testing.T) {
	inPlace, replace, tikv := Config{}, Config{NoInPlace: true}, Config{Offline: true}
	for _, c := range []struct {
		id                    string
		instances             []string
		config                Config
		surge, unavail, wants int
		options               Options
		want                  string
	}{
		{"one more is created first", []string{"old a", "old b", "old c"}, replace, 1, 0, 3, Options{}, "Create n0, wait"},
		{"an outdated one is replaced within the surge", []string{"old a", "old b", "old c", "new n"}, replace, 1, 0, 3, Options{}, "Delete a, Create n0, wait"},
		{"a deferred one that is too many goes at once", []string{"old c", "new x", "new y", "new z"}, replace, 1, 0, 3, Options{}, "Defer c, Delete c, done"},
		{"in place, one at a time", []string{"old a", "old b", "old c"}, inPlace, 0, 1, 3, Options{}, "Apply a, wait"},
		{"in place, a stopped one first", []string{"old a", "old b stopped", "old c"}, inPlace, 0, 1, 3, Options{}, "Apply b, wait"},
		{"in place, an unready one first", []string{"old a", "old b unready", "old c"}, inPlace, 0, 1, 3, Options{}, "Apply b, wait"},
		{"two are missing", []string{"new a", "new b", "new c"}, inPlace, 0, 1, 5, Options{}, "Create n0, Create n1, wait"},
		{"two are too many", []string{"new a", "new b", "new c", "new d", "new e"}, inPlace, 0, 1, 3, Options{}, "Delete a, Delete b, done"},
		{"two are too many, one is marked to go first", []string{"new a", "new b", "new c", "new d first", "new e"}, inPlace, 0, 1, 3, Options{}, "Delete d, Delete a, done"},
		{"in place, fewer are wanted", []string{"old a", "old b", "old c"}, inPlace, 0, 1, 1, Options{}, "Defer a, Defer b, Apply c, wait"},
		{"a deferred one goes when another runs", []string{"new a", "old old1 deferred"}, inPlace, 0, 1, 1, Options{}, "Delete old1, done"},
		{"a deferred one stays while nothing else runs", []string{"new a unready", "old old1 deferred"}, inPlace, 0, 1, 1, Options{}, "wait"},
		{"one is missing beside a deferred one", []string{"new a", "old old1 deferred"}, inPlace, 0, 1, 2, Options{}, "Create n0, wait"},
		{"in place, two are missing", []string{"old a", "old b", "old c"}, inPlace, 0, 1, 5, Options{}, "Create n0, Create n1, wait"},
		{"in place, two are missing, update first", []string{"old a", "old b", "old c"}, inPlace, 0, 1, 5, Options{UpdateFirst: true}, "Apply a, Create n0, Create n1, wait"},
		{"TiKV-1", []string{"new a", "new b", "new c"}, tikv, 0, 1, 1, Options{}, "TakeOffline a, TakeOffline b, done"},
		{"TiKV-2", []string{"new a", "new b offline", "new c offline"}, tikv, 0, 1, 3, Options{}, "CallBack b, CallBack c, wait"},
		{"TiKV-3", []string{"new a", "new b unready", "new c offlined"}, tikv, 0, 1, 3, Options{}, "Create n0, wait"},
		{"terminating ones are ignored", []string{"new a", "new b terminating"}, inPlace, 0, 1, 1, Options{}, "done"},
		{"tidb-operator 6346", []string{"new a", "new b"}, inPlace, 0, 1, 1, Options{}, "Delete a, done"},
	} {
		t.Run(c.id, func(t *testing.T) {
			c.config.Names, c.config.Availability = names{}, Availability{Now: now, MinReady: 5 * time.Second}
			steps, wait, err := Plan(Split(group(t, c.instances...), "new"),
				Counts{Desired: c.wants, MaxSurge: c.surge, MaxUnavailable: c.unavail}, c.config, c.options)
			if err != nil {
				t.Fatal(err)
			}
			var words []string
			for _, s := range steps {
				words = append(words, string(s.Verb)+" "+s.Instance)
			}
			words = append(words, map[bool]string{true: "wait", false: "done"}[wait])
			if diff := cmp.Diff(c.want, strings.Join(words, ", ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

type noNames struct{}

func (noNames) Allocate(int) string { return "" }

func TestPlanWithoutName(t *testing.T) {
	_, _, err := Plan(Sets{}, Counts{Desired: 1}, Config{Names: noNames{}}, Options{})
	if !errors.Is(err, ErrNoName) {
		t.Errorf("error %v", err)
	}
}

func TestPlanChoosesZones(t *testing.T) {
	zones := func(all, updated []Instance) (string, error) {
		return fmt.Sprintf("%d-%d", len(all), len(updated)), nil
	}
	steps, _, err := Plan(Split(group(t, "old a"), "new"), Counts{Desired: 2, MaxSurge: 1},
		Config{Names: names{}, NextZone: zones, Availability: Availability{Now: now}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []Step{{Create, "n0", "1-0"}, {Create, "n1", "2-1"}}
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Error(diff)
	}
}

// The time left, not the time that it has been ready already.
func TestRecheck(t *testing.T) {
	a := Availability{Now: now, MinReady: 10 * time.Second}
	i := group(t, "new a", "new b", "new c unready")
	if left := a.Recheck(i); left != 0 {
		t.Errorf("nothing to wait for: %v", left)
	}
	i[0].ReadySince, i[1].ReadySince = now.Add(-time.Second), now.Add(-7*time.Second)
	left := a.Recheck(i)
	if left <= 3*time.Second || left > 3*time.Second+time.Millisecond {
		t.Errorf("check again after %v, want 3s", left)
	}
	if later := (Availability{Now: now.Add(left), MinReady: a.MinReady}); !later.Available(i[1]) {
		t.Error("not available after the time that was told")
	}
}

func TestChoosePolicies(t *testing.T) {
	i := group(t, "new a", "new b unready", "new c stopped first", "new d")
	i[0].Leader = true
	for _, c := range []struct {
		policies []Policy
		want     string
	}{
		{nil, "a"},
		{[]Policy{PreferFollowers}, "b"},
		{[]Policy{PreferUnready}, "b"},
		{BasePolicies(), "c"},
		{append(BasePolicies(), PreferNames([]string{"d", "a"}), PreferFollowers), "d"},
		{[]Policy{PreferNames([]string{"nobody"})}, "a"},
	} {
		if got, _ := Choose(i, c.policies); got.Name != c.want {
			t.Errorf("chose %s, want %s", got.Name, c.want)
		}
	}
	if _, ok := Choose(nil, BasePolicies()); ok {
		t.Error("chose one of none")
	}
	for value, want := range map[string]int{"": LowestPriority, "-1": LowestPriority, "x": LowestPriority, "7": 7} {
		if got := ParsePriority(value); got != want {
			t.Errorf("ParsePriority(%q) = %d", value, got)
		}
	}
}

// tidb-operator 6254: rounds that do not see yet what an earlier one created create nothing else.
func TestLaggingCacheMakesNoSecondObject(t *testing.T) {
	f := tracker.New()
	created := map[string]bool{}
	round := func(observed ...Instance) (steps []Step) {
		var seen []string
		for _, i := range observed {
			seen = append(seen, i.Name)
			f.Tracker("tidb").Track("ns", i.Name, "db")
		}
		steps, _, err := Plan(Split(observed, "new"), Counts{Desired: 3, MaxUnavailable: 1},
			Config{Names: f.AllocateFactory("tidb").New("ns", "db", seen...), Availability: Availability{Now: now}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range steps {
			created[s.Instance] = true
		}
		return steps
	}
	first := round()
	round()
	round(Instance{Name: first[1].Instance, Revision: "new"}) // one has become visible
	if len(first) != 3 || len(created) != 3 {
		t.Errorf("the first round created %v, all rounds %v", first, created)
	}
}

func FuzzPlan(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 3, 1, 0}, uint8(3), uint8(0))
	f.Add([]byte{4, 8, 16, 32, 64, 128, 255}, uint8(5), uint8(7))
	f.Fuzz(func(t *testing.T, data []byte, desired, mode uint8) {
		var observed []Instance
		for n, b := range data[:min(len(data), 20)] {
			observed = append(observed, Instance{
				Name: fmt.Sprint("i", n), Revision: []string{"new", "old"}[b&1], Ready: b&2 == 0, UpToDate: true, NotRunning: b&6 == 6,
				Deferred: b&24 == 24, Offline: b&32 != 0, Offlined: b&96 == 96, Terminating: b&128 != 0, Priority: LowestPriority,
			})
		}
		wanted := Counts{Desired: int(desired % 20), MaxSurge: int(mode % 3), MaxUnavailable: 1 + int(mode/4%2)}
		config := Config{Names: names{}, Availability: Availability{Now: now}, NoInPlace: mode&64 != 0, Offline: mode&128 != 0}
		sets := Split(observed, "new")
		steps, _, err := Plan(sets, wanted, config, Options{UpdateFirst: mode&32 != 0})
		if err != nil {
			t.Fatalf("%+v %+v: %v", observed, wanted, err)
		}
		counts, removed := sets.Counts(config.Availability), 0
		touched := map[string][]Verb{}
		for _, s := range steps {
			if before := touched[s.Instance]; len(before) > 0 && before[0] != Defer && before[0] != CallBack {
				t.Errorf("%s: %v, then %s", s.Instance, before, s.Verb)
			}
			touched[s.Instance] = append(touched[s.Instance], s.Verb)
			if s.Verb == Delete || s.Verb == TakeOffline {
				removed++
			}
		}
		if removed > counts.Updated+counts.Outdated+len(sets.Deleted)+len(sets.BeingOffline) {
			t.Errorf("%d removals: %+v", removed, steps)
		}
	})
}
