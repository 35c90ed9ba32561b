package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/dbtest"
	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/internal/pgtest"
)

// keep saves a reader at an event that can be read.
func (f fixture) keep(t *testing.T, name string, at events.Event) {
	t.Helper()
	err := f.on.store.Transact(t.Context(), func(tx db.Tx) error {
		return f.log(t).SaveReader(t.Context(), tx, name, events.Cursor{}, at.Cursor())
	})
	if err != nil {
		t.Fatal(err)
	}
}

// claim claims a key whose time is out at once.
func (f fixture) claim(t *testing.T, key string) {
	t.Helper()
	err := f.on.store.Transact(t.Context(), func(tx db.Tx) error {
		_, err := f.on.store.Claim(t.Context(), tx, db.ClaimParams{Scope: "charges", Key: key, Digest: make([]byte, 32), Token: []byte("0123456789abcdef"), Hold: 1})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// age makes everything older.
func (f fixture) age(t *testing.T, d time.Duration) {
	t.Helper()
	if f.file != nil {
		dbtest.SQL{DB: f.file, SQLite: true}.Age(t, d)
		return
	}
	dbtest.SQL{DB: stdlib.OpenDBFromPool(f.pool)}.Age(t, d)
}

// What is wrong with events and claims is made and found.
func TestDoctorLooksAtEventsAndClaims(t *testing.T) {
	t.Parallel()
	f := openFixture(t, pgtest.New(t))
	expect := func(check string, l level, words ...string) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) { // transactions of other tests hold the stream back, too
			got := findings(t, "--dsn", f.dsn)[check]
			text, right := got.Finding+"\n"+strings.Join(got.Details, "\n"), got.Level == l
			for _, word := range words {
				right = right && strings.Contains(text, word)
			}
			if right {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %s, %s\nwant %s, %q", check, got.Level, text, l, words)
			}
		}
	}
	expect("events", levelOK, "none was ever appended")
	expect("readers", levelOK, "none is behind")
	expect("claims", levelOK, "none is over")

	f.append(t, events.Event{ID: "a", Type: "x"}, events.Event{ID: "b", Type: "x"})
	page := f.stream(t, 2)
	f.keep(t, "search", page.Events[0])
	f.keep(t, "there", page.Events[1])
	f.claim(t, "order-1")
	expect("events", levelOK, "the newest is at position 2, and all can be read")

	tx, err := f.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	var pid int
	if err := tx.QueryRow(t.Context(), "SELECT pg_backend_pid() FROM pg_current_xact_id()").Scan(&pid); err != nil {
		t.Fatal(err)
	}
	f.append(t, events.Event{ID: "c", Type: "x"})
	f.age(t, 2*time.Minute)
	expect("events", levelWarning, "nobody can read yet is 2m", fmt.Sprintf("it is pid %d in database ", pid), "open for")
	f.age(t, 2*time.Hour)
	expect("events", levelCritical, "nobody can read yet is 2h")
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect("events", levelOK, "and all can be read")

	expect("readers", levelWarning, "2 readers", "search at position 1: behind by 2h", "there at position 2: behind by 2h")
	expect("claims", levelWarning, "1 claim:", "charges order-1 of tenant -, over for 2h")
	const purged = "UPDATE outbox.incarnation SET purged_transaction_id = (SELECT max(transaction_id) FROM outbox.event), purged_position = 2, written_by = pg_current_xact_id()::xid::text::bigint"
	f.sql(t, purged)
	expect("readers", levelCritical, "search at position 1: what follows it was purged")
	f.sql(t, "UPDATE outbox.reader SET incarnation = repeat('7', 32)")
	expect("readers", levelCritical, "search at position 1: the stream has no such place", "there at position 2: the stream")

	f.sql(t, "UPDATE outbox.incarnation SET written_by = 1")
	expect("events", levelWarning, "restored from a dump")
}

// A role that may not see whose transaction it is is told how to.
func TestDoctorOfAHolderThatDoesNotShow(t *testing.T) {
	t.Parallel()
	f := openFixture(t, pgtest.New(t))
	held := db.ReadHorizonRow{Newest: 7, Unread: time.Hour.Microseconds()}
	for holder, words := range map[string]string{"": "grant it pg_read_all_stats", "the prepared transaction x": "it is the prepared transaction x, open for 2m0s"} {
		held.Holder, held.Held = holder, (2 * time.Minute).Microseconds()
		d := doctor{store: horizon{f.on.store, held}}
		got, err := d.events(t.Context())
		if err != nil || got[0].Level != levelCritical || !strings.Contains(strings.Join(got[0].Details, ""), words) {
			t.Errorf("%q: %+v, %v", holder, got, err)
		}
	}
	f.sql(t, "DELETE FROM outbox.incarnation")
	if r := command(t, "doctor", "--dsn", f.dsn); r.code != exitFailed || !strings.Contains(r.stderr, "lost its one row") {
		t.Errorf("code %d, %s", r.code, r.stderr)
	}
}

// horizon is a store with a horizon of its own.
type horizon struct {
	db.Store
	row db.ReadHorizonRow
}

func (h horizon) ReadHorizon(context.Context) ([]db.ReadHorizonRow, error) {
	return []db.ReadHorizonRow{h.row}, nil
}

// Status tells how far the stream and its readers are, on every database.
func TestStatusOfEvents(t *testing.T) {
	onEach(t, func(t *testing.T, f fixture) {
		f.append(t, events.Event{ID: "a", Type: "x"}, events.Event{ID: "b", Type: "x"})
		page := f.stream(t, 2)
		f.keep(t, "search", page.Events[0])
		f.keep(t, "there", page.Events[1])
		f.age(t, 2*time.Hour)
		r := decode[statusReport](t, "status", "--dsn", f.dsn).Events
		if r.Newest != "2" || r.Level != levelOK || r.Restored || len(r.Readers) != 2 {
			t.Fatalf("%+v", r)
		}
		if s := r.Readers[0]; s.Name != "search" || s.Position != "1" || s.Standing != "good" || s.Level != levelWarning || s.BehindSeconds < 7200 {
			t.Errorf("%+v", s)
		}
		if s := r.Readers[1]; s.Name != "there" || s.Standing != "good" || s.Level != levelOK || s.BehindSeconds != 0 {
			t.Errorf("%+v", s)
		}
		text := succeed(t, "status", "--dsn", f.dsn)
		for _, words := range []string{
			"ok        events: the newest is at position 2, and all can be read\n",
			"warning   reader search at position 1 is behind by 2h", "ok        reader there at position 2 has read all\n",
		} {
			if !strings.Contains(text, words) {
				t.Errorf("no %q in\n%s", words, text)
			}
		}
		f.sql(t, "UPDATE outbox.reader SET incarnation = '"+strings.Repeat("7", 32)+"'")
		if s := decode[statusReport](t, "status", "--dsn", f.dsn).Events.Readers[0]; s.Standing != "unknown" || s.Level != levelCritical {
			t.Errorf("%+v", s)
		}
		if text := succeed(t, "status", "--dsn", f.dsn); !strings.Contains(text, "critical  reader there at position 2: its place is unknown, and it has to begin anew\n") {
			t.Errorf("%s", text)
		}
	})
}
