package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/tidbcloud/infra-orchestrator/dev/temporal/internal/devserver"
)

// startTimeout bounds the time from process start to a server that answers.
// A quiet machine needs under a second; a busy CI machine many times that.
const startTimeout = 2 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if errors.Is(err, devserver.ErrPortTaken) {
		err = errors.Join(err, again())
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	case err != nil:
		fmt.Fprintln(os.Stderr, "temporaldev:", err)
		os.Exit(1)
	}
}

// attempt counts the starts of one process, in its environment.
const (
	attempt     = "TEMPORALDEV_ATTEMPT"
	maxAttempts = 5
)

// again begins this process anew, which lets go of all that a start has opened
// that lost a port to somebody else. It returns only when it does not.
func again() error {
	n, _ := strconv.Atoi(os.Getenv(attempt))
	if n++; n >= maxAttempts {
		return fmt.Errorf("gave up after %d starts", n)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return syscall.Exec(self, os.Args, append(os.Environ(), attempt+"="+strconv.Itoa(n)))
}

// run serves until ctx ends. It prints one line of JSON (devserver.Addresses)
// to stdout as soon as the server answers.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	opts, err := parseFlags(args, stderr)
	if err != nil {
		return err
	}
	slog.SetDefault(opts.Logger)

	startCtx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	srv, err := devserver.Start(startCtx, opts)
	if err != nil {
		return err
	}
	defer srv.Stop()
	if err := json.NewEncoder(stdout).Encode(srv.Addresses()); err != nil {
		return fmt.Errorf("cannot tell the addresses: %w", err)
	}
	<-ctx.Done()
	return nil
}
