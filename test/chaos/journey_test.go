package chaos

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/test/chaos/lab"
	"github.com/tidbcloud/infra-orchestrator/test/invariants"
)

// patience is the longest that one operation may take, whatever goes wrong.
const patience = 10 * time.Minute

// journey runs operations in one lane, one after the other, each as one run for
// the table.
type journey struct {
	lane *lab.Lane
	part string
	// before arms what goes wrong in the next operation, and says in words what
	// that is; "" for nothing. after disarms it, and says what is missing.
	before func(operation string, key invariants.Key) (what string)
	after  func() (missing string)
	// expect are the states that operations must end in; learn them when learning.
	expect   *states
	learning bool
	special  *learner // in a dry run
}

// states are the settled states after operations, by operation.
type states struct {
	mu sync.Mutex
	by map[string]string
}

func newStates() *states { return &states{by: map[string]string{}} }

// check compares, or learns what it does not know.
func (s *states) check(operation, state string, learn bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	want, known := s.by[operation]
	if learn || !known {
		s.by[operation] = state
		return nil
	}
	if want != state {
		return fmt.Errorf("it ended differently: %s", difference(want, state))
	}
	return nil
}

// difference lists lines that are in one text only.
func difference(want, have string) string {
	var out []string
	count := map[string]int{}
	for _, l := range strings.Split(want, "\n") {
		count[l]++
	}
	for _, l := range strings.Split(have, "\n") {
		count[l]--
	}
	for l, n := range count {
		switch {
		case n > 0:
			out = append(out, "lacks "+l)
		case n < 0:
			out = append(out, "has "+l)
		}
	}
	return strings.Join(out, "; ")
}

// do runs one operation to its end. An error means that the lane is stuck.
func (j *journey) do(operation string, key invariants.Key, ask func(context.Context) error, settled func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	run := lab.Run{Part: j.part, Operation: operation}
	if j.before != nil {
		run.What = j.before(operation, key)
	}
	begin := time.Now()
	last := j.lane.Checker.Latest(key)
	err := ask(ctx)
	if err == nil {
		err = settled(ctx)
	}
	run.Took = time.Since(begin)
	missing := ""
	if j.after != nil {
		missing = j.after()
	}
	stuck := err
	if err == nil {
		err = j.judge(ctx, &run, key, last)
	}
	if err == nil && missing != "" {
		err = fmt.Errorf("%s", missing)
	}
	if run.Converged = err == nil && len(run.Twice)+len(run.Left) == 0; !run.Converged {
		run.Problem = fmt.Sprintf("%s %s, %s: %v; twice: %v; left: %v", operation, key, run.What, err, run.Twice, run.Left)
	}
	if run.What != "" || j.learning || !run.Converged {
		table.Add(run)
	}
	return stuck
}

// judge looks at what an operation has left behind.
func (j *journey) judge(ctx context.Context, run *lab.Run, key invariants.Key, last v1.Object) (err error) {
	now := j.lane.Checker.Latest(key)
	if now == nil {
		if last == nil {
			return fmt.Errorf("it is gone")
		}
		run.Left, err = j.lane.Left(ctx, last)
		return err
	}
	look, err := j.lane.Look(ctx)
	if err != nil {
		return err
	}
	run.Twice = lab.Twice(look, now.GetAnnotations()[v1.AnnotationID])
	state, err := j.lane.State(ctx, now, look)
	if err != nil {
		return err
	}
	return j.expect.check(run.Operation, state, j.learning)
}

func (j *journey) create(kind string) error {
	key := j.lane.Key(kind)
	return j.do("Create"+kind, key, func(ctx context.Context) error { return j.lane.Create(ctx, key, nil) },
		func(ctx context.Context) error { _, err := j.lane.AwaitReady(ctx, key); return err })
}

func (j *journey) update(kind string) error { return j.updateAs("Update"+kind, kind) }

func (j *journey) updateAs(operation, kind string) error {
	key := j.lane.Key(kind)
	var generation int64
	return j.do(operation, key, func(ctx context.Context) (err error) { generation, err = j.lane.Change(ctx, key); return err },
		func(ctx context.Context) error {
			_, err := j.lane.AwaitGeneration(ctx, key, generation)
			return err
		})
}

func (j *journey) remove(kind string) error {
	key := j.lane.Key(kind)
	return j.do("Delete"+kind, key, func(ctx context.Context) error { return j.lane.Delete(ctx, key) },
		func(ctx context.Context) error { return j.lane.AwaitGone(ctx, key) })
}

// steps runs until the first error.
func steps(all ...func() error) error {
	for _, f := range all {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

func (j *journey) creates(kind string) func() error { return func() error { return j.create(kind) } }
func (j *journey) updates(kind string) func() error { return func() error { return j.update(kind) } }
func (j *journey) removes(kind string) func() error { return func() error { return j.remove(kind) } }

// whole is every operation and every special form once, with between before the
// deletions.
func (j *journey) whole(between func() error) error {
	return steps(
		j.creates(v1.KindProviderType), j.creates(v1.KindProvider), j.creates(v1.KindNetwork), j.creates(v1.KindCluster),
		j.updates(v1.KindCluster), j.updates(v1.KindNetwork), j.updates(v1.KindProvider), j.updates(v1.KindProviderType),
		between, j.replace,
		j.removes(v1.KindCluster), j.removes(v1.KindNetwork), j.cancelCreation, j.removes(v1.KindProvider), j.removes(v1.KindProviderType),
	)
}

func nothing() error { return nil }

// updateAll updates an object of each kind once more.
func (j *journey) updateAll() error {
	return steps(j.updates(v1.KindCluster), j.updates(v1.KindNetwork), j.updates(v1.KindProvider), j.updates(v1.KindProviderType))
}
