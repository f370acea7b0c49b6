package main

import (
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidbcloud/infra-orchestrator/api/temporal"
	"github.com/tidbcloud/infra-orchestrator/internal/runtime"
)

const defaultUIURL = "http://127.0.0.1:8233"

func newUI(g *globals) *cobra.Command {
	var base string
	cmd := &cobra.Command{
		Use:   "ui KIND NAME",
		Short: "Print the address of the running or last operation in the Temporal UI",
		Long: `Print the address of the running or last operation in the Temporal UI; before
the first operation, that of the object's own workflow.`,
		Example: `  infractl ui network n1
  INFRA_UI_URL=https://temporal.example.com infractl ui cluster/c1`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: g.completeTarget,
		RunE: func(cmd *cobra.Command, args []string) error {
			k, name, err := oneTarget(args)
			if err != nil {
				return err
			}
			opts, err := runtime.TemporalOptions(slog.New(slog.DiscardHandler), nil)
			if err != nil {
				return err
			}
			r, err := g.open()
			if err != nil {
				return err
			}
			o, err := r.get(cmd.Context(), k, name)
			if err != nil {
				return err
			}
			address, err := uiAddress(base, opts.Namespace, o)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), address)
			return err
		},
	}
	fallback := os.Getenv("INFRA_UI_URL")
	if fallback == "" {
		fallback = defaultUIURL
	}
	cmd.Flags().StringVar(&base, "ui-url", fallback, "address of the Temporal UI (INFRA_UI_URL)")
	return cmd
}

// uiAddress is the page of a workflow; the UI goes to the newest run by itself.
func uiAddress(base, namespace string, o object) (string, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("--ui-url %q is no address such as %s", base, defaultUIURL)
	}
	id := temporal.ObjectID(o.Kind, o.Namespace, o.Name)
	if o.Status.Operation != nil {
		id = o.Status.Operation.ID
	}
	// Workflow ids hold slashes, which have to be escaped.
	return strings.TrimRight(base, "/") + "/namespaces/" + url.PathEscape(namespace) + "/workflows/" + url.PathEscape(id), nil
}
