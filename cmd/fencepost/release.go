package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/outbox"
)

func newRelease() *cobra.Command {
	var c connection
	var by acting
	worker := ""
	cmd := &cobra.Command{
		Use:   "release --worker NAME",
		Short: "Take the leases of a worker that is gone away",
		Long: `Take away the leases of every worker of a name, so that nobody waits for them to end: the messages are due at
once, with their attempts spent. For workers known to be gone; one that is alive loses its messages, which are then
performed twice.

It looks at every open message, 10,000 a transaction; after an error run it again.`,
		Example: `  fencepost release --worker worker-1 --reason "its machine burnt"`,
		Args:    noArguments,
	}
	c.addFlags(cmd)
	c.timeout = releaseTimeout
	c.addTimeout(cmd, "give up after this long")
	by.addFlags(cmd)
	scope := addTenants(cmd)
	cmd.Flags().Var(textFlag{&worker}, "worker", "the worker's name, as show tells it; required")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		by, err := by.by()
		if err == nil && worker == "" {
			err = usagef("--worker is required: the name of the worker that is gone")
		}
		if err != nil {
			return err
		}
		return c.withBox(cmd, func(ctx context.Context, box *outbox.Box) error {
			released, err := box.ReleaseWorker(ctx, scope(), worker, by)
			if err != nil && released == 0 {
				return err
			}
			if printing := output(cmd, releaseReport{Worker: worker, Released: released}); printing != nil || err != nil {
				return errors.Join(err, printing)
			}
			if released == 0 {
				return notDonef("no worker of this name holds a lease")
			}
			return nil
		})
	}
	return cmd
}

// releaseTimeout lets it look at some millions of open messages.
const releaseTimeout = 5 * time.Minute

type releaseReport struct {
	Worker   string `json:"worker"`
	Released int    `json:"released"`
}

func (r releaseReport) text(p *page) {
	p.linef("released %s leases of %s", thousands(int64(r.Released)), r.Worker)
}
