package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/outbox"
)

func newDoctor() *cobra.Command {
	var c connection
	d := doctor{step: 1000}
	var asConfigured bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong, and say what to do",
		Long: `Look for what is wrong: the version and the indexes of the schema, tables that do not agree, durability and autovacuum,
old snapshots and dead rows, clocks, hints that do not arrive, lanes that nobody works, order keys that are held up,
what is paused, events that cannot be read, readers that are behind, claims whose holder died, and batches that were left half-filled. It changes nothing, and its statements are bounded whatever the size; of many messages the tables
are compared for a sample, which the output says, and for all with --full (give it a longer --timeout).

Each finding is ok, a warning or critical; if any is critical the exit code is 1.

--report prints instead what happens to an effect: its path, key, lease, retries and ends, and what the database that
keeps it is set to.`,
		Example: `  fencepost doctor
  fencepost doctor --kinds charge,mail --json | jq '.findings[] | select(.level != "ok")'
  fencepost doctor --full --timeout 1h
  fencepost doctor --report`,
		Args: noArguments,
	}
	c.addFlags(cmd)
	c.timeout = time.Minute
	c.addTimeout(cmd, "give up after this long")
	flags := cmd.Flags()
	flags.StringSliceVar(&d.kinds, "kinds", nil, "the kinds that your senders handle, to find others that wait")
	flags.BoolVar(&d.full, "full", false, "compare the tables for all messages")
	flags.BoolVar(&asConfigured, "report", false, "print what happens to an effect instead")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if asConfigured && (d.full || len(d.kinds) > 0) {
			return usagef("--report goes with neither --full nor --kinds")
		}
		if flags.Changed("kinds") && (len(d.kinds) == 0 || slices.Contains(d.kinds, "")) {
			return usagef("--kinds takes names, as in charge,mail")
		}
		return c.withBox(cmd, func(ctx context.Context, box *outbox.Box) error {
			d.box, d.store, d.progress = box, box.Store(), newProgress(cmd)
			if err := d.read(ctx); err != nil {
				return err
			}
			if asConfigured {
				return d.report(cmd, c.schema)
			}
			return d.examine(ctx, cmd, c.schema)
		})
	}
	return cmd
}

// A doctor examines one installation.
type doctor struct {
	kinds    []string
	full     bool
	step     int32 // rows of each table that one statement compares
	progress *progress

	box   *outbox.Box
	store db.Store
	facts map[string]map[string]string // by section and name
	role  outbox.Role
}

// read learns what several checks and the report need.
func (d *doctor) read(ctx context.Context) error {
	rows, err := d.store.ReadSurroundings(ctx, db.ReadSurroundingsParams{SchemaName: d.store.Schema()})
	if err != nil {
		return err
	}
	d.facts = map[string]map[string]string{}
	for _, row := range rows {
		if d.facts[row.Section] == nil {
			d.facts[row.Section] = map[string]string{}
		}
		d.facts[row.Section][row.Name] = row.Value
	}
	d.role, err = d.box.CheckRole(ctx)
	return err
}

// A finding is what one check found.
type finding struct {
	Check   string   `json:"check"`
	Level   level    `json:"level"`
	Finding string   `json:"finding"`
	Details []string `json:"details,omitempty"`
}

func found(check string, l level, format string, args ...any) finding {
	return finding{Check: check, Level: l, Finding: fmt.Sprintf(format, args...)}
}

func (f finding) with(details []string) finding {
	f.Details = details
	return f
}

type doctorReport struct {
	Schema        string    `json:"schema"`
	ServerVersion string    `json:"server_version"`
	File          string    `json:"file,omitempty"` // of SQLite
	Level         level     `json:"level"`
	Findings      []finding `json:"findings"`
}

func (d *doctor) examine(ctx context.Context, cmd *cobra.Command, schema string) error {
	r := doctorReport{Schema: schema, ServerVersion: d.facts["setting"]["server_version"], File: fileOf(d.store), Level: levelOK}
	for _, check := range []func(context.Context) ([]finding, error){
		d.version, d.rights, d.indexes, d.durability, d.upkeep, d.health, d.listener, d.lanes, d.heads, d.events, d.claims, d.batches, d.agreement,
	} {
		findings, err := check(ctx)
		if err != nil {
			return err
		}
		r.Findings = append(r.Findings, findings...)
	}
	critical := 0
	for _, f := range r.Findings {
		if f.Level == levelCritical {
			critical++
		}
		r.Level = worse(r.Level, f.Level)
	}
	if err := output(cmd, r); err != nil {
		return err
	}
	if critical > 0 {
		return errors.New(plural(critical, "finding") + " critical")
	}
	return nil
}

func (r doctorReport) text(p *page) {
	p.linef("%s\n", heading(r.Schema, r.ServerVersion, r.File))
	for _, f := range r.Findings {
		p.levelLinef(f.Level, "%s%s%s", f.Check, strings.Repeat(" ", max(1, 13-len(f.Check))), f.Finding)
		for _, detail := range f.Details {
			p.linef("%s- %s", strings.Repeat(" ", 23), detail)
		}
	}
}

func worse(a, b level) level {
	if a == levelCritical || b == levelOK {
		return a
	}
	return b
}

// plural counts things.
func plural[N int | int64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return thousands(int64(n)) + " " + thing + "s"
}

// some are the first details, and how many more there are.
func some(details []string) []string {
	const most = 10
	if more := len(details) - most; more > 0 {
		return append(details[:most:most], fmt.Sprintf("and %s more", thousands(int64(more))))
	}
	return details
}
