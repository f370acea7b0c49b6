// Package chaos proves that no operation is hurt by what goes wrong around it:
// workers that die at every border of every activity, answers that get lost,
// systems that are away, people who ask for something at every step.
//
// CHAOS=full runs all of it (make chaos) and prints a table; otherwise a short
// subset runs, chosen by CHAOS_SEED. See README.md.
package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidbcloud/infra-orchestrator/test/chaos/lab"
	"github.com/tidbcloud/infra-orchestrator/test/invariants"
	"github.com/tidbcloud/infra-orchestrator/test/stack"
)

var (
	world   *stack.Stack        // of the part that runs, see ownStack
	checker *invariants.Checker // of the same
	table   = &lab.Table{}
	folder  string // of logs and state
	binary  string // the chaos worker
	seed    = seedOf(os.Getenv("CHAOS_SEED"))
)

// full says that everything runs.
func full() bool { return os.Getenv("CHAOS") == "full" }

func seedOf(text string) uint64 {
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return n
	}
	return uint64(time.Now().UnixNano()) % 1_000_000
}

// dice are the random numbers of one test.
func dice() *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// laneCount is how many lanes work side by side: env CHAOS_LANES. More than
// five do not help two cores.
func laneCount() int {
	if n, err := strconv.Atoi(os.Getenv("CHAOS_LANES")); err == nil && n > 0 {
		return n
	}
	return 5
}

// sample bounds what runs of each operation in each part; 0 is everything. Env
// CHAOS_SAMPLE, for those who work on these tests.
func sample() int {
	n, _ := strconv.Atoi(os.Getenv("CHAOS_SAMPLE"))
	return n
}

// chosen says whether a workflow's borders and steps are to be tried: all are,
// unless env CHAOS_OPERATIONS lists some, as in CreateCluster,DeleteCluster.
func chosen(workflow string) bool {
	list := os.Getenv("CHAOS_OPERATIONS")
	return list == "" || slices.Contains(strings.Split(list, ","), workflow)
}

// sampled is a part of a list.
func sampled[T any](all []T) []T {
	if n := sample(); n > 0 && len(all) > n {
		return all[:n]
	}
	return all
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run has the deferred calls that os.Exit would skip.
func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Hour)
	defer cancel()
	var err error
	if folder, err = os.MkdirTemp("", "chaos-"); err != nil {
		return complain(err)
	}
	begin := time.Now()
	if err := buildWorker(ctx); err != nil {
		return complain(err)
	}
	fmt.Printf("CHAOS_SEED=%d; the chaos worker is there after %s; state and logs in %s\n", seed, time.Since(begin).Round(100*time.Millisecond), folder)
	code := m.Run()
	table.Print(os.Stdout)
	if code == 0 {
		_ = os.RemoveAll(folder)
	} else {
		fmt.Fprintf(os.Stderr, "logs are kept in %s; the same again: CHAOS_SEED=%d\n", folder, seed)
	}
	return code
}

// ownStack gives a test a devstack, watched by a checker, until it ends. Each
// part has its own: one that has carried some hundred runs is slow.
func ownStack(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp(folder, "stack-")
	require.NoError(t, err)
	begin := time.Now()
	if world, err = stack.Start(t.Context(), dir, "--no-product", "--speed", "8",
		// A worker that dies in a workflow task is noticed after this; else 10 s.
		"--temporal-config", `history.defaultWorkflowTaskTimeout="4s"`); err != nil {
		_ = stack.PrintTail(filepath.Join(dir, "devstack.log"))
		require.NoError(t, err)
	}
	fmt.Printf("%s: devstack up after %s\n", t.Name(), time.Since(begin).Round(100*time.Millisecond))
	violated := func(sentence string) { fmt.Println("VIOLATED", sentence) }
	checker = invariants.Start(invariants.Options{Stack: world, Every: 5 * time.Second, Marker: lab.Marker, Violated: violated})
	t.Cleanup(func() {
		for _, v := range checker.Stop() {
			t.Error("violated: " + v)
		}
		if err := world.Stop(); err != nil {
			t.Error("devstack: ", err)
		}
	})
}

// buildWorker builds the chaos worker; env CHAOS_WORKER names one that is built
// already.
func buildWorker(ctx context.Context) error {
	if binary = os.Getenv("CHAOS_WORKER"); binary != "" {
		return nil
	}
	binary = filepath.Join(stack.Root(), ".cache", "chaos", "worker")
	build := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", binary, "./worker")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("chaos worker: %w: %s", err, out)
	}
	return nil
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

var laneNumber struct {
	sync.Mutex
	n int
}

// newLane starts a lane that ends with the test, its bridge with these flags.
// Processes that end unasked, and secrets that can be read, fail the test.
func newLane(t *testing.T, name string, bridge ...string) *lab.Lane {
	t.Helper()
	laneNumber.Lock()
	laneNumber.n++
	name = fmt.Sprintf("%s-%d", name, laneNumber.n)
	laneNumber.Unlock()
	ctx := within(t, time.Minute)
	l, err := lab.NewLane(ctx, world, checker, name, filepath.Join(folder, "lanes"), binary, bridge...)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if err := checker.SearchHistories(ctx, l.Stack, l.Name); err != nil && len(l.Conductor.Trace()) > 0 {
			t.Error(err)
		}
		for _, h := range l.Gate.Hindered() {
			checker.Violate("8: lane %s: %s", l.Name, h)
		}
		if n := l.Gate.Conflicts(); n > 0 {
			fmt.Printf("lane %s: %d writes to Shoots were outdated\n", l.Name, n)
		}
		for _, end := range l.Stop() {
			t.Error(end)
		}
		if err := checker.SearchLogs(l.Logs()); err != nil {
			t.Error(err)
		}
	})
	return l
}

// within is a context for one expectation.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}
