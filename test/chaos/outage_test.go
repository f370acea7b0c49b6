package chaos

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/test/chaos/hook"
	"github.com/tidbcloud/infra-orchestrator/test/chaos/lab"
	"github.com/tidbcloud/infra-orchestrator/test/invariants"
)

// outageLength is how long a system is away.
const outageLength = time.Minute

// outagePatience is the longest that an operation may take that an outage has
// met: a retry may be a minute away, and comes after work that starts anew.
const outagePatience = 6 * time.Minute

// held is an operation that waits in its middle.
type held struct {
	operation string
	key       invariants.Key
	armed     *lab.Armed
	settled   func(context.Context) error
	last      v1.Object // before it was asked for
	begin     time.Time
}

// outages is one lane with an operation of every type in its middle.
type outages struct {
	t          *testing.T
	j          *journey
	boundaries map[string][]lab.Boundary
	held       []*held
}

// TestOutages takes each system away for a minute while an operation of every
// type is in its middle. No operation fails or stalls, and all end as ever.
func TestOutages(t *testing.T) {
	if !full() {
		t.Skip("part of make chaos")
	}
	expect, boundaries := dryRun(t)
	ownStack(t)
	l := newLane(t, "outage")
	o := &outages{t: t, j: &journey{lane: l, part: "outage", expect: expect}, boundaries: boundaries}
	o.prepareAll()
	for round, system := range []string{"temporal", "apiserver", "garden", "aws"} {
		o.round(round, system+" away", func(ctx context.Context) error { return l.Stack.Outage(ctx, system, outageLength) })
	}
	failUnconverged(t, "outage")
}

// prepareAll makes what stays, and what the first round deletes.
func (o *outages) prepareAll() {
	o.prepare(v1.KindProviderType, "stays", nil)
	o.prepare(v1.KindProviderType, "round0", nil)
	o.prepare(v1.KindProvider, "stays", of("stays"))
	o.prepare(v1.KindProvider, "round0", of("stays"))
	o.prepare(v1.KindNetwork, "stays", at("stays"))
	o.prepare(v1.KindNetwork, "round0", at("stays"))
	o.prepare(v1.KindCluster, "stays", lab.In("stays"))
	o.prepare(v1.KindCluster, "round0", lab.In("stays"))
}

// of and at put a sample Provider under a ProviderType, a Network under a
// Provider.
func of(providerType string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, providerType, "spec", "type")
	}
}

func at(provider string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, provider, "spec", "provider")
	}
}

func (o *outages) prepare(kind, name string, edit func(*unstructured.Unstructured)) {
	key := o.j.lane.Named(kind, name)
	ctx := within(o.t, patience)
	require.NoError(o.t, o.j.lane.Create(ctx, key, edit))
	_, err := o.j.lane.AwaitReady(ctx, key)
	require.NoError(o.t, err)
}

// round brings an operation of every type into its middle, strikes, lets all go
// on, and waits for their ends. what says in words what strikes.
func (o *outages) round(round int, what string, strike func(context.Context) error) {
	l, fresh, old := o.j.lane, fmt.Sprintf("round%d", round+1), fmt.Sprintf("round%d", round)
	o.held = nil
	// Clusters first: while its Network changes, a new one would wait at its
	// first step.
	o.create(l.Named(v1.KindCluster, fresh), lab.In("stays"))
	o.change(l.Named(v1.KindCluster, "stays"))
	o.remove(l.Named(v1.KindCluster, old))
	o.await()
	o.create(l.Named(v1.KindNetwork, fresh), at("stays"))
	o.change(l.Named(v1.KindNetwork, "stays"))
	o.remove(l.Named(v1.KindNetwork, old))
	o.create(l.Named(v1.KindProvider, fresh), of("stays"))
	o.create(l.Named(v1.KindProviderType, fresh), nil)
	o.await()
	o.change(l.Named(v1.KindProvider, "stays"))
	o.remove(l.Named(v1.KindProvider, old))
	o.change(l.Named(v1.KindProviderType, "stays"))
	o.remove(l.Named(v1.KindProviderType, old))
	o.await()
	require.NoError(o.t, strike(within(o.t, time.Minute)))
	fmt.Printf("%s: %d operations are in their middle\n", what, len(o.held))
	o.settle(what)
}

// settle lets all go on, and waits for their ends.
func (o *outages) settle(what string) {
	for _, h := range o.held {
		h.armed.Release()
	}
	var wg sync.WaitGroup
	for _, h := range o.held {
		wg.Go(func() { o.end(h, what) })
	}
	wg.Wait()
}

// hold arms the middle of an operation and asks for it.
func (o *outages) hold(h *held, ask func(context.Context) error) {
	all := lab.Calls(o.boundaries[h.operation])
	require.NotEmpty(o.t, all, h.operation)
	middle := all[len(all)/2]
	h.armed = o.j.lane.Conductor.Arm(lab.Rule{Boundary: middle, Object: lab.WorkflowID(h.key), Then: hook.Go})
	h.last, h.begin = o.j.lane.Checker.Latest(h.key), time.Now()
	require.NoError(o.t, ask(within(o.t, time.Minute)))
	o.held = append(o.held, h)
}

func (o *outages) create(key invariants.Key, edit func(*unstructured.Unstructured)) {
	l := o.j.lane
	o.hold(&held{operation: "Create" + key.Kind, key: key, settled: func(ctx context.Context) error {
		_, err := l.AwaitReady(ctx, key)
		return err
	}}, func(ctx context.Context) error { return l.Create(ctx, key, edit) })
}

func (o *outages) change(key invariants.Key) {
	l, generation := o.j.lane, int64(0)
	o.hold(&held{operation: "Update" + key.Kind, key: key, settled: func(ctx context.Context) error {
		_, err := l.AwaitGeneration(ctx, key, generation)
		return err
	}}, func(ctx context.Context) (err error) {
		generation, err = l.Change(ctx, key)
		return err
	})
}

func (o *outages) remove(key invariants.Key) {
	l := o.j.lane
	o.hold(&held{operation: "Delete" + key.Kind, key: key, settled: func(ctx context.Context) error { return l.AwaitGone(ctx, key) }},
		func(ctx context.Context) error { return l.Delete(ctx, key) })
}

// await waits until all that were asked for are in their middle.
func (o *outages) await() {
	deadline := time.After(3 * time.Minute)
	for _, h := range o.held {
		select {
		case <-h.armed.Reached():
		case <-deadline:
			o.t.Fatalf("%s %s does not get to its middle (%s): %s", h.operation, h.key, h.armed.Activity, invariants.Describe(o.j.lane.Checker.Latest(h.key)))
		}
	}
}

// end waits for an operation's end and judges it.
func (o *outages) end(h *held, what string) {
	ctx, cancel := context.WithTimeout(context.Background(), outagePatience)
	defer cancel()
	run := lab.Run{Part: o.j.part, Operation: h.operation, What: what}
	err := h.settled(ctx)
	run.Took = time.Since(h.begin)
	if err == nil {
		err = o.j.judge(ctx, &run, h.key, h.last)
	}
	if run.Converged = err == nil && len(run.Twice)+len(run.Left) == 0; !run.Converged {
		run.Problem = fmt.Sprintf("%s %s, %s: %v; twice: %v; left: %v", h.operation, h.key, run.What, err, run.Twice, run.Left)
	}
	table.Add(run)
}
