package sender

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/outbox"
)

// handing runs a sender with hand-off that polls once an hour, and waits until it offers its slots.
func (p *process) handing(config Config) (stop func() error) {
	p.Helper()
	config.HandOff, config.Poll = true, time.Hour
	stop = p.run(p.sender(config))
	p.eventually("an offer", func() bool { // with a trial of which nothing is left
		tx, _, rollback := p.begin(p)
		defer func() { _ = rollback() }()
		_, err := p.box.Enqueue(p.Context(), tx, effect("trial"))
		if err != nil {
			p.Fatal(err)
		}
		return p.handsOff.Load() > 0
	})
	return stop
}

// execIn runs a statement in a transaction of whatever driver.
func execIn(ctx context.Context, tx db.Tx, text string) error {
	switch tx := tx.(type) {
	case interface {
		Exec(context.Context, string, ...any) (pgconn.CommandTag, error)
	}:
		_, err := tx.Exec(ctx, text)
		return err
	case interface {
		ExecContext(context.Context, string, ...any) (sql.Result, error)
	}:
		_, err := tx.ExecContext(ctx, text)
		return err
	default:
		return fmt.Errorf("no statement runs in a %T", tx)
	}
}

// noting counts the inserts that ask for leases.
type noting struct {
	db.Store
	n *atomic.Int32
}

func (n noting) EnqueueLeased(ctx context.Context, tx db.Tx, arg db.EnqueueLeasedParams) ([]db.EnqueueLeasedRow, error) {
	n.n.Add(1)
	return n.Store.EnqueueLeased(ctx, tx, arg)
}

func (r *rig) handingProcess(use driver, s setup) *process {
	r.Helper()
	n := new(atomic.Int32)
	s.wrap = func(store db.Store) db.Store { return noting{store, n} }
	p := r.process(use, s)
	p.handsOff = n
	return p
}

// What InTx commits is performed without a poll, but for what a savepoint took back; after a rollback there is nothing.
func TestHandOffFollowsTheTransaction(t *testing.T) {
	onStores(t, func(r *rig, use driver) {
		p := r.handingProcess(use, setup{})
		var performed calls
		stop := p.handing(Config{Handlers: doing(func(_ context.Context, m outbox.Message) error {
			performed.add(m)
			return nil
		})})
		kept := prefixed("kept", 5)
		err := p.inTx(r.Context(), p.box, func(tx db.Tx) error {
			_, err := p.box.EnqueueMany(r.Context(), tx, kept)
			if err := errors.Join(err, execIn(r.Context(), tx, "SAVEPOINT before")); err != nil {
				return err
			}
			_, err = p.box.EnqueueMany(r.Context(), tx, prefixed("taken back", 3))
			return errors.Join(err, execIn(r.Context(), tx, "ROLLBACK TO SAVEPOINT before"))
		})
		if err != nil {
			r.Fatal(err)
		}
		mind := errors.New("another mind")
		if err := p.inTx(r.Context(), p.box, func(tx db.Tx) error {
			_, err := p.box.EnqueueMany(r.Context(), tx, prefixed("rolled back", 3))
			return errors.Join(err, mind)
		}); !errors.Is(err, mind) {
			r.Error(err)
		}
		r.eventually("5 delivered", func() bool { return r.outcomes()["delivered"] == 5 })
		if err := stop(); err != nil {
			r.Error(err)
		}
		performed.once(r, kept)
		if d := r.beside.Dump(r); len(d.Queue) > 0 || len(d.Messages) != 5 {
			r.Errorf("left %+v", d.Queue)
		}
		for _, s := range r.beside.Dump(r).Settlements {
			if s.Attempt != 1 || s.Epoch != 1 || s.SettledBy == 0 {
				r.Errorf("settled %+v", s)
			}
		}
	})
}

// A commit that fails leaves nothing and performs nothing.
func TestHandOffWhenTheCommitFails(t *testing.T) {
	onDrivers(t, func(r *rig, use driver) {
		p := r.handingProcess(use, setup{})
		if err := p.query(r.Context(), "CREATE TABLE once (id int, UNIQUE (id) DEFERRABLE INITIALLY DEFERRED)", false); err != nil {
			r.Fatal(err)
		}
		var performed calls
		stop := p.handing(Config{Handlers: doing(func(_ context.Context, m outbox.Message) error {
			performed.add(m)
			return nil
		})})
		err := p.inTx(r.Context(), p.box, func(tx db.Tx) error {
			_, err := p.box.EnqueueMany(r.Context(), tx, prefixed("lost", 5))
			return errors.Join(err, execIn(r.Context(), tx, "INSERT INTO once VALUES (1), (1)"))
		})
		if err == nil {
			r.Error("committed")
		}
		good := p.handsOff.Load()
		p.enqueue(effect("good"))
		r.eventually("1 delivered", func() bool { return r.outcomes()["delivered"] == 1 })
		if err := stop(); err != nil || p.handsOff.Load() != good+1 {
			r.Errorf("handed off %d: %v", p.handsOff.Load()-good, err)
		}
		performed.once(r, []outbox.Effect{effect("good")})
		if d := r.beside.Dump(r); len(d.Messages) != 1 {
			r.Errorf("left %+v", d.Messages)
		}
	})
}

