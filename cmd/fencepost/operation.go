package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/outbox"
)

// A verb changes messages of one state, by id.
type verb struct {
	name, done string // replay, replayed
	state      string // of the messages it takes, for people
	act        func(ctx context.Context, box *outbox.Box, scope outbox.Scope, ids []int64, by outbox.By) ([]outbox.Acted, error)
}

// An operation is a verb on messages that are named, or on all that match.
type operation struct {
	connection
	acting
	selection
	verb
}

// addFlags adds the flags of every operation; age says from when on --older-than counts.
func (o *operation) addFlags(cmd *cobra.Command, age string) {
	o.connection.addFlags(cmd)
	o.addTimeout(cmd, "give up after this long for one batch")
	o.acting.addFlags(cmd)
	o.selection.addFlags(cmd, age)
}

func (o *operation) run(cmd *cobra.Command, args []string) error {
	ids, err := messageIDs(args)
	if err != nil {
		return err
	}
	if err := o.check(cmd, ids); err != nil {
		return err
	}
	var by outbox.By
	if !o.dryRun {
		if by, err = o.by(); err != nil {
			return err
		}
	}
	return o.withDatabase(cmd.Context(), cmd, func(_ *database, box *outbox.Box) error {
		report := &actReport{Verb: o.name, NotDone: []notDone{}, verb: o.verb}
		act := func(ids []int64) error {
			return o.whole(cmd.Context(), func(ctx context.Context) error {
				acted, err := o.act(ctx, box, o.scope(), ids, by)
				report.add(acted)
				return err
			})
		}
		if len(ids) > 0 {
			return o.named(cmd, ids, report, act)
		}
		return o.matching(cmd, box, report, act)
	})
}

// named acts on the messages that were named, in batches.
func (o *operation) named(cmd *cobra.Command, ids []int64, report *actReport, act func([]int64) error) error {
	for batch := range slices.Chunk(ids, pageSize) {
		if err := act(batch); err != nil {
			return report.stopped(cmd, err)
		}
	}
	return report.ended(cmd)
}

// matching acts on all that match, as of now by the database's clock: who is asked says yes to what he was told of.
func (o *operation) matching(cmd *cobra.Command, box *outbox.Box, report *actReport, act func([]int64) error) error {
	ctx, progress := cmd.Context(), newProgress(cmd)
	var now time.Time
	err := o.within(ctx, func(ctx context.Context) (err error) {
		now, err = databaseNow(ctx, box)
		return err
	})
	if err != nil {
		return err
	}
	newest := now.Add(-o.olderThan)
	if o.dryRun || !o.yes {
		matching := 0
		err := o.pages(ctx, box, newest, &report.Next, func(ids []int64) error {
			matching += len(ids)
			progress.sayf("%s found", thousands(int64(matching)))
			return nil
		})
		if err != nil {
			return err
		}
		if o.dryRun || matching == 0 {
			report.DryRun, report.Matched = o.dryRun, matching
			return report.ended(cmd)
		}
		if err := confirm(cmd, fmt.Sprintf("%s %s %s messages?", o.name, thousands(int64(matching)), o.verb.state)); err != nil {
			return err
		}
	}
	err = o.pages(ctx, box, newest, &report.Next, func(ids []int64) error {
		if len(ids) == 0 {
			return nil
		}
		err := act(ids)
		progress.sayf("%s %s", thousands(int64(report.Done)), o.done)
		return err
	})
	if err != nil {
		return report.stopped(cmd, err)
	}
	return report.ended(cmd)
}

// pageSize is what one statement lists, and what one transaction changes at most.
const pageSize = 1000

// pages goes through what is meant and no younger than newest, page by page. place is where to go on: at a page that could not be read or
// that visit failed on, after the last message that the limit allows, and nowhere at the end.
func (o *operation) pages(ctx context.Context, box *outbox.Box, newest time.Time, place *string, visit func(ids []int64) error) error {
	query := outbox.ListQuery{State: outbox.State(o.selection.state), Filter: o.filter, From: o.from, Limit: pageSize}
	*place = o.after
	for taken := 0; ; {
		var page outbox.Page
		err := o.within(ctx, func(ctx context.Context) (err error) {
			page, err = box.List(ctx, o.scope(), query)
			return err
		})
		if err != nil {
			return err
		}
		ids, next := o.choose(page, newest, o.limit-taken)
		if err := visit(ids); err != nil {
			return err
		}
		if taken += len(ids); !page.More && next.ID == page.Next.ID {
			*place = ""
			return nil
		}
		if query.From, *place = next, formatCursor(query.State, next); taken == o.limit {
			return nil
		}
	}
}

// An actReport is what a verb did.
type actReport struct {
	Verb    string    `json:"verb"`
	DryRun  bool      `json:"dry_run"`
	Matched int       `json:"matched"` // or were named
	Done    int       `json:"done"`
	NotDone []notDone `json:"not_done"`       // the first thousand of them
	Next    string    `json:"next,omitempty"` // of a run that did not come to the end

	verb verb
}

// A notDone is a message that was not in the state that the verb needs.
type notDone struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	State  string `json:"state,omitempty"`
}

func (r *actReport) add(acted []outbox.Acted) {
	r.Matched += len(acted)
	for _, a := range acted {
		if a.Status == outbox.Done {
			r.Done++
		} else if len(r.NotDone) < pageSize {
			r.NotDone = append(r.NotDone, notDone{ID: strconv.FormatInt(a.ID, 10), Status: string(a.Status), State: string(a.State)})
		}
	}
}

// ended prints the report of a run that came to its end, and says whether all was done.
func (r *actReport) ended(cmd *cobra.Command) error {
	if err := output(cmd, r); err != nil {
		return err
	}
	switch {
	case r.Matched == 0:
		return notDonef("nothing matched")
	case !r.DryRun && r.Done < r.Matched:
		return notDonef("%d of %d messages were not %s", r.Matched-r.Done, r.Matched, r.verb.done)
	default:
		return nil
	}
}

// stopped prints what was done until an error.
func (r *actReport) stopped(cmd *cobra.Command, err error) error {
	if printing := output(cmd, r); printing != nil {
		return printing
	}
	return err
}

func (r *actReport) text(p *page) {
	if r.DryRun {
		p.linef("would %s %s messages; nothing was changed", r.Verb, thousands(int64(r.Matched)))
	} else {
		p.linef("%s %s of %s messages", r.verb.done, thousands(int64(r.Done)), thousands(int64(r.Matched)))
	}
	for _, m := range r.NotDone {
		if m.State == "" {
			p.linef("message %s was not found", m.ID)
		} else {
			p.linef("message %s is %s, not %s", m.ID, m.State, r.verb.state)
		}
	}
	if r.Next != "" {
		p.linef("more: --after %s", r.Next)
	}
}
