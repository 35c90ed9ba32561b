package main

import (
	"bytes"
	"context"
	"os/user"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost-go/fencepost/outbox"
)

// Shows: S1.32
func TestReplay(t *testing.T) { onEach(t, testReplay) }

func testReplay(t *testing.T, f fixture) {
	f.fill(t)
	s := transcript{t: t, dsn: f.dsn}
	s.run("replay", "5", "6", "99", "--reason", "address corrected", "--actor", "ann")
	s.run("replay", "--cause", "moot", "--dry-run")
	s.run("replay", "--cause", "moot", "--dry-run", "--json")
	s.run("replay", "--cause", "moot", "--yes", "--reset-attempts", "--reason", "after all", "--actor", "ann", "--json")
	s.run("replay", "--cause", "moot", "--yes", "--reason", "again", "--actor", "ann")
	s.run("replay", "9", "--reason", "again", "--actor", "ann", "--json")
	s.WriteString(f.audits(t) + "\n")
	golden(t, "replay", s.String())
	if got := f.rows(t, "SELECT concat_ws(' ', message_id, attempt, replays) FROM outbox.queue WHERE message_id IN (5, 9) ORDER BY 1"); got != "5 1 1\n9 0 1" {
		t.Errorf("message, attempts, replays:\n%s", got)
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.enqueue(t, // 11, 12 and 13
		outbox.Effect{Kind: "decide", Key: "a"}, outbox.Effect{Kind: "decide", Key: "b", OrderKey: "customer-7"}, outbox.Effect{Kind: "decide", Key: "c"})
	f.sql(t, "UPDATE outbox.queue SET state = 1 WHERE kind = 'decide'")
	s := transcript{t: t, dsn: f.dsn}
	s.run("resolve", "6", "1", "--as", "delivered", "--reason", "the bank shows it", "--actor", "ann")
	s.run("resolve", "11", "--as", "dead", "--reason", "the bank does not", "--actor", "ann", "--json")
	s.run("resolve", "12", "--as", "dead-blocking", "--reason", "wait", "--actor", "ann")
	s.run("resolve", "--kind", "decide", "--as", "retry", "--dry-run")
	s.run("resolve", "--kind", "decide", "--as", "retry", "--yes", "--reason", "the bank lost it", "--actor", "ann")
	s.run("resolve", "--all", "--as", "retry", "--yes", "--reason", "the bank lost it", "--actor", "ann")
	s.WriteString(f.audits(t) + "\n")
	golden(t, "resolve", s.String())
	if got := f.rows(t, "SELECT concat_ws(' ', message_id, blocked) FROM outbox.order_lease"); got != "12 t" {
		t.Errorf("order leases %s", got)
	}
}

// Shows: S4.7
func TestCancel(t *testing.T) { onEach(t, testCancel) }

func testCancel(t *testing.T, f fixture) {
	f.fill(t)
	s := transcript{t: t, dsn: f.dsn}
	s.run("cancel", "1", "4", "--reason", "withdrawn", "--actor", "ann")
	s.run("cancel", "2", "--tenant", "other", "--reason", "not theirs", "--actor", "ann", "--json")
	s.run("cancel", "--state", "leased", "--yes", "--reason", "stop it", "--actor", "ann")
	s.run("cancel", "--tenant", "acme", "--dry-run", "--json")
	s.run("cancel", "--tenant", "acme", "--yes", "--reason", "account is closed", "--actor", "ann", "--json")
	s.run("cancel", "--all", "--older-than", "1h", "--yes", "--reason", "clean up", "--actor", "ann")
	s.run("cancel", "--older-than", "1h", "--yes", "--reason", "clean up", "--actor", "ann")
	s.run("cancel", "--all", "--yes", "--reason", "clean up", "--actor", "ann")
	s.WriteString(f.audits(t) + "\n")
	golden(t, "cancel", s.String())
}

// Without --actor the audit names the user of the operating system.
func TestActorIsTheUser(t *testing.T) { onEach(t, testActorIsTheUser) }

func testActorIsTheUser(t *testing.T, f fixture) {
	f.fill(t)
	current, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	succeed(t, "cancel", "1", "--reason", "withdrawn", "--dsn", f.dsn)
	if got := f.rows(t, "SELECT actor FROM outbox.audit WHERE message_id = 1"); got != current.Username {
		t.Errorf("actor %q, want %q", got, current.Username)
	}
}

// A filter by age takes what is old enough by the database's clock, and nothing younger.
func TestOlderThan(t *testing.T) { onEach(t, testOlderThan) }

func testOlderThan(t *testing.T, f fixture) {
	f.fill(t)
	f.sql(t, "UPDATE outbox.settlement SET settled_at = settled_at - interval '2 h' WHERE message_id = 9")
	f.sql(t, "UPDATE outbox.message SET created_at = created_at - interval '2 h' WHERE id IN (1, 5)")
	for verb, want := range map[string]string{"replay": "9", "cancel": "1"} {
		args := []string{verb, "--older-than", "1h", "--dsn", f.dsn, "--reason", "old", "--actor", "ann", "--yes"}
		if r := decode[actReport](t, append(args, "--dry-run")...); r.Matched != 1 || !r.DryRun {
			t.Errorf("%s --dry-run: %+v", verb, r)
		}
		if r := decode[actReport](t, args...); r.Done != 1 {
			t.Errorf("%s: %+v", verb, r)
		}
		if got := f.rows(t, "SELECT CAST(message_id AS text) FROM outbox.audit WHERE actor = 'ann' AND action = $1", verb); got != want {
			t.Errorf("%s acted on %q, want %s", verb, got, want)
		}
	}
}

// A limit cuts a run short wherever a page ends, and --after goes on there: together they act on each message once.
func TestLimitAndAfter(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.many(t, "bulk", 2300)
	f.many(t, "other", 10)
	f.bury(t, "bulk", "attempts")
	f.bury(t, "other", "moot")
	next, done := "", 0
	for _, limit := range []string{"3", "1", "998", "1000", "298"} {
		args := []string{"replay", "--kind", "bulk", "--limit", limit, "--yes", "--reason", "repaired", "--dsn", f.dsn}
		if next != "" {
			args = append(args, "--after", next)
		}
		r := decode[actReport](t, args...)
		done += r.Done
		if next = r.Next; (next == "") != (limit == "298") {
			t.Fatalf("--limit %s: %+v", limit, r)
		}
	}
	if got := f.rows(t, "SELECT concat_ws(' ', count(*), sum(replays)) FROM outbox.queue WHERE kind = 'bulk'"); got != "2300 2300" || done != 2300 {
		t.Errorf("%d done; open and replays: %s", done, got)
	}
}

// A run that is interrupted in a batch ends that batch, says what was done and where to go on; going on does the rest, each once.
func TestCtrlCEndsTheBatch(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.many(t, "bulk", 2500)
	f.bury(t, "bulk", "attempts")
	args := []string{"replay", "--kind", "bulk", "--yes", "--reason", "repaired", "--actor", "ann", "--dsn", f.dsn}
	unlock := f.lock(t, "SELECT message_id FROM outbox.settlement WHERE message_id = (SELECT max(message_id) - 1200 FROM outbox.settlement) FOR UPDATE")
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan result)
	go func() { ended <- commandWith(ctx, strings.NewReader(""), args...) }()
	await(t, "the second batch to wait for the row", func() bool {
		return f.rows(t, "SELECT count(*)::text FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") == "1"
	})
	interrupt()
	unlock()
	r := <-ended
	if r.code != exitFailed || r.stderr != "fencepost: interrupted\n" || !strings.HasPrefix(r.stdout, "replayed 2,000 of 2,000 messages\nmore: --after ") {
		t.Fatalf("code %d, %s%s", r.code, r.stdout, r.stderr)
	}
	_, next, _ := strings.Cut(strings.TrimSpace(r.stdout), "--after ")
	if got := succeed(t, append(args, "--after", next)...); got != "replayed 500 of 500 messages\n" {
		t.Errorf("going on: %s", got)
	}
	if got := f.rows(t, "SELECT concat_ws(' ', count(*), sum(replays), max(replays)) FROM outbox.queue WHERE kind = 'bulk'"); got != "2500 2500 1" {
		t.Errorf("open, replays, most replays: %s", got)
	}
}

// lock takes row locks in a session of its own until it is called off.
func (f fixture) lock(t *testing.T, statement string) (unlock func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), f.dsn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "BEGIN"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
	return func() { conn.Close(context.Background()) }
}

func TestProgressIsToldNowAndThen(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := progress{out: &out, every: time.Hour, said: time.Now()}
	p.sayf("too soon")
	p.said = p.said.Add(-time.Hour)
	p.sayf("%s replayed", thousands(12_000))
	p.sayf("too soon")
	if out.String() != "12,000 replayed\n" {
		t.Errorf("%q", &out)
	}
}
