package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/tidbcloud/infra-orchestrator/api/v1"
)

// completeTimeout bounds what the shell waits for.
const completeTimeout = 2 * time.Second

// completeTarget completes KIND, then NAME; or KIND/NAME in one.
func (g *globals) completeTarget(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	const no = cobra.ShellCompDirectiveNoFileComp
	asked, _, joined := strings.Cut(word, "/")
	switch {
	case len(args) == 0 && joined:
		names := g.completeNames(cmd.Context(), asked)
		for i, n := range names {
			names[i] = asked + "/" + n
		}
		return names, no
	case len(args) == 0:
		return plurals(), no
	case len(args) == 1:
		return g.completeNames(cmd.Context(), args[0]), no
	}
	return nil, no
}

func (g *globals) completeNames(ctx context.Context, asked string) []string {
	k, err := parseKind(asked)
	if err != nil {
		return nil
	}
	r, err := g.open()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completeTimeout)
	defer cancel()
	return r.names(ctx, k)
}

func (r *reader) names(ctx context.Context, k v1.Kind) []string {
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
