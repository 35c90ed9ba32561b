package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/sqlitedb"
	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/outbox"
)

// hostile is text that would clear a terminal, recolour it and reverse the line.
const hostile = "\x1b[2J\x1b[31mred\u202e\u009b2J\x00"

// fixture is a database with one message of most states.
type fixture struct {
	dsn  string
	on   *database
	box  *outbox.Box
	pool *pgxpool.Pool // on PostgreSQL
	file *sql.DB       // on SQLite
}

var operator = outbox.By{Actor: "fixture", Reason: "a test"}

// onEach runs a test on both kinds of database, with one golden.
func onEach(t *testing.T, test func(*testing.T, fixture)) {
	t.Helper()
	t.Parallel()
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		test(t, openFixture(t, pgtest.New(t)))
	})
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(t, openFileFixture(t))
	})
}

// newFixture fills a database: 1 and 2 pending, 3 deferred, 4 delivered, 5 dead, 6 parked, 7 cancelled, 8 leased, 9 dead; the kind mail
// is paused.
func newFixture(t *testing.T) fixture {
	t.Helper()
	f := openFixture(t, pgtest.New(t))
	f.fill(t)
	return f
}

func (f fixture) fill(t *testing.T) {
	t.Helper()
	f.enqueue(t,
		outbox.Effect{Kind: "charge", Key: "order-1"},
		outbox.Effect{Kind: "mail", Key: "order-2", Tenant: "acme"},
		outbox.Effect{Kind: "charge", Key: "order-3", Delay: time.Hour},
		outbox.Effect{Kind: "ship", Key: "order-4", Payload: []byte("{\"sku\": 7}\n" + hostile[:12]), Metadata: map[string]string{"trace": "t\t1"}},
		outbox.Effect{Kind: "ship", Key: "order-5\n\u202e", Payload: []byte{0xff, 0, 1}},
		outbox.Effect{Kind: "ship", Key: "order-6"},
		outbox.Effect{Kind: "gift", Key: "order-7"},
		outbox.Effect{Kind: "pack", Key: "order-8"},
		outbox.Effect{Kind: "wrap", Key: "order-9", OrderKey: "customer-1", MaxAge: time.Hour, SourcePosition: 3, SourceEventID: "e-3"},
	)
	shop := f.consumer(t)
	outcomes := []outbox.Outcome{
		outbox.DeliveredWith("receipt 77"),
		outbox.Failed(outbox.Permanent(errors.New("refused:\x1b[31m no such address"))),
		outbox.Failed(outbox.Unknown(errors.New("timed out"))),
	}
	for i, m := range f.lease(t, shop, "ship") {
		if _, err := f.box.Settle(t.Context(), shop, outbox.AllTenants, m, outcomes[i]); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range f.lease(t, shop, "wrap") {
		if _, err := f.box.Settle(t.Context(), shop, outbox.AllTenants, m, outbox.Failed(outbox.Moot(errors.New("order was cancelled")))); err != nil {
			t.Fatal(err)
		}
	}
	f.lease(t, shop, "pack")
	if _, err := f.box.Cancel(t.Context(), outbox.AllTenants, []int64{7}, operator); err != nil {
		t.Fatal(err)
	}
	mail := outbox.LanePattern{Consumer: outbox.Any, Target: outbox.Any, Kind: "mail", Tenant: outbox.Any}
	if _, err := f.box.Pause(t.Context(), outbox.AllTenants, mail, outbox.PauseCancel, operator); err != nil {
		t.Fatal(err)
	}
}

// pools are those that sharePool opened, by connection string.
var pools sync.Map

func init() {
	alone := openPool
	openPool = func(ctx context.Context, config *pgxpool.Config) (*pgxpool.Pool, func(), error) {
		if pool, ok := pools.Load(config.ConnString()); ok {
			return pool.(*pgxpool.Pool), func() {}, nil
		}
		return alone(ctx, config)
	}
}

// sharePool opens a pool that all commands of a connection string share until the test ends: most of what a short command costs is its connection.
func sharePool(t *testing.T, dsn string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 20 // of several commands
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	pools.Store(dsn, pool)
	t.Cleanup(func() {
		pools.Delete(dsn)
		pool.Close()
	})
	return pool
}

func openFixture(t *testing.T, dsn string) fixture {
	t.Helper()
	f := fixture{dsn: dsn, pool: sharePool(t, dsn)}
	f.open(t)
	return f
}

// openFileFixture makes a file of SQLite with tables.
func openFileFixture(t *testing.T) fixture {
	t.Helper()
	f := fixture{dsn: filePrefix + filepath.Join(t.TempDir(), "shop.db")}
	if r := command(t, "migrate", "--dsn", f.dsn); r.code != exitOK {
		t.Fatal(r.stderr)
	}
	f.open(t)
	f.file = f.on.store.(*sqlitedb.Store).DB()
	return f
}

func (f *fixture) open(t *testing.T) {
	t.Helper()
	var err error
	if f.on, err = (&connection{dsn: f.dsn, schema: "outbox"}).open(context.Background(), "fixture"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.on.close)
	if f.box, err = outbox.New(f.on.store, outbox.Config{Logger: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
}

func (f fixture) enqueue(t *testing.T, effects ...outbox.Effect) {
	t.Helper()
	for i := range effects {
		effects[i].Consumer, effects[i].Target = "shop", "warehouse"
	}
	err := f.on.inTx(t.Context(), f.box, func(tx db.Tx) error {
		_, err := f.box.EnqueueMany(t.Context(), tx, effects)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (f fixture) consumer(t *testing.T) *outbox.Consumer {
	t.Helper()
	consumer, err := f.box.Consumer("shop", "warehouse", outbox.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	return consumer
}

// lease leases all due messages of a kind, in order of id.
func (f fixture) lease(t *testing.T, consumer *outbox.Consumer, kind string) []outbox.Message {
	t.Helper()
	worker, err := f.box.RegisterWorker(t.Context(), "worker-1", "host")
	if err != nil {
		t.Fatal(err)
	}
	pass, err := f.box.LeaseLanes(t.Context(), outbox.LeasePlan{
		Consumer: consumer, Worker: worker, Scope: outbox.AllTenants, For: 10 * time.Minute,
		Lanes: []outbox.PlannedLane{{Lane: outbox.Lane{Kind: kind}}}, Quota: 100, Limit: 100,
	})
	if err != nil {
		t.Fatal(err)
	}
	return pass.Messages
}

// sql does what no command does: lets time pass, kills, looks.
func (f fixture) sql(t *testing.T, statement string, args ...any) {
	t.Helper()
	var err error
	if f.file != nil {
		_, err = f.file.ExecContext(t.Context(), inFile.Replace(statement), args...)
	} else {
		_, err = f.pool.Exec(t.Context(), statement, args...)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// inFile puts the tests' SQL into what SQLite takes.
var inFile = strings.NewReplacer("outbox.", "outbox_", "interval '1 d'", "86400000000", "interval '2 h'", "7200000000",
	"clock_timestamp()", "CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER) * 1000")

// rows reads rows as text, one a line.
func (f fixture) rows(t *testing.T, query string, args ...any) string {
	t.Helper()
	if f.file != nil {
		return f.fileRows(t, inFile.Replace(query), args...)
	}
	rows, err := f.pool.Query(t.Context(), query, args...)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

func (f fixture) fileRows(t *testing.T, query string, args ...any) string {
	t.Helper()
	rows, err := f.file.QueryContext(t.Context(), query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var lines []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

// dump is everything in the tables.
func (f fixture) dump(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, table := range []string{"message", "queue", "settlement", "order_lease", "worker", "pause", "audit", "event", "incarnation", "reader", "claim", "credential", "credential_scope"} {
		all.WriteString(table + "\n" + f.rows(t, "SELECT x::text FROM outbox."+table+" AS x ORDER BY 1") + "\n")
	}
	return all.String()
}

// audits are what operators did after the fixture was filled.
func (f fixture) audits(t *testing.T) string {
	t.Helper()
	return f.rows(t, `SELECT concat_ws('|', message_id, action, tenant, actor, reason, detail) FROM outbox.audit
		WHERE actor <> $1 ORDER BY id`, operator.Actor)
}

// bury makes every open message of a kind die, in no time.
func (f fixture) bury(t *testing.T, kind, cause string) {
	t.Helper()
	f.sql(t, `WITH gone AS (DELETE FROM outbox.queue WHERE kind = $1 RETURNING message_id)
		INSERT INTO outbox.settlement (message_id, outcome, cause, reason, attempt, epoch, replays)
		SELECT message_id, 'dead', $2, 'no answer', 12, 12, 0 FROM gone`, kind, cause)
}

// many enqueues n effects of a kind.
func (f fixture) many(t *testing.T, kind string, n int) {
	t.Helper()
	effects := make([]outbox.Effect, n)
	for i := range effects {
		effects[i] = outbox.Effect{Kind: kind, Key: fmt.Sprintf("%s-%d", kind, i)}
	}
	f.enqueue(t, effects...)
}
