package sender

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/lib/pq"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/dbtest"
	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/db/sqldb"
	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/internal/tables"
	"github.com/fencepost-go/fencepost/outbox"
)

// full says whether tests have the sizes and durations that their cases give; else they are scaled down.
var full = os.Getenv("FENCEPOST_FULL") != ""

func TestMain(m *testing.M) {
	if dsn := os.Getenv(childVariable); dsn != "" {
		os.Exit(childMain(dsn))
	}
	// Most tests wait for leases to end, so more of them than there are cores may run at once.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	pgtest.Main(m)
}

// A rig is a database of a test's own: of PostgreSQL, or a file of SQLite.
type rig struct {
	*testing.T
	dsn    string
	beside dbtest.SQL // to look at the tables and to age them, through connections of its own
}

func newRig(t *testing.T) *rig {
	t.Helper()
	t.Parallel()
	return rigOn(t, pgtest.New(t))
}

func rigOn(t *testing.T, dsn string) *rig {
	t.Helper()
	pool, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	return &rig{T: t, dsn: dsn, beside: dbtest.SQL{DB: pool}}
}

// onDrivers runs a test on a rig for each driver.
func onDrivers(t *testing.T, test func(*rig, driver)) {
	t.Helper()
	t.Parallel()
	t.Run("pgx", func(t *testing.T) { test(newRig(t), usePgx) })
	t.Run("lib pq", func(t *testing.T) { test(newRig(t), usePq) })
}

// onStores is onDrivers with a file of SQLite too.
func onStores(t *testing.T, test func(*rig, driver)) {
	t.Helper()
	onDrivers(t, test)
	onFile(t, test)
}

// onPgxAndFile is onStores for what does not depend on how statements reach PostgreSQL.
func onPgxAndFile(t *testing.T, test func(*rig, driver)) {
	t.Helper()
	t.Parallel()
	t.Run("pgx", func(t *testing.T) { test(newRig(t), usePgx) })
	onFile(t, test)
}

func onFile(t *testing.T, test func(*rig, driver)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(fileRig(t), useFile)
	})
}

// A setup is how a process is set up; zero fields take the usual.
type setup struct {
	dsn        string // the rig's
	conns      int    // 8
	policy     outbox.Policy
	listen     string           // DSN to listen on
	statements sqldb.Statements // lib pq only
	tracer     pgx.QueryTracer  // pgx only
	wrap       func(db.Store) db.Store
}

// A driver opens a pool as a process does and gives a store on it with a way to store effects and one to run a query.
type driver func(*rig, setup) (db.Store, inTx, query, begin)

type (
	inTx  func(ctx context.Context, box *outbox.Box, do func(db.Tx) error) error
	query func(ctx context.Context, text string, inTx bool) error
	begin func(testing.TB) (tx db.Tx, commit, rollback func() error)
)

func usePgx(r *rig, s setup) (db.Store, inTx, query, begin) {
	config, err := pgxpool.ParseConfig(s.dsn)
	if err != nil {
		r.Fatal(err)
	}
	config.MaxConns = int32(s.conns)
	config.ConnConfig.Tracer = s.tracer
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(pool.Close)
	var listen *pgx.ConnConfig
	if s.listen != "" {
		if listen, err = pgx.ParseConfig(s.listen); err != nil {
			r.Fatal(err)
		}
	}
	store, err := pgxdb.New(pool, pgxdb.Config{Listen: listen})
	if err != nil {
		r.Fatal(err)
	}
	return store, func(ctx context.Context, box *outbox.Box, do func(db.Tx) error) error {
			return pgxdb.InTx(ctx, pool, box, func(tx *pgxdb.BoxTx) error { return do(tx) })
		}, func(ctx context.Context, text string, inTx bool) error {
			if !inTx {
				_, err := pool.Exec(ctx, text)
				return err
			}
			return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, text)
				return err
			})
		}, func(t testing.TB) (db.Tx, func() error, func() error) {
			ctx := context.WithoutCancel(t.Context())
			tx, err := pool.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			return pgxdb.Tx(tx), func() error { return tx.Commit(ctx) }, func() error { return tx.Rollback(ctx) }
		}
}

