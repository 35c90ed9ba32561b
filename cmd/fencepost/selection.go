package main

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/outbox"
)

// A selection says which messages a verb means when it names none.
type selection struct {
	all, dryRun, yes bool
	state            string // of the messages, as in a ListQuery
	filter           outbox.Filter
	cause            string
	olderThan        time.Duration
	limit            int
	after            string
	from             outbox.Cursor // after, read
	scope            func() outbox.Scope
}

// narrowing are the flags that narrow a selection. A tenant does too, but not the tenant "", which may be everybody.
var narrowing = []string{"consumer", "target", "kind", "state", "cause", "older-than"}

// addFlags adds what every verb has; age says from when on --older-than counts.
func (s *selection) addFlags(cmd *cobra.Command, age string) {
	s.scope = addTenants(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&s.all, "all", false, "every message that the command can act on")
	flags.Var(textFlag{&s.filter.Consumer}, "consumer", "only this consumer")
	flags.Var(textFlag{&s.filter.Target}, "target", "only this target")
	flags.Var(textFlag{&s.filter.Kind}, "kind", "only this kind")
	flags.Var(durationFlag{&s.olderThan, time.Millisecond, longestAge}, "older-than", "only those "+age+" longer ago than this")
	s.limit = math.MaxInt
	flags.Var(optionalInt{intFlag{&s.limit, 1, math.MaxInt}}, "limit", "at most so many messages")
	flags.StringVar(&s.after, "after", "", "go on after this place, which a run that stopped early gave")
	flags.BoolVar(&s.dryRun, "dry-run", false, "change nothing, count what would be acted on")
	flags.BoolVar(&s.yes, "yes", false, "do not ask; needed where there is no terminal")
}

const longestAge = 36525 * 24 * time.Hour

// check refuses a selection of everything by accident, and ids beside a selection.
func (s *selection) check(cmd *cobra.Command, ids []int64) error {
	changed := cmd.Flags().Changed
	tenants, err := cmd.Flags().GetStringArray("tenant")
	if err == nil && s.after != "" {
		s.from, err = parseCursor(outbox.State(s.state), s.after)
	}
	if err != nil {
		return err
	}
	narrowed := slices.ContainsFunc(narrowing, changed)
	bulk := narrowed || s.all || s.dryRun || changed("limit") || changed("after")
	narrowed = narrowed || slices.ContainsFunc(tenants, func(tenant string) bool { return tenant != "" })
	switch {
	case len(ids) > 0 && bulk:
		return usagef("ids go with --tenant only: the other filters choose messages by themselves")
	case len(ids) > 0:
		return nil
	case s.all && narrowed:
		return usagef("--all and a filter exclude each other")
	case !s.all && !narrowed:
		return usagef("give ids, a filter such as --consumer or --kind, or --all; see %s --help", cmd.CommandPath())
	case !s.yes && !s.dryRun && !isTerminal(cmd.InOrStdin()):
		return errUnconfirmed
	default:
		return nil
	}
}

// choose gives the messages of a page that are meant, room of them at most, and the place after the last that it looked at.
func (s *selection) choose(page outbox.Page, newest time.Time, room int) (ids []int64, next outbox.Cursor) {
	for _, m := range page.Messages {
		since := m.CreatedAt
		if byTime(m.State) {
			since = m.SettledAt
		}
		if since.After(newest) || s.cause != "" && string(m.Cause) != s.cause {
			continue
		}
		if ids = append(ids, m.ID); len(ids) == room {
			return ids, outbox.Cursor{At: m.SettledAt, ID: m.ID}
		}
	}
	return ids, page.Next
}

// databaseNow is the database's clock.
func databaseNow(ctx context.Context, box *outbox.Box) (time.Time, error) {
	rows, err := box.Store().ReadHealth(ctx, db.ReadHealthParams{SchemaName: box.Store().Schema()})
	if err != nil || len(rows) == 0 {
		return time.Time{}, err
	}
	return rows[0].Now, nil
}
