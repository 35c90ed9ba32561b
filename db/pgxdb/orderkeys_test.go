package pgxdb_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/internal/pgtest"
)

// Messages of one order key never run side by side: six producers that commit late and out of order, six workers, one in twenty dead, half
// of the dead replayed meanwhile. 30 s for each number of keys in the full run, 3 s else, and on a busy machine until enough has happened.
func TestOrderKeysNeverOverlap(t *testing.T) {
	t.Parallel()
	for _, keys := range []int{1, 5} {
		t.Run(fmt.Sprintf("%d keys", keys), func(t *testing.T) {
			t.Parallel()
			s := newOrderStress(t, keys)
			s.run(t)
			if n := s.overlaps.Load(); n != 0 {
				t.Errorf("%d overlaps in %d settles", n, s.settled.Load())
			}
			if !s.enough() {
				t.Errorf("too little traffic: settled %d, died %d, replayed %d", s.settled.Load(), s.died.Load(), s.replayed.Load())
			}
			for what, query := range map[string]string{
				"open messages":            "SELECT count(*) FROM outbox.queue",
				"order leases left behind": "SELECT count(*) FROM outbox.order_lease",
				"messages without an end":  "SELECT count(*) FROM outbox.message m LEFT JOIN outbox.settlement s ON s.message_id = m.id WHERE s.message_id IS NULL",
			} {
				var n int
				if err := s.pool.QueryRow(t.Context(), query).Scan(&n); err != nil {
					t.Fatal(err)
				}
				if n != 0 {
					t.Errorf("%s: %d", what, n)
				}
			}
			t.Logf("settled %d, died %d, replayed %d", s.settled.Load(), s.died.Load(), s.replayed.Load())
		})
	}
}

type orderStress struct {
	pool                              *pgxpool.Pool
	store                             *pgxdb.Store
	keys                              int
	running                           []atomic.Int64 // the message that runs under each key
	overlaps, settled, died, replayed atomic.Int64
	dead                              chan int64
	produced                          sync.WaitGroup
	stopped                           chan struct{}
}

func newOrderStress(t *testing.T, keys int) *orderStress {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), pgtest.New(t)+"&pool_max_conns=14")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	store, err := pgxdb.New(pool, pgxdb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return &orderStress{pool: pool, store: store, keys: keys, running: make([]atomic.Int64, keys), dead: make(chan int64, 1<<16), stopped: make(chan struct{})}
}

func (s *orderStress) run(t *testing.T) {
	length := 3 * time.Second
	if os.Getenv("FENCEPOST_FULL") != "" {
		length = 30 * time.Second
	}
	began := time.Now()
	over := func() bool {
		passed := time.Since(began)
		return passed > length && s.enough() || passed > length+time.Minute
	}
	var workers sync.WaitGroup
	for range 6 {
		s.produced.Go(func() { s.produce(t, over) })
		workers.Go(func() { s.work(t) })
	}
	s.produced.Go(func() { s.replay(t, over) })
	s.produced.Wait()
	close(s.stopped)
	workers.Wait()
}

// enough says whether there was traffic that could have shown an overlap.
func (s *orderStress) enough() bool {
	return s.settled.Load() >= 100 && s.died.Load() > 0 && s.replayed.Load() > 0
}

// produce enqueues one to three messages of one key a transaction and commits them up to 8 ms later.
func (s *orderStress) produce(t *testing.T, over func() bool) {
	for !over() {
		err := pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
			count := 1 + mathrand.IntN(3)
			p := enqueueParams(count, fmt.Sprintf("o%d", mathrand.IntN(s.keys)))
			if _, err := s.store.Enqueue(t.Context(), pgxdb.Tx(tx), p); err != nil {
				return err
			}
			_, err := tx.Exec(t.Context(), "SELECT pg_sleep($1)", mathrand.Float64()*0.008)
			return err
		})
		if err != nil {
			t.Error(err)
			return
		}
		// Let the workers keep up: an ordered key runs one message at a time.
		var open int
		for open = 1 << 20; open > 300 && !over(); {
			if err := s.pool.QueryRow(t.Context(), "SELECT count(*) FROM outbox.queue").Scan(&open); err != nil {
				t.Error(err)
				return
			}
		}
	}
}

