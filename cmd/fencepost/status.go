package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/outbox"
)

func newStatus() *cobra.Command {
	var c connection
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what waits, what went wrong and what slows the queue down",
		Long: `Show what waits, lane by lane, with the age of the oldest due message; what is parked, dead, cancelled or
expired; which lanes are paused; what slows a queue down: an old snapshot and dead rows; and of events whether all can
be read, and how far the named readers are behind.

Counting stops at 10,000 ("10,000+"), so that status is cheap whatever the size. Dead, cancelled and expired are
counted over all tenants, and events and readers are of all.`,
		Example: `  fencepost status
  fencepost status --tenant acme
  fencepost status --json | jq '.lanes[] | select(.age_seconds > 60)'`,
		Args: noArguments,
	}
	c.addFlags(cmd)
	c.addTimeout(cmd, "give up after this long")
	scope := addTenants(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return c.withBox(cmd, func(ctx context.Context, box *outbox.Box) error {
			stats, err := box.Stats(ctx, scope())
			if err != nil {
				return err
			}
			pauses, err := box.Pauses(ctx, scope())
			if err != nil {
				return err
			}
			r := newStatusReport(c.schema, stats, pauses)
			r.File = fileOf(box.Store())
			stream, err := readStream(ctx, box.Store())
			if err != nil {
				return err
			}
			r.Events = newStreamStatus(stream)
			return output(cmd, r)
		})
	}
	return cmd
}

// From where on an old snapshot and dead rows are worth a warning. Autovacuum cleans the queue at about 5,000 dead rows, so many times
// that says that it cannot; looking for lanes takes seconds beside a million of them.
const (
	snapshotWarning, snapshotCritical = time.Minute, 15 * time.Minute
	deadRowsWarning, deadRowsCritical = 50_000, 500_000
)

type statusReport struct {
	Schema        string         `json:"schema"`
	ServerVersion string         `json:"server_version"`
	File          string         `json:"file,omitempty"` // of SQLite
	Lanes         []laneStatus   `json:"lanes"`
	MoreLanes     bool           `json:"more_lanes"`
	Parked        []parkedStatus `json:"parked"`
	Dead          count          `json:"dead"`
	Cancelled     count          `json:"cancelled"`
	Expired       count          `json:"expired"`
	Pauses        []pauseStatus  `json:"pauses"`
	Snapshot      snapshotStatus `json:"oldest_snapshot"`
	DeadRows      deadRowStatus  `json:"dead_rows"`
	Events        streamStatus   `json:"events"`
}

type laneStatus struct {
	Consumer   string  `json:"consumer"`
	Target     string  `json:"target"`
	Kind       string  `json:"kind"`
	Tenant     string  `json:"tenant"`
	Priority   int16   `json:"priority"`
	Due        int64   `json:"due"`
	Deferred   int64   `json:"deferred"`
	Leased     int64   `json:"leased"`
	Capped     bool    `json:"capped"`
	AgeSeconds float64 `json:"age_seconds"`

	age time.Duration
}

type parkedStatus struct {
	Consumer string `json:"consumer"`
	Target   string `json:"target"`
	Kind     string `json:"kind"`
	Parked   count  `json:"parked"`
}

type pauseStatus struct {
	Consumer string    `json:"consumer"`
	Target   string    `json:"target"`
	Kind     string    `json:"kind"`
	Tenant   string    `json:"tenant"`
	Mode     string    `json:"mode"`
	Actor    string    `json:"actor"`
	Reason   string    `json:"reason"`
	PausedAt time.Time `json:"paused_at"`
}

type snapshotStatus struct {
	Level      level   `json:"level"`
	AgeSeconds float64 `json:"age_seconds"`

	age time.Duration
}

type deadRowStatus struct {
	Level level `json:"level"`
	Dead  int64 `json:"dead"`
	Live  int64 `json:"live"`
}

// A count is a number that counting may have cut short.
type count struct {
	Count  int64 `json:"count"`
	Capped bool  `json:"capped"`
}

func counted(n int64) count { return count{Count: n, Capped: n >= outbox.CountCap} }

func (c count) String() string {
	text := thousands(c.Count)
	if c.Capped {
		text += "+"
	}
	return text
}

