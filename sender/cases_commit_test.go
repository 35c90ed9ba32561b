package sender

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/db/sqlitedb"
	"github.com/fencepost-go/fencepost/outbox"
)

// beginAlone opens a producer's transaction on a connection of its own.
func (r *rig) beginAlone() pgx.Tx {
	r.Helper()
	conn, err := pgx.Connect(r.Context(), r.dsn)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { conn.Close(context.Background()) })
	tx, err := conn.Begin(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	return tx
}

func (p *process) enqueueIn(tx pgx.Tx, key string) int64 {
	p.Helper()
	receipt, err := p.box.Enqueue(p.Context(), pgxdb.Tx(tx), effect(key))
	if err != nil {
		p.Fatal(err)
	}
	return receipt.ID
}

// A message that commits after one with a higher id is found, though the lane was examined beyond it.
func TestC32LateCommit(t *testing.T) {
	onDrivers(t, func(r *rig, use driver) {
		p, producer := r.process(use, setup{}), r.process(usePgx, setup{})
		var performed calls
		stop := p.run(p.sender(Config{Handlers: doing(func(_ context.Context, m outbox.Message) error {
			performed.add(m)
			return nil
		})}))
		late := r.beginAlone()
		lower := producer.enqueueIn(late, "late")
		if higher := producer.enqueue(effect("early"))[0]; higher < lower {
			r.Fatalf("ids %d and %d", lower, higher)
		}
		r.eventually("the first delivery", func() bool { return r.outcomes()["delivered"] == 1 })
		if err := late.Commit(r.Context()); err != nil {
			r.Fatal(err)
		}
		r.eventually("the late delivery", func() bool { return r.outcomes()["delivered"] == 2 })
		if err := stop(); err != nil {
			r.Error(err)
		}
		performed.once(r, []outbox.Effect{effect("early"), effect("late")})
	})
}

// Eight producers commit after random pauses beside two senders; everything is performed once.
func TestC32ManyLateCommits(t *testing.T) {
	r := newRig(t)
	messages := 1000
	if full {
		messages = 10_000
	}
	const producers = 8
	var performed calls
	config := Config{Slots: 32, Handlers: doing(func(_ context.Context, m outbox.Message) error {
		performed.add(m)
		return nil
	})}
	first, second := r.process(usePgx, setup{}), r.process(usePq, setup{})
	stopFirst, stopSecond := first.run(first.sender(config)), second.run(second.sender(config))
	producer := r.process(usePgx, setup{conns: producers})
	var producing sync.WaitGroup
	for n := range producers {
		producing.Go(func() {
			for i := range messages / producers {
				err := producer.inTx(r.Context(), producer.box, func(tx db.Tx) error {
					_, err := producer.box.Enqueue(r.Context(), tx, effect(fmt.Sprintf("%d of %d", i, n)))
					<-time.After(rand.N(20 * time.Millisecond)) // so that commits come in another order than ids
					return err
				})
				if err != nil {
					r.Error(err)
				}
			}
		})
	}
	producing.Wait()
	r.eventually("all deliveries", func() bool { return r.outcomes()["delivered"] == messages })
	if err := errors.Join(stopFirst(), stopSecond()); err != nil {
		r.Error(err)
	}
	if total := performed.total(); total != messages {
		r.Errorf("%d handler calls for %d messages", total, messages)
	}
}

// Nothing is performed before its commit, however early somebody is woken, and nothing at all that was rolled back. In a file the sender could
// not even lease meanwhile, for the held transaction is its writer.
func TestC33NothingBeforeTheCommit(t *testing.T) {
	onPgxAndFile(t, func(r *rig, use driver) {
		p, producer := r.process(use, setup{}), r.process(use, setup{})
		performed := make(chan string, 10)
		const poll = 100 * time.Millisecond
		stop := p.run(p.sender(Config{Poll: poll, Handlers: doing(func(_ context.Context, m outbox.Message) error {
			performed <- m.Key
			return nil
		})}))
		enqueue := func(tx db.Tx, key string) int64 {
			receipt, err := producer.box.Enqueue(r.Context(), tx, effect(key))
			if err != nil {
				r.Fatal(err)
			}
			return receipt.ID
		}
		undo := errors.New("undo")
		err := producer.inTx(r.Context(), producer.box, func(tx db.Tx) error {
			p.box.Committed(enqueue(tx, "rolled back"))
			return undo
		})
		if !errors.Is(err, undo) {
			r.Fatal(err)
		}

		hold := time.Second
		if full {
			hold = 5 * time.Second
		}
		var stalled func() time.Duration
		err = producer.inTx(r.Context(), producer.box, func(tx db.Tx) error {
			enqueue(tx, "before the savepoint")
			r.exec(tx, "SAVEPOINT undone")
			p.box.Committed(enqueue(tx, "in the savepoint"))
			r.exec(tx, "ROLLBACK TO SAVEPOINT undone")
			select {
			case key := <-performed:
				r.Errorf("performed %q before any commit", key)
			case <-time.After(hold):
			}
			stalled = r.stalls()
			return nil
		})
		if err != nil {
			r.Fatal(err)
		}
		committed := time.Now()
		if key := receive(r, "the committed message", performed); key != "before the savepoint" {
			r.Errorf("performed %q", key)
		}
		if took := time.Since(committed); took > poll+5*time.Second+stalled() {
			r.Errorf("performed %v after the commit", took)
		}
		// A last message shows that nothing else comes.
		p.enqueue(effect("last"))
		if key := receive(r, "the last message", performed); key != "last" {
			r.Errorf("performed %q", key)
		}
		if err := stop(); err != nil {
			r.Error(err)
		}
	})
}

