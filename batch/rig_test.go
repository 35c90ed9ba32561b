package batch_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/lib/pq"

	"github.com/fencepost-go/fencepost/batch"
	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/db/sqldb"
	"github.com/fencepost-go/fencepost/db/sqlitedb"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/schema"
	"github.com/fencepost-go/fencepost/sender"
)

func TestMain(m *testing.M) {
	if dsn := os.Getenv(childVariable); dsn != "" {
		os.Exit(childMain(dsn))
	}
	pgtest.Main(m)
}

// A rig is batches on an empty store.
type rig struct {
	*testing.T
	*batch.Batches
	store  db.Store
	dsn    string  // what a child process opens; "" in memory
	beside *sql.DB // another way to the same tables; nil in memory
}

// onStores runs a test in memory and on every driver.
func onStores(t *testing.T, test func(*rig)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		test(newRig(t, memdb.New(memdb.Config{})))
	})
	onDrivers(t, []string{"pgx", "lib-pq", "sqlite"}, test)
}

func onDrivers(t *testing.T, names []string, test func(*rig)) {
	t.Helper()
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(map[string]func(*testing.T) *rig{"pgx": openPgx, "lib-pq": openPq, "sqlite": openSQLite}[name](t))
		})
	}
}

func newRig(t *testing.T, store db.Store) *rig {
	t.Helper()
	b, err := newBatches(store, batch.Config{Chunk: 3})
	if err != nil {
		t.Fatal(err)
	}
	return &rig{T: t, Batches: b, store: store}
}

func newBatches(store db.Store, config batch.Config) (*batch.Batches, error) {
	box, err := outbox.New(store, outbox.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	return batch.New(box, config)
}

func openPgx(t *testing.T) *rig { return openPgxAt(t, pgtest.New(t)+"&pool_max_conns=8") }

func openPgxAt(t *testing.T, dsn string) *rig {
	pool, err := pgxpool.New(context.WithoutCancel(t.Context()), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	store, err := pgxdb.New(pool, pgxdb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, store)
	r.dsn, r.beside = dsn, openBeside(t, strings.Replace(dsn, "&pool_max_conns=8", "", 1))
	return r
}

func openBeside(t *testing.T, dsn string) *sql.DB {
	pool, err := sql.Open("postgres", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	pool.SetMaxOpenConns(8)
	pool.SetMaxIdleConns(8)
	return pool
}

func openPq(t *testing.T) *rig {
	dsn := pgtest.New(t)
	pool := openBeside(t, dsn)
	store, err := sqldb.New(pool, sqldb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, store)
	r.dsn, r.beside = dsn, pool
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
	r.dsn, r.beside = path, store.DB()
	return r
}

var by = outbox.By{Actor: "ann", Reason: "a test"}

// spec is that of the tests' batches: its end records an effect for "books".
func spec() batch.Spec {
	return batch.Spec{
		Tenant: "acme", Consumer: "invites", Target: "mail", Kind: "invite", Key: "may",
		OnComplete: &outbox.Effect{Consumer: "books", Target: "ledger", Kind: "close", Key: "close-may", Payload: []byte("p"), Metadata: map[string]string{"a": "b"}},
	}
}

// text is n rows of an object each.
func text(n int) string {
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, "{\"n\": %d}\n", i+1)
	}
	return lines.String()
}

// create makes a batch of lines.
func (r *rig) create(spec batch.Spec, text string) (batch.Receipt, error) {
	r.Helper()
	return r.Create(r.Context(), spec, objects(r).Reader(strings.NewReader(text)))
}

func (r *rig) mustCreate(spec batch.Spec, text string, want batch.Receipt) int64 {
	r.Helper()
	got, err := r.create(spec, text)
	id := got.ID
	if got.ID = 0; err != nil || got != want || id == 0 {
		r.Fatalf("%+v, %v, want %+v", got, err, want)
	}
	return id
}

// perform runs a sender until nothing is due any more. Rows of the numbers fail for good.
func (r *rig) perform(failing ...int) {
	r.Helper()
	consumer, err := r.Box().Consumer("invites", "mail", outbox.Policy{})
	if err != nil {
		r.Fatal(err)
	}
	handler := batch.Handler(objects(r), func(_ context.Context, row batch.Row[map[string]any]) (string, error) {
		for _, n := range failing {
			if n == row.Number {
				return "", outbox.Permanent(errors.New("no such address"))
			}
		}
		return fmt.Sprintf("mail-%d", row.Number), nil
	})
	s, err := sender.New(r.Box(), consumer, sender.Config{Scope: outbox.AllTenants, Handlers: sender.Handlers{"invite": handler}})
	if err != nil {
		r.Fatal(err)
	}
	for {
		report, err := s.RunOnce(r.Context())
		if err != nil {
			r.Fatal(err)
		}
		if report.Leased == 0 {
			return
		}
	}
}

// progress is how a batch stands, as text: its counts by fate, and whether it is sealed and completed.
func (r *rig) progress(id int64) string {
	r.Helper()
	p, err := r.Progress(r.Context(), outbox.AllTenants, id)
	if err != nil {
		r.Fatal(err)
	}
	return standing(p)
}

func standing(p batch.Progress) string {
	text := fmt.Sprintf("run %d: %d = %d open + %d delivered + %d dead + %d cancelled + %d expired + %d rejected",
		p.Run, p.Total, p.Open, p.Delivered, p.Dead, p.Cancelled, p.Expired, p.Rejected)
	if p.Sealed() {
		text += ", sealed"
	}
	if p.Completed() {
		text += ", completed"
	}
	return text
}

func (r *rig) stands(id int64, want string) {
	r.Helper()
	if got := r.progress(id); got != want {
		r.Errorf("\n got %s\nwant %s", got, want)
	}
}

// ends gives the keys of the effects at the end of batches.
func (r *rig) ends() (keys []string) {
	r.Helper()
	page, err := r.Box().List(r.Context(), outbox.AllTenants, outbox.ListQuery{Filter: outbox.Filter{Consumer: "books"}, Limit: 100})
	if err != nil {
		r.Fatal(err)
	}
	for _, m := range page.Messages {
		keys = append(keys, m.Key)
	}
	return keys
}

// rows gives the rows of a batch as text.
func (r *rig) rows(id int64, query batch.RowsQuery) (all []string) {
	r.Helper()
	rows, err := r.ListRows(r.Context(), outbox.AllTenants, id, query)
	if err != nil {
		r.Fatal(err)
	}
	for _, row := range rows {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%d %s %s %s %s%s", row.Number, row.Fate, row.State, row.Key, row.Reason, row.Result)))
	}
	return all
}
