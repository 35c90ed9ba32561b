package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/janitor"
	"github.com/fencepost-go/fencepost/outbox"
)

type purging struct {
	connection
	config      janitor.Config
	scope       func() outbox.Scope
	dryRun, yes bool
}

func newPurge() *cobra.Command {
	const day = 24 * time.Hour
	var p purging
	p.timeout = 5 * time.Second
	p.config = janitor.Config{Delivered: 7 * day, Dead: 30 * day, Cancelled: 30 * day, Expired: 30 * day, Audit: 365 * day, Events: janitor.KeepForever, Grace: day}
	cmd := &cobra.Command{
		Use:   "purge",
		Short: "Remove settled messages whose retention is over",
		Long: `Remove settled messages whose retention is over, and settle as expired what nobody ever leased within its age and a grace:
what a janitor does in a service, once over all rows; for cron. Old acts in the audit, workers not seen for long and
claims and batches that ended long ago go too; events only when --events says so, and none that a named reader of the stream has yet to read.
It needs no sender to run. It works in steps of at most 1,000 rows; interrupted, it has done what it had done, and the next
run goes on. The key of a message that is removed is free again. When another janitor is at a step as it begins, it does
nothing (exit code 3).`,
		Example: `  fencepost purge --dry-run
  fencepost purge --yes --delivered 336h
  fencepost purge --yes --events 2160h
  fencepost purge --yes --dead none --json`,
		Args: noArguments,
		RunE: p.run,
	}
	p.addFlags(cmd)
	p.addTimeout(cmd, "give up after this long for one step")
	p.scope = addTenants(cmd)
	flags := cmd.Flags()
	for name, period := range map[string]*time.Duration{
		"delivered": &p.config.Delivered, "dead": &p.config.Dead, "cancelled": &p.config.Cancelled, "expired": &p.config.Expired,
		"audit": &p.config.Audit,
	} {
		what := name + " messages"
		if name == "audit" {
			what = "what operators did"
		}
		keep := durationFlag{period, time.Minute, longestAge}
		flags.Var(noneFlag{keep, func() { *period = janitor.KeepForever }}, name, "keep "+what+" for this long, or none to keep them for ever")
	}
	flags.Var(noneFlag{eventsFlag{durationFlag{&p.config.Events, time.Minute, longestAge}}, func() { p.config.Events = janitor.KeepForever }},
		"events", "keep events for this long; not with --tenant (default none: for ever)")
	flags.BoolVar(&p.config.ForceEvents, "force-events", false, "remove events also beyond what a named reader has yet to read")
	flags.Var(noneFlag{durationFlag{&p.config.Claims, time.Minute, longestAge}, func() { p.config.Claims = janitor.KeepForever }}, "claims",
		"keep ended claims for this long, or none to keep them for ever; at least as long as dead messages (default 1440h)")
	flags.Var(noneFlag{durationFlag{&p.config.Batches, time.Minute, longestAge}, func() { p.config.Batches = janitor.KeepForever }}, "batches",
		"keep completed batches for this long, or none to keep them for ever (default 720h, or as long as dead messages)")
	flags.Var(durationFlag{&p.config.Grace, time.Minute, longestAge}, "grace", "expire what nobody leased this long after its maximum age")
	flags.BoolVar(&p.dryRun, "dry-run", false, "change nothing and print what would be removed")
	flags.BoolVar(&p.yes, "yes", false, "do not ask")
	return cmd
}

// eventsFlag is a period whose default is for ever, which is not shown as a number.
type eventsFlag struct{ durationFlag }

func (eventsFlag) String() string { return "" }

func (p *purging) run(cmd *cobra.Command, _ []string) error {
	p.config.Scope, p.config.Timeout = p.scope(), p.timeout
	if !p.dryRun && !p.yes && !isTerminal(cmd.InOrStdin()) {
		return errUnconfirmed
	}
	if p.config.Events != janitor.KeepForever && !p.config.Scope.All() {
		return usagef("--events does not go with --tenant: the stream is one of all tenants")
	}
	if p.config.Claims != 0 && p.config.Claims < p.config.Dead {
		return usagef("--claims must be at least as long as --dead: a dead message that is replayed relies on its receipts")
	}
	progress := newProgress(cmd)
	removed := 0
	observer := &outbox.Observer{Purged: func(_ context.Context, _ outbox.State, n int) {
		removed += n
		progress.sayf("%s removed", thousands(int64(removed)))
	}}
	return p.withDatabase(cmd.Context(), cmd, func(_ *database, box *outbox.Box) error {
		box, err := outbox.New(box.Store(), outbox.Config{Observer: observer, Logger: box.Logger()})
		if err != nil {
			return err
		}
		j, err := janitor.New(box, p.config)
		if err != nil {
			return err
		}
		if p.dryRun || !p.yes {
			foretold, err := j.Count(cmd.Context())
			if err != nil {
				return err
			}
			if p.dryRun {
				return output(cmd, newPurgeReport(foretold, true))
			}
			question := fmt.Sprintf("remove %s messages and settle %s as expired, and forget old acts, events, claims and batches?", thousands(int64(foretold.Purged.Total())), thousands(int64(foretold.Overdue)))
			if err := confirm(cmd, question); err != nil {
				return err
			}
		}
		report, err := j.RunOnce(cmd.Context())
		if printing := output(cmd, newPurgeReport(report, false)); printing != nil {
			return printing
		}
		if err == nil && report.Busy {
			return notDonef("another janitor is purging; come again later")
		}
		return err
	})
}

// A purgeReport is what a purge removed, or would remove.
type purgeReport struct {
	DryRun    bool `json:"dry_run"`
	Delivered int  `json:"delivered"`
	Dead      int  `json:"dead"`
	Cancelled int  `json:"cancelled"`
	Expired   int  `json:"expired"`
	Overdue   int  `json:"overdue"`
	Acts      int  `json:"acts"`    // of operators, in the audit
	Workers   int  `json:"workers"` // not seen for long
	Events    int  `json:"events"`
	Claims    int  `json:"claims"`
	Batches   int  `json:"batches"` // and their rows
	Busy      bool `json:"busy"`
}

func newPurgeReport(r janitor.Report, dryRun bool) purgeReport {
	return purgeReport{
		DryRun: dryRun, Delivered: r.Purged.Delivered, Dead: r.Purged.Dead, Cancelled: r.Purged.Cancelled, Expired: r.Purged.Expired,
		Overdue: r.Overdue, Acts: r.Acts, Workers: r.Workers, Events: r.Events, Claims: r.Claims, Batches: r.Batches, Busy: r.Busy,
	}
}

func (r purgeReport) text(p *page) {
	if r.Busy {
		return // as the error says
	}
	number := func(n int) string { return thousands(int64(n)) }
	p.table([]string{"DELIVERED", "DEAD", "CANCELLED", "EXPIRED", "OVERDUE"}, [][]string{
		{number(r.Delivered), number(r.Dead), number(r.Cancelled), number(r.Expired), number(r.Overdue)},
	})
	if r.DryRun {
		p.linef("\nwould be removed, and the overdue ones settled as expired; nothing was changed. Old acts in the audit, workers, events, claims and batches are not counted.")
	} else {
		p.linef("\nremoved, and the overdue ones settled as expired; with %s acts in the audit, %s workers, %s events, %s claims and %s batches and rows of them",
			number(r.Acts), number(r.Workers), number(r.Events), number(r.Claims), number(r.Batches))
	}
}
