package events_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/sqldb"
	"github.com/fencepost-go/fencepost/db/sqlitedb"
	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/sender"
)

// A handler that succeeded is not run again however long after it a dead event is replayed: its receipt stays as long as that is possible.
func TestBusReplayedLate(t *testing.T) {
	t.Parallel()
	onDrivers(t, func(r *rig) {
		l := r.log(events.Config{Subscriptions: []events.Subscription{events.ToBus("shop")}})
		bus, err := events.NewBus(l, "shop", events.BusConfig{Slots: 1, Retries: events.NoRetries})
		if err != nil {
			r.Fatal(err)
		}
		fails := errSystem
		err = errors.Join(
			bus.Subscribe("stock", r.handler("stock")),
			bus.Subscribe("mail", func(ctx context.Context, tx db.Tx, e events.Event) error {
				return errors.Join(fails, r.handler("mail")(ctx, tx, e))
			}),
		)
		if err != nil {
			r.Fatal(err)
		}
		deliver := func() {
			r.Helper()
			if _, err := bus.Sender().RunOnce(r.Context()); err != nil {
				r.Fatal(err)
			}
		}
		purge := func() int {
			r.Helper()
			sweep, err := r.box.PurgeClaims(r.Context(), outbox.AllTenants, outbox.Cursor{}, time.Microsecond, 1000)
			if err != nil {
				r.Fatal(err)
			}
			return sweep.Count
		}
		id := r.append(l, events.Event{ID: "e-1", Type: "x"})[0].Effects[0].ID
		deliver()
		if n := purge(); n != 0 {
			r.Errorf("%d receipts of a dead event were purged", n)
		}
		acted, err := r.box.Replay(r.Context(), outbox.Scope{}, []int64{id}, outbox.ResetAttempts, outbox.By{Actor: "ann", Reason: "mended"})
		if err != nil || acted[0].Status != outbox.Done {
			r.Fatal(acted, err)
		}
		if n := purge(); n != 0 {
			r.Errorf("%d receipts of a replayed event were purged", n)
		}
		fails = nil
		deliver()
		if got := r.handled(); len(got) != 2 || got[[2]string{"stock", "e-1"}] != 1 || got[[2]string{"mail", "e-1"}] != 1 {
			r.Errorf("handled %v", got)
		}
		if n := purge(); n != 2 {
			r.Errorf("%d receipts of a delivered event were purged", n)
		}
	})
}

// Receipts are kept by the key that ToBus gives, so a message under another is not delivered.
func TestBusForeignKey(t *testing.T) {
	t.Parallel()
	r, memory := onMemory(t)
	odd := events.ToBus("shop")
	odd.Derive = func(events.Event) ([]outbox.Effect, error) { return []outbox.Effect{{Kind: "event", Key: "odd"}}, nil }
	l := r.log(events.Config{Subscriptions: []events.Subscription{odd}})
	bus, err := events.NewBus(l, "shop", events.BusConfig{})
	if err != nil {
		t.Fatal(err)
	}
	b := &busRig{rig: r, memory: memory, log: l, bus: bus}
	b.on("stock", nil)
	b.append(l, events.Event{ID: "e-1", Type: "x"})
	same(t, "calls", b.once(), nil)
	if d := memory.Dump(); len(d.Settlements) != 1 || d.Settlements[0].Cause != "permanent" || !strings.Contains(d.Settlements[0].Reason, "ToBus") {
		t.Errorf("settlements %+v", d.Settlements)
	}
}

// A handler that is out of time loses its transaction and its turn, and no other does: it would hold back every reader of the stream.
func TestBusTimeout(t *testing.T) {
	t.Parallel()
	onDrivers(t, func(r *rig) {
		l := r.log(events.Config{Subscriptions: []events.Subscription{events.ToBus("shop")}})
		bus, err := events.NewBus(l, "shop", events.BusConfig{Timeout: 200 * time.Millisecond, Retries: events.NoRetries})
		if err != nil {
			r.Fatal(err)
		}
		causes := make(chan error, 2)
		err = errors.Join(
			bus.Subscribe("slow", func(ctx context.Context, tx db.Tx, e events.Event) error {
				err := r.handler("slow")(ctx, tx, e)
				<-ctx.Done()
				causes <- context.Cause(ctx)
				return err // nil: it says that it is done
			}),
			bus.SubscribeBeside("slow beside", func(ctx context.Context, _ events.Event) error {
				<-ctx.Done()
				causes <- context.Cause(ctx)
				return ctx.Err()
			}),
			bus.Subscribe("quick", r.handler("quick")),
		)
		if err != nil {
			r.Fatal(err)
		}
		r.append(l, events.Event{ID: "e-1", Type: "x"})
		if _, err := bus.Sender().RunOnce(r.Context()); err != nil {
			r.Fatal(err)
		}
		for range 2 {
			if cause := <-causes; cause != sender.ErrTimeout {
				r.Errorf("the cause is %v", cause)
			}
		}
		if got := r.handled(); len(got) != 1 || got[[2]string{"quick", "e-1"}] != 1 {
			r.Errorf("handled %v", got)
		}
		var reason string
		if err := r.beside.QueryRowContext(r.Context(), "SELECT reason FROM "+r.table("settlement")).Scan(&reason); err != nil {
			r.Fatal(err)
		}
		for _, want := range []string{"(2): slow, slow beside;", "slow: handler timeout after 200ms: ", "slow beside: handler timeout after 200ms: "} {
			if !strings.Contains(reason, want) {
				r.Errorf("%q does not say %q", reason, want)
			}
		}
	})
}

