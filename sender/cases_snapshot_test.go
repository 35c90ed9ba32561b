package sender

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/outbox"
)

// timed is a store that keeps how long each lease took, and counts scans and the leases that begin at the front of the lane.
type timed struct {
	db.Store
	mu           sync.Mutex
	leases       []time.Duration
	scans, front int
}

func (s *timed) DueLanes(ctx context.Context, params db.DueLanesParams) ([]db.DueLanesRow, error) {
	s.mu.Lock()
	s.scans++
	s.mu.Unlock()
	return s.Store.DueLanes(ctx, params)
}

func (s *timed) LeaseDue(ctx context.Context, params db.LeaseDueParams) ([]db.LeaseDueRow, error) {
	began := time.Now()
	rows, err := s.Store.LeaseDue(ctx, params)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases = append(s.leases, time.Since(began))
	if params.AfterIds[0] == 0 {
		s.front++
	}
	return rows, err
}

// most is how long 95 % took at most.
func most(took []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(took))[len(took)*95/100]
}

// A forgotten transaction keeps the entries of all that was performed, and leases do not walk over them: they go on from their marks, but for
// the first after each scan. The bound in time is one of liveness; docs/benchmarks.md has the measured growth.
func TestC51ForgottenTransactionDoesNotSlowLeases(t *testing.T) {
	r := newRig(t)
	messages := 20_000
	if full {
		messages = 200_000
	}
	store := &timed{}
	p := r.process(usePgx, setup{wrap: func(s db.Store) db.Store {
		store.Store = s
		return store
	}})
	forgotten, err := r.beside.DB.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer forgotten.Close()
	for _, statement := range []string{"BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM outbox.queue"} {
		if _, err := forgotten.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}

	var performed calls
	for n := 0; n < messages; n += 1000 {
		p.enqueue(prefixed("of thousand "+time.Duration(n).String(), 1000)...)
	}
	stop := p.run(p.sender(Config{Slots: 64, Lease: time.Minute, Handlers: doing(func(_ context.Context, m outbox.Message) error {
		performed.add(m)
		return nil
	})}))
	all := func() bool { return performed.total() >= messages }
	for deadline := time.Now().Add(5 * time.Minute); !all() && time.Now().Before(deadline); {
		<-time.After(50 * time.Millisecond)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if got := performed.total(); got != messages {
		t.Errorf("performed %d of %d messages", got, messages)
	}

	if store.front > store.scans {
		t.Errorf("%d of %d leases walked from the front, after %d scans", store.front, len(store.leases), store.scans)
	}
	tenth := max(1, len(store.leases)/10)
	t.Logf("p95 of the first tenth %v, of the last %v", most(store.leases[:tenth]), most(store.leases[len(store.leases)-tenth:]))
	p95 := most(store.leases)
	t.Logf("%d leases, p95 %v, longest %v", len(store.leases), p95, slices.Max(store.leases))
	if p95 > time.Second {
		t.Errorf("95 %% of leases took up to %v", p95)
	}
	stats, err := p.box.Stats(t.Context(), outbox.Scope{})
	if err != nil {
		t.Fatal(err)
	}
	if stats.Health.OldestSnapshot <= 0 {
		t.Errorf("the forgotten transaction does not show: %+v", stats.Health)
	}
}
