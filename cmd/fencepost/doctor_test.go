package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/dbtest"
	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/outbox"
)

// examined runs doctor, whose exit code must fit the levels it shows: the tests' server is one whose fsync may be off.
func examined(t *testing.T, args ...string) string {
	t.Helper()
	r := command(t, append([]string{"doctor"}, args...)...)
	want := exitOK
	if strings.Contains(r.stdout, string(levelCritical)) {
		want = exitFailed
	}
	if r.code != want || (r.stderr != "") != (want == exitFailed) {
		t.Fatalf("doctor %v: code %d\n%s%s", args, r.code, r.stderr, r.stdout)
	}
	return r.stdout
}

// findings runs doctor and gives what it found by check.
func findings(t *testing.T, args ...string) map[string]finding {
	t.Helper()
	var r doctorReport
	if err := json.Unmarshal([]byte(examined(t, append(args, "--json")...)), &r); err != nil {
		t.Fatal(err)
	}
	by := map[string]finding{}
	for _, f := range r.Findings {
		by[f.Check] = f
	}
	return by
}

// What depends on the tests' server, or differs from run to run.
var serversOwn = []struct{ what, as string }{
	{`(?m)^\w+ +durability.*\n( +- .*\n)*`, ""},
	{`(?s) +\{\s+"check": "durability".*?\n    \},\n`, ""},
	{`(?m)^  "level": .*\n`, ""},
	{`Fp-[0-9a-f]+_`, "outbox_"},
	{`fsync \w+, synchronous_commit \w+, full_page_writes \w+`, "fsync X, synchronous_commit X, full_page_writes X"},
	{`(?m)"(fsync|synchronous_commit|full_page_writes|server_version)": "[^"]*"`, `"$1": "X"`},
	{`PostgreSQL [^"\n]+`, "PostgreSQL VERSION"},
	{`\d+ beside \d+ live ones`, "N beside N live ones"},
}

func doctorGolden(t *testing.T, name, got string) {
	t.Helper()
	for _, own := range serversOwn {
		got = regexp.MustCompile(own.what).ReplaceAllString(got, own.as)
	}
	golden(t, name, got)
}

// Shows: S4.27
func TestDoctor(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	viewer := pgtest.Roles(t, f.dsn)("viewer")
	doctorGolden(t, "doctor", examined(t, "--dsn", viewer))
	doctorGolden(t, "doctor_json", examined(t, "--dsn", viewer, "--json"))
	doctorGolden(t, "doctor_report", succeed(t, "doctor", "--report", "--dsn", viewer))
	doctorGolden(t, "doctor_report_json", succeed(t, "doctor", "--report", "--dsn", viewer, "--json"))
	by := findings(t, "--dsn", f.dsn, "--kinds", "charge,ship", "--full")
	if role := by["role"]; role.Level != levelWarning || !strings.Contains(role.Finding, "is a superuser") {
		t.Errorf("role: %+v", role)
	}
	if kinds := by["kinds"]; kinds.Level != levelWarning || !slices.Equal(kinds.Details, []string{"mail", "pack"}) {
		t.Errorf("kinds: %+v", kinds)
	}
	if by["snapshot"].Level != levelOK || !strings.Contains(by["tables"].Finding, "all 9 messages") {
		t.Errorf("snapshot %+v, tables %+v", by["snapshot"], by["tables"])
	}
}