// Two processes hand to themselves, beside each other, some transactions rolled back and some committed without a word: each message is
// performed once.
func TestHandOffInTwoProcesses(t *testing.T) {
	onStores(t, func(r *rig, use driver) {
		var performed calls
		const each = 60
		var effects []outbox.Effect
		var mu sync.Mutex
		var producers sync.WaitGroup
		var stops []func() error
		for n := range 2 {
			p := r.handingProcess(use, setup{})
			s := p.sender(Config{HandOff: true, Slots: 4, Handlers: doing(func(_ context.Context, m outbox.Message) error {
				performed.add(m)
				return nil
			})})
			stops = append(stops, p.run(s))
			producers.Go(func() {
				for i := range each {
					e := effect(fmt.Sprintf("%d of %d", i, n))
					if i%10 == 9 {
						tx, commit, _ := p.begin(r)
						_, err := p.box.Enqueue(r.Context(), tx, e)
						if err := errors.Join(err, commit()); err != nil {
							r.Error(err)
							return
						}
					} else if err := p.inTx(r.Context(), p.box, func(tx db.Tx) error {
						_, err := p.box.Enqueue(r.Context(), tx, e)
						if i%10 == 4 {
							err = errors.Join(err, errMind)
						}
						return err
					}); errors.Is(err, errMind) {
						continue
					} else if err != nil {
						r.Error(err)
						return
					}
					mu.Lock()
					effects = append(effects, e)
					mu.Unlock()
				}
			})
		}
		producers.Wait()
		r.eventually("all delivered", func() bool { return r.outcomes()["delivered"] == len(effects) })
		for _, stop := range stops {
			if err := stop(); err != nil {
				r.Error(err)
			}
		}
		performed.once(r, effects)
	})
}

var errMind = errors.New("another mind")

// A process that is killed before the commit leaves nothing; one that is killed after it leaves a message that another sender performs when its
// lease is over.
func TestHandOffByAProcessThatIsKilled(t *testing.T) {
	onPgxAndFile(t, func(r *rig, use driver) {
		for _, role := range []string{handsOffAndDies, handsOffAndDiesCommitted} {
			child := r.child(role)
			out := lines(r, child)
			if err := child.Start(); err != nil {
				r.Fatal(err)
			}
			if line := receive(r, "a message", out); line != "born" {
				r.Errorf("the child says %q", line)
			}
			_ = child.Wait() // it kills itself
		}
		d := r.beside.Dump(r)
		if len(d.Queue) != 1 || d.Queue[0].Attempt != 1 || d.Queue[0].LeasedUntil.Equal(db.Never) || d.Messages[0].Key != handsOffAndDiesCommitted {
			r.Fatalf("left %+v of %+v", d.Queue, d.Messages)
		}
		other := r.process(use, setup{})
		var performed calls
		stop := other.run(other.sender(Config{Handlers: doing(func(_ context.Context, m outbox.Message) error {
			if performed.add(m); m.Attempt != 2 || !m.Unsure {
				r.Errorf("took over %+v", m)
			}
			return nil
		})}))
		r.eventually("1 delivered", func() bool { return r.outcomes()["delivered"] == 1 })
		if err := stop(); err != nil || performed.total() != 1 {
			r.Errorf("performed %d: %v", performed.total(), err)
		}
	})
}

const (
	handsOffAndDies          = "hands off and dies"
	handsOffAndDiesCommitted = "hands off and dies committed"
)

// childHandsOff enqueues to its own sender, and kills itself before the commit or after it.
func childHandsOff(ctx context.Context, store db.Store, role string) int {
	var n atomic.Int32
	box, err := outbox.New(noting{store, &n}, outbox.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return childFailed(err)
	}
	consumer, err := box.Consumer("wallets", "ledger", outbox.Policy{})
	if err != nil {
		return childFailed(err)
	}
	s, err := New(box, consumer, Config{HandOff: true, Poll: time.Hour, Handlers: doing(childHandler)})
	if err != nil {
		return childFailed(err)
	}
	go func() { _ = s.Run(ctx) }()
	for err == nil || errors.Is(err, errMind) { // until there is an offer
		err = store.Transact(ctx, func(tx db.Tx) error {
			if _, err := box.Enqueue(ctx, tx, effect(role)); err != nil {
				return err
			}
			if n.Load() == 0 {
				return errMind
			}
			fmt.Println("born")
			if role == handsOffAndDies {
				killSelf()
			}
			return nil
		})
		if err == nil {
			killSelf()
		}
	}
	return childFailed(err)
}

func killSelf() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {} // it takes a moment
}

// The first transaction whose role may not lease fails; from then on nothing is handed off, and all is performed.
func TestHandOffNeedsTheRights(t *testing.T) {
	r := newRig(t)
	as := pgtest.Roles(t, r.dsn)
	producers, err := pgxpool.New(context.WithoutCancel(t.Context()), as("producer"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(producers.Close)
	p := r.handingProcess(usePgx, setup{dsn: as("sender")})
	s := p.sender(Config{HandOff: true, Handlers: doing(succeed)})
	stop := p.run(s)
	var failed int
	r.eventually("a refusal, and 3 stored after it", func() bool {
		for i := range 3 {
			err := pgxdb.InTx(t.Context(), producers, p.box, func(tx *pgxdb.BoxTx) error {
				_, err := p.box.Enqueue(t.Context(), tx, effect(fmt.Sprintf("%d/%d", failed, i)))
				return err
			})
			if errors.Is(err, db.ErrDenied) {
				failed++
			} else if err != nil {
				r.Fatal(err)
			}
		}
		return failed > 0
	})
	r.eventually("all delivered", func() bool { return len(r.beside.Dump(r).Queue) == 0 })
	if err := stop(); err != nil || failed != 1 || len(p.log.lines("nothing is handed off any more")) != 1 || p.handsOff.Load() != 1 {
		r.Errorf("%d failed, handed off %d: %v; %q", failed, p.handsOff.Load(), err, p.log.lines("handed off"))
	}
}