// replay brings every other dead message back.
func (s *orderStress) replay(t *testing.T, over func() bool) {
	for half := true; !over(); {
		select {
		case id := <-s.dead:
			if half = !half; half {
				continue
			}
			back, err := s.store.ReplayDead(t.Context(), db.ReplayDeadParams{Ids: []int64{id}, AllTenants: true, Reset: true, Actor: "a", Reason: "r"})
			if err != nil {
				t.Error(err)
			}
			s.replayed.Add(int64(len(back)))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// work leases, runs and settles until producers have stopped and nothing is left.
func (s *orderStress) work(t *testing.T) {
	ctx := context.WithoutCancel(t.Context())
	for {
		stopped := false
		select {
		case <-s.stopped:
			stopped = true
		default:
		}
		token := make([]byte, 16)
		rand.Read(token)
		rows, err := s.store.LeaseDue(ctx, db.LeaseDueParams{
			Kinds: []string{"k"}, Tenants: []string{""}, Priorities: []int16{0}, AfterDues: []time.Time{db.Never}, AfterIds: []int64{0}, AttemptLimits: []int32{100},
			MaxAges: []int64{0}, AllTenants: true, Consumer: "c", Target: "g", Lease: time.Minute.Microseconds(), Examine: 1000,
			LongestLease: db.LongestLease.Microseconds(), Quota: 10, MaxRows: 10, Token: token, Worker: 1,
		})
		if err != nil {
			t.Error(err)
			return
		}
		picked := 0
		for _, row := range rows {
			if row.Fate == db.FateGranted {
				picked++
				s.perform(t, ctx, row.ID, row.OrderKey, token)
			}
		}
		if picked == 0 && stopped {
			open, err := s.store.ListOpen(ctx, db.ListOpenParams{Examine: 1, AllTenants: true, MaxRows: 1})
			if err != nil || len(open) == 0 {
				return
			}
		}
	}
}

// perform runs one message and, as long as there are any, the successors of its key.
func (s *orderStress) perform(t *testing.T, ctx context.Context, id int64, key string, token []byte) {
	for id != 0 {
		var number int
		fmt.Sscanf(key, "o%d", &number)
		if s.running[number].Swap(id) != 0 {
			s.overlaps.Add(1)
		}
		dies := mathrand.IntN(20) == 0
		<-time.After(mathrand.N(time.Millisecond)) // the work
		s.running[number].Store(0)
		var done []int64
		var err error
		if dies {
			done, err = s.store.SettleDead(ctx, db.SettleDeadParams{
				Ids: []int64{id}, Tokens: token, Consumer: "c", Target: "g", AllTenants: true, Causes: []string{"permanent"}, Reasons: []string{"no"},
			})
		} else {
			done, err = s.store.SettleDelivered(ctx, db.SettleDeliveredParams{
				Ids: []int64{id}, Tokens: token, Consumer: "c", Target: "g", AllTenants: true, Results: []string{""},
			})
		}
		if err != nil || len(done) != 1 {
			t.Errorf("settle of %d: %v, %v", id, done, err)
			return
		}
		s.settled.Add(1)
		if dies {
			s.died.Add(1)
			s.dead <- id
		}
		token = make([]byte, 16)
		rand.Read(token)
		next, err := s.store.LeaseSuccessors(ctx, db.LeaseSuccessorsParams{
			Tenants: []string{""}, OrderKeys: []string{key}, Kinds: []string{"k"}, AttemptLimits: []int32{100}, MaxAges: []int64{0}, Consumer: "c", Target: "g",
			AllTenants: true, Lease: time.Minute.Microseconds(), LongestLease: db.LongestLease.Microseconds(), MaxRows: 10, Token: token, Worker: 1,
		})
		if err != nil {
			t.Error(err)
			return
		}
		id = 0
		if len(next) > 0 {
			id = next[0].ID
		}
	}
}

var keys atomic.Int64

// enqueueParams are n fresh messages of consumer c, target g, kind k.
func enqueueParams(n int, orderKey string) db.EnqueueParams {
	var p db.EnqueueParams
	digest := sha256.Sum256(nil)
	for range n {
		p.Tenants = append(p.Tenants, "")
		p.Consumers = append(p.Consumers, "c")
		p.Targets = append(p.Targets, "g")
		p.Kinds = append(p.Kinds, "k")
		p.Keys = append(p.Keys, fmt.Sprint(keys.Add(1)))
		p.OrderKeys = append(p.OrderKeys, orderKey)
		p.Priorities = append(p.Priorities, 0)
		p.Digests = append(p.Digests, digest[:])
		p.Metadatas = append(p.Metadatas, "")
		p.Payloads = append(p.Payloads, []byte("payload"))
		p.SourcePositions = append(p.SourcePositions, 0)
		p.SourceEventIds = append(p.SourceEventIds, "")
		p.MaxAges = append(p.MaxAges, 0)
		p.DueAts = append(p.DueAts, db.Never)
		p.Delays = append(p.Delays, 0)
	}
	return p
}
