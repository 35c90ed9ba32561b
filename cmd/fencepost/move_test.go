package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/dbtest"
	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/internal/move"
	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/internal/tables"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/sender"
)

// newMovingFile is a file with messages in every state there is, and no live lease.
func newMovingFile(t *testing.T) fixture {
	t.Helper()
	f := openFileFixture(t)
	f.fill(t)
	f.block(t, "customer-7")
	// The oldest event is gone, and so is the newest claim.
	f.append(t, events.Event{ID: "purged", Type: "t"})
	if rows, err := f.on.store.PurgeEvents(t.Context(), db.PurgeEventsParams{Keep: -time.Hour.Microseconds(), MaxRows: 1}); err != nil || rows[0].Removed != 1 {
		t.Fatal(rows, err)
	}
	f.tell(t)
	f.append(t, events.Event{ID: "large", Type: "t", Payload: bytes.Repeat([]byte{0xfe}, 60_000)}, events.Event{ID: "gone", Type: "t"})
	f.sql(t, "DELETE FROM outbox.event WHERE event_id = 'gone'")
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	effects := []outbox.Effect{
		{Kind: "bytes", Key: "every byte", Payload: every, Metadata: map[string]string{"name": "Zoë \"\\\u0001\u2028 😀"}, Priority: -7},
		{Kind: "bytes", Key: "Ключ 'q\" \\ \u007f", Tenant: "ténant", DueAt: time.Date(2500, 7, 31, 23, 59, 59, 999_999_000, time.UTC), Priority: 32767},
		{Kind: "old", Key: "old"}, {Kind: "fail", Key: "fail"}, {Kind: "gone", Key: "dropped"},
	}
	for _, cause := range []string{"permanent", "moot", "attempts", "age", "exhausted"} {
		effects = append(effects, outbox.Effect{Kind: cause, Key: cause})
	}
	f.enqueue(t, effects...)
	shop := f.consumer(t)
	for _, m := range f.lease(t, shop, "fail") {
		if _, err := f.box.Settle(t.Context(), shop, outbox.AllTenants, m, outbox.Failed(errors.New("try again: \u2028 später"))); err != nil {
			t.Fatal(err)
		}
	}
	for _, cause := range []string{"permanent", "moot", "attempts", "age", "exhausted"} {
		f.buryLeased(t, cause)
	}
	if _, err := f.box.Replay(t.Context(), outbox.AllTenants, []int64{5}, outbox.PreserveAttempts, operator); err != nil {
		t.Fatal(err)
	}
	f.sql(t, `INSERT INTO outbox.settlement (message_id, outcome, attempt, epoch, replays, settled_at)
		SELECT message_id, 'expired', 0, 0, 0, clock_timestamp() FROM outbox.queue WHERE kind = 'old'`)
	f.sql(t, "DELETE FROM outbox.queue WHERE kind = 'old'")
	// The newest message is gone: its id must not come back.
	f.enqueue(t, outbox.Effect{Kind: "gone", Key: "purged"})
	f.sql(t, "DELETE FROM outbox.queue WHERE kind = 'gone'")
	f.sql(t, "DELETE FROM outbox.message WHERE kind = 'gone'")
	// What is leased (8) is lost.
	f.sql(t, "UPDATE outbox.queue SET leased_until = leased_until - interval '2 h' WHERE leased_by <> 0")
	return f
}

// buryLeased makes the messages of a kind die of the cause it is named for.
func (f fixture) buryLeased(t *testing.T, cause string) {
	t.Helper()
	f.sql(t, `INSERT INTO outbox.settlement (message_id, outcome, cause, reason, attempt, epoch, replays, settled_at, settled_by)
		SELECT message_id, 'dead', $1, 'no answer', 3, 4, 0, clock_timestamp(), 1 FROM outbox.queue WHERE kind = $1`, cause)
	f.sql(t, "DELETE FROM outbox.queue WHERE kind = $1", cause)
}

