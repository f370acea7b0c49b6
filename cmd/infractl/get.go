package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

var outputs = []string{"wide", "json", "yaml"}

func newGet(g *globals) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "get [KIND [NAME]]",
		Short: "List objects with phase, step, progress and what they wait for",
		Long: `List objects with phase, step, progress and what they wait for; all kinds
unless one is named.`,
		Example: `  infractl get
  infractl get networks -o wide
  infractl get cluster c1 -o yaml`,
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: g.completeTarget,
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "" && !slices.Contains(outputs, output) {
				return fmt.Errorf("-o %s: want wide, json or yaml", output)
			}
			r, err := g.open()
			if err != nil {
				return err
			}
			objs, err := r.collect(cmd, args)
			if err != nil {
				return err
			}
			if len(objs) == 0 {
				_, err := fmt.Fprintf(cmd.ErrOrStderr(), "Nothing in namespace %q.\n", g.namespace)
				return err
			}
			return printObjects(cmd.OutOrStdout(), objs, output, len(args) > 0 && namesOne(args), time.Now())
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "wide, json or yaml; a table when empty")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(outputs, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func namesOne(args []string) bool {
	_, name, err := splitTarget(args)
	return err == nil && name != ""
}

// collect reads what the arguments name: everything, a kind, or one object.
func (r *reader) collect(cmd *cobra.Command, args []string) ([]object, error) {
	if len(args) == 0 {
		var all []object
		for _, k := range kinds {
			objs, err := r.list(cmd.Context(), k)
			if err != nil {
				return nil, err
			}
			all = append(all, objs...)
		}
		return all, nil
	}
	word, name, err := splitTarget(args)
	if err != nil {
		return nil, err
	}
	k, err := parseKind(word)
	if err != nil {
		return nil, err
	}
	if name == "" {
		return r.list(cmd.Context(), k)
	}
	o, err := r.get(cmd.Context(), k, name)
	return []object{o}, err
}

// printObjects writes a table, or the objects as the API server gave them: one
// alone, several as a List.
func printObjects(w io.Writer, objs []object, output string, single bool, now time.Time) error {
	if output == "" || output == "wide" {
		_, err := io.WriteString(w, renderTable(objs, output == "wide", now))
		return err
	}
	items := make([]any, 0, len(objs))
	for _, o := range objs {
		items = append(items, o.raw)
	}
	var doc any = map[string]any{"apiVersion": "v1", "kind": "List", "items": items}
	if single {
		doc = items[0]
	}
	var data []byte
	var err error
	switch output {
	case "json":
		data, err = json.MarshalIndent(doc, "", "  ")
		data = append(data, '\n')
	case "yaml":
		data, err = yaml.Marshal(doc)
	default:
		err = errors.New("unknown output " + output)
	}
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}