func usePq(r *rig, s setup) (db.Store, inTx, query, begin) {
	pool, err := sql.Open("postgres", s.dsn)
	if err != nil {
		r.Fatal(err)
	}
	pool.SetMaxOpenConns(s.conns)
	pool.SetMaxIdleConns(s.conns)
	r.Cleanup(func() { pool.Close() })
	store, err := sqldb.New(pool, sqldb.Config{ListenDSN: s.listen, Statements: s.statements})
	if err != nil {
		r.Fatal(err)
	}
	return store, func(ctx context.Context, box *outbox.Box, do func(db.Tx) error) error {
			return sqldb.InTx(ctx, pool, box, func(tx *sqldb.BoxTx) error { return do(tx) })
		}, func(ctx context.Context, text string, inTx bool) error {
			if !inTx {
				_, err := pool.ExecContext(ctx, text)
				return err
			}
			tx, err := pool.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer tx.Rollback()
			if _, err := tx.ExecContext(ctx, text); err != nil {
				return err
			}
			return tx.Commit()
		}, func(t testing.TB) (db.Tx, func() error, func() error) {
			tx, err := pool.BeginTx(context.WithoutCancel(t.Context()), nil)
			if err != nil {
				t.Fatal(err)
			}
			return sqldb.Tx(tx), tx.Commit, tx.Rollback
		}
}

// A process is what one process of an application has: a pool, a box, a consumer and a log of its own.
type process struct {
	*rig
	store    db.Store
	box      *outbox.Box
	consumer *outbox.Consumer
	log      *logged
	inTx     inTx
	query    query
	begin    begin
	lost     atomic.Int32  // leases found lost
	handsOff *atomic.Int32 // inserts with leases, of a handingProcess

	mu      sync.Mutex
	retries []time.Duration // their delays
	burials []outbox.Burial
}

func (r *rig) process(use driver, s setup) *process {
	r.Helper()
	if s.dsn == "" {
		s.dsn = r.dsn
	}
	if s.conns == 0 {
		s.conns = 8
	}
	p := &process{rig: r, log: &logged{}}
	p.store, p.inTx, p.query, p.begin = use(r, s)
	if s.wrap != nil {
		p.store = s.wrap(p.store)
	}
	observer := &outbox.Observer{
		LeaseLost: func(context.Context, outbox.Message) { p.lost.Add(1) },
		Retried: func(_ context.Context, _ outbox.Message, _ outbox.Outcome, delay time.Duration) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.retries = append(p.retries, delay)
		},
		Dead: func(_ context.Context, burial outbox.Burial) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.burials = append(p.burials, burial)
		},
	}
	var err error
	if p.box, err = outbox.New(p.store, outbox.Config{Observer: observer, Logger: p.log.logger()}); err != nil {
		r.Fatal(err)
	}
	if p.consumer, err = p.box.Consumer("wallets", "ledger", s.policy); err != nil {
		r.Fatal(err)
	}
	return p
}

// settledLate counts the settles that came to nothing because the lease had ended: refused or, by a server that took longer than a third of
// the lease, not answered.
func (p *process) settledLate() int {
	return int(p.lost.Load()) + len(p.log.lines("settle was not answered"))
}

// counted gives how many retries and burials were reported.
func (p *process) counted() (retries, burials int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.retries), len(p.burials)
}

func (p *process) enqueue(effects ...outbox.Effect) []int64 {
	p.Helper()
	ids, err := p.tryEnqueue(effects)
	if err != nil {
		p.Fatal(err)
	}
	return ids
}

func (p *process) tryEnqueue(effects []outbox.Effect) (ids []int64, err error) {
	err = p.inTx(p.Context(), p.box, func(tx db.Tx) error {
		receipts, err := p.box.EnqueueMany(p.Context(), tx, effects)
		for _, receipt := range receipts {
			ids = append(ids, receipt.ID)
		}
		return err
	})
	return ids, err
}

func (p *process) sender(config Config) *Sender {
	p.Helper()
	if config.Poll == 0 {
		config.Poll = 100 * time.Millisecond
	}
	s, err := New(p.box, p.consumer, config)
	if err != nil {
		p.Fatal(err)
	}
	return s
}

