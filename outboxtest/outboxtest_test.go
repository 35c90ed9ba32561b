package outboxtest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/lib/pq"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/db/sqldb"
	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/outboxtest"
	"github.com/fencepost-go/fencepost/sender"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func charge(key string) outbox.Effect {
	return outbox.Effect{Consumer: "wallets", Target: "ledger", Kind: "charge", Key: key, Payload: []byte("payload of " + key)}
}

// A probe is a test that may fail.
type probe struct {
	testing.TB
	said []string
}

func (p *probe) Helper() {}

func (p *probe) Error(args ...any) { p.said = append(p.said, fmt.Sprint(args...)) }

func (p *probe) Errorf(format string, args ...any) { p.Error(fmt.Sprintf(format, args...)) }

func (p *probe) Fatal(args ...any) {
	p.Error(args...)
	runtime.Goexit()
}

func (p *probe) Fatalf(format string, args ...any) { p.Fatal(fmt.Sprintf(format, args...)) }

// failing gives what the test says when it fails; empty when it does not.
func failing(t *testing.T, test func(testing.TB)) string {
	p := &probe{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		test(p)
	}()
	<-done
	return strings.Join(p.said, "; ")
}

// expect expects a failure that says so, or none.
func expect(t *testing.T, want string, test func(testing.TB)) {
	t.Helper()
	if said := failing(t, test); said != want && (want == "" || !strings.Contains(said, want)) {
		t.Errorf("said %q, want %q", said, want)
	}
}

