// Command devstack runs the whole platform on this machine, on loopback and
// without containers; see its --help.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tidbcloud/infra-orchestrator/dev/garden"
	"github.com/tidbcloud/infra-orchestrator/dev/kube"
	"github.com/tidbcloud/infra-orchestrator/dev/supervisor"
)

func main() {
	runOtherProgram()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first Ctrl-C a second one ends the process at once; its children
	// end with it.
	context.AfterFunc(ctx, stop)
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "devstack:", err)
		os.Exit(1)
	}
}

// runOtherProgram turns this process into one of the programs that this binary
// holds, when it is called as that, and then does not return.
func runOtherProgram() {
	name, args := filepath.Base(os.Args[0]), os.Args[1:]
	if name != "kubectl" && len(args) > 0 {
		name, args = args[0], args[1:]
	}
	switch name {
	case "kubectl":
		useRunningStack(args)
		kube.Kubectl(args)
	case garden.Command:
		garden.Main(args)
	}
}

// useRunningStack points kubectl at the running stack when nothing else was
// chosen; kubectl's own flags still win. Several running stacks, or none, are
// left to kubectl, with a word on why.
func useRunningStack(args []string) {
	chosen := func(arg string) bool { return strings.HasPrefix(arg, "--kubeconfig") }
	if os.Getenv("KUBECONFIG") != "" || slices.ContainsFunc(args, chosen) {
		return
	}
	state, err := supervisor.FindState(os.Getenv(dataDirVariable))
	if err != nil {
		fmt.Fprintln(os.Stderr, "devstack:", err)
		return
	}
	_ = os.Setenv("KUBECONFIG", state.Kubeconfig)
}

func newCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "devstack",
		Short: "Run the whole platform on this machine",
		Long: `Run the whole platform on this machine: Kubernetes API servers, Gardener's API
server, Temporal with its UI, an AWS emulator, stand-ins for the rest, and the
bridge, worker and balancer of this project, under the roles that ship.
Everything listens on loopback only; nothing needs containers or a cloud
account.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.AddCommand(newUpCommand(), newEnvCommand(), newKubeCommand(), &cobra.Command{
		Use:                "kubectl",
		Short:              "kubectl, by default for the running stack",
		DisableFlagParsing: true,
		Run:                func(*cobra.Command, []string) {}, // runOtherProgram came first
	})
	return cmd
}
