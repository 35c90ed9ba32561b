package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/outbox"
)

func newCancel() *cobra.Command {
	var o operation
	o.verb = verb{name: "cancel", done: "cancelled", state: "open"}
	o.act = func(ctx context.Context, box *outbox.Box, scope outbox.Scope, ids []int64, by outbox.By) ([]outbox.Acted, error) {
		return box.Cancel(ctx, scope, ids, by)
	}
	cmd := &cobra.Command{
		Use:   "cancel [ID...]",
		Short: "End open messages for good",
		Long: `End open messages for good, named ones or all that match, also those that are leased: a running handler is stopped
at its next renewal, and what it says afterwards counts no more. What it has done already stays done. There is no
way back; to stop for a while there is pause.

` + bulkHelp,
		Example: `  fencepost cancel 4711 --reason "order was withdrawn"
  fencepost cancel --kind mail --tenant acme --dry-run
  fencepost cancel --kind mail --tenant acme --yes --reason "account is closed"`,
		RunE: o.run,
	}
	o.addFlags(cmd, "created")
	open := []string{"pending", "leased", "parked"}
	cmd.Flags().Var(choiceFlag{&o.selection.state, open}, "state", "only those in this state: pending, leased, parked")
	return cmd
}