// dumps are what the file and the database have, without the workers, which stay, and without what pauses the file.
func dumps(t *testing.T, file fixture, dsn string) (from, to tables.Dump) {
	t.Helper()
	target, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	from, to = dbtest.SQL{DB: file.file, SQLite: true}.Dump(t), dbtest.SQL{DB: target}.Dump(t)
	from.Now, to.Now = time.Time{}, time.Time{}
	from.Workers, to.Workers = nil, nil
	from.Pauses = slices.DeleteFunc(from.Pauses, func(p tables.Pause) bool { return p.Reason == move.Reason })
	return from, to
}

func checkMoved(t *testing.T, file fixture, dsn string) tables.Dump {
	t.Helper()
	from, to := dumps(t, file, dsn)
	// As text, for database/sql scans an empty blob of a file as nil.
	was, is := reflect.ValueOf(from), reflect.ValueOf(to)
	for i := range was.NumField() {
		if was, is := fmt.Sprintf("%+v", was.Field(i)), fmt.Sprintf("%+v", is.Field(i)); was != is {
			t.Errorf("%s of the file\n%s\nof the database\n%s", reflect.TypeFor[tables.Dump]().Field(i).Name, was, is)
		}
	}
	return to
}

// What a file had, the database has, to the byte, and goes on where the file ended.
func TestMove(t *testing.T) {
	t.Parallel()
	file, dsn := newMovingFile(t), pgtest.New(t)
	before := dbtest.SQL{DB: file.file, SQLite: true}.Dump(t)
	r := decode[moveReport](t, "move", "--from", file.dsn, "--to", dsn)
	moved := checkMoved(t, file, dsn)
	want := moveReport{
		Messages: int64(len(before.Messages)), Stored: int64(len(before.Messages)), Open: int64(len(before.Queue)), Settled: int64(len(before.Settlements)),
		BlockedKeys: 1, Pauses: 1, Acts: int64(len(before.Audits)) + 1, Events: 4, Readers: 2, Claims: 4,
	}
	if r != want || r.Messages < 16 || r.Settled < 8 || r.Open+r.Settled != r.Messages {
		t.Errorf("moved %+v, want %+v", r, want)
	}
	// A lease that was lost comes back unsure, everything else as it was.
	for i, q := range moved.Queue {
		was := before.Queue[i]
		if was.LeasedBy != 0 {
			if !q.Unsure || q.Attempt != 1 || q.Epoch != 1 {
				t.Errorf("of a lost lease: %+v", q)
			}
			was.LeasedBy, was.Unsure, was.Token, was.LeasedUntil = 0, true, q.Token, q.LeasedUntil
		}
		if !reflect.DeepEqual(q, was) {
			t.Errorf("was %+v, is %+v", was, q)
		}
	}
	// Again, it has nothing to do.
	if again := decode[moveReport](t, "move", "--from", file.dsn, "--to", dsn); again.Stored != 0 || again.Messages != r.Messages {
		t.Errorf("again: %+v", again)
	}
	checkMoved(t, file, dsn)

	// The database goes on where the file ended.
	target := openFixture(t, dsn)
	highest := file.rows(t, "SELECT seq FROM sqlite_sequence WHERE name = 'outbox_message'")
	target.enqueue(t, outbox.Effect{Kind: "pack", Key: "new"})
	if newer := target.rows(t, "SELECT id::text FROM outbox.message WHERE id > "+highest); newer == "" {
		t.Errorf("a new message has an id of the file's, of which the highest is %s", highest)
	}
	checkStream(t, file, target)
	asked, performed := 0, 0
	s, err := sender.New(target.box, target.consumer(t), sender.Config{Scope: outbox.AllTenants, Handlers: sender.Handlers{"pack": {
		Do: func(context.Context, outbox.Message) error { performed++; return nil },
		Reconcile: func(_ context.Context, m outbox.Message) (sender.Outcome, error) {
			if asked++; m.ID != 8 || m.Epoch != 2 || m.Attempt != 2 {
				t.Errorf("asked of %+v", m)
			}
			return sender.Delivered, nil
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.RunOnce(t.Context()); err != nil || asked != 1 || performed != 1 {
		t.Errorf("asked %d, performed %d, %v", asked, performed, err)
	}
	// Nor does it go back: what the database did since is not undone by the file.
	changed := command(t, "move", "--from", file.dsn, "--to", dsn)
	if changed.code != exitNotDone || !strings.Contains(changed.stderr, "nothing was moved") {
		t.Errorf("after the database went on: code %d, %s", changed.code, changed.stderr)
	}
}

// checkStream checks that the stream of the database goes on where the file's ended, for who had read from the file.
func checkStream(t *testing.T, file, target fixture) {
	t.Helper()
	was := file.stream(t, 4)
	target.append(t, events.Event{ID: "new", Type: "t"})
	is := target.stream(t, 5)
	for i, e := range was.Events {
		if is.Events[i].ID != e.ID || is.Events[i].Cursor() != e.Cursor() {
			t.Errorf("at place %d was %s, is %s", i, e.ID, is.Events[i].ID)
		}
	}
	if newer := is.Events[4]; newer.ID != "new" || newer.Position <= was.Events[3].Position+1 {
		t.Errorf("the new one is %s at position %d, which the file gave to another", newer.ID, newer.Position)
	}
	page, err := target.log(t).Read(t.Context(), was.Next, 10, events.Filter{Scope: outbox.AllTenants})
	if err != nil || len(page.Events) != 1 {
		t.Errorf("with the file's cursor: %+v, %v", page.Events, err)
	}
	old, err := target.log(t).Reader(t.Context(), "search")
	if err != nil || old != was.Events[0].Cursor() {
		t.Errorf("the reader stands at %v, %v", old, err)
	}
}

// cut is a target that fails after some slices.
type cut struct {
	move.Target
	left int
}

var errCut = errors.New("cut")

func (c *cut) MoveIn(ctx context.Context, slice move.Slice) (int, error) {
	if c.left--; c.left < 0 {
		return 0, errCut
	}
	return c.Target.MoveIn(ctx, slice)
}

// However many slices a run came to store, the next one ends what it began; the database leases nothing in between.
func TestMoveGoesOn(t *testing.T) {
	t.Parallel()
	file := newMovingFile(t)
	ended, step := false, 3
	if os.Getenv("FENCEPOST_FULL") != "" {
		step = 1
	}
	for n := 0; !ended; n += step {
		dsn := pgtest.New(t)
		target := openFixture(t, dsn)
		m := move.Move{
			Source: file.on.store.(move.Source), Target: &cut{target.on.store.(move.Target), n}, Actor: "a", Rows: 3,
			Step: func(ctx context.Context, do func(context.Context) error) error { return do(ctx) }, Said: func(string, int64, int64) {},
		}
		_, err := m.Run(t.Context())
		if ended = err == nil; !ended && !errors.Is(err, errCut) {
			t.Fatal(err)
		}
		if paused := target.rows(t, "SELECT reason FROM outbox.pause WHERE kind = '*'"); !ended && n > 0 && paused != move.Reason {
			t.Errorf("after %d slices the database is paused for %q", n, paused)
		}
		succeed(t, "move", "--from", file.dsn, "--to", dsn)
		checkMoved(t, file, dsn)
		if ended && n < 5 {
			t.Errorf("only %d slices", n)
		}
	}
}

// A process that is killed while a slice is on its way leaves it whole or not at all.
func TestMoveKilled(t *testing.T) {
	t.Parallel()
	file, dsn := newMovingFile(t), pgtest.New(t)
	file.many(t, "bulk", 1500)
	target := openFixture(t, dsn)
	// Another has the id of a later slice in its hands, so that the move waits there.
	other, err := target.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Rollback(context.Background())
	const insert = `INSERT INTO outbox.message (id, consumer, target, kind, key, digest) VALUES (900, 'c', 't', 'k', 'k', decode(repeat('00', 32), 'hex'))`
	if _, err := other.Exec(t.Context(), insert); err != nil {
		t.Fatal(err)
	}
	process := exec.Command(os.Args[0], "move", "--from", file.dsn, "--to", dsn)
	process.Env = append(os.Environ(), commandVariable+"=1")
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	const waiting = "SELECT count(*)::text FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid) WHERE NOT l.granted AND a.datname = current_database()"
	await(t, "the second slice", func() bool { return target.rows(t, waiting) != "0" })
	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = process.Wait() // killed
	const halfway = `SELECT count(*) BETWEEN 500 AND 899 AND count(*) = (SELECT count(*) FROM outbox.queue) + (SELECT count(*) FROM outbox.settlement)
		FROM outbox.message`
	if ok := target.rows(t, "SELECT ("+halfway+")::text"); ok != "true" {
		t.Error("it was not half-way")
	}
	if err := other.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	succeed(t, "move", "--from", file.dsn, "--to", dsn)
	checkMoved(t, file, dsn)
}

func TestMoveRefusesLiveLeases(t *testing.T) {
	t.Parallel()
	file, dsn := openFileFixture(t), pgtest.New(t)
	file.fill(t)
	r := command(t, "move", "--from", file.dsn, "--to", dsn)
	if r.code != exitNotDone || r.stdout != "" || !strings.Contains(r.stderr, "1 messages are leased, until 2") {
		t.Fatalf("code %d, %s", r.code, r.stderr)
	}
	if stored := openFixture(t, dsn).rows(t, "SELECT count(*)::text FROM outbox.message"); stored != "0" {
		t.Errorf("%s messages were moved", stored)
	}
	// Nobody leases more from the file, and once the lease is over it is moved.
	if leased := file.lease(t, file.consumer(t), "charge"); len(leased) > 0 {
		t.Errorf("leased %v", leased)
	}
	file.sql(t, "UPDATE outbox.queue SET leased_until = leased_until - interval '2 h' WHERE leased_by <> 0")
	succeed(t, "move", "--from", file.dsn, "--to", dsn)
	checkMoved(t, file, dsn)
}

// A file that a newer release has added to is not this one's to move, and is not paused: what was added would stay behind.
func TestMoveRefusesNewerTables(t *testing.T) {
	t.Parallel()
	file, dsn := openFileFixture(t), pgtest.New(t)
	if _, err := file.file.ExecContext(t.Context(), "INSERT INTO outbox_schema_version (version_id, is_applied, tstamp) VALUES ($1, 1, 0)", db.NewestSchema+1); err != nil {
		t.Fatal(err)
	}
	before := dbtest.SQL{DB: file.file, SQLite: true}.Dump(t)
	r := command(t, "move", "--from", file.dsn, "--to", dsn)
	if r.code != exitFailed || r.stdout != "" || !strings.Contains(r.stderr, fmt.Sprintf("version %d", db.NewestSchema+1)) {
		t.Errorf("code %d, %s%s", r.code, r.stdout, r.stderr)
	}
	after := dbtest.SQL{DB: file.file, SQLite: true}.Dump(t)
	before.Now, after.Now = time.Time{}, time.Time{}
	if was, is := fmt.Sprintf("%+v", before), fmt.Sprintf("%+v", after); was != is {
		t.Errorf("the file was\n%s\nand is\n%s", was, is)
	}
}

const (
	insertReader = `INSERT INTO outbox.reader (transaction_id, position, name, incarnation, digest) VALUES (0, 0, 'other', repeat('0', 32), '')`
	insertClaim  = `INSERT INTO outbox.claim (state, scope, key, ended_at, digest) VALUES (1, $1, $2, now(), decode(repeat('11', 32), 'hex'))`
)

// Of a database that has anything of another outbox nothing is changed, and the file is not paused.
func TestMoveRefusesForeignTables(t *testing.T) {
	t.Parallel()
	for name, foreign := range map[string]func(*testing.T, fixture){
		"another message under an id": func(t *testing.T, f fixture) { f.enqueue(t, outbox.Effect{Kind: "charge", Key: "other"}) },
		"the same message, not its":   func(t *testing.T, f fixture) { f.enqueue(t, outbox.Effect{Kind: "charge", Key: "order-1"}) },
		"a message beyond the last id": func(t *testing.T, f fixture) {
			f.sql(t, "SELECT setval('outbox.message_id_seq', 1000000)")
			f.enqueue(t, outbox.Effect{Kind: "charge", Key: "other"})
		},
		"an act": func(t *testing.T, f fixture) {
			if _, err := f.box.Pause(t.Context(), outbox.AllTenants, outbox.Everything, outbox.PauseLeasing, operator); err != nil {
				t.Fatal(err)
			}
			if _, err := f.box.Resume(t.Context(), outbox.AllTenants, outbox.Everything, operator); err != nil {
				t.Fatal(err)
			}
		},
		"an event":                func(t *testing.T, f fixture) { f.append(t, events.Event{ID: "other", Type: "t"}) },
		"the same event, not its": func(t *testing.T, f fixture) { f.append(t, events.Event{ID: "order-77-paid", Type: "t"}) },
		"a reader":                func(t *testing.T, f fixture) { f.sql(t, insertReader) },
		"a claim":                 func(t *testing.T, f fixture) { f.sql(t, insertClaim, "other", "k") },
		"the same claim, not its": func(t *testing.T, f fixture) { f.sql(t, insertClaim, "charges", "order-77") },
		"a pause": func(t *testing.T, f fixture) {
			f.sql(t, "INSERT INTO outbox.pause (consumer, target, kind, tenant, actor, reason) VALUES ('*', '*', 'x', '*', 'a', 'r')")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, target := newMovingFile(t), openFixture(t, pgtest.New(t))
			foreign(t, target)
			before, there := dbtest.SQL{DB: file.file, SQLite: true}.Dump(t), target.dump(t)
			r := command(t, "move", "--from", file.dsn, "--to", target.dsn)
			if r.code != exitNotDone || r.stdout != "" || !strings.Contains(r.stderr, "nothing was moved") {
				t.Errorf("code %d, %s%s", r.code, r.stdout, r.stderr)
			}
			after := dbtest.SQL{DB: file.file, SQLite: true}.Dump(t)
			if before.Now = after.Now; !reflect.DeepEqual(before, after) || target.dump(t) != there {
				t.Error("something was changed")
			}
		})
	}
}

// changing is a source that changes once everything was read.
type changing struct {
	move.Source
	change func()
}

func (c *changing) MoveOut(ctx context.Context, after int64, rows int) (move.Slice, error) {
	slice, err := c.Source.MoveOut(ctx, after, rows)
	if change := c.change; change != nil && slice.Upto > 1<<60 {
		c.change = nil
		change()
	}
	return slice, err
}

// What changes the file or the database meanwhile is noticed, whatever it changes, and the database stays paused.
func TestMoveNoticesChanges(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*testing.T, fixture, fixture){
		"message": func(t *testing.T, file, _ fixture) { file.enqueue(t, outbox.Effect{Kind: "charge", Key: "late"}) },
		"queue": func(t *testing.T, file, _ fixture) {
			file.sql(t, "UPDATE outbox.queue SET last_error = 'x' WHERE message_id = 1")
		},
		"settlement": func(t *testing.T, _, target fixture) {
			target.sql(t, "UPDATE outbox.settlement SET settled_by = 7 WHERE message_id = 4")
		},
		"order_lease": func(t *testing.T, _, target fixture) { target.sql(t, "DELETE FROM outbox.order_lease") },
		"audit":       func(t *testing.T, file, _ fixture) { file.sql(t, "UPDATE outbox.audit SET at = at + 1 WHERE id = 1") },
		"event":       func(t *testing.T, file, _ fixture) { file.append(t, events.Event{ID: "late", Type: "t"}) },
		"reader":      func(t *testing.T, file, _ fixture) { file.sql(t, "DELETE FROM outbox.reader WHERE name = 'search'") },
		"incarnation": func(t *testing.T, _, target fixture) {
			target.sql(t, "UPDATE outbox.incarnation SET purged_position = 0")
		},
		"claim": func(t *testing.T, _, target fixture) {
			target.sql(t, "UPDATE outbox.claim SET epoch = 9 WHERE key = 'order-78'")
		},
		"pause": func(t *testing.T, _, target fixture) {
			target.sql(t, "UPDATE outbox.pause SET mode = 1 - mode WHERE kind = 'mail'")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, target := newMovingFile(t), openFixture(t, pgtest.New(t))
			_, err := move.Move{
				Source: &changing{file.on.store.(move.Source), func() { change(t, file, target) }}, Target: target.on.store.(move.Target), Actor: "a", Rows: 3,
				Step: func(ctx context.Context, do func(context.Context) error) error { return do(ctx) }, Said: func(string, int64, int64) {},
			}.Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), "differ in table "+name+" ") {
				t.Errorf("got %v", err)
			}
			if paused := target.rows(t, "SELECT reason FROM outbox.pause WHERE kind = '*'"); paused != move.Reason {
				t.Errorf("the database is paused for %q", paused)
			}
		})
	}
}

