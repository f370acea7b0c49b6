// Command worker is the product's worker, with test/chaos/hook at every border
// of every activity.
package main

import (
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tidbcloud/infra-orchestrator/test/chaos/hook"
	"github.com/tidbcloud/infra-orchestrator/workers/command"
)

func main() {
	url := os.Getenv(hook.Variable)
	if url == "" {
		fmt.Fprintln(os.Stderr, "chaos worker:", hook.Variable, "is not set")
		os.Exit(2)
	}
	if err := command.New(hook.Interceptor(url)).ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "chaos worker:", err)
		os.Exit(1)
	}
}
