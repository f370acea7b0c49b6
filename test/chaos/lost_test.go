package chaos

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/test/chaos/lab"
	"github.com/tidbcloud/infra-orchestrator/test/invariants"
)

// loser lets mutating calls lose their answers. Each activity makes calls of
// different identities, which are numbered in the order of their first success;
// a pass strikes some of the numbers only. Were all struck in one pass, an
// activity with a dozen calls would have a dozen failures in a row, and its
// step would be right to stall.
type loser struct {
	mu    sync.Mutex
	times int                // each call loses so many answers
	picks func(nth int) bool // which of an activity's calls
	order map[string][]string
	lost  map[string]int
	deep  int // most calls that an activity has made
}

func newLoser(times int, picks func(int) bool) *loser {
	return &loser{times: times, picks: picks, order: map[string][]string{}, lost: map[string]int{}}
}

// lose decides about one call.
func (l *loser) lose(c lab.Call) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	group, nth := c.Run+"/"+c.Activity, 0
	if c.Activity != "" {
		nth = slices.Index(l.order[group], c.Identity)
		if nth < 0 {
			l.order[group] = append(l.order[group], c.Identity)
			nth = len(l.order[group]) - 1
		}
		l.deep = max(l.deep, nth+1)
	}
	key := group + "/" + c.Identity
	if !l.picks(nth) || l.lost[key] >= l.times {
		return false
	}
	l.lost[key]++
	return true
}

// struck collects, over all passes, what was called, by system, kind of call
// and activity, and whether it lost as many answers in a row as it could. Who
// finds what a lost call has made does not make it again.
type struck struct {
	mu      sync.Mutex
	covered map[string]bool
	total   int
}

func (s *struck) add(calls []lab.Call, times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.covered == nil {
		s.covered = map[string]bool{}
	}
	type one struct{ run, what, identity string }
	made, lost := map[one]int{}, map[one]int{}
	for _, c := range calls {
		if c.Status == 0 || c.Status >= 300 || c.Activity == "" {
			continue
		}
		call := one{c.Run, fmt.Sprintf("%s %s by %s", c.System, c.Kind, c.Activity), c.Identity}
		made[call]++
		if c.Lost {
			s.total++
			lost[call]++
		}
	}
	for call, n := range made {
		s.covered[call.what] = s.covered[call.what] || lost[call] == min(times, n)
	}
}

// lacking lists calls that never lost as many answers as they could.
func (s *struck) lacking() (out []string) {
	for what, ok := range s.covered {
		if !ok {
			out = append(out, what)
		}
	}
	slices.Sort(out)
	return out
}

func (s *struck) String() string {
	by := map[string]int{}
	for what := range s.covered {
		by[strings.Fields(what)[0]]++
	}
	return fmt.Sprintf("%d answers lost; kinds of calls: %v", s.total, by)
}

// An activity's attempts are further and further apart, so that more than a few
// failures would outlast its step's time: five single ones take half a minute,
// two threefold ones a minute.
const (
	onceAtATime   = 5
	thriceAtATime = 2
)

// TestLostAnswers has every mutating call to AWS, Kubernetes and the garden
// answer with a connection reset after it took effect: once, and three times in
// a row where it is made so often. Which calls there are is learned from what goes through the gate.
func TestLostAnswers(t *testing.T) {
	if !full() {
		t.Skip("part of make chaos; TestSeeded loses a few")
	}
	expect, _ := dryRun(t)
	deep := depth(learned.calls)
	fmt.Printf("an activity makes up to %d mutating calls\n", deep)
	for _, part := range []struct {
		name           string
		times, atATime int
	}{{"once", 1, onceAtATime}, {"3 times", 3, thriceAtATime}} {
		t.Run(part.name, func(t *testing.T) {
			ownStack(t)
			loseAnswers(t, expect, "lost "+part.name, part.times, (deep+part.atATime-1)/part.atATime)
		})
	}
}

// loseAnswers makes a pass for each class of an activity's calls.
func loseAnswers(t *testing.T, expect *states, part string, times, classes int) {
	var all struck
	side(passes(classes), func(k int) {
		l := newLoser(times, func(nth int) bool { return nth%classes == k })
		inLanes(t, part, expect, func(j *journey) error {
			j.lane.Gate.SetLose(l.lose)
			j.before = func(string, invariants.Key) string { return "answers " + part }
			err := j.whole(nothing)
			j.lane.Gate.SetLose(nil)
			all.add(j.lane.Gate.Calls(), times)
			return err
		})
	})
	fmt.Println(part+":", all.String())
	if sample() == 0 {
		require.Empty(t, all.lacking(), "%s: these calls never lost their answers", part)
	}
	failUnconverged(t, part)
}

// depth is the most different mutating calls that one activity makes.
func depth(calls []lab.Call) int {
	l := newLoser(0, func(int) bool { return false })
	for _, c := range calls {
		if c.Status > 0 && c.Status < 300 {
			l.lose(c)
		}
	}
	return l.deep
}

// passes is how many passes run.
func passes(n int) int {
	if s := sample(); s > 0 {
		return min(n, s)
	}
	return n
}

// side does n pieces of work, as many at a time as there are lanes.
func side(n int, work func(k int)) {
	slots := make(chan struct{}, laneCount())
	var wg sync.WaitGroup
	for k := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			work(k)
		})
	}
	wg.Wait()
}
