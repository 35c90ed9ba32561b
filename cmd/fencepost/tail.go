package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/outbox"
)

// tailed are what tail --state takes.
var tailed = []string{"open", "delivered", "dead", "cancelled", "expired"}

type tailing struct {
	connection
	scope  func() outbox.Scope
	states []string // none: all
	filter outbox.Filter
	every  time.Duration
}

func newTail() *cobra.Command {
	t := tailing{every: time.Second}
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Follow what is enqueued and settled from now on, until Ctrl-C",
		Long: `Follow what is enqueued (open) and settled from now on, until Ctrl-C: a line for each message, with --json one JSON
object a line, with the fields of list.

It looks every second and not at everything: a message that is enqueued and settled between two looks shows as settled
only, one that was committed late, below the ids seen by then, not as open, and a delivered one only if it is among
those of the highest ids. What it had to leave out in a rush it tells on stderr.`,
		Example: `  fencepost tail
  fencepost tail --state dead --consumer shop --every 5s
  fencepost tail --state delivered --state dead --json | jq -c '[.id, .state, .reason]'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return t.run(cmd) },
	}
	t.addFlags(cmd)
	t.addTimeout(cmd, "give up after this long for one look")
	t.scope = addTenants(cmd)
	flags := cmd.Flags()
	flags.StringArrayVar(&t.states, "state", nil, "only "+strings.Join(tailed, ", ")+"; may be repeated (default all)")
	flags.Var(textFlag{&t.filter.Consumer}, "consumer", "only this consumer")
	flags.Var(textFlag{&t.filter.Target}, "target", "only this target")
	flags.Var(textFlag{&t.filter.Kind}, "kind", "only this kind")
	flags.Var(durationFlag{&t.every, 100 * time.Millisecond, time.Hour}, "every", "how often to look")
	return cmd
}

func (t *tailing) run(cmd *cobra.Command) error {
	for _, state := range t.states {
		if !slices.Contains(tailed, state) {
			return usagef("--state must be one of %s", strings.Join(tailed, ", "))
		}
	}
	ctx := cmd.Context()
	err := t.withDatabase(ctx, cmd, func(_ *database, box *outbox.Box) error {
		followers, err := t.followers(ctx, box)
		for err == nil {
			if err = t.look(ctx, cmd, followers); err != nil {
				break
			}
			select {
			case <-time.After(t.every):
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		return err
	})
	if ctx.Err() != nil {
		return nil // a Ctrl-C is how it ends
	}
	return err
}

// A follower finds what came to one state since its last look, and says whether it had to leave some out.
type follower func(ctx context.Context) (found []outbox.Summary, cut bool, err error)

// followers begin at what is there now.
func (t *tailing) followers(ctx context.Context, box *outbox.Box) (all []follower, err error) {
	err = t.within(ctx, func(ctx context.Context) error {
		for _, state := range tailed {
			if len(t.states) > 0 && !slices.Contains(t.states, state) {
				continue
			}
			var f follower
			var err error
			if state == "open" {
				f, err = t.followOpen(ctx, box)
			} else {
				f, err = t.followSettled(ctx, box, outbox.State(state))
			}
			if err != nil {
				return err
			}
			all = append(all, f)
		}
		return nil
	})
	return all, err
}

// look prints what all followers find, in the order of time.
func (t *tailing) look(ctx context.Context, cmd *cobra.Command, followers []follower) error {
	var found []outbox.Summary
	err := t.within(ctx, func(ctx context.Context) error {
		for _, follow := range followers {
			some, cut, err := follow(ctx)
			if err != nil {
				return err
			}
			found = append(found, some...)
			if cut {
				fmt.Fprintf(cmd.ErrOrStderr(), "more than %s messages at once; some are left out\n", thousands(tailPages*pageSize))
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(found, func(a, b outbox.Summary) int {
		return cmp.Or(happened(a).Compare(happened(b)), cmp.Compare(a.ID, b.ID))
	})
	return printTail(cmd, found)
}

// tailPages bounds what one look reads of one state.
const tailPages = 10

// happened is when a message came to its state, as far as is known.
func happened(m outbox.Summary) time.Time {
	if m.SettledAt.IsZero() {
		return m.CreatedAt
	}
	return m.SettledAt
}

func (t *tailing) followOpen(ctx context.Context, box *outbox.Box) (follower, error) {
	last, err := highestOpen(ctx, box)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (found []outbox.Summary, cut bool, err error) {
		for range tailPages {
			page, err := box.List(ctx, t.scope(), outbox.ListQuery{Filter: t.filter, Limit: pageSize, From: outbox.Cursor{ID: last}})
			if err != nil {
				return nil, false, err
			}
			found = append(found, page.Messages...)
			last = max(last, page.Next.ID)
			if !page.More {
				break
			}
		}
		return found, false, nil // the next look goes on
	}, nil
}

// highestOpen is the highest id of an open message, found by halving: no statement reads it.
func highestOpen(ctx context.Context, box *outbox.Box) (int64, error) {
	low, high := int64(0), int64(math.MaxInt64)
	for low < high {
		middle := low + (high-low)/2
		page, err := box.List(ctx, outbox.AllTenants, outbox.ListQuery{Limit: 1, From: outbox.Cursor{ID: middle}})
		if err != nil {
			return 0, err
		}
		if len(page.Messages) > 0 {
			low = page.Messages[0].ID
		} else {
			high = middle
		}
	}
	return low, nil
}

// overlap is how far each look goes back behind what was seen: settlements become visible in another order than they are dated.
const overlap = 5 * time.Second

func (t *tailing) followSettled(ctx context.Context, box *outbox.Box, state outbox.State) (follower, error) {
	begin, err := databaseNow(ctx, box)
	if err != nil {
		return nil, err
	}
	seen, newest := map[int64]time.Time{}, begin
	return func(ctx context.Context) (found []outbox.Summary, cut bool, err error) {
		since := later(newest.Add(-overlap), begin)
		query := outbox.ListQuery{State: state, Filter: t.filter, Limit: pageSize}
		cut = true
		for range tailPages {
			page, err := box.List(ctx, t.scope(), query)
			if err != nil {
				return nil, false, err
			}
			recent := slices.DeleteFunc(page.Messages, func(m outbox.Summary) bool { return m.SettledAt.Before(since) })
			for _, m := range recent {
				if !seen[m.ID].Equal(m.SettledAt) {
					seen[m.ID] = m.SettledAt
					newest = later(newest, m.SettledAt)
					found = append(found, m)
				}
			}
			if len(recent) == 0 || !page.More {
				cut = false
				break
			}
			query.From = page.Next
		}
		for id, at := range seen {
			if at.Before(since) {
				delete(seen, id)
			}
		}
		return found, cut, nil
	}, nil
}

// printTail prints a line for each message.
func printTail(cmd *cobra.Command, messages []outbox.Summary) error {
	var out bytes.Buffer
	for _, m := range messages {
		summary := newMessageSummary(m)
		if asJSON(cmd) {
			line, err := json.Marshal(summary)
			if err != nil {
				return err
			}
			out.Write(append(printableJSON(line), '\n'))
			continue
		}
		var p page
		p.linef("%s  %-9s  %s  %s/%s  %s  %s  %s  attempt %d  %s", instant(happened(m)), string(m.State), summary.ID,
			m.Consumer, m.Target, m.Kind, orDash(m.Tenant), m.Key, m.Attempt, orDash(shortened(m.Reason)))
		out.WriteString(p.String())
	}
	_, err := out.WriteTo(cmd.OutOrStdout())
	return err
}
