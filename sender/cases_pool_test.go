package sender

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db/dbtest"
	"github.com/fencepost-go/fencepost/db/sqldb"
	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/outbox"
)

// Handlers that use the sender's own pool, even one of a single connection, all finish; and while they run the sender has no transaction open.
func TestC56OneSmallPool(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 4} {
		t.Run(fmt.Sprintf("of %d", size), func(t *testing.T) {
			onDrivers(t, func(r *rig, use driver) {
				p := r.process(use, setup{conns: size, dsn: r.dsn + "&application_name=under_test"})
				effects := prefixed("using the pool", 40)
				p.enqueue(effects...)
				var performed calls
				s := p.sender(Config{Slots: size, Lease: 10 * time.Second, Handlers: doing(func(ctx context.Context, m outbox.Message) error {
					performed.add(m)
					began := r.clock()
					err := errors.Join(p.query(ctx, "SELECT 1", false), p.query(ctx, "SELECT 1", true))
					for r.openSince(began) > 0 { // of a settle beside, say; one kept open for this handler would not end before it
						select {
						case <-ctx.Done():
							return context.Cause(ctx)
						case <-time.After(10 * time.Millisecond):
						}
					}
					return err
				})})
				if counts := p.runOnce(s); counts.Delivered != len(effects) {
					r.Errorf("%+v", counts)
				}
				performed.once(r, effects)
			})
		})
	}
}

// clock is the database's.
func (r *rig) clock() (now time.Time) {
	if err := r.beside.DB.QueryRowContext(r.Context(), "SELECT clock_timestamp()").Scan(&now); err != nil {
		r.Error(err)
	}
	return now
}

// openSince counts transactions of the process under test that were open then and still are.
func (r *rig) openSince(then time.Time) (open int) {
	err := r.beside.DB.QueryRowContext(r.Context(),
		`SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = 'under_test' AND xact_start < $1`, then).Scan(&open)
	if err != nil {
		r.Error(err)
	}
	return open
}

// A handler that keeps the only connection for longer than a settle waits for one does not cost any message its lease.
func TestC56SettleWaitsForAConnection(t *testing.T) {
	onDrivers(t, func(r *rig, use driver) {
		p := r.process(use, setup{conns: 1})
		var performed calls
		const lease = 9 * time.Second
		s := p.sender(Config{Slots: 2, Lease: lease, Handlers: doing(func(ctx context.Context, m outbox.Message) error {
			performed.add(m)
			if m.Key == "keeps it" {
				return p.query(ctx, "SELECT pg_sleep(4)", true) // a settle waits for a third of the lease
			}
			return nil
		})})
		effects := []outbox.Effect{effect("keeps it"), effect("does not")}
		p.enqueue(effects...)
		stop := p.run(s)
		r.eventually("deliveries", func() bool { return r.outcomes()["delivered"] == len(effects) })
		if err := stop(); err != nil || p.lost.Load() > 0 {
			r.Errorf("%d leases lost, %v", p.lost.Load(), err)
		}
		performed.once(r, effects)
	})
}

// throughPooler is a driver set up as its documentation says for a transaction pooler.
func throughPooler(use driver, name string) (driver, func(*setup)) {
	if name == "pgx" {
		return use, func(s *setup) { s.dsn += "&default_query_exec_mode=exec" }
	}
	return use, func(s *setup) {
		s.dsn += "&binary_parameters=yes"
		s.statements = sqldb.Unnamed
	}
}

