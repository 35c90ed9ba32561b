package events_test

import (
	"context"
	"database/sql"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/db/sqldb"
	"github.com/fencepost-go/fencepost/db/sqlitedb"
	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/schema"
)

// A rig is a store on a fresh database.
type rig struct {
	*testing.T
	store db.Store
	box   *outbox.Box
	// handler makes a handler of a bus that writes (its name, the event's id) into the table handled, in the driver's own transaction.
	handler func(name string) events.HandlerFunc
	// beside is a pool for statements of the test's own; dsn is what a child process opens. Neither is there in memory.
	beside *sql.DB
	dsn    string
}

// onMemory is a rig in memory.
func onMemory(t *testing.T) (*rig, *memdb.Store) {
	t.Helper()
	store := memdb.New(memdb.Config{})
	return newRig(t, store), store
}

// onDrivers runs a test on every driver.
func onDrivers(t *testing.T, test func(*rig)) {
	t.Helper()
	for name, open := range map[string]func(*testing.T) *rig{"pgx": openPgx, "lib-pq": openPq, "sqlite": openSQLite} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := open(t)
			r.exec("CREATE TABLE handled (handler text NOT NULL, event text NOT NULL)")
			test(r)
		})
	}
}

func newRig(t *testing.T, store db.Store) *rig {
	t.Helper()
	box, err := outbox.New(store, outbox.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return &rig{T: t, store: store, box: box}
}

const insertHandled = "INSERT INTO handled (handler, event) VALUES ($1, $2)"

func openPgx(t *testing.T) *rig { return pgxRig(t, pgtest.New(t)) }

func pgxRig(t *testing.T, dsn string) *rig {
	pool, err := pgxpool.New(context.WithoutCancel(t.Context()), dsn+"&pool_max_conns=8")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	store, err := pgxdb.New(pool, pgxdb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, store)
	r.dsn, r.beside, r.handler = dsn, stdlib.OpenDBFromPool(pool), pgxHandler
	return r
}

func pgxHandler(name string) events.HandlerFunc {
	return pgxdb.EventHandler(func(ctx context.Context, tx pgx.Tx, e events.Event) error {
		_, err := tx.Exec(ctx, insertHandled, name, e.ID)
		return err
	})
}

func openPq(t *testing.T) *rig { return pqRig(t, pgtest.New(t)) }

func pqRig(t *testing.T, dsn string) *rig {
	pool, err := sql.Open("postgres", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	pool.SetMaxOpenConns(8)
	pool.SetMaxIdleConns(8)
	store, err := sqldb.New(pool, sqldb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, store)
	r.dsn, r.beside, r.handler = dsn, pool, func(name string) events.HandlerFunc {
		return sqldb.EventHandler(func(ctx context.Context, tx *sql.Tx, e events.Event) error {
			_, err := tx.ExecContext(ctx, insertHandled, name, e.ID)
			return err
		})
	}
	return r
}

func openSQLite(t *testing.T) *rig {
	path := filepath.Join(t.TempDir(), "shop.db")
	store, err := sqlitedb.Open(path, sqlitedb.Config{Synchronous: sqlitedb.Normal})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	if err := schema.Up(t.Context(), store.DB(), schema.Config{Dialect: schema.SQLite}); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, store)
	r.dsn, r.beside, r.handler = path, store.DB(), sqliteHandler
	return r
}

func sqliteHandler(name string) events.HandlerFunc {
	return sqlitedb.EventHandler(func(ctx context.Context, tx *sql.Tx, e events.Event) error {
		_, err := tx.ExecContext(ctx, insertHandled, name, e.ID)
		return err
	})
}

// table is the name of one of the store's tables.
func (r *rig) table(name string) string {
	if strings.HasSuffix(r.dsn, ".db") {
		return "outbox_" + name
	}
	return "outbox." + name
}

func (r *rig) exec(statement string) {
	r.Helper()
	if _, err := r.beside.ExecContext(r.Context(), statement); err != nil {
		r.Fatal(err)
	}
}

// handled counts what the handlers have committed.
func (r *rig) handled() map[[2]string]int {
	r.Helper()
	rows, err := r.beside.QueryContext(r.Context(), "SELECT handler, event FROM handled")
	if err != nil {
		r.Fatal(err)
	}
	defer rows.Close()
	counts := map[[2]string]int{}
	for rows.Next() {
		var row [2]string
		if err := rows.Scan(&row[0], &row[1]); err != nil {
			r.Fatal(err)
		}
		counts[row]++
	}
	if err := rows.Err(); err != nil {
		r.Fatal(err)
	}
	return counts
}

func (r *rig) log(config events.Config) *events.Log {
	r.Helper()
	l, err := events.New(r.box, config)
	if err != nil {
		r.Fatal(err)
	}
	return l
}

// append appends events in a transaction that commits.
func (r *rig) append(l *events.Log, given ...events.Event) (receipts []events.Receipt) {
	r.Helper()
	err := r.store.Transact(r.Context(), func(tx db.Tx) (err error) {
		receipts, err = l.Append(r.Context(), tx, given...)
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
	return receipts
}

// leased leases every due message of a consumer.
func (r *rig) leased(consumer, target string, kinds ...string) []outbox.Message {
	r.Helper()
	c, err := r.box.Consumer(consumer, target, outbox.Policy{})
	if err != nil {
		r.Fatal(err)
	}
	messages, err := r.box.Lease(r.Context(), c, outbox.LeaseRequest{Kinds: kinds, Scope: outbox.AllTenants, Limit: 100, For: time.Minute})
	if err != nil {
		r.Fatal(err)
	}
	return messages
}
