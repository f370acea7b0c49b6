package chaos

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/activities/contract"
	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/test/chaos/hook"
	"github.com/tidbcloud/infra-orchestrator/test/chaos/lab"
	"github.com/tidbcloud/infra-orchestrator/test/invariants"
)

// killPlan holds the boundaries at which no worker has died yet, by type of
// workflow.
type killPlan struct {
	mu   sync.Mutex
	left map[string][]lab.Boundary
}

// take takes a boundary of one of the workflows, the first that has any.
func (p *killPlan) take(workflows ...string) (lab.Boundary, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range workflows {
		if all := p.left[w]; len(all) > 0 {
			p.left[w] = all[1:]
			return all[0], true
		}
	}
	return lab.Boundary{}, false
}

// count is how many are left.
func (p *killPlan) count(workflows ...string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range workflows {
		n += len(p.left[w])
	}
	return n
}

// killing arms one boundary of the plan for each operation. Those of the object
// workflow are met by updates, which are cheap.
func killing(j *journey, plan *killPlan) {
	var armed *lab.Armed
	var b lab.Boundary
	j.before = func(operation string, key invariants.Key) string {
		armed = nil
		workflows := []string{operation}
		if operation == "Update"+key.Kind {
			workflows = append(workflows, key.Kind)
		}
		var ok bool
		if b, ok = plan.take(workflows...); !ok {
			return ""
		}
		armed = j.lane.Conductor.Arm(lab.Rule{Boundary: b, Object: lab.WorkflowID(key), Then: hook.Kill})
		return fmt.Sprintf("worker killed %s call %d of %s in %s", b.Moment, b.Call, b.Activity, b.Workflow)
	}
	j.after = func() string {
		if armed == nil {
			return ""
		}
		armed.Release()
		if armed.Fired() || b.Activity == contract.ApplyOperationStatus.Name && b.Call > 1 {
			return "" // how often quick steps are told depends on how quick they are
		}
		return "the boundary was never reached"
	}
}

var (
	networkWork = []string{"CreateNetwork", "DeleteNetwork", cancelCreate}
	clusterWork = []string{"CreateCluster", "DeleteCluster", replacePools}
)

// clusterRounds is how many Clusters one Network sees.
const clusterRounds = 2

// killNetworks goes on until no boundary of Networks and Clusters is left.
func killNetworks(j *journey, plan *killPlan) error {
	updates := []string{"UpdateCluster", v1.KindCluster, "UpdateNetwork", v1.KindNetwork}
	if plan.count(slices.Concat(networkWork, clusterWork, updates)...) == 0 {
		return nil
	}
	if err := steps(j.creates(v1.KindProviderType), j.creates(v1.KindProvider)); err != nil {
		return err
	}
	for plan.count(slices.Concat(networkWork, clusterWork, updates)...) > 0 {
		if err := j.create(v1.KindNetwork); err != nil {
			return err
		}
		for round := 0; round < clusterRounds || plan.count(networkWork...) == 0; round++ {
			if plan.count(slices.Concat(clusterWork, updates[:2])...) == 0 {
				break
			}
			if err := steps(j.creates(v1.KindCluster), j.updates(v1.KindCluster), j.ifLeft(plan, replacePools, j.replace), j.removes(v1.KindCluster)); err != nil {
				return err
			}
		}
		for more := true; more; more = plan.count(networkWork...) == 0 && plan.count(updates[2:]...) > 0 {
			if err := j.update(v1.KindNetwork); err != nil {
				return err
			}
		}
		if err := steps(j.removes(v1.KindNetwork), j.ifLeft(plan, cancelCreate, j.cancelCreation)); err != nil {
			return err
		}
	}
	return steps(j.removes(v1.KindProvider), j.removes(v1.KindProviderType))
}

// ifLeft runs a special form only while it has boundaries left: nothing else
// needs it.
func (j *journey) ifLeft(plan *killPlan, operation string, run func() error) func() error {
	return func() error {
		if plan.count(operation) == 0 {
			return nil
		}
		return run()
	}
}

// killProviders goes on until no boundary of Providers and ProviderTypes is left.
func killProviders(j *journey, plan *killPlan) error {
	var work []string
	for _, kind := range []string{v1.KindProvider, v1.KindProviderType} {
		work = append(work, "Create"+kind, "Update"+kind, "Delete"+kind, kind)
	}
	for plan.count(work...) > 0 {
		if err := steps(
			j.creates(v1.KindProviderType), j.creates(v1.KindProvider), j.updates(v1.KindProvider), j.updates(v1.KindProviderType),
			j.removes(v1.KindProvider), j.removes(v1.KindProviderType),
		); err != nil {
			return err
		}
	}
	return nil
}

// learned is what the dry run has found, once for all tests.
var learned struct {
	once       sync.Once
	expect     *states
	boundaries map[string][]lab.Boundary
	steps      map[string][]lab.Step
	calls      []lab.Call
	err        error
}