// A pause of everything that an operator made is moved like any other.
func TestMoveOfWhatIsPaused(t *testing.T) {
	t.Parallel()
	file, dsn := newMovingFile(t), pgtest.New(t)
	succeed(t, "pause", "--all", "--reason", "mine", "--dsn", file.dsn)
	succeed(t, "move", "--from", file.dsn, "--to", dsn)
	if moved := checkMoved(t, file, dsn); len(moved.Pauses) != 2 {
		t.Errorf("pauses %+v", moved.Pauses)
	}
}

// Large payloads go in slices of bytes, and into a schema of another name.
func TestMoveLargePayloads(t *testing.T) {
	t.Parallel()
	file, dsn := openFileFixture(t), pgtest.Empty(t)
	for i := range 100 {
		file.enqueue(t, outbox.Effect{Kind: "large", Key: fmt.Sprint(i), Payload: bytes.Repeat([]byte{byte(i), 0xff}, 32<<10)})
	}
	if slice, err := file.on.store.(move.Source).MoveOut(t.Context(), 0, 1000); err != nil || slice.Count != 65 {
		t.Errorf("%d messages, %v", slice.Count, err)
	}
	if r := command(t, "migrate", "--dsn", dsn, "--schema", "Box-2"); r.code != exitOK {
		t.Fatal(r.stderr)
	}
	if r := decode[moveReport](t, "move", "--from", file.dsn, "--to", dsn, "--schema", "Box-2"); r.Stored != 100 {
		t.Errorf("%+v", r)
	}
}

