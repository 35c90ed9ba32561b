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

func newBatch() *cobra.Command {
	return newGroup("batch", "Run jobs of many rows and see how they stand",
		`Run jobs of many rows: each row is a message that a sender performs, with a fate of its own; see docs/batches.md.`,
		`  fencepost batch create people.ndjson --consumer invites --target mail --kind invite --key may
  fencepost batch watch 4711`,
		newBatchCreate(), newBatchList(), newBatchShow(), newBatchRows(), newBatchWatch(), newBatchCancel(), newBatchRerun())
}

// A batching is a command about one batch.
type batching struct {
	connection
	scope func() outbox.Scope
	id    int64
}

func (b *batching) addFlags(cmd *cobra.Command) {
	b.connection.addFlags(cmd)
	b.addTimeout(cmd, "give up after this long for one look")
	b.scope = addTenants(cmd)
	cmd.Args = func(cmd *cobra.Command, args []string) (err error) {
		if len(args) != 1 {
			return usagef("%s takes the id of one batch; see %s --help", cmd.Name(), cmd.CommandPath())
		}
		if b.id, err = strconv.ParseInt(args[0], 10, 64); err != nil || b.id < 1 {
			return usagef("the id of a batch is a whole number above 0")
		}
		return nil
	}
}

// withBatches calls use with the batches of a database; only the look at the tables' version is bounded by the timeout.
func (c *connection) withBatches(cmd *cobra.Command, use func(ctx context.Context, b *batch.Batches) error) error {
	return c.withDatabase(cmd.Context(), cmd, func(_ *database, box *outbox.Box) error {
		b, err := batch.New(box, batch.Config{})
		if err != nil {
			return err
		}
		return batchGone(use(cmd.Context(), b))
	})
}

// batchGone turns the errors of a batch into what to do.
func batchGone(err error) error {
	var row *batch.RowConflictError
	var other *batch.ConflictError
	switch {
	case errors.Is(err, batch.ErrNotFound):
		return notDonef("there is no such batch; was it purged, or is it another --tenant's?")
	case errors.As(err, &other):
		return notDonef("the key is taken by batch %d, which was created with another target, kind, priority, age or effect at its end", other.ID)
	case errors.As(err, &row):
		return notDonef("%v; the rows before its chunk are stored", row)
	case errors.Is(err, batch.ErrConflict):
		return notDonef("the key of --on-complete is taken by a message")
	case errors.Is(err, batch.ErrSealed):
		return notDonef("the batch takes no more rows: it was created to its end without these, or cancelled")
	}
	return err
}

func newBatchShow() *cobra.Command {
	var b batching
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show how a batch stands",
		Long: `Show how a batch stands: its rows counted by fate, and how many of the open ones are leased at the moment or parked. A
completed batch has run 1; each rerun that opens it again is one more.`,
		Example: `  fencepost batch show 4711
  fencepost batch show 4711 --json | jq .dead`,
	}
	b.addFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return b.withBatches(cmd, func(ctx context.Context, batches *batch.Batches) error {
			return b.within(ctx, func(ctx context.Context) error {
				p, err := batches.Show(ctx, b.scope(), b.id)
				if err != nil {
					return err
				}
				return output(cmd, batchReport{p})
			})
		})
	}
	return cmd
}

type batchReport struct{ batch.Progress }

func (r batchReport) text(p *page) {
	p.table([]string{"batch", printable(r.Key)}, [][]string{
		{"id", strconv.FormatInt(r.ID, 10)}, {"state", batchState(r.Batch)}, {"consumer", r.Consumer}, {"target", r.Target}, {"kind", r.Kind},
		{"tenant", orDash(r.Tenant)}, {"run", strconv.Itoa(r.Run)}, {"created", instant(r.CreatedAt)}, {"sealed", instant(r.SealedAt)},
		{"completed", instant(r.CompletedAt)}, {"rows", many(r.Total)}, {"open", fmt.Sprintf("%s (leased %s, parked %s)", many(r.Open), many(r.Leased), many(r.Parked))},
		{"delivered", many(r.Delivered)}, {"dead", many(r.Dead)}, {"cancelled", many(r.Cancelled)}, {"expired", many(r.Expired)}, {"rejected", many(r.Rejected)},
	})
}

func many(n int) string { return thousands(int64(n)) }

// batchState is a batch's in a word.
func batchState(b batch.Batch) string {
	switch {
	case b.Completed():
		return "completed"
	case b.Sealed():
		return "open"
	default:
		return "filling"
	}
}
