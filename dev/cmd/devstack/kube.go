package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tidbcloud/infra-orchestrator/dev/kube"
)

// newKubeCommand is for benchmarks, which want an API server alone in its
// process, so that what it costs can be told apart.
func newKubeCommand() *cobra.Command {
	var dataDir string
	cmd := &cobra.Command{
		Use:   "kube",
		Short: "Run etcd and one bare Kubernetes API server, nothing else",
		Long: `Run etcd and one bare Kubernetes API server, nothing else, until it is
interrupted. It prints one line of JSON when it is ready: {"kubeconfig": "…"}.
Custom resource definitions are the caller's to install.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := os.MkdirAll(dataDir, 0o700); err != nil {
				return err
			}
			etcd, err := kube.StartEtcd(filepath.Join(dataDir, "etcd"), "")
			if err != nil {
				return err
			}
			defer etcd.Close()
			cluster, err := kube.Start(cmd.Context(), kube.Options{Name: "kube", Dir: filepath.Join(dataDir, "kube"), Etcd: etcd})
			if err != nil {
				return err
			}
			ready := map[string]string{"kubeconfig": cluster.Kubeconfig()}
			if err := json.NewEncoder(cmd.OutOrStdout()).Encode(ready); err != nil {
				return fmt.Errorf("cannot tell the address: %w", err)
			}
			select {
			case <-cmd.Context().Done():
				return cluster.Stop()
			case err := <-cluster.Failed():
				return err
			}
		},
	}
	cmd.Flags().StringVar(&dataDir, "data-dir", "", "`folder` of etcd, certificates and kubeconfig")
	_ = cmd.MarkFlagRequired("data-dir") // fails only for a flag that is not there
	return cmd
}
