package main

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
)

// completeTimeout bounds what the shell waits for.
const completeTimeout = 2 * time.Second

// completeTarget completes KIND, then NAME.
func (g *globals) completeTarget(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	const no = cobra.ShellCompDirectiveNoFileComp
	switch len(args) {
	case 0:
		return plurals(), no
	case 1:
		k, err := parseKind(args[0])
		if err != nil {
			return nil, no
		}
		r, err := g.open()
		if err != nil {
			return nil, no
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
		defer cancel()
		return r.names(ctx, k), no
	}
	return nil, no
}

func (r *reader) names(ctx context.Context, k kind) []string {
	objs, err := r.list(ctx, k)
	if err != nil {
		return nil // completion has nowhere to say it
	}
	names := make([]string, 0, len(objs))
	for _, o := range objs {
		names = append(names, o.Name)
	}
	return names
}

func (g *globals) completeContexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	raw, err := g.clientConfig().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for name := range raw.Contexts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, cobra.ShellCompDirectiveNoFileComp
}
