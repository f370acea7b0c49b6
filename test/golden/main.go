// Command golden records the histories that the replay tests need
// (workflows/workflowtest, Replay): every operation in the forms that it can
// take, made by the whole product on a devstack, as its users and operators
// make them. `make golden` runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tidbcloud/infra-orchestrator/test/stack"
)

func main() {
	out := flag.String("out", filepath.Join(stack.Root(), "workflows"), "folder of the kinds: files go to <kind>/testdata/histories")
	only := flag.String("only", "", "record one kind only: ProviderType, Provider, Network or Cluster")
	missing := flag.Bool("missing", false, "record only what out lacks, and replace nothing there")
	flag.Parse()
	ctrllog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *out, *only, *missing); err != nil {
		fmt.Fprintln(os.Stderr, "golden:", err)
		os.Exit(1)
	}
}

// limit is the time that the whole recording may take.
const limit = 40 * time.Minute

func run(ctx context.Context, out, only string, missing bool) (err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	dir, err := os.MkdirTemp("", "golden-")
	if err != nil {
		return err
	}
	begin := time.Now()
	s, err := stack.Start(ctx, dir)
	if err != nil {
		return errors.Join(err, stack.PrintTail(filepath.Join(dir, "devstack.log")))
	}
	fmt.Printf("devstack up in %s, state in %s\n", time.Since(begin).Round(time.Second), dir)
	r := &recorder{stack: s, out: out, only: only, missing: missing, changes: map[string]int{}}
	err = errors.Join(r.record(ctx), s.Stop())
	if err == nil {
		fmt.Printf("%d histories in %s\n", r.written, time.Since(begin).Round(time.Second))
		return os.RemoveAll(dir)
	}
	return fmt.Errorf("%w (logs are kept in %s)", err, dir)
}
