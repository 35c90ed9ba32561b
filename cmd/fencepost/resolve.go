package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/outbox"
)

func newResolve() *cobra.Command {
	resolutions := map[string]outbox.Resolution{
		"delivered": outbox.AsDelivered, "dead": outbox.AsDead, "dead-blocking": outbox.AsDeadBlocking, "retry": outbox.AsRetry,
	}
	as := ""
	o := operation{selection: selection{state: string(outbox.StateParked)}}
	o.verb = verb{name: "resolve", done: "resolved", state: "parked"}
	o.act = func(ctx context.Context, box *outbox.Box, scope outbox.Scope, ids []int64, by outbox.By) ([]outbox.Acted, error) {
		return box.Resolve(ctx, scope, ids, resolutions[as], by)
	}
	cmd := &cobra.Command{
		Use:   "resolve [ID...]",
		Short: "Decide about parked messages, whose outcome is unknown",
		Long: `Decide about parked messages, named ones or all that match: nobody knows whether the effect was performed, until
somebody has looked.

  delivered       it was performed
  dead            it was not and shall not be
  dead-blocking   dead, and the next messages of its order key wait: see unblock
  retry           try it again at once; its age starts anew

` + bulkHelp,
		Example: `  fencepost resolve 4711 --as delivered --reason "the bank shows the booking"
  fencepost resolve --consumer shop --target warehouse --older-than 1h --as retry --dry-run
  fencepost resolve --consumer shop --target warehouse --older-than 1h --as retry --yes --reason "it lost them"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if as == "" {
				return usagef("--as is required: delivered, dead, dead-blocking or retry")
			}
			return o.run(cmd, args)
		},
	}
	o.addFlags(cmd, "created")
	cmd.Flags().Var(choiceFlag{&as, []string{"delivered", "dead", "dead-blocking", "retry"}}, "as", "the decision; required")
	return cmd
}
