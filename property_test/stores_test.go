package property_test

import (
	"context"
	"database/sql"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"
	"pgregory.net/rapid"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/dbtest"
	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/db/sqldb"
	"github.com/fencepost-go/fencepost/db/sqlitedb"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/schema"
)

func TestMain(m *testing.M) {
	if _, given := os.LookupEnv("RAPID_STEPS"); !given {
		flag.Set("rapid.steps", "60") // of one check, on average: enough for a message to live, die and come back
	}
	if _, given := os.LookupEnv("RAPID_CHECKS"); !given && os.Getenv("FENCEPOST_FULL") == "" {
		flag.Set("rapid.checks", "10") // make property runs more
	}
	pgtest.Main(m)
}

// A stage is an empty store with what a test does beside it.
type stage struct {
	store db.Store
	begin func(testing.TB) caller
	age   func(testing.TB, time.Duration)
	dump  func(testing.TB) dbtest.Dump
	// sql is a pool for the test's own statements; nil in memory.
	sql *sql.DB
	// oneFile says that the store is a file, in which one transaction writes at a time.
	oneFile bool
	// sent counts the operations that reached the store; nil where nobody counts.
	sent func() int
}

// table is the name of a table for the test's own statements.
func (s *stage) table(name string) string {
	if s.oneFile {
		return "outbox_" + name
	}
	return "outbox." + name
}

// A caller is a producer's open transaction.
type caller struct {
	db.Tx
	commit, rollback func() error
	// exec runs a statement of the producer's own in it; nil in memory.
	exec func(query string, args ...any) error
}

// A driver runs checks, each on an empty stage.
type driver struct {
	name       string
	open       func(*testing.T) func(*rapid.T, func(*rapid.T, *stage))
	savepoints bool
}

var drivers = []driver{
	{"memory", openMemory, false},
	{"pgx", func(t *testing.T) func(*rapid.T, func(*rapid.T, *stage)) { return openSQL(t, pgxStage) }, true},
	{"lib pq", func(t *testing.T) func(*rapid.T, func(*rapid.T, *stage)) { return openSQL(t, pqStage) }, true},
	{"sqlite", openFile, true},
}

// openMemory gives each check a store in a bubble, where only Age moves the clock.
func openMemory(*testing.T) func(*rapid.T, func(*rapid.T, *stage)) {
	return func(t *rapid.T, check func(*rapid.T, *stage)) {
		rapid.SyncTest(t, func(t *rapid.T) {
			time.Sleep(20 * 365 * 24 * time.Hour) // of the bubble's clock, which starts in 2000, before which no message may be created
			check(t, memoryStage())
		})
	}
}

func memoryStage() *stage {
	store := memdb.New(memdb.Config{})
	var sent atomic.Int64 // a law may call from several goroutines
	store.Hook(memdb.Hook{Before: func(context.Context, memdb.Call) error { sent.Add(1); return nil }})
	return &stage{
		store: store,
		begin: func(testing.TB) caller {
			tx := store.Begin()
			return caller{Tx: tx, commit: tx.Commit, rollback: tx.Rollback}
		},
		age:  func(_ testing.TB, d time.Duration) { store.Age(d) },
		dump: func(testing.TB) dbtest.Dump { return store.Dump() },
		sent: func() int { return int(sent.Load()) },
	}
}

// openSQL gives each check the same database, emptied.
func openSQL(t *testing.T, open func(*testing.T, string) *stage) func(*rapid.T, func(*rapid.T, *stage)) {
	dsn := pgtest.New(t)
	s := open(t, dsn)
	pool := openPool(t, dsn) // for the test's own statements, by the faster driver
	s.sql = stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { s.sql.Close() })
	return emptied(t, s)
}

// openFile gives each check the same file, emptied.
func openFile(t *testing.T) func(*rapid.T, func(*rapid.T, *stage)) {
	path := filepath.Join(t.TempDir(), "machine.db")
	open := func() *sqlitedb.Store {
		store, err := sqlitedb.Open(path, sqlitedb.Config{Synchronous: sqlitedb.Normal}) // no power is lost
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		return store
	}
	store, beside := open(), open()
	if err := schema.Up(t.Context(), store.DB(), schema.Config{Dialect: schema.SQLite}); err != nil {
		t.Fatal(err)
	}
	return emptied(t, &stage{store: store, begin: func(t testing.TB) caller { return beginSQL(t, store.DB(), sqlitedb.Tx) }, sql: beside.DB(), oneFile: true})
}

// emptied gives each check the stage with empty tables.
func emptied(t *testing.T, s *stage) func(*rapid.T, func(*rapid.T, *stage)) {
	beside := dbtest.SQL{DB: s.sql, SQLite: s.oneFile}
	s.age, s.dump = beside.Age, beside.Dump
	if s.oneFile {
		s.dump = func(t testing.TB) dbtest.Dump { tick(); return beside.Dump(t) }
	}
	if _, err := s.sql.Exec("CREATE TABLE business (message_id bigint)"); err != nil {
		t.Fatal(err)
	}
	return func(rt *rapid.T, check func(*rapid.T, *stage)) {
		beside.Reset(t)
		if _, err := s.sql.Exec("DELETE FROM business"); err != nil {
			t.Fatal(err)
		}
		check(rt, s)
	}
}

// tick waits for the next millisecond, the grain of a file's clock: a look at the tables then comes later than all it sees, as elsewhere.
func tick() {
	for at := time.Now().UnixMilli(); time.Now().UnixMilli() == at; {
		runtime.Gosched()
	}
}

func openPool(t *testing.T, dsn string) *pgxpool.Pool {
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func pgxStage(t *testing.T, dsn string) *stage {
	pool := openPool(t, dsn+"&pool_max_conns=24") // for as many callers side by side as a test has
	store, err := pgxdb.New(pool, pgxdb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return &stage{store: store, begin: func(t testing.TB) caller {
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return caller{
			Tx:       pgxdb.Tx(tx),
			commit:   func() error { return tx.Commit(t.Context()) },
			rollback: func() error { return tx.Rollback(t.Context()) },
			exec: func(query string, args ...any) error {
				_, err := tx.Exec(t.Context(), query, args...)
				return err
			},
		}
	}}
}

func pqStage(t *testing.T, dsn string) *stage {
	pool, err := sql.Open("postgres", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	pool.SetMaxIdleConns(16)
	store, err := sqldb.New(pool, sqldb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return &stage{store: store, begin: func(t testing.TB) caller { return beginSQL(t, pool, sqldb.Tx) }}
}

// beginSQL begins a producer's transaction through database/sql.
func beginSQL(t testing.TB, pool *sql.DB, handle func(*sql.Tx) db.Tx) caller {
	tx, err := pool.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return caller{
		Tx: handle(tx), commit: tx.Commit, rollback: tx.Rollback,
		exec: func(query string, args ...any) error {
			_, err := tx.ExecContext(t.Context(), query, args...)
			return err
		},
	}
}
