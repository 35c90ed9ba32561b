package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/batch"
	"github.com/fencepost-go/fencepost/outbox"
)

type batchCreating struct {
	connection
	spec     batch.Spec
	priority int
	complete string
}

func newBatchCreate() *cobra.Command {
	var b batchCreating
	cmd := &cobra.Command{
		Use:   "create [FILE]",
		Short: "Create a batch of rows, one JSON object a line, from a file or stdin",
		Long: `Create a batch of what stands in a file, or on stdin without one or for "-": one JSON object a line, each of which becomes a
message with that line as its payload and the batch's key and its number as its key, as in may/17. A line that is no
object is a rejected row, which is kept with the reason; blank lines are none. Rows are stored 500 a transaction,
and may be performed before the last is.

After an interruption or an error run the command again on the same input: it goes on, and nothing is stored twice.
Another batch under the key, or another row under a number, is a conflict, with exit code 3; so are rejected rows.

--on-complete is an effect as a line of enqueue, without times, age or order key: it is recorded once all rows have their end.`,
		Example: `  fencepost batch create people.ndjson --consumer invites --target mail --kind invite --key may
  echo '{"email": "ann@example.com"}' | fencepost batch create --consumer invites --target mail --kind invite --key june --json
  fencepost batch create people.ndjson --consumer invites --target mail --kind invite --key july --max-age 48h`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("create takes one file at most; see %s --help", cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE:              b.run,
	}
	b.addFlags(cmd)
	b.addTimeout(cmd, "give up after this long to reach the database")
	flags := cmd.Flags()
	flags.Var(textFlag{&b.spec.Tenant}, "tenant", "the batch's tenant (default the tenant without a name)")
	flags.Var(textFlag{&b.spec.Consumer}, "consumer", "of every row; required")
	flags.Var(textFlag{&b.spec.Target}, "target", "of every row; required")
	flags.Var(textFlag{&b.spec.Kind}, "kind", "of every row; required")
	flags.Var(textFlag{&b.spec.Key}, "key", "the batch's own; required")
	flags.IntVar(&b.priority, "priority", 0, "of every row")
	flags.Var(noneFlag{durationFlag{&b.spec.MaxAge, time.Microsecond, longestAge}, func() { b.spec.MaxAge = outbox.NoMaxAge }},
		"max-age", "how old a row may be when it is performed, or none (default 24h)")
	flags.Var(textFlag{&b.complete}, "on-complete", "the effect at the end, a JSON object")
	return cmd
}

func (b *batchCreating) run(cmd *cobra.Command, args []string) error {
	if b.spec.Consumer == "" || b.spec.Target == "" || b.spec.Kind == "" || b.spec.Key == "" {
		return usagef("--consumer, --target, --kind and --key are required")
	}
	if b.spec.Priority = int16(b.priority); int(b.spec.Priority) != b.priority {
		return usagef("--priority must be between -32768 and 32767")
	}
	if b.complete != "" {
		effect, err := parseEffect([]byte(b.complete), outbox.Effect{})
		if err != nil {
			return usagef("--on-complete %v", err)
		}
		b.spec.OnComplete = &effect
	}
	in := cmd.InOrStdin()
	if len(args) == 1 && args[0] != "-" {
		file, err := os.Open(args[0])
		if err != nil {
			return usagef("cannot open the file: %v", errors.Unwrap(err)) // without its name, which may be a connection string
		}
		defer file.Close()
		in = file
	}
	rows, err := batch.NewRows(batch.RowsConfig[map[string]any]{})
	if err != nil {
		return err
	}
	return b.withBatches(cmd, func(ctx context.Context, batches *batch.Batches) error {
		progress := newProgress(cmd)
		b.spec.Report = func(r batch.Receipt) {
			progress.sayf("%s rows: %s rejected, %s were there", many(r.Rows), many(r.Rejected), many(r.Duplicate))
		}
		input := interruptible(ctx, in)
		defer input.Close()
		receipt, err := batches.Create(ctx, b.spec, rows.Reader(input))
		if receipt.ID == 0 { // nothing is there to be told of
			return err
		}
		if printing := output(cmd, createdReport{strconv.FormatInt(receipt.ID, 10), receipt.Rows, receipt.Rejected, receipt.Duplicate, err == nil}); printing != nil || err != nil {
			return errors.Join(err, printing)
		}
		if receipt.Rejected > 0 {
			return notDonef("%d rows were rejected; see fencepost batch rows %d --fate rejected", receipt.Rejected, receipt.ID)
		}
		return nil
	})
}

// interruptible ends with ctx, since nothing interrupts a read from a terminal or a pipe.
func interruptible(ctx context.Context, in io.Reader) io.ReadCloser {
	out, feed := io.Pipe()
	context.AfterFunc(ctx, func() { feed.CloseWithError(context.Cause(ctx)) })
	go func() {
		_, err := io.Copy(feed, in)
		feed.CloseWithError(err) // nil is io.EOF
	}()
	return out
}

type createdReport struct {
	ID         string `json:"id"`
	Rows       int    `json:"rows"`
	Rejected   int    `json:"rejected"`
	Duplicates int    `json:"duplicates"`
	Sealed     bool   `json:"sealed"` // it has all its rows
}

func (r createdReport) text(p *page) {
	p.linef("batch %s: %s rows, %s rejected, %s were there", r.ID, many(r.Rows), many(r.Rejected), many(r.Duplicates))
}
