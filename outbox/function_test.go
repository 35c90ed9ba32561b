package outbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/outbox"
)

// callFunction is what a program in another language sends; due_at is absent where the effect has none, and a max age beyond all others is none.
const callFunction = `SELECT id, status, state FROM outbox.enqueue(
	consumer => $1, target => $2, kind => $3, key => $4, payload => $5, metadata => $6, tenant => $7, order_key => $8, priority => $9,
	delay => $10::bigint * interval '1 microsecond', due_at => $11, max_age => $12::bigint * interval '1 microsecond', allow_conflict => $13)`

type stored struct {
	ID            int64
	Status, State string
}

// throughFunction enqueues an effect by outbox.enqueue.
func throughFunction(ctx context.Context, tx pgx.Tx, e outbox.Effect, allowConflict bool) (stored, error) {
	var got stored
	metadata, err := json.Marshal(e.Metadata)
	if err != nil {
		return got, err
	}
	if e.Metadata == nil {
		metadata = []byte("{}")
	}
	if e.Payload == nil {
		e.Payload = []byte{}
	}
	var due, age any
	if !e.DueAt.IsZero() {
		due = e.DueAt
	}
	switch e.MaxAge {
	case 0:
		age = (24 * time.Hour).Microseconds()
	case outbox.NoMaxAge:
	default:
		age = e.MaxAge.Microseconds()
	}
	err = tx.QueryRow(ctx, callFunction, e.Consumer, e.Target, e.Kind, e.Key, e.Payload, string(metadata), e.Tenant, e.OrderKey, e.Priority,
		e.Delay.Microseconds(), due, age, allowConflict).Scan(&got.ID, &got.Status, &got.State)
	return got, err
}

// A functionRig has a producer's pool beside the box.
type functionRig struct {
	*testing.T
	pool *pgxpool.Pool
	box  *outbox.Box
}

