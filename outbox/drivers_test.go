package outbox_test

import (
	"context"
	"database/sql"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/dbtest"
	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/db/sqldb"
	"github.com/fencepost-go/fencepost/db/sqlitedb"
	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/schema"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// A database is one driver on a fresh database, as a producer and an operator use it.
type database struct {
	*testing.T
	box      *outbox.Box
	consumer *outbox.Consumer
	// begin opens a transaction at an isolation level; exec runs a statement of the caller's own in it.
	begin func(isolation string) transaction
	// exec runs a statement outside of any transaction of ours.
	exec func(query string)
	// beside ages the tables.
	beside dbtest.SQL
}

type transaction struct {
	tx               db.Tx
	exec             func(query string) error
	commit, rollback func() error
}

// onDrivers runs a test through pgx and through lib/pq.
func onDrivers(t *testing.T, test func(d *database)) {
	t.Helper()
	on(t, map[string]func(*database) db.Store{"pgx": openPgx, "lib/pq": openPq}, test)
}

// onStores is onDrivers with a file of SQLite too.
func onStores(t *testing.T, test func(d *database)) {
	t.Helper()
	onDrivers(t, test)
	on(t, map[string]func(*database) db.Store{"sqlite": openFile}, test)
}

func on(t *testing.T, drivers map[string]func(*database) db.Store, test func(d *database)) {
	t.Helper()
	for name, open := range drivers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &database{T: t}
			store := open(d)
			var err error
			if d.box, err = outbox.New(store, outbox.Config{MaxPayload: 1 << 20, Logger: slog.New(slog.DiscardHandler)}); err != nil {
				t.Fatal(err)
			}
			if d.consumer, err = d.box.Consumer("wallets", "ledger", outbox.Policy{}); err != nil {
				t.Fatal(err)
			}
			d.exec("CREATE TABLE business (id int)")
			test(d)
		})
	}
}

func openPgx(d *database) db.Store {
	pool, err := pgxpool.New(d.Context(), pgtest.New(d.T))
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(pool.Close)
	d.beside.DB = stdlib.OpenDBFromPool(pool)
	ctx := context.WithoutCancel(d.Context())
	d.exec = func(query string) {
		if _, err := pool.Exec(ctx, query); err != nil {
			d.Fatal(err)
		}
	}
	d.begin = func(isolation string) transaction {
		tx, err := pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.TxIsoLevel(isolation)})
		if err != nil {
			d.Fatal(err)
		}
		return transaction{
			tx:       pgxdb.Tx(tx),
			exec:     func(query string) error { _, err := tx.Exec(ctx, query); return err },
			commit:   func() error { return tx.Commit(ctx) },
			rollback: func() error { return tx.Rollback(ctx) },
		}
	}
	store, err := pgxdb.New(pool, pgxdb.Config{})
	if err != nil {
		d.Fatal(err)
	}
	return store
}

func openPq(d *database) db.Store {
	pool := d.open("postgres", pgtest.New(d.T), sqldb.Tx)
	store, err := sqldb.New(pool, sqldb.Config{})
	if err != nil {
		d.Fatal(err)
	}
	return store
}

// openFile has the application's transactions on a handle of its own, where they begin as readers. All of them are serializable.
func openFile(d *database) db.Store {
	path := filepath.Join(d.TempDir(), "outbox.db")
	store, err := sqlitedb.Open(path, sqlitedb.Config{Synchronous: sqlitedb.Normal}) // no power is lost
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { store.Close() })
	if err := schema.Up(d.Context(), store.DB(), schema.Config{Dialect: schema.SQLite}); err != nil {
		d.Fatal(err)
	}
	d.open("sqlite", path+"?_busy_timeout=10000", sqlitedb.Tx)
	d.beside.SQLite = true
	return store
}

// open has a pool of database/sql for what the application itself does.
func (d *database) open(driver, dsn string, asTx func(*sql.Tx) db.Tx) *sql.DB {
	d.Helper()
	pool, err := sql.Open(driver, dsn)
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { pool.Close() })
	d.beside.DB = pool
	d.exec = func(query string) {
		if _, err := pool.Exec(query); err != nil {
			d.Fatal(err)
		}
	}
	levels := map[string]sql.IsolationLevel{"read committed": sql.LevelReadCommitted, "repeatable read": sql.LevelRepeatableRead, "serializable": sql.LevelSerializable}
	d.begin = func(isolation string) transaction {
		tx, err := pool.BeginTx(context.WithoutCancel(d.Context()), &sql.TxOptions{Isolation: levels[isolation]})
		if err != nil {
			d.Fatal(err)
		}
		return transaction{
			tx:       asTx(tx),
			exec:     func(query string) error { _, err := tx.Exec(query); return err },
			commit:   tx.Commit,
			rollback: tx.Rollback,
		}
	}
	return pool
}

// enqueue stores effects in a transaction of their own.
func (d *database) enqueue(effects ...outbox.Effect) outbox.Receipts {
	d.Helper()
	tx := d.begin("read committed")
	receipts, err := d.box.EnqueueMany(d.Context(), tx.tx, effects)
	if err != nil {
		d.Fatal(err)
	}
	if err := tx.commit(); err != nil {
		d.Fatal(err)
	}
	return receipts
}

// lease leases what is due of kind charge.
func (d *database) lease() []outbox.Message {
	d.Helper()
	messages, err := d.box.Lease(d.Context(), d.consumer, outbox.LeaseRequest{Kinds: []string{"charge"}, Limit: 100, For: minute})
	if err != nil {
		d.Fatal(err)
	}
	return messages
}

func (d *database) show(id int64) outbox.Details {
	d.Helper()
	details, err := d.box.Show(d.Context(), outbox.Scope{}, id)
	if err != nil {
		d.Fatal(err)
	}
	return details
}

func charge(key string) outbox.Effect {
	return outbox.Effect{Consumer: "wallets", Target: "ledger", Kind: "charge", Key: key, Payload: []byte("payload of " + key)}
}