// thousands groups the digits of a number.
func thousands(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

func newStatusReport(schema string, stats outbox.Stats, pauses []outbox.Pause) statusReport {
	r := statusReport{
		Schema:        schema,
		ServerVersion: stats.Health.ServerVersion,
		Lanes:         []laneStatus{},
		MoreLanes:     stats.MoreLanes,
		Parked:        []parkedStatus{},
		Dead:          counted(stats.Dead),
		Cancelled:     counted(stats.Cancelled),
		Expired:       counted(stats.Expired),
		Pauses:        []pauseStatus{},
		Snapshot: snapshotStatus{
			Level:      levelOf(stats.Health.OldestSnapshot, snapshotWarning, snapshotCritical),
			AgeSeconds: stats.Health.OldestSnapshot.Seconds(),
			age:        stats.Health.OldestSnapshot,
		},
		DeadRows: deadRowStatus{
			Level: levelOf(stats.Health.DeadRows, deadRowsWarning, deadRowsCritical),
			Dead:  stats.Health.DeadRows,
			Live:  stats.Health.LiveRows,
		},
	}
	for _, lane := range stats.Lanes {
		r.Lanes = append(r.Lanes, laneStatus{
			Consumer: lane.Consumer, Target: lane.Target, Kind: lane.Kind, Tenant: lane.Tenant, Priority: lane.Priority,
			Due: lane.Due, Deferred: lane.Deferred, Leased: lane.Leased,
			Capped:     lane.Due+lane.Deferred+lane.Leased >= outbox.CountCap,
			AgeSeconds: lane.Age.Seconds(), age: lane.Age,
		})
	}
	var parked int64
	for _, p := range stats.Parked {
		parked += p.Parked
	}
	for _, p := range stats.Parked {
		r.Parked = append(r.Parked, parkedStatus{
			Consumer: p.Consumer, Target: p.Target, Kind: p.Kind, Parked: count{p.Parked, parked >= outbox.CountCap},
		})
	}
	for _, p := range pauses {
		r.Pauses = append(r.Pauses, newPauseStatus(p))
	}
	return r
}

func newPauseStatus(p outbox.Pause) pauseStatus {
	mode := "leasing"
	if p.Mode == outbox.PauseCancel {
		mode = "cancel"
	}
	return pauseStatus{
		Consumer: p.Lanes.Consumer, Target: p.Lanes.Target, Kind: p.Lanes.Kind, Tenant: p.Lanes.Tenant,
		Mode: mode, Actor: p.By.Actor, Reason: p.By.Reason, PausedAt: p.PausedAt,
	}
}

func levelOf[T cmp.Ordered](value, warning, critical T) level {
	switch {
	case value >= critical:
		return levelCritical
	case value >= warning:
		return levelWarning
	default:
		return levelOK
	}
}

func (r statusReport) text(p *page) {
	p.linef("%s\n", heading(r.Schema, r.ServerVersion, r.File))
	r.lanes(p)
	p.linef("\ndead %v, cancelled %v, expired %v", r.Dead, r.Cancelled, r.Expired)
	for _, parked := range r.Parked {
		p.linef("parked %v of %s/%s %s: their outcome is unknown and an operator decides", parked.Parked, parked.Consumer, parked.Target, parked.Kind)
	}
	for _, pause := range r.Pauses {
		pause.text(p)
	}
	if isSQLite(r.ServerVersion) {
		if r.Events.Newest != "0" {
			p.linef("")
		}
		r.Events.text(p)
		return
	}
	p.linef("")
	r.Events.text(p)
	p.levelLinef(r.Snapshot.Level, "oldest snapshot %s: an old one keeps finished rows from being cleaned up", age(r.Snapshot.age))
	p.levelLinef(r.DeadRows.Level, "dead rows %s beside %s live ones in the queue", thousands(r.DeadRows.Dead), thousands(r.DeadRows.Live))
}

func (r statusReport) lanes(p *page) {
	if len(r.Lanes) == 0 {
		p.linef("nothing is pending")
		return
	}
	var rows [][]string
	for _, lane := range r.Lanes {
		number := func(n int64) string { return count{n, lane.Capped && n > 0}.String() }
		oldest := "-"
		if lane.age > 0 {
			oldest = age(lane.age)
		}
		rows = append(rows, []string{
			lane.Consumer, lane.Target, lane.Kind, orDash(lane.Tenant), fmt.Sprint(lane.Priority),
			number(lane.Due), number(lane.Deferred), number(lane.Leased), oldest,
		})
	}
	p.table([]string{"CONSUMER", "TARGET", "KIND", "TENANT", "PRIORITY", "DUE", "DEFERRED", "LEASED", "OLDEST"}, rows)
	if r.MoreLanes {
		p.linef("and more lanes than these %d", len(r.Lanes))
	}
}

// orDash makes an empty cell visible.
func orDash(text string) string { return cmp.Or(text, "-") }
