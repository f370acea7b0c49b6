// Package e2e drives the whole product on the devstack, through the Kubernetes
// API, as its users do.
package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tidbcloud/infra-orchestrator/test/invariants"
	"github.com/tidbcloud/infra-orchestrator/test/stack"
)

var (
	world *stack.Stack
	// checker asserts what must hold at every moment of every test.
	checker *invariants.Checker
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run has the deferred calls that os.Exit would skip.
func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	begin := time.Now()
	if world, err = stack.Start(ctx, dir, "--balancer-period", "2s"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		_ = stack.PrintTail(dir + "/devstack.log")
		return 1
	}
	fmt.Printf("devstack up in %s, state in %s\n", time.Since(begin).Round(100*time.Millisecond), dir)
	checker = invariants.Start(invariants.Options{Stack: world, Marker: marker})
	code := m.Run()
	if violations := checker.Stop(); len(violations) > 0 {
		fmt.Fprintf(os.Stderr, "violated while the tests ran:\n%s\n", strings.Join(violations, "\n"))
		code = 1
	}
	if err := world.Refused(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if err := world.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "devstack:", err)
		code = 1
	}
	if code == 0 {
		_ = os.RemoveAll(dir)
	} else {
		fmt.Fprintln(os.Stderr, "logs are kept in", dir)
	}
	return code
}