// A handler that ends its own transaction has failed, whatever it answers. After a commit of its own its receipt is there and it is not asked again;
// after a rollback it is, and what it wrote after that was committed each time.
func TestBusHandlerEndsItsTransaction(t *testing.T) {
	t.Parallel()
	for end, times := range map[string]int{"COMMIT": 1, "ROLLBACK": 2} {
		for name, open := range map[string]func(*testing.T) *rig{"lib-pq": openPq, "sqlite": openSQLite} {
			t.Run(name+" "+end, func(t *testing.T) {
				t.Parallel()
				r := open(t)
				r.exec("CREATE TABLE handled (handler text NOT NULL, event text NOT NULL)")
				handle := func(ctx context.Context, tx *sql.Tx, e events.Event) error {
					for _, statement := range []string{end, "INSERT INTO handled (handler, event) VALUES ('ends', '" + e.ID + "')"} {
						if _, err := tx.ExecContext(ctx, statement); err != nil {
							return err
						}
					}
					return nil
				}
				handler := sqldb.EventHandler(handle)
				if name == "sqlite" {
					handler = sqlitedb.EventHandler(handle)
				}
				l := r.log(events.Config{Subscriptions: []events.Subscription{events.ToBus("shop")}})
				bus, err := events.NewBus(l, "shop", events.BusConfig{Retries: 1, InitialDelay: time.Millisecond, MaxDelay: time.Millisecond})
				if err != nil {
					t.Fatal(err)
				}
				if err := bus.Subscribe("ends", handler); err != nil {
					t.Fatal(err)
				}
				r.append(l, events.Event{ID: "e-1", Type: "x"})
				var all sender.Counts
				for range 1000 { // until the retry is due
					counts, err := bus.Sender().RunOnce(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					all.Retried, all.Delivered, all.Dead = all.Retried+counts.Retried, all.Delivered+counts.Delivered, all.Dead+counts.Dead
					if all.Delivered+all.Dead > 0 {
						break
					}
				}
				if all.Retried != 1 || all.Delivered != 2-times || all.Dead != times-1 {
					t.Errorf("%+v", all)
				}
				if got := r.handled()[[2]string{"ends", "e-1"}]; got != times {
					t.Errorf("handled %d times, want %d", got, times)
				}
			})
		}
	}
}

// On SQLite, where one handler runs at a time, the wait for the file is not a handler's time, and no event waits for it beside another.
func TestBusWaitsForTheFile(t *testing.T) {
	t.Parallel()
	for name, slots := range map[string]int{"default": 0, "many": 8} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := openSQLite(t)
			r.exec("CREATE TABLE handled (handler text NOT NULL, event text NOT NULL)")
			l := r.log(events.Config{Subscriptions: []events.Subscription{events.ToBus("shop")}})
			bus, err := events.NewBus(l, "shop", events.BusConfig{Slots: slots, Timeout: 2 * time.Second, Retries: events.NoRetries})
			if err != nil {
				t.Fatal(err)
			}
			most, running := 0, 0
			err = bus.Subscribe("slow", func(ctx context.Context, tx db.Tx, e events.Event) error {
				if running++; running > most {
					most = running
				}
				defer func() { running-- }()
				<-time.After(400 * time.Millisecond)
				return r.handler("slow")(ctx, tx, e)
			})
			if err != nil {
				t.Fatal(err)
			}
			for i := range 8 { // together they take longer than the Timeout
				r.append(l, events.Event{ID: fmt.Sprint("e-", i), Type: "x"})
			}
			counts, err := bus.Sender().RunOnce(t.Context())
			if err != nil || counts.Delivered != 8 || most != 1 || len(r.handled()) != 8 {
				t.Errorf("%+v, %v, %d at once, handled %v", counts, err, most, r.handled())
			}
		})
	}
}