// An effect fails once, is tried again when its time has come, and is delivered.
func TestBoxInMemory(t *testing.T) {
	t.Parallel()
	box := outboxtest.New(t, outbox.Config{})
	wallets, err := box.Consumer("wallets", "ledger", outbox.Policy{InitialDelay: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	id := outboxtest.Enqueue(t, box, charge("a"))[0].ID
	attempts := 0
	s, err := sender.New(box, wallets, sender.Config{Handlers: sender.Handlers{"charge": {Do: func(context.Context, outbox.Message) error {
		if attempts++; attempts == 1 {
			return errors.New("ledger answered 503")
		}
		return nil
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []sender.Counts{{Leased: 1, Retried: 1}, {}, {Leased: 1, Delivered: 1}} {
		if got, err := s.RunOnce(t.Context()); err != nil || got != want {
			t.Errorf("counted %+v, %v, want %+v", got, err, want)
		}
		outboxtest.Age(t, box, 40*time.Second)
	}
	if details, err := box.Show(t.Context(), outbox.Scope{}, id); err != nil || details.State != outbox.StateDelivered {
		t.Errorf("became %+v, %v", details, err)
	}
}

func TestInTxRollsBack(t *testing.T) {
	t.Parallel()
	box := outboxtest.New(t, outbox.Config{})
	problem := errors.New("no stock")
	err := outboxtest.InTx(t.Context(), box, func(tx db.Tx) error {
		if _, err := box.Enqueue(t.Context(), tx, charge("a")); err != nil {
			return err
		}
		outboxtest.RequireEnqueued(t, box, tx, charge("a"))
		return problem
	})
	if err != problem {
		t.Error(err)
	}
	expect(t, `no effect of consumer "wallets", tenant "" is enqueued with the key "a"`, func(t testing.TB) {
		outboxtest.RequireEnqueued(t, box, nil, charge("a"))
	})
	expect(t, "Kind", func(t testing.TB) { outboxtest.New(t, outbox.Config{Kinds: []string{""}}) })
	expect(t, "Consumer", func(t testing.TB) { outboxtest.Enqueue(t, box, outbox.Effect{}) })
}

// beginOn opens a transaction of a driver, on a database of the test's own.
var beginOn = map[string]func(t *testing.T) (*outbox.Box, func() (tx db.Tx, commit func() error)){
	"pgx": func(t *testing.T) (*outbox.Box, func() (db.Tx, func() error)) {
		pool, err := pgxpool.New(t.Context(), pgtest.New(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		store, err := pgxdb.New(pool, pgxdb.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return newBox(t, store), func() (db.Tx, func() error) {
			tx, err := pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
			return pgxdb.Tx(tx), func() error { return tx.Commit(t.Context()) }
		}
	},
	"lib pq": func(t *testing.T) (*outbox.Box, func() (db.Tx, func() error)) {
		pool, err := sql.Open("postgres", pgtest.New(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { pool.Close() })
		store, err := sqldb.New(pool, sqldb.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return newBox(t, store), func() (db.Tx, func() error) {
			tx, err := pool.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = tx.Rollback() })
			return sqldb.Tx(tx), tx.Commit
		}
	},
	"memory": func(t *testing.T) (*outbox.Box, func() (db.Tx, func() error)) {
		box := outboxtest.New(t, outbox.Config{})
		return box, func() (db.Tx, func() error) {
			begun, end, ended := make(chan db.Tx), make(chan struct{}), make(chan error, 1)
			go func() {
				ended <- outboxtest.InTx(context.Background(), box, func(tx db.Tx) error {
					begun <- tx
					<-end
					return nil
				})
			}()
			return <-begun, func() error {
				close(end)
				return <-ended
			}
		}
	},
}

func newBox(t *testing.T, store db.Store) *outbox.Box {
	t.Helper()
	box, err := outbox.New(store, outbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return box
}

// What was enqueued is found before the commit by its own transaction, and after it by any.
func TestRequireEnqueued(t *testing.T) {
	t.Parallel()
	for name, open := range beginOn {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box, begin := open(t)
			tx, commit := begin()
			receipt, err := box.Enqueue(t.Context(), tx, charge("a"))
			if err != nil {
				t.Fatal(err)
			}
			found := func(tx db.Tx, effect outbox.Effect, want string) {
				t.Helper()
				expect(t, want, func(t testing.TB) {
					if got := outboxtest.RequireEnqueued(t, box, tx, effect); got.ID != receipt.ID || got.State != outbox.StatePending {
						t.Errorf("found %+v, want %+v", got, receipt)
					}
				})
			}
			otherPayload, otherTenant := charge("a"), charge("a")
			otherPayload.Payload, otherTenant.Tenant = nil, "acme"
			found(tx, charge("a"), "")
			found(tx, outbox.Effect{Consumer: "wallets", Key: "a"}, "")
			found(tx, otherPayload, "with another target, kind, order key, payload or metadata")
			found(tx, otherTenant, `tenant "acme" is enqueued`)
			found(tx, charge("b"), "no effect")
			found(tx, outbox.Effect{Key: "a"}, "Consumer")
			if err := commit(); err != nil {
				t.Fatal(err)
			}
			later, end := begin()
			found(later, charge("a"), "")
			if err := end(); err != nil {
				t.Error(err)
			}
			if name == "memory" {
				found(nil, charge("a"), "")
			} else {
				found(nil, charge("a"), "does not come from outboxtest.New")
			}
		})
	}
}

// Shows: S1.29 S3.4
func TestRedeliver(t *testing.T) {
	t.Parallel()
	var leases []string
	note := func(_ context.Context, m outbox.Message) error {
		leases = append(leases, fmt.Sprint(m.ID, m.Attempt, m.Epoch, m.Unsure))
		return nil
	}
	became := func(outcome sender.Outcome, err error) func(context.Context, outbox.Message) (sender.Outcome, error) {
		return func(_ context.Context, m outbox.Message) (sender.Outcome, error) {
			if !m.Unsure {
				t.Error("asked about the first delivery")
			}
			return outcome, err
		}
	}
	const once, twice = "[7 2 5 false]", "[7 2 5 false 7 3 6 true]"
	calls := 0
	for name, test := range map[string]struct {
		handler sender.Handler
		leases  string
		want    string
	}{
		"idempotent":       {sender.Handler{Do: note}, twice, ""},
		"delivered before": {sender.Handler{Do: note, Reconcile: became(sender.Delivered, nil)}, once, ""},
		"not performed":    {sender.Handler{Do: note, Reconcile: became(sender.Failed, nil)}, twice, ""},
		"not known":        {sender.Handler{Do: note, Reconcile: became(sender.Unknown, nil)}, once, "Reconcile does not know"},
		"cannot ask":       {sender.Handler{Do: note, Reconcile: became(sender.Unknown, errors.New("down"))}, once, "Reconcile failed: down"},
		"fails at once":    {sender.Handler{Do: func(context.Context, outbox.Message) error { return errors.New("down") }}, "[]", "the first delivery failed: down"},
		"fails again": {sender.Handler{Do: func(_ context.Context, m outbox.Message) error {
			if m.Unsure {
				return errors.New("charged already")
			}
			return nil
		}}, "[]", "the second delivery failed: charged already"},
		"the same result": {sender.Handler{DoResult: func(context.Context, outbox.Message) (string, error) { return "receipt", nil }}, "[]", ""},
		"another result": {sender.Handler{DoResult: func(context.Context, outbox.Message) (string, error) {
			calls++
			return fmt.Sprint("receipt ", calls), nil
		}}, "[]", `gave "receipt 1", the second "receipt 2"`},
		"scribbles": {sender.Handler{Do: func(_ context.Context, m outbox.Message) error {
			m.Payload[0]++
			return nil
		}}, "[]", "changed the payload"},
		"nothing": {sender.Handler{}, "[]", "neither Do nor DoResult"},
	} {
		leases = nil
		message := outbox.Message{ID: 7, Attempt: 2, Epoch: 5, Kind: "charge", Payload: []byte("payload")}
		expect(t, test.want, func(t testing.TB) { outboxtest.Redeliver(t, test.handler, message) })
		if got := fmt.Sprint(leases); got != test.leases {
			t.Errorf("%s: called with %s, want %s", name, got, test.leases)
		}
		if string(message.Payload) != "payload" {
			t.Errorf("%s: the caller's payload became %q", name, message.Payload)
		}
	}
	leases = nil
	outboxtest.Redeliver(t, sender.Handler{Do: note}, outbox.Message{})
	if got := fmt.Sprint(leases); got != "[0 1 1 false 0 2 2 true]" {
		t.Errorf("a message made by hand: %s", got)
	}
}
