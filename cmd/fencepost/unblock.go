package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/outbox"
)

func newUnblock() *cobra.Command {
	var c connection
	var by acting
	var key outbox.OrderKey
	cmd := &cobra.Command{
		Use:   "unblock --consumer NAME --target NAME --order-key KEY",
		Short: "Free an order key that a dead message holds",
		Long: `Free an order key that a dead message holds (Policy.BlockOnDead), so that the next message of the key goes on
without it. The dead message stays dead; to bring it back there is replay, which frees the key too.`,
		Example: `  fencepost unblock --consumer shop --target warehouse --order-key customer-7 --reason "booked by hand"`,
		Args:    noArguments,
	}
	c.addFlags(cmd)
	c.addTimeout(cmd, "give up after this long")
	by.addFlags(cmd)
	flags := cmd.Flags()
	flags.Var(textFlag{&key.Consumer}, "consumer", "the consumer; required")
	flags.Var(textFlag{&key.Target}, "target", "the target; required")
	flags.Var(textFlag{&key.Key}, "order-key", "the order key; required")
	flags.StringVar(&key.Tenant, "tenant", "", "the tenant")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		by, err := by.by()
		if err == nil && (key.Consumer == "" || key.Target == "" || key.Key == "") {
			err = usagef("--consumer, --target and --order-key are required")
		}
		if err != nil {
			return err
		}
		return c.withBox(cmd, func(ctx context.Context, box *outbox.Box) error {
			freed, err := box.Unblock(ctx, outbox.AllTenants, key, by)
			if err != nil {
				return err
			}
			if err := output(cmd, unblockReport{Unblocked: freed}); err != nil {
				return err
			}
			if !freed {
				return notDonef("this order key is not blocked")
			}
			return nil
		})
	}
	return cmd
}

type unblockReport struct {
	Unblocked bool `json:"unblocked"`
}

func (r unblockReport) text(p *page) {
	if r.Unblocked {
		p.linef("unblocked")
	}
}