// run runs a sender until stop, or the end of the test. stop gives what Run returned.
func (p *process) run(s *Sender) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	p.Cleanup(func() { _ = stop() })
	return stop
}

func (p *process) runOnce(s *Sender) Counts {
	p.Helper()
	counts, err := s.RunOnce(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	return counts
}

// patience bounds every wait of a test for an event; nothing is judged by it.
const patience = time.Minute

// eventually waits until something holds.
func (r *rig) eventually(what string, holds func() bool) {
	r.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.Fatalf("waited in vain: %s", what)
		}
	}
}

// stalls watches how long the machine and the database keep a trivial query waiting, until the function it gives is called, which answers
// with twenty times the worst. What a case bounds in seconds has that much more time on a busy machine.
func (r *rig) stalls() func() time.Duration {
	ctx, cancel := context.WithCancel(context.Background())
	r.Cleanup(cancel)
	worst := make(chan time.Duration, 1)
	go func() {
		longest := time.Duration(0)
		for ctx.Err() == nil {
			began := time.Now()
			_, _ = r.beside.DB.ExecContext(ctx, "SELECT 1")
			<-time.After(10 * time.Millisecond)
			longest = max(longest, time.Since(began)-10*time.Millisecond)
		}
		worst <- longest
	}()
	return func() time.Duration {
		cancel()
		return 20 * <-worst
	}
}

func receive[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(patience):
		t.Fatalf("waited in vain: %s", what)
		panic("unreachable")
	}
}

// row is the queue row of an open message.
func (r *rig) row(id int64) tables.Queue {
	r.Helper()
	queue := r.beside.Dump(r).Queue
	i := slices.IndexFunc(queue, func(q tables.Queue) bool { return q.MessageID == id })
	if i < 0 {
		r.Fatalf("message %d is not open", id)
	}
	return queue[i]
}

// outcomes counts settled messages by outcome.
func (r *rig) outcomes() map[string]int {
	r.Helper()
	outcomes := map[string]int{}
	for _, s := range r.beside.Dump(r).Settlements {
		outcomes[s.Outcome]++
	}
	return outcomes
}

func (r *rig) leases() (n int) {
	r.Helper()
	for _, q := range r.beside.Dump(r).Queue {
		if !q.LeasedUntil.Equal(db.Never) {
			n++
		}
	}
	return n
}

// version identifies a row's version: it differs as soon as any statement has changed the row.
func (r *rig) version(id int64) string { return r.versions([]int64{id})[0] }

func (r *rig) versions(ids []int64) []string {
	r.Helper()
	versions := make([]string, len(ids))
	for i, id := range ids {
		if r.beside.SQLite { // where a row has no version but what it holds
			versions[i] = fmt.Sprint(r.row(id))
			continue
		}
		err := r.beside.DB.QueryRowContext(r.Context(), `SELECT xmin::text || ' ' || ctid::text FROM outbox.queue WHERE message_id = $1`, id).Scan(&versions[i])
		if err != nil {
			r.Fatal(err)
		}
	}
	return versions
}

// prefixed is n effects whose keys begin alike.
func prefixed(prefix string, n int, change ...func(*outbox.Effect)) []outbox.Effect {
	effects := make([]outbox.Effect, n)
	for i := range effects {
		effects[i] = effect(fmt.Sprintf("%s %d", prefix, i), change...)
	}
	return effects
}

// calls counts handler calls by key.
type calls struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *calls) add(m outbox.Message) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[m.Key]++
	return c.n[m.Key]
}

func (c *calls) total() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	total := 0
	for _, n := range c.n {
		total += n
	}
	return total
}

// once fails the test unless each of the effects was performed exactly once, and nothing else.
func (c *calls) once(t testing.TB, effects []outbox.Effect) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range effects {
		if c.n[e.Key] != 1 {
			t.Errorf("%s was performed %d times", e.Key, c.n[e.Key])
		}
	}
	if len(c.n) != len(effects) {
		t.Errorf("performed %d different messages, want %d", len(c.n), len(effects))
	}
}
