package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/tidbcloud/infra-orchestrator/dev/supervisor"
)

func newEnvCommand() *cobra.Command {
	var dataDir, output string
	cmd := &cobra.Command{
		Use:   "env",
		Short: "Print the addresses of a running stack",
		Long: `Print the addresses of a running stack, as shell commands that set environment
variables, or as JSON with all that there is to know (-o json).

Without --data-dir it finds the one running stack whose state is temporary.`,
		Example: `  eval "$(devstack env)"
  devstack env -o json | jq -r .temporalUI`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			state, err := supervisor.FindState(dataDir)
			if err != nil {
				return err
			}
			switch output {
			case "shell":
				printShell(cmd, state)
				return nil
			case "json":
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				return enc.Encode(state)
			}
			return fmt.Errorf("-o %s: want shell or json", output)
		},
	}
	cmd.Flags().StringVar(&dataDir, "data-dir", os.Getenv(dataDirVariable), "state `folder` of the stack (env "+dataDirVariable+")")
	cmd.Flags().StringVarP(&output, "output", "o", "shell", "`format`: shell or json")
	return cmd
}

func printShell(cmd *cobra.Command, s supervisor.State) {
	for _, variable := range [][2]string{
		{"KUBECONFIG", s.Kubeconfig},
		{"GARDENER_CONFIG", s.GardenKubeconfig},
		{"TEMPORAL_ADDRESS", s.TemporalAddress},
		{"TEMPORAL_NAMESPACE", s.TemporalNamespace},
		{"AWS_ENDPOINT_URL", s.AWS},
		{"CONFIG_SERVICE_URL", s.ConfigService},
		{"INFRA_UI_URL", s.TemporalUI}, // for infractl ui
		{"DEVSTACK_CONTROL", s.Control},
		{dataDirVariable, s.DataDir},
	} {
		_, _ = fmt.Fprintf(cmd.OutOrStdout(), "export %s=%q\n", variable[0], variable[1])
	}
}
