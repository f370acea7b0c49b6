// Package lab is what chaos tests are made of: lanes, each a bridge and a
// worker of its own on a shared devstack; a conductor that stands at every
// border of every activity; a gate that every call to a system goes through.
package lab

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidbcloud/infra-orchestrator/test/chaos/hook"
)

// Boundary is a border of one activity of a type of workflow.
type Boundary struct {
	// Workflow type, such as CreateNetwork.
	Workflow string
	// Activity by name; Call says which call of it in a run of the workflow,
	// from 1. Attempts of one call count once. Without a name Call counts all
	// activities that are not local.
	Activity string
	Call     int
	Local    bool
	Moment   hook.Moment
}

// Rule says what happens at a boundary, the first time that a worker gets there.
type Rule struct {
	Boundary
	// Object is a workflow id, or its beginning; empty for any object.
	Object string
	// Step, when set, is the step of an operation's report (which is a call of
	// management.ApplyOperationStatus); Call then does not count.
	Step string
	// Then is hook.Kill or hook.Stall, or hook.Go: the worker waits for Release.
	Then hook.Verdict
}

// Armed is a rule in force.
type Armed struct {
	Rule
	conductor *Conductor
	reached   chan struct{}
	release   chan struct{}
	once      sync.Once
}

// Reached is closed when a worker has got there.
func (a *Armed) Reached() <-chan struct{} { return a.reached }

// Fired says whether a worker has got there.
func (a *Armed) Fired() bool {
	select {
	case <-a.reached:
		return true
	default:
		return false
	}
}

// Release lets a worker go on that waits, and takes the rule out of force.
func (a *Armed) Release() {
	a.once.Do(func() { close(a.release) })
	a.conductor.disarm(a)
}

// Conductor answers the workers of one lane.
type Conductor struct {
	mu    sync.Mutex
	rules []*Armed
	// calls are the ids of the calls of an activity in a run, in order.
	calls map[callKey][]string
	trace []Passed
	// now are the activities between their two borders.
	now map[string]hook.Border
	// kills is when the worker was killed.
	kills []time.Time
}

type callKey struct{ run, activity string }

// Passed is a border that a worker has passed.
type Passed struct {
	At time.Time
	hook.Border
	Call int
}

// NewConductor returns one without rules.
func NewConductor() *Conductor {
	return &Conductor{calls: map[callKey][]string{}, now: map[string]hook.Border{}}
}

// Arm puts a rule into force.
func (c *Conductor) Arm(r Rule) *Armed {
	a := &Armed{Rule: r, conductor: c, reached: make(chan struct{}), release: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rules = append(c.rules, a)
	return a
}

func (c *Conductor) disarm(a *Armed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rules = slices.DeleteFunc(c.rules, func(r *Armed) bool { return r == a })
}

// ServeHTTP answers a worker at a border.
func (c *Conductor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var b hook.Border
	if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a := c.pass(b)
	if a == nil {
		_, _ = w.Write([]byte(hook.Go))
		return
	}
	if a.Then != hook.Go {
		_, _ = w.Write([]byte(a.Then))
		return
	}
	select {
	case <-a.release:
	case <-r.Context().Done(): // the worker is gone
	}
	_, _ = w.Write([]byte(hook.Go))
}

// pass notes the border and returns the rule that it meets.
func (c *Conductor) pass(b hook.Border) *Armed {
	c.mu.Lock()
	defer c.mu.Unlock()
	call, nth := c.number(callKey{b.RunID, b.Activity}, b.ActivityID), 0
	if !b.Local {
		nth = c.number(callKey{b.RunID, ""}, b.ActivityID)
	}
	c.trace = append(c.trace, Passed{time.Now(), b, call})
	flight := b.RunID + "/" + b.ActivityID
	if b.Moment == hook.Before {
		c.now[flight] = b
	} else {
		delete(c.now, flight)
	}
	i := slices.IndexFunc(c.rules, func(a *Armed) bool { return !a.Fired() && a.meets(b, call, nth) })
	if i < 0 {
		return nil
	}
	close(c.rules[i].reached)
	if c.rules[i].Then == hook.Kill {
		c.kills = append(c.kills, time.Now())
		c.now = map[string]hook.Border{}
	}
	return c.rules[i]
}

// number is which call of a run an id is, from 1.
func (c *Conductor) number(key callKey, id string) int {
	n := slices.Index(c.calls[key], id) + 1
	if n == 0 {
		c.calls[key] = append(c.calls[key], id)
		n = len(c.calls[key])
	}
	return n
}

func (r Rule) meets(b hook.Border, call, nth int) bool {
	switch {
	case r.Moment != b.Moment, b.Failed:
		return false
	case r.Workflow != "" && r.Workflow != b.Workflow, r.Activity != "" && r.Activity != b.Activity:
		return false
	case r.Object != "" && r.Object != b.WorkflowID && !strings.HasPrefix(b.WorkflowID, r.Object+"/"):
		return false
	case r.Step != "":
		return r.Step == b.Step && b.State == "Running"
	}
	if r.Activity == "" {
		return r.Call == 0 || r.Call == nth
	}
	return r.Call == 0 || r.Call == call
}

// Killed is how often the conductor has killed a worker.
func (c *Conductor) Killed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.kills)
}

// Trace is what has passed so far.
func (c *Conductor) Trace() []Passed {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.trace)
}

// Running are the activities between their borders at this moment.
func (c *Conductor) Running() []hook.Border {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]hook.Border, 0, len(c.now))
	for _, b := range c.now {
		out = append(out, b)
	}
	return out
}

// Boundaries lists the borders in a trace, before and after each call, in order
// of first passing, by type of workflow. Runs in as go by another name there.
func Boundaries(trace []Passed, as map[string]string) map[string][]Boundary {
	out := map[string][]Boundary{}
	type one struct {
		name string
		Boundary
	}
	seen := map[one]bool{}
	for _, p := range trace {
		if p.Moment != hook.Before {
			continue
		}
		name := p.Workflow
		if other, ok := as[p.RunID]; ok {
			name = other
		}
		b := Boundary{Workflow: p.Workflow, Activity: p.Activity, Call: p.Call, Local: p.Local, Moment: hook.Before}
		if seen[one{name, b}] {
			continue
		}
		seen[one{name, b}] = true
		after := b
		after.Moment = hook.After
		out[name] = append(out[name], b, after)
	}
	return out
}

// Runs are the ids of a workflow's runs that have begun since the trace had so
// many entries.
func Runs(trace []Passed, since int, workflow string) (out []string) {
	seen := map[string]bool{}
	for i, p := range trace {
		if p.Workflow == workflow && !seen[p.RunID] && i >= since {
			out = append(out, p.RunID)
		}
		seen[p.RunID] = true
	}
	return out
}

// Calls lists the calls of activities that are not local, before each.
func Calls(all []Boundary) (out []Boundary) {
	for _, b := range all {
		if !b.Local && b.Moment == hook.Before {
			out = append(out, b)
		}
	}
	return out
}