// Behind a transaction pooler with two connections to the server and many clients everything works with the documented setting of each driver.
func TestC58TransactionPooler(t *testing.T) {
	r := newRig(t)
	pooled := pooler(t, r.dsn)
	const messages = 300
	var performed calls
	fail := errors.New("refused")
	config := Config{Slots: 8, Handlers: doing(func(_ context.Context, m outbox.Message) error {
		if performed.add(m) == 1 && m.Key[:4] == "once" {
			return fail
		}
		return nil
	})}
	var processes []*process
	var running sync.WaitGroup
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	for name, use := range map[string]driver{"pgx": usePgx, "lib pq": usePq} {
		for range 3 {
			s := setup{dsn: pooled, conns: 8, policy: outbox.Policy{InitialDelay: time.Second}}
			use, adjust := throughPooler(use, name)
			adjust(&s)
			p := r.process(use, s)
			processes = append(processes, p)
			running.Go(func() {
				if err := p.sender(config).Run(ctx); err != nil {
					r.Error(err)
				}
			})
		}
	}
	var producing sync.WaitGroup
	var effects []outbox.Effect
	for n, p := range processes {
		own := append(prefixed(fmt.Sprintf("free %d", n), messages/len(processes)),
			prefixed(fmt.Sprintf("ordered %d", n), 10, func(e *outbox.Effect) { e.OrderKey = "one" })...)
		effects = append(effects, own...)
		producing.Go(func() { p.enqueue(own...) })
	}
	failing := prefixed("once", 10)
	producing.Go(func() { processes[0].enqueue(failing...) })
	producing.Wait()
	r.eventually("deliveries", func() bool { return r.outcomes()["delivered"] == len(effects)+len(failing) })
	stop()
	running.Wait()
	for _, e := range effects {
		if n := performed.n[e.Key]; n != 1 {
			r.Errorf("%s was performed %d times", e.Key, n)
		}
	}
	for _, p := range processes {
		if lines := p.log.lines("level=ERROR"); len(lines) > 0 {
			r.Errorf("logged %v", lines)
		}
	}
}

// What every driver must do it does through such a pooler too; the two share the suite.
func TestC58ConformanceThroughAPooler(t *testing.T) {
	t.Parallel()
	for part, name := range []string{"pgx", "lib pq"} {
		use := []driver{usePgx, usePq}[part]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dbtest.RunPart(t, part, 2, func(t *testing.T) dbtest.Harness {
				dsn := pgtest.New(t)
				r := rigOn(t, dsn)
				s := setup{dsn: pooler(t, dsn), conns: 8, listen: dsn}
				use, adjust := throughPooler(use, name)
				adjust(&s)
				first, second := r.process(use, s), r.process(use, s)
				return dbtest.Harness{
					Store: first.store, Second: second.store, Begin: first.begin,
					Age: r.beside.Age, Dump: r.beside.Dump, Reset: r.beside.Reset,
				}
			})
		})
	}
}

// A listener behind such a pooler hears nothing; it finds that out, says so once, and the poll serves.
func TestC58DeafListenerBehindAPooler(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]driver{"pgx": usePgx, "lib pq": usePq} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			pooled := pooler(t, r.dsn)
			p := r.process(use, setup{listen: pooled})
			stop := p.run(p.sender(Config{Listen: true, Handlers: doing(succeed)}))
			r.eventually("the self-test", func() bool { return len(p.log.lines("hints do not arrive")) > 0 })
			other := r.process(usePgx, setup{}) // whose commits this process does not hear of
			other.enqueue(effect("a"))
			r.eventually("the delivery", func() bool { return r.outcomes()["delivered"] == 1 })
			if err := stop(); err != nil {
				r.Error(err)
			}
			if lines := p.log.lines("hints do not arrive"); len(lines) != 1 {
				r.Errorf("logged %v", lines)
			}
		})
	}
}

// A listener on a connection of its own hears a commit of another process long before the poll would find it.
func TestListenOnPostgreSQL(t *testing.T) {
	onDrivers(t, func(r *rig, use driver) {
		p := r.process(use, setup{listen: r.dsn})
		stop := p.run(p.sender(Config{Listen: true, Poll: time.Hour, Handlers: doing(succeed)}))
		other := r.process(use, setup{})
		idle := other.run(other.sender(Config{Notify: true, Handlers: Handlers{"other kind": {Do: succeed}}}))
		for i := range 3 {
			other.enqueue(effect(fmt.Sprint(i)))
			r.eventually("the delivery", func() bool { return r.outcomes()["delivered"] == i+1 })
		}
		if err := errors.Join(stop(), idle()); err != nil {
			r.Error(err)
		}
	})
}
