package main

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/outbox"
)

type eventsTailing struct {
	connection
	scope  func() outbox.Scope
	filter events.Filter
	after  string
	follow bool
	limit  int
	every  time.Duration
}

func newEventsTail() *cobra.Command {
	t := eventsTailing{every: time.Second, limit: math.MaxInt}
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Read the stream of events, or follow it until Ctrl-C",
		Long: `Follow what is appended from now on, until Ctrl-C: a line for each event in the order of the stream, with --json one JSON
object a line, with payload, metadata and the cursor to go on from. Nothing is missed and nothing comes twice.

With --limit it reads what is there from the oldest event, or from --after on, and ends at the end of the stream or after so
many; with --follow as well it waits until so many have come.`,
		Example: `  fencepost events tail
  fencepost events tail --after oldest --limit 100 --type order_paid
  fencepost events tail --stream order-77 --limit 10 --json | jq -r .cursor`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return t.run(cmd) },
	}
	t.addFlags(cmd)
	t.addTimeout(cmd, "give up after this long for one look")
	t.scope = addTenants(cmd)
	flags := cmd.Flags()
	flags.Var(textFlag{&t.after}, "after", "begin after this cursor, or with the word oldest (default now, with --limit oldest)")
	flags.StringArrayVar(&t.filter.Types, "type", nil, "only this type; may be repeated (default all)")
	flags.StringArrayVar(&t.filter.Streams, "stream", nil, "only this stream; may be repeated (default all)")
	flags.Var(optionalInt{intFlag{&t.limit, 1, math.MaxInt}}, "limit", "end after so many events, and at the end of the stream")
	flags.BoolVar(&t.follow, "follow", false, "with --limit: wait at the end of the stream for more")
	flags.Var(durationFlag{&t.every, 100 * time.Millisecond, time.Hour}, "every", "how often to look")
	return cmd
}

func (t *eventsTailing) run(cmd *cobra.Command) error {
	bounded := t.limit != math.MaxInt
	var after events.Cursor
	if t.after != "" && t.after != "oldest" {
		var err error
		if after, err = events.ParseCursor(t.after); err != nil {
			return usagef("--after is no cursor; take it from a line of events tail --json, or give the word oldest")
		}
	}
	t.filter.Scope = t.scope()
	ctx := cmd.Context()
	err := t.withDatabase(ctx, cmd, func(_ *database, box *outbox.Box) error {
		log, err := events.New(box, events.Config{})
		if err == nil && t.after == "" && !bounded {
			err = t.within(ctx, func(ctx context.Context) (err error) {
				after, err = log.End(ctx)
				return err
			})
		}
		for left := t.limit; err == nil && left > 0; {
			var page events.Page
			err = t.within(ctx, func(ctx context.Context) (err error) {
				page, err = log.Read(ctx, after, min(left, pageSize), t.filter)
				return err
			})
			if err == nil {
				err = printEvents(cmd, page.Events)
			}
			end := page.Next == after
			after, left = page.Next, left-len(page.Events)
			switch {
			case err != nil || !end:
			case bounded && !t.follow:
				return nil
			default:
				select {
				case <-time.After(t.every):
				case <-ctx.Done():
					err = ctx.Err()
				}
			}
		}
		return cursorGone(err)
	})
	if ctx.Err() != nil && (t.follow || !bounded) {
		return nil // a Ctrl-C is how it ends
	}
	return err
}

// printEvents prints a line for each event.
func printEvents(cmd *cobra.Command, all []events.Event) error {
	var out bytes.Buffer
	for _, e := range all {
		r := newEventReport(e)
		if asJSON(cmd) {
			line, err := json.Marshal(r)
			if err != nil {
				return err
			}
			out.Write(append(printableJSON(line), '\n'))
			continue
		}
		var p page
		p.linef("%s  %s  %s  %s  %s  %s  %s bytes", instant(e.RecordedAt), r.Position, e.ID, e.Type, orDash(e.Stream), orDash(e.Tenant), thousands(int64(len(e.Payload))))
		out.WriteString(p.String())
	}
	_, err := out.WriteTo(cmd.OutOrStdout())
	return err
}
