package main

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidbcloud/infra-orchestrator/api/temporal"
)

func newDescribe(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "describe KIND NAME",
		Short: "Show one object: its operation step by step, what it waits for, what went wrong",
		Long: `Show one object: spec, conditions, the running or last operation with its
steps and their times, what it waits for, the last error with whose it is and
what to do, the ledger of external resources, and the latest events.

Temporal is asked whether workers fail to go on with the object's workflow, and,
while an operation runs, for the activity in progress: which attempt, on which
worker, its last heartbeat and failure. Without Temporal the rest is shown all
the same.

Marks: · pending  ▶ running  ✓ succeeded  ! stalled  ↷ skipped  ✗ cancelled`,
		Example: `  infractl describe network n1
  infractl describe cluster/c1`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: g.completeTarget,
		RunE: func(cmd *cobra.Command, args []string) error {
			k, name, err := oneTarget(args)
			if err != nil {
				return err
			}
			r, err := g.open()
			if err != nil {
				return err
			}
			d := description{}
			if d.Object, err = r.get(cmd.Context(), k, name); err != nil {
				return err
			}
			if d.Events, err = r.events(cmd.Context(), d.Object); err != nil {
				return err
			}
			if op := d.Object.Status.Operation; op != nil && op.Active() {
				d.Attempt = askTemporal(cmd.Context(), op.ID)
			}
			d.Own = askTemporal(cmd.Context(), temporal.ObjectID(k.Name, d.Object.Namespace, name))
			d.Now = time.Now()
			_, err = io.WriteString(cmd.OutOrStdout(), renderDescription(d))
			return err
		},
	}
}
