package updater

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidbcloud/infra-orchestrator/internal/oracle"
)

type oracleCase struct {
	ID    string
	Input struct {
		Update, Outdated, Desired              int
		UnavailableUpdate, UnavailableOutdated int
		MaxSurge, MaxUnavailable               int
		ScaleInPicksAvailable                  bool
		FailAtCall                             int
	}
	Output oracleOutput
}

type oracleOutput struct {
	Actions []string
	Wait    bool
	Error   string
}

func (c oracleCase) CaseID() string { return c.ID }

func (c oracleCase) counts() Counts {
	return Counts{
		Updated: c.Input.Update, Outdated: c.Input.Outdated, Desired: c.Input.Desired,
		UnavailableUpdated: c.Input.UnavailableUpdate, UnavailableOutdated: c.Input.UnavailableOutdated,
		MaxSurge: c.Input.MaxSurge, MaxUnavailable: c.Input.MaxUnavailable,
	}
}

// script is the actor of the oracle: it removes unavailable instances first, or says that all are available.
type script struct {
	actions           []string
	picksAvailable    bool
	updated, outdated int // unavailable ones
	failAt            int
}

func (s *script) act(name string) error {
	s.actions = append(s.actions, name)
	if len(s.actions) == s.failAt {
		return errors.New("injected")
	}
	return nil
}

func (s *script) ScaleOut() error { s.updated++; return s.act("scaleOut") }

func (s *script) Update(unavailable bool) error {
	s.updated++
	if unavailable {
		s.outdated--
		return s.act("updateUnavailable")
	}
	return s.act("update")
}

func (s *script) pick(unavailable *int) bool {
	if s.picksAvailable || *unavailable == 0 {
		return true
	}
	*unavailable--
	return false
}

func (s *script) ScaleInUpdated() (bool, error) { return s.pick(&s.updated), s.act("scaleInUpdate") }

func (s *script) ScaleInOutdated() (bool, error) {
	return s.pick(&s.outdated), s.act("scaleInOutdated")
}

func (s *script) Cleanup() error { return s.act("cleanup") }

// TestOracle has no exceptions.
func TestOracle(t *testing.T) {
	oracle.Run(t, "updater_executor_oracle.jsonl", nil, func(c oracleCase) oracle.Verdict {
		actor := &script{
			actions: []string{}, picksAvailable: c.Input.ScaleInPicksAvailable, failAt: c.Input.FailAtCall,
			updated: c.Input.UnavailableUpdate, outdated: c.Input.UnavailableOutdated,
		}
		var got oracleOutput
		wait, err := Execute(c.counts(), actor, Options{})
		got.Actions, got.Wait = actor.actions, wait
		if err != nil {
			got.Error = err.Error()
		}
		return oracle.Verdict{Diff: cmp.Diff(c.Output, got)}
	})
}

// Every run of a box of inputs ends, keeps the surge, and never goes below the minimum by its own choice.
func TestExecuteTerminates(t *testing.T) {
	for _, first := range []bool{false, true} {
		for n := range 6 * 6 * 6 * 3 * 3 * 3 * 3 {
			digit := func(base int) int { d := n % base; n /= base; return d }
			c := Counts{Updated: digit(6), Outdated: digit(6), Desired: digit(6), MaxSurge: digit(3), MaxUnavailable: digit(3)}
			c.UnavailableUpdated, c.UnavailableOutdated = min(digit(3), c.Updated), min(digit(3), c.Outdated)
			if c.MaxSurge+c.MaxUnavailable == 0 {
				continue
			}
			guard := &guard{t: t, counts: c, peak: max(c.Updated+c.Outdated, c.Desired+min(c.MaxSurge, c.Outdated))}
			guard.script = script{updated: c.UnavailableUpdated, outdated: c.UnavailableOutdated}
			if _, err := Execute(c, guard, Options{UpdateFirst: first}); err != nil {
				t.Fatalf("%+v: %v", c, err)
			}
		}
	}
}

// guard checks each action against the limits.
type guard struct {
	script
	t      *testing.T
	counts Counts
	peak   int
	grown  int
}

func (g *guard) ScaleOut() error {
	if g.grown++; g.counts.Updated+g.counts.Outdated+g.grown > g.peak {
		return fmt.Errorf("more than %d instances after %v", g.peak, g.actions)
	}
	return g.ended(g.script.ScaleOut())
}

func (g *guard) Update(unavailable bool) error { return g.ended(g.script.Update(unavailable)) }

func (g *guard) ended(err error) error {
	if len(g.actions) > 100 {
		return errors.New("does not end")
	}
	return err
}
