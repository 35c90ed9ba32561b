package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/batch"
	"github.com/fencepost-go/fencepost/outbox"
)

// A batchVerb changes the rows of one batch that have one fate.
type batchVerb struct {
	batching
	acting
	name, done string
	rows       func(batch.Progress) int // how many it is about
	of         batch.Fate
	act        func(b *batch.Batches, ctx context.Context, scope outbox.Scope, id int64, by outbox.By) (int, error)
	yes        bool
}

func newBatchCancel() *cobra.Command {
	v := batchVerb{name: "cancel", done: "cancelled", of: batch.FateOpen, rows: func(p batch.Progress) int { return p.Open }, act: (*batch.Batches).Cancel}
	return v.command(&cobra.Command{
		Use:   "cancel ID",
		Short: "End the open rows of a batch for good",
		Long: `End the open rows of a batch for good, leased ones too: a handler that runs is told at its next renewal. The batch takes no
more rows, and is completed; what had an end keeps it. It asks before it begins; where there is no terminal it
needs --yes. After an interruption run it again.`,
		Example: `  fencepost batch cancel 4711 --yes --reason "the wrong list"`,
	})
}

func newBatchRerun() *cobra.Command {
	v := batchVerb{name: "rerun", done: "brought back", of: batch.FateDead, rows: func(p batch.Progress) int { return p.Dead }, act: (*batch.Batches).Rerun}
	return v.command(&cobra.Command{
		Use:   "rerun ID",
		Short: "Bring the dead rows of a batch back, and no others",
		Long: `Bring the dead rows of a batch back, with all the attempts that their policy allows, and no others: what was delivered is
not done again. A batch that was completed is open again, in its next run. It asks before it begins; where there
is no terminal it needs --yes. After an interruption run it again.`,
		Example: `  fencepost batch rerun 4711 --yes --reason "the mail server is back"`,
	})
}

func (v *batchVerb) command(cmd *cobra.Command) *cobra.Command {
	v.batching.addFlags(cmd)
	v.acting.addFlags(cmd)
	cmd.Flags().BoolVar(&v.yes, "yes", false, "do not ask; needed where there is no terminal")
	cmd.RunE = v.run
	return cmd
}

func (v *batchVerb) run(cmd *cobra.Command, _ []string) error {
	by, err := v.by()
	if err != nil {
		return err
	}
	if !v.yes && !isTerminal(cmd.InOrStdin()) {
		return usagef("this acts on every %s row of the batch and nobody is there to confirm it: add --yes", v.of)
	}
	return v.withBatches(cmd, func(ctx context.Context, batches *batch.Batches) error {
		var p batch.Progress
		err := v.within(ctx, func(ctx context.Context) (err error) {
			p, err = batches.Progress(ctx, v.scope(), v.id)
			return err
		})
		if err != nil {
			return err
		}
		if n := v.rows(p); !v.yes && n > 0 {
			if err := confirm(cmd, fmt.Sprintf("%s %s %s rows of batch %d?", v.name, many(n), v.of, v.id)); err != nil {
				return err
			}
		}
		done, err := v.act(batches, ctx, v.scope(), v.id, by)
		if err != nil && done == 0 {
			return err
		}
		if printing := output(cmd, batchActedReport{strconv.FormatInt(v.id, 10), done, v.done}); printing != nil || err != nil {
			return errors.Join(err, printing)
		}
		if done == 0 {
			return notDonef("no row was %s: none is %s", v.done, v.of)
		}
		return nil
	})
}

type batchActedReport struct {
	ID   string `json:"id"`
	Rows int    `json:"rows"`

	done string
}

func (r batchActedReport) text(p *page) {
	p.linef("batch %s: %s rows were %s", r.ID, many(r.Rows), r.done)
}