// Each bad state is made and found, with the level and the words that matter.
func TestDoctorFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	expect := func(check string, l level, words ...string) {
		t.Helper()
		got := findings(t, "--dsn", f.dsn)[check]
		text := got.Finding + "\n" + strings.Join(got.Details, "\n")
		for _, word := range words {
			if got.Level != l || !strings.Contains(text, word) {
				t.Errorf("%s: %s, %s\nwant %s, %s", check, got.Level, text, l, word)
			}
		}
	}

	expect("paused", levelWarning, "1 pause in force", "*/* mail *", "by fixture: a test")

	f.sql(t, "INSERT INTO outbox.settlement (message_id, epoch, attempt, replays, outcome) VALUES (999, 1, 1, 0, 'delivered')")
	expect("tables", levelCritical, "disagree about 1 message", "999: settlement has no message")
	f.sql(t, "DELETE FROM outbox.settlement WHERE message_id = 999")
	expect("tables", levelOK, "all 9 messages")

	f.sql(t, "DROP INDEX outbox.worker_name")
	f.sql(t, "UPDATE pg_catalog.pg_index SET indisvalid = false WHERE indexrelid = 'outbox.queue_due'::regclass")
	expect("indexes", levelCritical, "queue_due is invalid", "worker_name is missing")
	f.sql(t, "UPDATE pg_catalog.pg_index SET indisvalid = true WHERE indexrelid = 'outbox.queue_due'::regclass")

	f.sql(t, "ALTER TABLE outbox.message RESET (autovacuum_vacuum_scale_factor)")
	expect("autovacuum", levelWarning, "the table message has lost")
	f.sql(t, "ALTER TABLE outbox.queue SET (autovacuum_enabled = false)")
	expect("autovacuum", levelCritical, "off for the table queue", "the table message has lost")

	shop, err := f.box.Consumer("shop", "warehouse", outbox.Policy{BlockOnDead: true})
	if err != nil {
		t.Fatal(err)
	}
	f.enqueue(t, outbox.Effect{Kind: "wrap", Key: "dies", OrderKey: "held"}, outbox.Effect{Kind: "wrap", Key: "waits", OrderKey: "held"})
	for _, m := range f.lease(t, shop, "wrap") {
		if _, err := f.box.Settle(t.Context(), shop, outbox.AllTenants, m, outbox.Failed(outbox.Moot(errors.New("no")))); err != nil {
			t.Fatal(err)
		}
	}
	aged := dbtest.SQL{DB: stdlib.OpenDBFromPool(f.pool)}
	aged.Age(t, 10*time.Minute)
	expect("order keys", levelWarning, "1 key held up", "shop/warehouse wrap key held: message ", " for 10m", "blocks its key")
	expect("lanes", levelWarning, "shop/warehouse charge due for 10m", "none leased")
	aged.Age(t, time.Hour)
	expect("order keys", levelCritical, "for 1h10m")
	expect("lanes", levelCritical, "lanes wait", "shop/warehouse charge due for 1h10m")
	if lanes := findings(t, "--dsn", f.dsn)["lanes"]; strings.Contains(strings.Join(lanes.Details, " "), "mail") {
		t.Errorf("a paused lane waits: %+v", lanes)
	}
}

// What cannot be made here is put into what doctor learned of the server.
func TestDoctorOfAnotherServer(t *testing.T) {
	t.Parallel()
	f := openFixture(t, pgtest.New(t))
	examine := func(change func(*doctor)) (doctorReport, error) {
		t.Helper()
		d := doctor{box: f.box, store: f.box.Store(), step: 1000}
		if err := d.read(t.Context()); err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "autovacuum": "on"} {
			d.facts["setting"][name] = value
		}
		d.role = outbox.Role{MayLease: true, MaySettle: true}
		change(&d)
		var out bytes.Buffer
		cmd := &cobra.Command{}
		cmd.Flags().Bool("json", true, "")
		cmd.SetOut(&out)
		err := d.examine(t.Context(), cmd, "outbox")
		var r doctorReport
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		return r, err
	}
	for _, test := range []struct {
		name, check string
		level       level
		words       string
		change      func(*doctor)
	}{
		{"a good one", "listener", levelOK, "hints arrive", func(*doctor) {}},
		{"deaf", "listener", levelWarning, "transaction pooler", func(d *doctor) { d.store = hearing{d.store, db.ErrDeafListener} }},
		{"unreachable", "listener", levelWarning, "cannot listen", func(d *doctor) { d.store = hearing{d.store, errors.New("refused")} }},
		{"no fsync", "durability", levelCritical, "1 setting", func(d *doctor) { d.facts["setting"]["fsync"] = "off" }},
		{"torn pages", "durability", levelWarning, "1 setting", func(d *doctor) { d.facts["setting"]["full_page_writes"] = "off" }},
		{"asynchronous", "durability", levelWarning, "1 setting", func(d *doctor) { d.facts["setting"]["synchronous_commit"] = "off" }},
		{"a standby", "durability", levelCritical, "1 setting", func(d *doctor) { d.facts["setting"]["standby"] = "true" }},
		{"no autovacuum", "autovacuum", levelCritical, "", func(d *doctor) { d.facts["setting"]["autovacuum"] = "off" }},
		{"prepared transaction", "snapshot", levelWarning, "2m0s", func(d *doctor) { d.facts["session"]["prepared transaction"] = "120000000" }},
		{"blind", "snapshot", levelWarning, "pg_read_all_stats", func(d *doctor) { d.facts["session"]["sees all"] = "false" }},
		{"a clock behind", "clock", levelWarning, "", func(d *doctor) { d.store = late{d.store} }},
		{"a file", "file", levelOK, "4 MiB, 2 MiB of it free for new rows, and 1 MiB of log", onSQLite},
		{"the right to a file", "role", levelOK, "may write the file", onSQLite},
		{"a long log", "file", levelWarning, "257 MiB of log", func(d *doctor) { onSQLite(d); d.facts["setting"]["log_bytes"] = "268435457" }},
		{"a file written without a wait", "durability", levelWarning, "1 setting", func(d *doctor) { onSQLite(d); d.facts["setting"]["synchronous"] = "normal" }},
		{"dead rows", "dead rows", levelCritical, "500,000", func(d *doctor) { d.store = late{d.store} }},
	} {
		r, err := examine(test.change)
		at := slices.IndexFunc(r.Findings, func(f finding) bool { return f.Check == test.check })
		if got := r.Findings[at]; got.Level != test.level || !strings.Contains(got.Finding, test.words) {
			t.Errorf("%s: %+v", test.name, got)
		}
		critical := slices.ContainsFunc(r.Findings, func(f finding) bool { return f.Level == levelCritical })
		if critical != (err != nil) || critical != (r.Level == levelCritical) || r.Level == levelOK && test.level != levelOK {
			t.Errorf("%s: level %s, %v", test.name, r.Level, err)
		}
	}
}

