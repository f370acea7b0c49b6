package main

import (
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidbcloud/infra-orchestrator/dev/supervisor"
)

// dataDirVariable is the default of --data-dir.
const dataDirVariable = "DEVSTACK_DATA_DIR"

func newUpCommand() *cobra.Command {
	var o supervisor.Options
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the stack, apply the samples, and stay until Ctrl-C",
		Long: `Start the stack, apply the samples and show them becoming Ready, and stay until
Ctrl-C, which stops everything.

Each part takes a free port unless --ports names one. State lives in a temporary
folder that goes at the end, or in --data-dir, where the next start finds it; the
AWS emulator alone keeps nothing.

While it runs, stack.json in the state folder has every address, path and
process id ("devstack env" prints it), and the control API switches on faults,
kills processes and makes systems unreachable: curl it for its documentation.`,
		Example: `  devstack up
  devstack up --exit-when-ready            # for scripts: 0 when the samples are Ready
  devstack up --data-dir .devstack --ports temporal-ui=8233
  devstack up --no-samples --speed 5`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return supervisor.Run(cmd.Context(), o, cmd.OutOrStdout(), os.Args[0])
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.DataDir, "data-dir", os.Getenv(dataDirVariable), "`folder` that keeps state; default a temporary one (env "+dataDirVariable+")")
	fs.StringVar(&o.Root, "root", ".", "`folder` of the checkout, for the defaults below")
	fs.StringVar(&o.CRDs, "crds", "", "`folder` of the custom resource definitions (default ROOT/config/crd)")
	fs.StringVar(&o.Samples, "samples", "", "`folder` of the samples to apply (default ROOT/deploy/samples/aws)")
	fs.StringVar(&o.ConfigService, "config-service-data", "", "`folder` that the config-service serves (default ROOT/deploy/samples/config-service)")
	fs.StringVar(&o.Bin, "bin", "", "`folder` of the binaries temporaldev, bridge and worker (default ROOT/bin)")
	fs.StringVar(&o.Venv, "cache", "", "`folder` for the AWS emulator's Python packages (default ROOT/.cache/moto)")
	fs.Float64Var(&o.Speed, "speed", 1, "how much faster than usual simulated things happen; at 1 a Shoot takes about 10 s, a database about 5 s")
	fs.StringToIntVar(&o.Ports, "ports", nil, "fixed ports, `NAME=PORT,…`; names: "+strings.Join(supervisor.PortNames(), ", "))
	fs.DurationVar(&o.BalancerPeriod, "balancer-period", 0, "time between two sweeps over all Balancers; 0 is the bridge's default. Each is a line in the Temporal UI's list of workflows")
	fs.StringArrayVar(&o.TemporalConfig, "temporal-config", nil, "dynamic configuration of the Temporal server, `KEY=JSON`; may be repeated")
	fs.BoolVar(&o.NoSamples, "no-samples", false, "apply no samples")
	fs.BoolVar(&o.NoProduct, "no-product", false, "start neither bridge nor worker; needs --no-samples")
	fs.BoolVar(&o.ExitWhenReady, "exit-when-ready", false, "stop, with exit code 0, when the samples are Ready; 1 when something fails")
	fs.DurationVar(&o.Timeout, "timeout", 10*time.Minute, "longest start, and then longest way of the samples to Ready")
	return cmd
}
