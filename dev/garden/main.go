package garden

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/gardener/gardener/cmd/gardener-apiserver/app"
	"github.com/gardener/gardener/pkg/apiserver/features"
)

// Command is the first argument by which a binary is asked to be the
// gardener-apiserver: Start runs its own executable with it.
const Command = "gardener-apiserver"

// Main is the gardener-apiserver. It takes the arguments after Command and ends
// the process.
func Main(args []string) {
	// The registry of feature gates is the process's; the server's own main
	// does this, too.
	features.RegisterFeatureGates()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	command := app.NewCommand()
	command.SetArgs(args)
	if err := command.ExecuteContext(ctx); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}
