package ledger_test

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/lib/pq"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/db/sqldb"
	"github.com/fencepost-go/fencepost/db/sqlitedb"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/ledger"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/schema"
)

// patience is how long a test waits for what must come.
const patience = time.Minute

func TestMain(m *testing.M) {
	if dsn := os.Getenv(childVariable); dsn != "" {
		os.Exit(childMain(dsn))
	}
	pgtest.Main(m)
}

// A rig is a ledger on an empty store.
type rig struct {
	*testing.T
	*ledger.Ledger
	dsn string // what a child process opens; "" in memory
}

// onStores runs a test in memory and on every driver.
func onStores(t *testing.T, test func(*rig)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		test(newRig(t, memdb.New(memdb.Config{}), "", ledger.Config{Hold: time.Second}))
	})
	onDrivers(t, test)
}

func onDrivers(t *testing.T, test func(*rig)) {
	t.Helper()
	for name, open := range map[string]func(*testing.T) (db.Store, string){"pgx": openPgx, "lib-pq": openPq, "sqlite": openSQLite} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, dsn := open(t)
			test(newRig(t, store, dsn, ledger.Config{Hold: time.Second}))
		})
	}
}

func newRig(t testing.TB, store db.Store, dsn string, config ledger.Config) *rig {
	t.Helper()
	l, err := newLedger(store, config)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{Ledger: l, dsn: dsn}
	r.T, _ = t.(*testing.T)
	return r
}

func newLedger(store db.Store, config ledger.Config) (*ledger.Ledger, error) {
	box, err := outbox.New(store, outbox.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	return ledger.New(box, config)
}

func openPgx(t *testing.T) (db.Store, string) {
	dsn := pgtest.New(t) + "&pool_max_conns=8"
	pool, err := pgxpool.New(context.WithoutCancel(t.Context()), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	store, err := pgxdb.New(pool, pgxdb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return store, dsn
}

func openPq(t *testing.T) (db.Store, string) {
	dsn := pgtest.New(t)
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
	return store, dsn
}

func openSQLite(t *testing.T) (db.Store, string) {
	path := filepath.Join(t.TempDir(), "shop.db")
	store, err := sqlitedb.Open(path, sqlitedb.Config{Synchronous: sqlitedb.Normal})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	if err := schema.Up(t.Context(), store.DB(), schema.Config{Dialect: schema.SQLite}); err != nil {
		t.Fatal(err)
	}
	return store, path
}

// in runs a call in a transaction that commits.
func (r *rig) in(call func(tx db.Tx) error) error {
	return r.InTx(r.Context(), call)
}

// A verb is Claim or Take of a ledger.
type verb = func(context.Context, db.Tx, ledger.Request) (ledger.Result, error)

// try claims or takes in a transaction that commits, even if the key is taken by other content.
func (r *rig) try(do verb, request ledger.Request) (result ledger.Result, err error) {
	committed := r.in(func(tx db.Tx) error {
		result, err = do(r.Context(), tx, request)
		if errors.Is(err, ledger.ErrConflict) {
			return nil
		}
		return err
	})
	if err == nil {
		err = committed
	}
	return result, err
}

// must is try that must end in a status.
func (r *rig) must(do verb, request ledger.Request, want ledger.Status) ledger.Result {
	r.Helper()
	result, err := r.try(do, request)
	if result.Status != want {
		r.Fatalf("%q: %s, %v; want %s", request.Key, result.Status, err, want)
	}
	if (err != nil) != (want == ledger.Conflicted) || err != nil && !errors.Is(err, ledger.ErrConflict) {
		r.Fatalf("%q: %s with %v", request.Key, result.Status, err)
	}
	return result
}

// many runs a verb from many goroutines and gives the claims of those that won, and how many others had each status.
func (r *rig) many(n int, do verb, request ledger.Request) (won []ledger.Claim, others map[ledger.Status]int) {
	r.Helper()
	others = map[ledger.Status]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			result, err := r.try(do, request)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				r.Error(err)
			case result.Status == ledger.Claimed:
				won = append(won, result.Claim)
			default:
				others[result.Status]++
			}
		})
	}
	all.Wait()
	return won, others
}

// over waits until a claim's time is out.
func (r *rig) over(request ledger.Request) {
	r.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		standing := r.standing(request)
		if standing.Over {
			return
		}
		if time.Now().After(deadline) {
			r.Fatalf("not over: %+v", standing)
		}
	}
}

func (r *rig) standing(request ledger.Request) ledger.Standing {
	r.Helper()
	standing, err := r.Find(r.Context(), request.Tenant, request.Scope, request.Key)
	if err != nil {
		r.Fatal(err)
	}
	return standing
}

func request(key string) ledger.Request {
	return ledger.Request{Tenant: "acme", Scope: "payments", Key: key, Digest: ledger.DigestOf([]byte("content of " + key))}
}

// changed is a request with other content.
func changed(r ledger.Request) ledger.Request {
	r.Digest = ledger.DigestOf([]byte("other"))
	return r
}
