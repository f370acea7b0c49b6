// Command infractl shows the custom resources and their operations. Installed
// as kubectl-infra it is a kubectl plugin.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newRoot().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "infractl:", err)
		os.Exit(1)
	}
}