// onSQLite makes what doctor learned that of a file.
func onSQLite(d *doctor) {
	d.facts["setting"] = map[string]string{
		"server_version": "SQLite 3.51.0", "fsync": "on", "synchronous": "full", "journal_mode": "wal", "page_size": "4096",
		"page_count": "1000", "freelist_count": "500", "log_bytes": "100",
	}
}

// hearing is a store whose listener fails.
type hearing struct {
	db.Store
	err error
}

func (s hearing) Listen(context.Context, func()) error { return s.err }

// late is a store whose clock is behind and whose queue was not cleaned.
type late struct{ db.Store }

func (s late) ReadHealth(ctx context.Context, arg db.ReadHealthParams) ([]db.ReadHealthRow, error) {
	rows, err := s.Store.ReadHealth(ctx, arg)
	for i := range rows {
		rows[i].Now, rows[i].DeadRows = rows[i].Now.Add(-time.Minute), deadRowsCritical
	}
	return rows, err
}

// Of many messages a sample is compared, spread over all ids, unless all are asked for.
func TestDoctorSamples(t *testing.T) {
	t.Parallel()
	f := openFixture(t, pgtest.New(t))
	const fill = `WITH m AS (
		INSERT INTO outbox.message (consumer, target, kind, key, digest)
		SELECT 'c', 't', 'k', i::text, decode(repeat('00', 32), 'hex') FROM generate_series(1, 12000) AS i RETURNING id
	)
	INSERT INTO outbox.settlement (message_id, epoch, attempt, replays, outcome) SELECT id, 1, 1, 0, 'delivered' FROM m`
	f.sql(t, fill)
	for _, test := range []struct {
		full bool
		step int32
		want string
	}{
		{false, 1000, "they agree about all 12,000 messages"},
		{false, 20, "they agree about a sample of 2,020 messages (--full takes all)"},
		{true, 20, "they agree about all 12,000 messages"},
	} {
		var said bytes.Buffer
		d := doctor{box: f.box, store: f.box.Store(), full: test.full, step: test.step, progress: &progress{out: &said}}
		found, err := d.agreement(t.Context())
		if err != nil || found[0].Finding != test.want || found[0].Level != levelOK {
			t.Errorf("%+v, %v; want %s", found, err, test.want)
		}
		if test.full != strings.HasPrefix(said.String(), "compared 20 messages, at id 20 of 12000\n") {
			t.Errorf("said %s", &said)
		}
	}
}
