package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/outbox"
)

type enqueueing struct {
	connection
	defaults outbox.Effect // for lines that do not say
	chunk    int
}

func newEnqueue() *cobra.Command {
	e := enqueueing{chunk: 500}
	cmd := &cobra.Command{
		Use:   "enqueue [FILE]",
		Short: "Enqueue effects, one JSON object a line, from a file or stdin",
		Long: `Enqueue effects from a file, or from stdin without one or for "-": one JSON object a line, a transaction for each
chunk of lines. The fields are those of list and show:

  consumer, target, kind, key   required; the first three may be given for all lines by flags
  payload                       any JSON value, stored byte for byte as it stands there; or
  payload_text                  a string, whose text is stored; or
  payload_base64                a string, whose bytes are stored
  tenant, order_key, priority, metadata, source_position, source_event_id
  delay or due_at               "90s", or an instant such as "2026-01-31T10:15:00Z"; without one it is due at once
  max_age                       "1h", or "none"; without one 24h

A key that is taken by the same effect is a duplicate, which is counted and no error: after an interruption or an
error run the command again on the same input. One that is taken by another effect is a conflict: it is listed, the
other lines are stored, and the exit code is 3. A line that cannot be understood ends the run; what its chunk held
is not stored.`,
		Example: `  fencepost enqueue effects.ndjson
  echo '{"key": "order-77", "payload": {"sku": 7}}' | fencepost enqueue --consumer shop --target bank --kind charge
  fencepost enqueue effects.ndjson --chunk 100 --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("enqueue takes one file at most; see fencepost enqueue --help")
			}
			return nil
		},
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE:              e.run,
	}
	e.addFlags(cmd)
	e.addTimeout(cmd, "give up after this long for one chunk")
	flags := cmd.Flags()
	flags.Var(textFlag{&e.defaults.Consumer}, "consumer", "for lines without one")
	flags.Var(textFlag{&e.defaults.Target}, "target", "for lines without one")
	flags.Var(textFlag{&e.defaults.Kind}, "kind", "for lines without one")
	flags.Var(intFlag{&e.chunk, 1, 1000}, "chunk", "lines of one transaction")
	return cmd
}

func (e *enqueueing) run(cmd *cobra.Command, args []string) error {
	in := cmd.InOrStdin()
	if len(args) == 1 && args[0] != "-" {
		file, err := os.Open(args[0])
		if err != nil {
			return usagef("cannot open the file: %v", errors.Unwrap(err)) // without its name, which may be a connection string
		}
		defer file.Close()
		in = file
	}
	return e.withDatabase(cmd.Context(), cmd, func(on *database, box *outbox.Box) error {
		f := feed{enqueueing: e, on: on, box: box, progress: newProgress(cmd), report: enqueueReport{Conflicting: []conflict{}}}
		err := f.run(cmd.Context(), in)
		if printing := output(cmd, f.report); printing != nil || err != nil {
			return errors.Join(err, printing)
		}
		if f.report.Conflicts > 0 {
			return notDonef("%d keys are taken by other effects", f.report.Conflicts)
		}
		return nil
	})
}

// A feed is one input on its way into the outbox.
type feed struct {
	*enqueueing
	on       *database
	box      *outbox.Box
	progress *progress
	report   enqueueReport

	read    int // lines, blank ones included
	effects []outbox.Effect
	numbers []int // of their lines
}

const (
	// longestLine holds the largest payload, every byte of it escaped.
	longestLine = 8 << 20
	// inputPause is how long a chunk waits for further lines of a slow pipe.
	inputPause = 2 * time.Second
)

// run stores what lines give, chunk by chunk.
func (f *feed) run(ctx context.Context, in io.Reader) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	lines := readLines(ctx, in, longestLine)
	for {
		select {
		case next, more := <-lines:
			if !more {
				return f.store(ctx)
			}
			if err := f.add(next); err != nil {
				return err
			}
			if len(f.effects) < f.chunk {
				continue
			}
		case <-time.After(inputPause):
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := f.store(ctx); err != nil {
			return err
		}
	}
}

func (f *feed) add(next line) error {
	f.read++
	if errors.Is(next.err, bufio.ErrTooLong) {
		return lineError(f.read, errors.New("is longer than 8 MiB"))
	}
	if next.err != nil {
		return fmt.Errorf("cannot read line %d: %w", f.read, next.err)
	}
	if len(bytes.TrimSpace(next.text)) == 0 {
		return nil
	}
	effect, err := parseEffect(next.text, f.defaults)
	if err != nil {
		return lineError(f.read, err)
	}
	f.effects, f.numbers = append(f.effects, effect), append(f.numbers, f.read)
	return nil
}

// store enqueues the chunk in a transaction of its own.
func (f *feed) store(ctx context.Context) error {
	if len(f.effects) == 0 {
		return nil
	}
	var receipts outbox.Receipts
	var taken *outbox.KeyConflictError
	err := f.whole(ctx, func(ctx context.Context) error {
		return f.on.inTx(ctx, f.box, func(tx db.Tx) (err error) {
			receipts, err = f.box.EnqueueMany(ctx, tx, f.effects)
			if errors.As(err, &taken) {
				return nil // the others are stored
			}
			return err
		})
	})
	var invalid *outbox.InvalidError
	if errors.As(err, &invalid) {
		return lineError(f.numbers[invalid.Index], errors.New(invalid.Field+" "+invalid.Problem))
	}
	if err != nil {
		return err
	}
	f.report.add(receipts, taken, f.numbers)
	f.progress.sayf("%s lines: %s recorded, %s duplicates",
		thousands(int64(f.read)), thousands(int64(f.report.Recorded)), thousands(int64(f.report.Duplicates)))
	f.effects, f.numbers = nil, nil
	return nil
}

type enqueueReport struct {
	Recorded    int        `json:"recorded"`
	Duplicates  int        `json:"duplicates"`
	Conflicts   int        `json:"conflicts"`
	Conflicting []conflict `json:"conflicting"` // the first thousand
}

// A conflict is a line whose key is taken by another effect.
type conflict struct {
	Line  int    `json:"line"`
	Key   string `json:"key"`
	ID    string `json:"id"` // of the message that has the key
	State string `json:"state"`
}

func (r *enqueueReport) add(receipts outbox.Receipts, taken *outbox.KeyConflictError, numbers []int) {
	for _, receipt := range receipts {
		switch receipt.Status {
		case outbox.Recorded:
			r.Recorded++
		case outbox.Duplicate:
			r.Duplicates++
		}
	}
	if taken == nil {
		return
	}
	r.Conflicts += len(taken.Conflicts)
	for _, c := range taken.Conflicts {
		if len(r.Conflicting) < pageSize {
			r.Conflicting = append(r.Conflicting, conflict{
				Line: numbers[c.Index], Key: c.Key, ID: strconv.FormatInt(c.ID, 10), State: string(c.State),
			})
		}
	}
}

func (r enqueueReport) text(p *page) {
	p.linef("recorded %s, duplicates %s, conflicts %s",
		thousands(int64(r.Recorded)), thousands(int64(r.Duplicates)), thousands(int64(r.Conflicts)))
	for _, c := range r.Conflicting {
		p.linef("line %d: the key %s is taken by another effect, message %s (%s)", c.Line, c.Key, c.ID, c.State)
	}
}
