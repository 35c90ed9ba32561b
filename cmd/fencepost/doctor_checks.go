package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/outbox"
)

const (
	// What waits for so long although it could run has nobody who works on it.
	waitWarning, waitCritical = 5 * time.Minute, time.Hour
	clockWarning              = 5 * time.Second
)

// version comes after withBox has refused a schema that this program does not know.
func (d *doctor) version(ctx context.Context) ([]finding, error) {
	versions, err := d.store.ReadVersion(ctx)
	if err != nil {
		return nil, err
	}
	_, newest := d.store.SchemaRange()
	if versions[0] < newest {
		return []finding{found("schema", levelWarning, "version %d works, %d is there: fencepost migrate", versions[0], newest)}, nil
	}
	if versions[0] > newest {
		return []finding{found("schema", levelOK, "version %d, which only adds to what this program knows (%d)", versions[0], newest)}, nil
	}
	return []finding{found("schema", levelOK, "version %d, the newest", versions[0])}, nil
}

func (d *doctor) rights(context.Context) ([]finding, error) {
	if d.onSQLite() {
		return []finding{found("role", levelOK, "who may write the file may do everything")}, nil
	}
	name := d.facts["setting"]["role"]
	problems := strings.Join(d.role.Problems(), ", ")
	switch {
	case d.role.Superuser || d.role.BypassRLS || d.role.Owner:
		return []finding{found("role", levelWarning, "%s %s: programs should have less (fencepost grants)", name, problems)}, nil
	case problems != "":
		return []finding{found("role", levelOK, "%s %s, so it is not for a sender", name, problems)}, nil
	default:
		return []finding{found("role", levelOK, "%s may lease and settle", name)}, nil
	}
}

func (d *doctor) indexes(context.Context) ([]finding, error) {
	var bad []string
	for name, state := range d.facts["index"] {
		if state != "valid" {
			bad = append(bad, name+" is "+state)
		}
	}
	if slices.Sort(bad); len(bad) > 0 {
		return []finding{found("indexes", levelCritical, "REINDEX what is invalid, and make again what is missing (fencepost migrate --print)").with(bad)}, nil
	}
	return []finding{found("indexes", levelOK, "%d, all valid", len(d.facts["index"]))}, nil
}

// durability looks at what may lose a commit that a producer was told of.
func (d *doctor) durability(context.Context) ([]finding, error) {
	at, setting, details := levelOK, d.facts["setting"], []string{}
	for _, risk := range []struct {
		here bool
		level
		what string
	}{
		{setting["fsync"] == "off", levelCritical, "fsync is off: a crash of the machine may lose or tear everything"},
		{setting["full_page_writes"] == "off", levelWarning, "full_page_writes is off: a crash of the machine may tear pages"},
		{setting["synchronous_commit"] == "off", levelWarning, "synchronous_commit is off here: a crash may lose the last commits, also of effects already performed"},
		{setting["synchronous"] == "normal", levelWarning, "synchronous is normal: a loss of power may undo the last commits, also of effects already performed"},
		{setting["standby"] == "true", levelCritical, "this is a standby: nothing can be enqueued, leased or settled here"},
	} {
		if risk.here {
			at, details = worse(at, risk.level), append(details, risk.what)
		}
	}
	if len(details) > 0 {
		return []finding{found("durability", at, "%s of the server", plural(len(details), "setting")).with(details)}, nil
	}
	if d.onSQLite() {
		return []finding{found("durability", levelOK, "a commit of this connection is on disk before it is reported; each program sets that for its own")}, nil
	}
	return []finding{found("durability", levelOK, "a commit is on disk before it is reported")}, nil
}

// upkeep looks at what keeps the space of finished rows in use.
func (d *doctor) upkeep(context.Context) ([]finding, error) {
	if d.onSQLite() {
		return []finding{d.file()}, nil
	}
	at, details := levelOK, []string{}
	for _, name := range []string{"autovacuum", "track_counts"} {
		if d.facts["setting"][name] == "off" {
			at, details = levelCritical, append(details, name+" is off: finished rows are never cleaned up")
		}
	}
	for _, table := range []string{"message", "queue", "order_lease", "settlement", "event", "claim"} {
		switch options := storageParameters(d.facts["table"][table]); {
		case slices.Contains([]string{"off", "false", "no", "0"}, options["autovacuum_enabled"]):
			at, details = levelCritical, append(details, "it is off for the table "+table)
		case options["autovacuum_vacuum_scale_factor"] == "":
			at, details = worse(at, levelWarning), append(details, "the table "+table+" has lost the settings of its migration")
		}
	}
	if len(details) > 0 {
		return []finding{found("autovacuum", at, "the queue needs it").with(details)}, nil
	}
	return []finding{found("autovacuum", levelOK, "on, and set for each table")}, nil
}

// storageParameters are a table's, as in a=b c=d.
func storageParameters(text string) map[string]string {
	parameters := map[string]string{}
	for _, parameter := range strings.Fields(text) {
		name, value, _ := strings.Cut(parameter, "=")
		parameters[name] = strings.ToLower(value)
	}
	return parameters
}

// health is the clock of this host beside the database's and, on PostgreSQL, the oldest snapshot and dead rows.
func (d *doctor) health(ctx context.Context) ([]finding, error) {
	before := time.Now()
	rows, err := d.store.ReadHealth(ctx, db.ReadHealthParams{SchemaName: d.store.Schema()})
	if err != nil {
		return nil, err
	}
	took := time.Since(before)
	h := rows[0]

	// The answer is from somewhere in the time that the question took.
	differ := max(h.Now.Sub(before.Add(took/2)).Abs()-took/2, 0)
	clock := found("clock", levelOf(differ, clockWarning, 1<<62), "this host and the database differ by %s; the database's decides, and the host's is in logs", age(differ))
	if d.onSQLite() {
		return []finding{clock}, nil
	}
	return []finding{
		d.snapshot(h),
		found("dead rows", levelOf(h.DeadRows, deadRowsWarning, deadRowsCritical), "%s beside %s live ones in the queue", thousands(h.DeadRows), thousands(h.LiveRows)),
		clock,
	}, nil
}