// dryRun runs every operation without any trouble, and learns the activities
// that each has, and the state that each ends in.
func dryRun(t *testing.T) (*states, map[string][]lab.Boundary) {
	t.Helper()
	learned.once.Do(func() { t.Run("dry run", func(t *testing.T) { learned.err = learn(t) }) })
	require.NoError(t, learned.err)
	requireSteps(t, learned.steps)
	return learned.expect, learned.boundaries
}

// ours leaves out what is not an operation of the kinds under test, such as
// periodic sweeps.
func ours(all map[string][]lab.Boundary) map[string][]lab.Boundary {
	out := map[string][]lab.Boundary{}
	for _, kind := range lab.Kinds {
		for _, verb := range []string{"Create", "Update", "Delete"} {
			out[verb+kind] = all[verb+kind]
		}
	}
	return out
}

// anyCall drops the numbers of calls: an object workflow lives long, and which
// call it is at depends on the signals that it got.
func anyCall(all []lab.Boundary) (out []lab.Boundary) {
	for _, b := range all {
		if b.Call = 0; !slices.Contains(out, b) {
			out = append(out, b)
		}
	}
	return out
}

func learn(t *testing.T) error {
	ownStack(t)
	l := newLane(t, "dry")
	special := &learner{runs: map[string]string{}}
	j := &journey{lane: l, part: "dry run", expect: newStates(), learning: true, special: special}
	learned.expect = j.expect
	objects := map[string][]lab.Boundary{}
	if err := j.whole(func() error {
		// Object workflows differ with the signals that they happen to get;
		// what they always do is what they do in a second update.
		for _, kind := range slices.Backward(lab.Kinds) {
			from := len(l.Conductor.Trace())
			if err := j.update(kind); err != nil {
				return err
			}
			objects[kind] = lab.Boundaries(l.Conductor.Trace()[from:], nil)[kind]
		}
		return nil
	}); err != nil {
		return err
	}
	trace := l.Conductor.Trace()
	learned.boundaries = special.boundaries(trace)
	learned.steps = lab.Steps(trace)
	learned.calls = l.Gate.Calls()
	for kind, all := range objects {
		learned.boundaries[kind] = anyCall(all)
	}
	for _, operation := range slices.Sorted(keysOf(learned.boundaries)) {
		fmt.Printf("%s has %d borders\n", operation, len(learned.boundaries[operation]))
	}
	return nil
}

// TestKill kills the worker at every border of every activity of every
// operation: before the call has reached its system, and after it took effect
// and before anybody heard of it. One run for each.
func TestKill(t *testing.T) {
	if !full() {
		t.Skip("part of make chaos; TestSeeded runs a few")
	}
	expect, boundaries := dryRun(t)
	ownStack(t)
	plan := &killPlan{left: maps.Clone(boundaries)}
	maps.DeleteFunc(plan.left, func(w string, _ []lab.Boundary) bool { return !chosen(w) })
	for w := range plan.left {
		plan.left[w] = slices.Clone(plan.left[w])
	}
	shuffle(plan.left, dice())
	var wg sync.WaitGroup
	for i := range laneCount() {
		wg.Go(func() {
			if i == 0 {
				inLanes(t, "kill", expect, func(j *journey) error { killing(j, plan); return killProviders(j, plan) })
			}
			inLanes(t, "kill", expect, func(j *journey) error { killing(j, plan); return killNetworks(j, plan) })
		})
	}
	wg.Wait()
	for w, n := range plan.left {
		require.Empty(t, n, "boundaries of %s are left", w)
	}
	failUnconverged(t, "kill")
}

// shuffle changes the order of the boundaries of each workflow.
func shuffle(all map[string][]lab.Boundary, r *rand.Rand) {
	for _, kind := range slices.Sorted(keysOf(all)) {
		r.Shuffle(len(all[kind]), func(i, k int) { all[kind][i], all[kind][k] = all[kind][k], all[kind][i] })
		all[kind] = sampled(all[kind])
	}
}

func keysOf[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// maxLanes bounds how often a stuck lane is left for a new one.
const maxLanes = 4

// inLanes does the work in a lane, and goes on in another one when an operation
// got stuck; the runs in the table say which.
func inLanes(t *testing.T, part string, expect *states, work func(*journey) error) {
	var errs []error
	for range maxLanes {
		err := work(&journey{lane: newLane(t, strings.ReplaceAll(part, " ", "-")), part: part, expect: expect})
		if err == nil {
			return
		}
		errs = append(errs, err)
	}
	t.Errorf("%s: gave up after %d lanes: %v", part, maxLanes, errors.Join(errs...))
}

// failUnconverged fails the test for each run of a part that did not end well.
func failUnconverged(t *testing.T, part string) {
	t.Helper()
	n := 0
	for _, r := range table.Runs() {
		if r.Part != part {
			continue
		}
		n++
		if !r.Converged {
			t.Error(r.Problem)
		}
	}
	require.NotZero(t, n, "no run was made")
}