func TestMoveCommandLine(t *testing.T) {
	t.Parallel()
	file, dsn := openFileFixture(t), pgtest.New(t)
	for want, args := range map[string][]string{
		"--from takes the file to move":        {"--to", dsn},
		"--from takes the file to move, as":    {"--from", dsn, "--to", dsn},
		"--from takes a path after sqlite:":    {"--from", "sqlite:", "--to", dsn},
		"does not exist: correct the path":     {"--from", "sqlite:/none/shop.db", "--to", dsn},
		"no database: give --to or set":        {"--from", file.dsn},
		"--to takes a database of PostgreSQL":  {"--from", file.dsn, "--to", file.dsn},
		"--to is no connection string":         {"--from", file.dsn, "--to", canary},
		"--actor must not be blank":            {"--from", file.dsn, "--to", dsn, "--actor", " "},
		"--timeout must be between 1ms and 1h": {"--from", file.dsn, "--to", dsn, "--timeout", "0"},
		"--schema must be 1 to 63 letters":     {"--from", file.dsn, "--to", dsn, "--schema", ""},
		"move takes no arguments":              {"--from", file.dsn, "--to", dsn, canary},
	} {
		r := command(t, append([]string{"move"}, args...)...)
		if r.code != exitUsage || r.stdout != "" || !strings.Contains(r.stderr, want) || strings.Contains(r.stderr, canary) {
			t.Errorf("%v: code %d, %s%s", args, r.code, r.stdout, r.stderr)
		}
	}
	// Tables that migrate has not made.
	if r := command(t, "move", "--from", file.dsn, "--to", pgtest.Empty(t)); r.code != exitFailed || !strings.Contains(r.stderr, "fencepost migrate") {
		t.Errorf("code %d, %s", r.code, r.stderr)
	}
	if paused := file.rows(t, "SELECT reason FROM outbox.pause"); paused != "" {
		t.Errorf("the file is paused: %s", paused)
	}
	golden(t, "move", succeed(t, "move", "--from", file.dsn, "--to", dsn))
}