func (d *doctor) snapshot(h db.ReadHealthRow) finding {
	oldest := time.Duration(h.OldestSnapshot) * time.Microsecond
	snapshot := found("snapshot", levelOf(oldest, snapshotWarning, snapshotCritical), "the oldest is %s old; an old one keeps finished rows from being cleaned up", age(oldest))
	if prepared, err := strconv.ParseInt(d.facts["session"]["prepared transaction"], 10, 64); err == nil && prepared > h.OldestSnapshot {
		oldest = time.Duration(prepared) * time.Microsecond
		snapshot = found("snapshot", levelOf(oldest, snapshotWarning, snapshotCritical), "a prepared transaction is %s old; commit it or roll it back (pg_prepared_xacts)", age(oldest))
	}
	if d.facts["session"]["sees all"] != "true" && snapshot.Level == levelOK {
		snapshot = found("snapshot", levelWarning, "the role may not see how old those of others are: grant it pg_read_all_stats")
	}
	return snapshot
}

// listener sends a hint over the connection it was given and listens for it on another.
func (d *doctor) listener(ctx context.Context) ([]finding, error) {
	listening, heard := context.WithCancel(ctx)
	defer heard()
	err := d.store.Listen(listening, heard)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case listening.Err() != nil:
		return []finding{found("listener", levelOK, "hints arrive")}, nil
	case errors.Is(err, db.ErrDeafListener):
		return []finding{found("listener", levelWarning, "hints do not arrive, as through a transaction pooler: listen past it (Config.Listen, ListenDSN), or leave it to the poll")}, nil
	default:
		return []finding{found("listener", levelWarning, "cannot listen, so the poll serves: %s", oneLine(err))}, nil
	}
}

// lanes looks for what nobody works on.
func (d *doctor) lanes(ctx context.Context) ([]finding, error) {
	stats, err := d.box.Stats(ctx, outbox.AllTenants)
	if err != nil {
		return nil, err
	}
	pauses, err := d.box.Pauses(ctx, outbox.AllTenants)
	if err != nil {
		return nil, err
	}
	unhandled := map[string]bool{}
	var waiting []string
	var oldest time.Duration
	for _, lane := range stats.Lanes {
		if len(d.kinds) > 0 && !slices.Contains(d.kinds, lane.Kind) {
			unhandled[lane.Kind] = true
		}
		paused := slices.ContainsFunc(pauses, func(p outbox.Pause) bool { return covers(p.Lanes, lane) })
		if lane.Due == 0 || lane.Leased > 0 || lane.Age < waitWarning || paused {
			continue
		}
		oldest = max(oldest, lane.Age)
		waiting = append(waiting, fmt.Sprintf("%s due for %s, none leased", laneText(lane.Consumer, lane.Target, lane.Kind, lane.Tenant), age(lane.Age)))
	}
	findings := []finding{found("lanes", levelOK, "none waits without anybody leasing it")}
	if len(waiting) > 0 {
		findings[0] = found("lanes", levelOf(oldest, waitWarning, waitCritical), "%s without anybody leasing it: does a sender with these kinds run?",
			waits(len(waiting), "lane")).with(some(waiting))
	}
	if stats.MoreLanes {
		findings[0].Finding += fmt.Sprintf(" (of the first %d lanes)", len(stats.Lanes))
	}
	if len(d.kinds) > 0 {
		findings = append(findings, unhandledKinds(unhandled))
	}
	return append(findings, pausedLanes(pauses)), nil
}

func unhandledKinds(unhandled map[string]bool) finding {
	var details []string
	for kind := range unhandled {
		details = append(details, kind)
	}
	if slices.Sort(details); len(details) > 0 {
		return found("kinds", levelWarning, "messages wait whose kind is not among --kinds").with(some(details))
	}
	return found("kinds", levelOK, "none waits that is not among --kinds")
}

func pausedLanes(pauses []outbox.Pause) finding {
	var details []string
	for _, p := range pauses {
		details = append(details, fmt.Sprintf("%s since %s by %s: %s",
			laneText(p.Lanes.Consumer, p.Lanes.Target, p.Lanes.Kind, p.Lanes.Tenant), instant(p.PausedAt), p.By.Actor, p.By.Reason))
	}
	if len(details) > 0 {
		return found("paused", levelWarning, "%s in force", plural(len(details), "pause")).with(some(details))
	}
	return found("paused", levelOK, "nothing")
}

// covers reports whether a pause stops the lane.
func covers(p outbox.LanePattern, lane outbox.LaneCount) bool {
	for _, name := range [][2]string{{p.Consumer, lane.Consumer}, {p.Target, lane.Target}, {p.Kind, lane.Kind}, {p.Tenant, lane.Tenant}} {
		if name[0] != outbox.Any && name[0] != name[1] {
			return false
		}
	}
	return true
}

func laneText(consumer, target, kind, tenant string) string {
	return strings.TrimSpace(fmt.Sprintf("%s/%s %s %s", consumer, target, kind, tenant))
}

// waits is plural with its verb.
func waits(n int, thing string) string {
	if n == 1 {
		return "1 " + thing + " waits"
	}
	return plural(n, thing) + " wait"
}
