package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/outbox"
)

// causes are what --cause takes.
var causes = []string{
	string(outbox.CausePermanent), string(outbox.CauseMoot), string(outbox.CauseAttempts), string(outbox.CauseAge), string(outbox.CauseExhausted),
}

func newReplay() *cobra.Command {
	attempts, reset := outbox.PreserveAttempts, false
	o := operation{selection: selection{state: string(outbox.StateDead)}}
	o.verb = verb{name: "replay", done: "replayed", state: "dead"}
	o.act = func(ctx context.Context, box *outbox.Box, scope outbox.Scope, ids []int64, by outbox.By) ([]outbox.Acted, error) {
		return box.Replay(ctx, scope, ids, attempts, by)
	}
	cmd := &cobra.Command{
		Use:   "replay [ID...]",
		Short: "Bring dead messages back",
		Long: `Bring dead messages back, named ones or all that match: they are due at once, their age starts anew, and their key
and payload stay as they were, so that a receiver that knows the key does nothing twice. Each gets one more attempt
at least, and with --reset-attempts all that its policy allows.

` + bulkHelp + `
They are taken from the latest death back; one that dies again meanwhile is not taken a second time.`,
		Example: `  fencepost replay 4711 --reason "address corrected"
  fencepost replay --kind mail --cause attempts --older-than 10m --dry-run
  fencepost replay --kind mail --cause attempts --older-than 10m --yes --reason "mail server is back"
  fencepost replay --all --limit 10 --reset-attempts --yes --actor ann --reason "a few first"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if reset {
				attempts = outbox.ResetAttempts
			}
			return o.run(cmd, args)
		},
	}
	o.addFlags(cmd, "dead")
	cmd.Flags().Var(choiceFlag{&o.cause, causes}, "cause", "only those dead for this cause: permanent, moot, attempts, age, exhausted")
	cmd.Flags().BoolVar(&reset, "reset-attempts", false, "count attempts from zero again")
	return cmd
}

// bulkHelp is said once for the three verbs that act on many messages.
const bulkHelp = `Without ids it needs a filter or --all, and asks before it begins; where there is no terminal it needs --yes. It
works through what is there when it begins, a thousand a transaction, and tells on Ctrl-C or an error what was done
until then and where to go on: the same command again is safe, and with --after it does not start over.`
