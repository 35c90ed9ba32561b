package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/outbox"
)

func newPause() *cobra.Command {
	var c connection
	var by acting
	var which lanes
	running := false
	cmd := &cobra.Command{
		Use:   "pause",
		Short: "Stop leasing, of some lanes or of everything",
		Long: `Stop leasing until resume: of the lanes that --consumer, --target, --kind and --tenant name together, or of
everything with --all, which is the first thing to do with a copy of a production database. No sender leases a
message of them later than its poll interval and a second from now. Messages wait, and their age goes on.

Handlers that run finish, unless --cancel-running stops them at their next renewal; their messages go back unspent.`,
		Example: `  fencepost pause --all --cancel-running --reason "this is a copy"
  fencepost pause --kind mail --reason "mail server is down"
  fencepost pause --consumer shop --target warehouse --tenant acme --reason "asked by acme"`,
		Args: noArguments,
	}
	c.addFlags(cmd)
	c.addTimeout(cmd, "give up after this long")
	by.addFlags(cmd)
	which.addFlags(cmd)
	cmd.Flags().BoolVar(&running, "cancel-running", false, "stop running handlers too")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		mode := outbox.PauseLeasing
		if running {
			mode = outbox.PauseCancel
		}
		return which.run(cmd, &c, by, func(ctx context.Context, box *outbox.Box, by outbox.By) error {
			since, err := box.Pause(ctx, outbox.AllTenants, which.pattern, mode, by)
			if err != nil {
				return err
			}
			return output(cmd, newPauseStatus(outbox.Pause{Lanes: which.pattern, Mode: mode, By: by, PausedAt: since}))
		})
	}
	return cmd
}

// lanes are the flags that name what is paused: each is the wildcard unless it is given.
type lanes struct {
	all     bool
	pattern outbox.LanePattern
}

func (l *lanes) addFlags(cmd *cobra.Command) {
	l.pattern = outbox.Everything
	flags := cmd.Flags()
	flags.BoolVar(&l.all, "all", false, "everything")
	flags.Var(textFlag{&l.pattern.Consumer}, "consumer", "only this consumer")
	flags.Var(textFlag{&l.pattern.Target}, "target", "only this target")
	flags.Var(textFlag{&l.pattern.Kind}, "kind", "only this kind")
	flags.StringVar(&l.pattern.Tenant, "tenant", outbox.Any, "only this tenant")
}

func (l *lanes) run(cmd *cobra.Command, c *connection, acting acting, do func(context.Context, *outbox.Box, outbox.By) error) error {
	switch everything := l.pattern == outbox.Everything; {
	case l.all && !everything:
		return usagef("--all and a name exclude each other")
	case !l.all && everything:
		return usagef("give --consumer, --target, --kind or --tenant, or --all; see %s --help", cmd.CommandPath())
	}
	by, err := acting.by()
	if err != nil {
		return err
	}
	return c.withBox(cmd, func(ctx context.Context, box *outbox.Box) error { return do(ctx, box, by) })
}

func (s pauseStatus) text(p *page) {
	p.linef("paused %s since %s by %s: %s", s.lanes(), instant(s.PausedAt), s.Actor, s.Reason)
}