// exec runs a statement in a transaction that inTx began.
func (r *rig) exec(tx db.Tx, text string) {
	r.Helper()
	var err error
	switch tx := tx.(type) {
	case *pgxdb.BoxTx:
		_, err = tx.Exec(r.Context(), text)
	case *sqlitedb.BoxTx:
		_, err = tx.ExecContext(r.Context(), text)
	default:
		err = fmt.Errorf("%T is no transaction of inTx", tx)
	}
	if err != nil {
		r.Fatal(err)
	}
}

// statements counts what a pool sends, and those that contain a text.
type statements struct {
	mu       sync.Mutex
	sent     int
	contains string
	found    int
}

func (s *statements) note(sql string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent++
	if s.contains != "" && strings.Contains(sql, s.contains) {
		s.found++
	}
}

func (s *statements) count() (sent, found int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent, s.found
}

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	s.note(data.SQL)
	return ctx
}
func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (s *statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}
func (s *statements) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	s.note(data.SQL)
}
func (s *statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// Without the switch no commit and no sender notifies anybody, and a message is performed within a poll all the same. With it hints are few.
// Shows: S4.11
func TestC35Notify(t *testing.T) {
	t.Parallel()
	for name, notify := range map[string]bool{"off": false, "on": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			heard := r.hear()
			sent := &statements{contains: "pg_notify"}
			p := r.process(usePgx, setup{tracer: sent, conns: 32})
			stop := p.run(p.sender(Config{Notify: notify, Handlers: doing(succeed)}))
			const producers = 64
			first := 0 // those before the notifier runs, which tells of none
			if notify {
				r.eventually("a first hint", func() bool {
					p.enqueue(effect(fmt.Sprint("first ", first)))
					first++
					return len(heard()) > 0
				})
			}
			began := time.Now()
			var producing sync.WaitGroup
			for i := range producers {
				producing.Go(func() { p.enqueue(effect(fmt.Sprint(i))) })
			}
			producing.Wait()
			r.eventually("deliveries", func() bool { return r.outcomes()["delivered"] == first+producers })
			hints := 0
			if notify { // it is sent beside the work, and not by a sender that has stopped
				r.eventually("a hint", func() bool {
					hints += len(heard())
					return hints > 0
				})
			}
			if err := stop(); err != nil {
				r.Error(err)
			}
			hints += len(heard())
			most := int(time.Since(began)/(10*time.Millisecond)) + 1
			_, notified := sent.count()
			if !notify && hints+notified > 0 {
				r.Errorf("%d hints heard, %d sent", hints, notified)
			}
			if notify && (hints > most || hints > first+producers) {
				r.Errorf("%d hints for %d commits, at most %d in the time", hints, producers, most)
			}
		})
	}
}

// hear listens on the schema's channel. The function it gives answers with what came in until then.
func (r *rig) hear() func() []*pgconn.Notification {
	r.Helper()
	conn, err := pgx.Connect(r.Context(), r.dsn)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { conn.Close(context.Background()) })
	if _, err := conn.Exec(r.Context(), "LISTEN "+pgx.Identifier{db.Channel("outbox")}.Sanitize()); err != nil {
		r.Fatal(err)
	}
	return func() []*pgconn.Notification {
		var all []*pgconn.Notification
		if _, err := conn.Exec(r.Context(), "SELECT"); err != nil { // what was sent before comes with its answer
			r.Fatal(err)
		}
		for {
			ctx, cancel := context.WithTimeout(r.Context(), time.Millisecond)
			one, err := conn.WaitForNotification(ctx)
			cancel()
			if err != nil {
				return all
			}
			all = append(all, one)
		}
	}
}