func newFunctionRig(t *testing.T, dsn string) functionRig {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	store, err := pgxdb.New(pool, pgxdb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	box, err := outbox.New(store, outbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return functionRig{t, pool, box}
}

func (r functionRig) begin(level pgx.TxIsoLevel) pgx.Tx {
	r.Helper()
	tx, err := r.pool.BeginTx(context.WithoutCancel(r.Context()), pgx.TxOptions{IsoLevel: level})
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { tx.Rollback(context.Background()) })
	return tx
}

// drawEffect draws what is right, or wrong in one field or another.
func drawEffect(t *rapid.T) outbox.Effect {
	text := rapid.OneOf(
		rapid.SampledFrom([]string{"", "a", "a", "a", "b", " a", " ", "\t", "\u00a0", "\u2003\u3000", "\u200b", "*", `"<é€𝄞>&\`, "\x1b", "é"}),
		rapid.Map(rapid.SampledFrom([]int{63, 64, 65, 127, 128, 254, 255, 256}), func(n int) string { return strings.Repeat("x", n) }),
		rapid.Map(rapid.SampledFrom([]int{63, 64, 65, 127, 128}), func(n int) string { return strings.Repeat("é", n) }),
	)
	name := rapid.OneOf(rapid.Just("a"), rapid.Just("b"), text)
	e := outbox.Effect{
		Consumer: name.Draw(t, "consumer"), Target: name.Draw(t, "target"), Kind: name.Draw(t, "kind"), Key: name.Draw(t, "key"),
		OrderKey: rapid.OneOf(rapid.Just(""), text).Draw(t, "order key"), Tenant: rapid.OneOf(rapid.Just(""), text).Draw(t, "tenant"),
		Priority: rapid.Int16().Draw(t, "priority"),
		Payload:  make([]byte, rapid.SampledFrom([]int{0, 1, 9, 65536, 65537}).Draw(t, "payload")),
		Delay:    rapid.SampledFrom([]time.Duration{0, 0, 0, time.Microsecond, 36 * time.Hour, -time.Microsecond}).Draw(t, "delay"),
		MaxAge: rapid.SampledFrom([]time.Duration{
			0, 0, outbox.NoMaxAge, time.Microsecond, 90 * time.Minute, 36525 * 24 * time.Hour, 36525*24*time.Hour + time.Microsecond, -time.Second,
		}).Draw(t, "max age"),
		Metadata: rapid.MapOfN(rapid.OneOf(text, rapid.SampledFrom([]string{"traceparent", "baggage"})), text, 0, 4).Draw(t, "metadata"),
	}
	if rapid.IntRange(0, 4).Draw(t, "due") == 0 {
		e.DueAt = rapid.SampledFrom([]time.Time{
			time.Date(1999, 12, 31, 23, 59, 59, 0, time.UTC), time.Date(2001, 2, 3, 4, 5, 6, 7000, time.UTC),
			time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 0, 0, 0, 1000, time.UTC),
		}).Draw(t, "due at")
	}
	if rapid.IntRange(0, 9).Draw(t, "much metadata") == 0 {
		e.Metadata = map[string]string{}
		for i := range rapid.SampledFrom([]int{63, 64, 65}).Draw(t, "entries") {
			e.Metadata[strings.Repeat("n", 1+i)] = "v"
		}
	} else if rapid.IntRange(0, 9).Draw(t, "long metadata") == 0 {
		e.Metadata = map[string]string{"é": strings.Repeat("v", rapid.SampledFrom([]int{8189, 8190, 8191}).Draw(t, "bytes"))}
	}
	return e
}

// What the function refuses Go refuses, and the other way round; what it stores is what Go stores, in every column; and each takes the
// other's for a duplicate.
func TestFunctionIsEnqueue(t *testing.T) {
	t.Parallel()
	r := newFunctionRig(t, pgtest.New(t))
	ctx := t.Context()
	const rows = `SELECT (to_jsonb(m) - '{id,key,created_at,metadata}'::text[]) || (to_jsonb(q) - '{message_id,due_at,born_at,expires_at}'::text[])
			|| jsonb_build_object('entries', NULLIF(m.metadata, '')::jsonb, 'due', q.due_at - m.created_at, 'born', q.born_at - m.created_at,
				'expires', CASE WHEN m.max_age = 0 THEN q.expires_at::text ELSE (q.expires_at - q.due_at)::text END)
		FROM outbox.message AS m JOIN outbox.queue AS q ON q.message_id = m.id WHERE m.id = $1`
	rapid.Check(t, func(t *rapid.T) {
		e := drawEffect(t)
		tx := r.begin("")
		defer tx.Rollback(ctx)
		nested, err := tx.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		got, err := throughFunction(ctx, nested, e, false)
		if refused := r.box.Check(e); refused != nil {
			var invalid *pgconn.PgError
			if !errors.As(err, &invalid) || invalid.Code != "22023" || invalid.ColumnName == "" {
				t.Fatalf("Go refuses with %v, the function says %v", refused, err)
			}
			return
		}
		if err != nil || got.Status != "recorded" || got.State != "pending" {
			t.Fatalf("%+v, %v", got, err)
		}
		if again, err := r.box.Enqueue(ctx, pgxdb.Tx(tx), e); err != nil || again.Status != outbox.Duplicate || again.ID != got.ID {
			t.Fatalf("by Go after the function: %+v, %v", again, err)
		}

		other := e
		other.Key = "another key"
		receipt, err := r.box.Enqueue(ctx, pgxdb.Tx(tx), other)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := throughFunction(ctx, tx, other, false); err != nil || again.Status != "duplicate" || again.ID != receipt.ID {
			t.Fatalf("by the function after Go: %+v, %v", again, err)
		}
		var ours, theirs string
		if err := errors.Join(tx.QueryRow(ctx, rows, got.ID).Scan(&ours), tx.QueryRow(ctx, rows, receipt.ID).Scan(&theirs)); err != nil {
			t.Fatal(err)
		}
		if ours != theirs && (e.DueAt.IsZero() || !e.DueAt.After(time.Now())) { // a due time of its own is no distance from the statement
			t.Fatalf("stored by the function %s, by Go %s", ours, theirs)
		}

		other.Metadata = maps.Clone(e.Metadata)
		if other.Metadata == nil {
			other.Metadata = map[string]string{}
		}
		other.Payload = append(other.Payload[:len(other.Payload):len(other.Payload)], 'x')
		if len(other.Payload) > 65536 {
			return
		}
		if conflict, err := throughFunction(ctx, tx, other, true); err != nil || conflict.Status != "conflict" || conflict.ID != receipt.ID {
			t.Fatalf("other content: %+v, %v", conflict, err)
		}
	})
}

// What only the function can be given: null, JSON that is no object of strings, a trace, times without end.
func TestFunctionRefuses(t *testing.T) {
	t.Parallel()
	r := newFunctionRig(t, pgtest.New(t))
	const rest = "consumer => 'mail', target => 'smtp', kind => 'welcome', "
	for arguments, want := range map[string][2]string{
		rest + "key => NULL, payload => ''":                                    {"key", "key is null"},
		rest + "key => 'k', payload => NULL":                                   {"payload", "payload is null"},
		rest + "key => 'k', payload => '', tenant => NULL":                     {"tenant", "tenant is null"},
		rest + "key => 'k', payload => '', order_key => NULL":                  {"order_key", "order_key is null"},
		rest + "key => 'k', payload => '', metadata => NULL":                   {"metadata", "metadata is null"},
		rest + "key => 'k', payload => '', delay => NULL":                      {"delay", "delay is null"},
		rest + "key => 'k', payload => '', max_payload => 0":                   {"max_payload", "between 1 and 1048576"},
		rest + "key => 'k', payload => '', priority => 40000":                  {"priority", "between -32768 and 32767"},
		rest + "key => 'k', payload => '', metadata => '[1]'":                  {"metadata", "is not a JSON object"},
		rest + `key => 'k', payload => '', metadata => '{"a": 1}'`:             {"metadata", `metadata["a"] is not a string`},
		rest + `key => 'k', payload => '', metadata => '{"tracestate": "x"}'`:  {"metadata", "give it as trace"},
		rest + "key => 'k', payload => '', due_at => 'infinity'":               {"due_at", "between the years 2000 and 9999"},
		rest + "key => 'k', payload => '', delay => '3000000 years'::interval": {"delay", "longer than a million days"},
		rest + "key => 'k', payload => '', max_age => '101 years'":             {"max_age", "longer than 100 years"},
		rest + "key => 'k', payload => '', max_age => '-1 year 362 days'":      {"max_age", "is not positive"},
		rest + "key => ' ', payload => '', metadata => (SELECT jsonb_object_agg(i, '') FROM generate_series(1, 65) AS i)": {
			"key", "key is blank; metadata has 65 entries",
		},
		rest + "key => 'k', payload => '', max_age => '0'":                                          {"max_age", "NULL is none"},
		rest + "key => ' ', payload => '', tenant => '*', delay => '-1s'":                           {"tenant", "tenant is the wildcard *, which no name may be; key is blank; delay is negative: -00:00:01"},
		rest + "key => 'k', payload => decode(repeat('00', 70000), 'hex')":                          {"payload", "has 70000 bytes, at most 65536"},
		rest + "key => 'k', payload => decode(repeat('00', 90), 'hex'), max_payload => 80":          {"payload", "has 90 bytes, at most 80"},
		rest + "key => 'k', payload => '', allow_conflict => NULL":                                  {"allow_conflict", "is null"},
		"consumer => E'\\u00a0', target => '', kind => repeat('k', 200), key => 'k', payload => ''": {"consumer", "consumer is blank; target is blank; kind has 200 bytes"},
	} {
		_, err := r.pool.Exec(t.Context(), "SELECT outbox.enqueue("+arguments+")")
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || refused.Code != "22023" || refused.ColumnName != want[0] || !strings.Contains(refused.Message, want[1]) {
			t.Errorf("%s: %v, want column %s and %q", arguments, err, want[0], want[1])
		}
	}
	var messages int
	if err := r.pool.QueryRow(t.Context(), "SELECT count(*) FROM outbox.message").Scan(&messages); err != nil || messages != 0 {
		t.Errorf("%d messages, %v", messages, err)
	}
}

// The trace travels with the message, as far as it fits, and is no part of what makes a duplicate.
func TestFunctionKeepsTheTrace(t *testing.T) {
	t.Parallel()
	r := newFunctionRig(t, pgtest.New(t))
	const call = `SELECT status, (SELECT metadata FROM outbox.message) FROM outbox.enqueue('mail', 'smtp', 'welcome', 'k', 'p',
		metadata => '{"a": "b"}', trace => $1)`
	for _, trace := range []string{
		`{"traceparent": "00-1", "tracestate": "` + strings.Repeat("s", 2048) + `", "baggage": "b", "other": "x"}`, `"none"`, `["baggage"]`, `{"traceparent": 1}`, "{}",
	} {
		var status string
		if err := r.pool.QueryRow(t.Context(), "SELECT status FROM ("+call+") AS c (status, metadata)", trace).Scan(&status); err != nil {
			t.Fatal(err)
		}
	}
	var metadata string
	if err := r.pool.QueryRow(t.Context(), "SELECT metadata FROM outbox.message").Scan(&metadata); err != nil {
		t.Fatal(err)
	}
	var got map[string]string
	if err := json.Unmarshal([]byte(metadata), &got); err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"a": "b", "traceparent": "00-1", "baggage": "b"}; !maps.Equal(got, want) {
		t.Errorf("metadata %v, want %v", got, want)
	}
}

// A key taken by other content stops the transaction unless the caller asked not to, as Go's does not; it names the constraint.
func TestFunctionConflicts(t *testing.T) {
	t.Parallel()
	r := newFunctionRig(t, pgtest.New(t))
	ctx := t.Context()
	e := outbox.Effect{Consumer: "mail", Target: "smtp", Kind: "welcome", Key: "k", Payload: []byte("one")}
	tx := r.begin("")
	first, err := throughFunction(ctx, tx, e, false)
	if err != nil {
		t.Fatal(err)
	}

	// Another session waits for the first to end, and then sees what it stored.
	type answer struct {
		stored
		err error
	}
	waiting := make(chan answer, 1)
	other := r.begin("")
	go func() {
		e := e
		e.Payload = []byte("two")
		got, err := throughFunction(context.WithoutCancel(ctx), other, e, true)
		waiting <- answer{got, err}
	}()
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	got := <-waiting
	if got.err != nil || got.Status != "conflict" || got.ID != first.ID || got.State != "pending" {
		t.Errorf("%+v", got)
	}
	if again, err := throughFunction(ctx, other, e, false); err != nil || again != (stored{first.ID, "duplicate", "pending"}) {
		t.Errorf("the transaction goes on: %+v, %v", again, err)
	}

	e.Payload = []byte("three")
	_, err = throughFunction(ctx, other, e, false)
	var conflict *pgconn.PgError
	if !errors.As(err, &conflict) || conflict.Code != "23505" || conflict.ConstraintName != "message_key_unique" || conflict.Hint == "" {
		t.Errorf("conflict: %v", err)
	}
}

// Under REPEATABLE READ a concurrent duplicate cannot be seen, so the transaction is to be tried again.
func TestFunctionUnderRepeatableRead(t *testing.T) {
	t.Parallel()
	r := newFunctionRig(t, pgtest.New(t))
	ctx := t.Context()
	e := outbox.Effect{Consumer: "mail", Target: "smtp", Kind: "welcome", Key: "k"}
	tx := r.begin(pgx.RepeatableRead)
	if _, err := tx.Exec(ctx, "SELECT"); err != nil {
		t.Fatal(err)
	}
	first := r.begin("")
	if _, err := throughFunction(ctx, first, e, false); err != nil {
		t.Fatal(err)
	}
	if err := first.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	_, err := throughFunction(ctx, tx, e, false)
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "40001" {
		t.Errorf("%v", err)
	}
}

// A producer may, and nobody else but the owner; whatever the session's settings, and under another name of the schema.
func TestFunctionRights(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	as := pgtest.Roles(t, dsn)
	const call = "SELECT outbox.enqueue('mail', 'smtp', 'welcome', 'k', E'\\\\x01', metadata => '{\"a\": \"b\"}')"
	for _, role := range []string{"sender", "operator", "janitor", "viewer", "repair"} {
		_, err := newFunctionRig(t, as(role)).pool.Exec(t.Context(), call)
		var denied *pgconn.PgError
		if !errors.As(err, &denied) || denied.Code != "42501" {
			t.Errorf("%s: %v", role, err)
		}
	}
	pool := newFunctionRig(t, as("producer")).pool
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for _, setting := range []string{"SET search_path = ''", "SET bytea_output = 'escape'", "SET standard_conforming_strings = off", "SET DateStyle = 'German'", "SET TimeZone = 'Asia/Bangkok'"} {
		if _, err := conn.Exec(t.Context(), setting); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if _, err := conn.Exec(t.Context(), call); err != nil {
			t.Error(err)
		}
	}
}

// What stands under a key is found by index, also in a session that planned it on tables that were nearly empty.
func TestFunctionFindsDuplicatesByIndex(t *testing.T) {
	t.Parallel()
	pool := newFunctionRig(t, pgtest.New(t)).pool
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	const call = "SELECT outbox.enqueue('mail', 'smtp', 'welcome', 'k', '')"
	for _, statement := range []string{call, "VACUUM ANALYZE outbox.message, outbox.queue, outbox.settlement", call, "BEGIN", call} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	const count = "SELECT COALESCE(sum(seq_scan), 0), COALESCE(sum(idx_scan), 0) FROM pg_stat_xact_all_tables WHERE schemaname = 'outbox'"
	var whole, byIndex int
	if err := conn.QueryRow(t.Context(), count).Scan(&whole, &byIndex); err != nil || whole > 0 || byIndex == 0 {
		t.Errorf("%d scans of whole tables, %d of indexes, %v", whole, byIndex, err)
	}
}
