package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
	"github.com/tidbcloud/infra-orchestrator/internal/runtime"
)

// globals are the flags of every command.
type globals struct {
	kubeconfig, context, namespace string
}

// commands is the one place where commands are added.
func commands(g *globals) []*cobra.Command {
	return append([]*cobra.Command{newGet(g), newDescribe(g), newUI(g), newVersion()}, newVerbs(g)...)
}

func newRoot() *cobra.Command {
	var g globals
	root := &cobra.Command{
		Use:   programName(os.Args[0]),
		Short: "Show Networks, Clusters and the operations that work on them, and steer these",
		Long: `Show Networks, Clusters and the operations that work on them; retry, skip, pause,
resume or cancel these.

Everything that infractl shows is in the custom resources, so that kubectl sees
it, too; describe adds what Temporal knows of the attempt that runs right now.

The management cluster is found as by kubectl: --kubeconfig, $KUBECONFIG,
~/.kube/config. Temporal is found by TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE
(default localhost:7233 and infra), and by Temporal's other variables.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	fs := root.PersistentFlags()
	fs.StringVar(&g.kubeconfig, "kubeconfig", "", "kubeconfig of the management cluster")
	fs.StringVar(&g.context, "context", "", "context in the kubeconfig")
	fs.StringVarP(&g.namespace, "namespace", "n", runtime.DefaultNamespace, "namespace of the custom resources")
	_ = root.RegisterFlagCompletionFunc("context", g.completeContexts)
	root.AddCommand(commands(&g)...)
	return root
}

// programName is how the user called us: "kubectl infra" when installed as a
// kubectl plugin. The space is a non-breaking one, because cobra takes the
// first word of Use for the name.
func programName(arg0 string) string {
	if strings.HasPrefix(filepath.Base(arg0), "kubectl-") {
		return "kubectl\u00a0infra"
	}
	return "infractl"
}

func (g *globals) clientConfig() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = g.kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: g.context})
}

func (g *globals) open() (*reader, error) {
	cfg, err := g.clientConfig().ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("management cluster: %w. Set --kubeconfig or KUBECONFIG", err)
	}
	return newReader(cfg, g.namespace)
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), runtime.VersionLine("infractl"))
			return err
		},
	}
}

// splitTarget understands both KIND NAME and kubectl's KIND/NAME.
func splitTarget(args []string) (kind, name string, err error) {
	if len(args) == 1 {
		if k, n, ok := strings.Cut(args[0], "/"); ok {
			return k, n, nil
		}
		return args[0], "", nil
	}
	if len(args) == 2 {
		return args[0], args[1], nil
	}
	return "", "", errors.New("want KIND NAME or KIND/NAME")
}

// oneTarget is splitTarget for commands that need a name.
func oneTarget(args []string) (v1.Kind, string, error) {
	word, name, err := splitTarget(args)
	if err != nil {
		return v1.Kind{}, "", err
	}
	k, err := parseKind(word)
	if err == nil && name == "" {
		err = fmt.Errorf("which %s? Give its name; `infractl get %s` lists them", k.Name, k.Plural)
	}
	return k, name, err
}
