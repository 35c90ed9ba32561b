package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/outbox"
)

func newEvents() *cobra.Command {
	return newGroup("events", "Look at the stream of events and its readers",
		`Look at the stream of events: what a service appended as facts, in the one order in which every reader gets them.
An event shows once no older transaction that writes is open on the server; see docs/events.md.`,
		`  fencepost events tail
  fencepost events readers`,
		newEventsTail(), newEventsShow(), newEventsReaders(), newEventsBackfill())
}

// withLog calls use with the log of a database, within the timeout.
func (c *connection) withLog(cmd *cobra.Command, use func(context.Context, *events.Log) error) error {
	return c.withBox(cmd, func(ctx context.Context, box *outbox.Box) error {
		log, err := events.New(box, events.Config{})
		if err != nil {
			return err
		}
		return use(ctx, log)
	})
}

func newEventsReaders() *cobra.Command {
	var c connection
	var remove string
	var yes bool
	cmd := &cobra.Command{
		Use:   "readers",
		Short: "List the named readers of the stream, or forget one",
		Long: `List the named readers of the stream, with the position of the last event that each has read: retention keeps what comes
after it. A reader that is gone for good holds the stream until --remove forgets it; one that comes back after that
begins anew.`,
		Example: `  fencepost events readers
  fencepost events readers --remove search --yes`,
		Args: noArguments,
	}
	c.addFlags(cmd)
	c.addTimeout(cmd, "give up after this long")
	cmd.Flags().Var(textFlag{&remove}, "remove", "forget the reader of this name")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if remove == "" {
			return c.listReaders(cmd, "")
		}
		if !yes {
			if !isTerminal(cmd.InOrStdin()) {
				return usagef("this forgets how far a reader came and nobody is there to confirm it: add --yes")
			}
			if err := confirm(cmd, fmt.Sprintf("forget how far the reader %s came? Retention may remove what it has yet to read", remove)); err != nil {
				return err
			}
		}
		return c.withLog(cmd, func(ctx context.Context, log *events.Log) error {
			removed, err := log.RemoveReader(ctx, remove)
			if err == nil && !removed {
				err = notDonef("there is no reader of that name; see fencepost events readers")
			}
			if err != nil {
				return err
			}
			return output(cmd, removedReader{remove})
		})
	}
	return cmd
}

type removedReader struct {
	Removed string `json:"removed"`
}

func (r removedReader) text(p *page) { p.linef("forgot the reader %s", r.Removed) }

// backfillPrefix begins the names of the readers that remember how far backfills came.
const backfillPrefix = "backfill:"

func newEventsBackfill() *cobra.Command {
	var c connection
	cmd := &cobra.Command{
		Use:   "backfill",
		Short: "Show how far backfills have come",
		Long: `Show how far backfills have come that send: running ones, and interrupted ones, which go on when they are run again.
One that is done is not there any more.

A subscription is code: the function that derives effects from events is in the service's program, so a backfill runs
there (events.Log.Backfill), not here.`,
		Example: `  fencepost events backfill
  fencepost events backfill --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.listReaders(cmd, backfillPrefix) },
	}
	c.addFlags(cmd)
	c.addTimeout(cmd, "give up after this long")
	return cmd
}

// listReaders prints the readers whose names begin so.
func (c *connection) listReaders(cmd *cobra.Command, prefix string) error {
	return c.withLog(cmd, func(ctx context.Context, log *events.Log) error {
		end, err := log.End(ctx)
		if err != nil {
			return err
		}
		r := readersReport{Readers: []readerSummary{}, End: position(end), heading: "READER"}
		if prefix != "" {
			r.heading = "SUBSCRIPTION"
		}
		for after := ""; ; {
			readers, err := log.Readers(ctx, after, pageSize)
			if err != nil {
				return err
			}
			for _, reader := range readers {
				if name, ok := strings.CutPrefix(reader.Name, prefix); ok {
					r.Readers = append(r.Readers, readerSummary{name, position(reader.Cursor), reader.Cursor, reader.SavedAt})
				}
			}
			if len(readers) < pageSize {
				return output(cmd, r)
			}
			after = readers[len(readers)-1].Name
		}
	})
}

func position(c events.Cursor) string { return strconv.FormatInt(c.Position(), 10) }

type readersReport struct {
	Readers []readerSummary `json:"readers"`
	End     string          `json:"end"` // position of the last event that can be read

	heading string
}

type readerSummary struct {
	Name     string        `json:"name"`
	Position string        `json:"position"`
	Cursor   events.Cursor `json:"cursor"`
	SavedAt  time.Time     `json:"saved_at"`
}

func (r readersReport) text(p *page) {
	rows := make([][]string, len(r.Readers))
	for i, reader := range r.Readers {
		rows[i] = []string{reader.Name, reader.Position, instant(reader.SavedAt)}
	}
	if len(rows) == 0 {
		p.linef("none")
	} else {
		p.table([]string{r.heading, "POSITION", "SAVED"}, rows)
	}
	p.linef("\nthe stream can be read to position %s", r.End)
}

// cursorGone turns the errors of a cursor into what to do.
func cursorGone(err error) error {
	switch {
	case errors.Is(err, events.ErrCursorExpired):
		return notDonef("what followed this place was purged: go on with --after oldest, and reconcile what is missing")
	case errors.Is(err, events.ErrCursorUnknown):
		return notDonef("the stream has no such place: the cursor is another database's, or this one was restored from a copy older than it; go on with --after oldest")
	case err != nil && denied(err):
		return fmt.Errorf("this reads content (payload, metadata), which viewers may not: %w", err)
	}
	return err
}
