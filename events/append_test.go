package events_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/outbox"
)

// toLedger derives one charge of an order that was placed.
var toLedger = events.Subscription{
	Name: "charges", Consumer: "wallets", Target: "ledger", Types: []string{"order.placed"},
	Derive: func(e events.Event) ([]outbox.Effect, error) {
		return []outbox.Effect{{Kind: "charge", Payload: e.Payload, OrderKey: e.Stream}}, nil
	},
}

// toMail derives two mails of anything.
var toMail = events.Subscription{
	Name: "mails", Consumer: "mailer", Target: "smtp",
	Derive: func(e events.Event) ([]outbox.Effect, error) {
		return []outbox.Effect{{Kind: "mail"}, {Kind: "mail", Key: "own-" + e.ID}}, nil
	},
}

// Shows: S1.1 S1.2 S1.3 S1.34 S1.35 S2.1
func TestAppendDerivesEffects(t *testing.T) {
	t.Parallel()
	onDrivers(t, func(r *rig) {
		l := r.log(events.Config{Subscriptions: []events.Subscription{toLedger, toMail}})
		receipts := r.append(l,
			events.Event{Tenant: "acme", Stream: "order-7", Type: "order.placed", Payload: []byte("7 EUR"), Metadata: map[string]string{"by": "ann"}},
			events.Event{ID: "e-2", Tenant: "acme", Type: "order.shipped"},
		)
		if id, err := uuid.Parse(receipts[0].ID); err != nil || id.Version() != 7 {
			r.Errorf("drawn id %q", receipts[0].ID)
		}
		if len(receipts[0].Effects) != 3 || len(receipts[1].Effects) != 2 {
			r.Errorf("%d and %d effects", len(receipts[0].Effects), len(receipts[1].Effects))
		}
		charges, mails := r.leased("wallets", "ledger", "charge"), r.leased("mailer", "smtp", "mail")
		if len(charges) != 1 || len(mails) != 4 {
			r.Fatalf("%d charges and %d mails", len(charges), len(mails))
		}
		c := charges[0]
		got := []any{c.Tenant, c.Key, c.OrderKey, string(c.Payload), c.SourcePosition, c.SourceEventID}
		want := []any{"acme", "charges:" + receipts[0].ID + ":0", "order-7", "7 EUR", receipts[0].Position, receipts[0].ID}
		if !slices.Equal(got, want) {
			r.Errorf("charge %v, want %v", got, want)
		}
		var keys []string
		for _, m := range mails {
			keys = append(keys, m.Key)
		}
		slices.Sort(keys)
		wantKeys := []string{"mails:" + receipts[0].ID + ":0", "mails:e-2:0", "own-" + receipts[0].ID, "own-e-2"}
		slices.Sort(wantKeys)
		if !slices.Equal(keys, wantKeys) {
			r.Errorf("mails %q, want %q", keys, wantKeys)
		}
	})
}

// Events and effects are there together, or neither is.
func TestAppendRollsBack(t *testing.T) {
	t.Parallel()
	onDrivers(t, func(r *rig) {
		l := r.log(events.Config{Subscriptions: []events.Subscription{toMail}})
		mine := errors.New("mine")
		err := r.store.Transact(r.Context(), func(tx db.Tx) error {
			_, err := l.Append(r.Context(), tx, events.Event{ID: "e-1", Type: "x"})
			return errors.Join(err, mine)
		})
		if !errors.Is(err, mine) || len(r.leased("mailer", "smtp", "mail")) != 0 {
			r.Errorf("after a rollback: %v, or effects are there", err)
		}
		if receipts := r.append(l, events.Event{ID: "e-1", Type: "x"}); receipts[0].Status != outbox.Recorded {
			r.Errorf("the id is taken: %+v", receipts)
		}
	})
}

// Shows: S4.3 S4.13
func TestAppendAgain(t *testing.T) {
	t.Parallel()
	onDrivers(t, func(r *rig) {
		l := r.log(events.Config{Subscriptions: []events.Subscription{toMail}})
		first := r.append(l, events.Event{ID: "e-1", Type: "x", Payload: []byte("a")})
		again := r.append(l, events.Event{ID: "e-1", Type: "x", Payload: []byte("a")}, events.Event{ID: "e-2", Type: "x"})
		if again[0].Status != outbox.Duplicate || again[0].Position != first[0].Position || again[0].Effects != nil {
			r.Errorf("duplicate %+v", again[0])
		}
		var conflicts *events.ConflictError
		err := r.store.Transact(r.Context(), func(tx db.Tx) error {
			receipts, err := l.Append(r.Context(), tx,
				events.Event{ID: "e-3", Type: "x"}, events.Event{ID: "e-1", Type: "x", Payload: []byte("b")}, events.Event{ID: "e-3", Type: "y"})
			if !errors.Is(err, events.ErrConflict) || !errors.As(err, &conflicts) {
				return fmt.Errorf("no conflict: %w", err)
			}
			for i, want := range []outbox.Status{outbox.Recorded, outbox.Conflicted, outbox.Conflicted} {
				if receipts[i].Status != want {
					r.Errorf("event %d is %v, want %v", i, receipts[i].Status, want)
				}
			}
			return nil // the transaction can go on
		})
		if err != nil {
			r.Fatal(err)
		}
		if c := conflicts.Conflicts; len(c) != 2 || c[0].Index != 1 || c[0].ID != "e-1" || c[0].Position != first[0].Position || c[1].Index != 2 {
			r.Errorf("conflicts %+v", c)
		}
		if n := len(r.leased("mailer", "smtp", "mail")); n != 6 {
			r.Errorf("%d mails of three events", n)
		}
	})
}

// A function that fails in whatever way refuses the append before any statement.
func TestDerivationsThatFail(t *testing.T) {
	t.Parallel()
	own := errors.New("own")
	for name, test := range map[string]struct {
		derive func(events.Event) ([]outbox.Effect, error)
		is     error
		says   string
	}{
		"panic":  {func(events.Event) ([]outbox.Effect, error) { panic("broken") }, nil, "panicked: broken"},
		"goexit": {func(events.Event) ([]outbox.Effect, error) { runtime.Goexit(); return nil, nil }, nil, "ended its goroutine"},
		"error":  {func(events.Event) ([]outbox.Effect, error) { return nil, own }, own, "own"},
		"kind":   {func(events.Event) ([]outbox.Effect, error) { return []outbox.Effect{{}}, nil }, outbox.ErrInvalid, "Kind is blank"},
		"consumer": {func(events.Event) ([]outbox.Effect, error) {
			return []outbox.Effect{{Kind: "k", Consumer: "other"}}, nil
		}, outbox.ErrInvalid, "Consumer"},
		"tenant": {func(events.Event) ([]outbox.Effect, error) { return []outbox.Effect{{Kind: "k", Tenant: "other"}}, nil }, outbox.ErrInvalid, "Tenant"},
		"source": {func(events.Event) ([]outbox.Effect, error) {
			return []outbox.Effect{{Kind: "k", SourcePosition: 4}}, nil
		}, outbox.ErrInvalid, "Source"},
	} {
		t.Run(name, func(t *testing.T) {
			r, store := onMemory(t)
			l := r.log(events.Config{Subscriptions: []events.Subscription{toMail, {Name: "bad", Consumer: "c", Target: "t", Derive: test.derive}}})
			var calls atomic.Int64
			store.Hook(memdb.Hook{Before: func(context.Context, memdb.Call) error { calls.Add(1); return nil }})
			tx := store.Begin()
			defer tx.Rollback()
			_, err := l.Append(t.Context(), tx, events.Event{Type: "x"}, events.Event{Type: "y"})
			var derivation *events.DerivationError
			if !errors.Is(err, events.ErrDerivation) || !errors.As(err, &derivation) || derivation.Subscription != "bad" || derivation.Index != 0 {
				t.Errorf("%v", err)
			}
			if test.is != nil && !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%q does not say %q", err, test.says)
			}
			if n := calls.Load(); n != 0 {
				t.Errorf("%d statements were sent", n)
			}
		})
	}
}

func TestBadEvents(t *testing.T) {
	t.Parallel()
	r, store := onMemory(t)
	l := r.log(events.Config{MaxPayload: 10})
	var calls atomic.Int64
	store.Hook(memdb.Hook{Before: func(context.Context, memdb.Call) error { calls.Add(1); return nil }})
	tx := store.Begin()
	defer tx.Rollback()
	for field, bad := range map[string]events.Event{
		"ID": {ID: strings.Repeat("i", 65), Type: "x"}, "Tenant": {Tenant: " ", Type: "x"}, "Stream": {Stream: "a\x00", Type: "x"}, "Type": {},
		"Payload": {Type: "x", Payload: make([]byte, 11)}, "Metadata": {Type: "x", Metadata: map[string]string{"traceparent": "t"}},
	} {
		_, err := l.Append(t.Context(), tx, events.Event{Type: "fine"}, bad)
		var invalid *outbox.InvalidError
		if !errors.Is(err, outbox.ErrInvalid) || !errors.As(err, &invalid) || invalid.Field != field || invalid.Index != 1 || !strings.Contains(err.Error(), "[1] ") {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := l.Append(t.Context(), nil, events.Event{Type: "x"}); !errors.Is(err, db.ErrForeignTx) {
		t.Errorf("no transaction: %v", err)
	}
	if n := calls.Load(); n != 0 {
		t.Errorf("%d statements were sent", n)
	}
}

func TestBadLogs(t *testing.T) {
	t.Parallel()
	r, _ := onMemory(t)
	nothing := func(events.Event) ([]outbox.Effect, error) { return nil, nil }
	for field, config := range map[string]events.Config{
		"MaxPayload":             {MaxPayload: 2 << 20},
		"Subscriptions.Name":     {Subscriptions: []events.Subscription{{Name: "a:b", Consumer: "c", Target: "t", Derive: nothing}}},
		"Subscriptions.Consumer": {Subscriptions: []events.Subscription{{Name: "a", Target: "t", Derive: nothing}}},
		"Subscriptions.Target":   {Subscriptions: []events.Subscription{{Name: "a", Consumer: "c", Target: "*", Derive: nothing}}},
		"Subscriptions.Types":    {Subscriptions: []events.Subscription{{Name: "a", Consumer: "c", Target: "t", Types: []string{""}, Derive: nothing}}},
		"Subscriptions.Derive":   {Subscriptions: []events.Subscription{{Name: "a", Consumer: "c", Target: "t"}}},
		"Decoders":               {Decoders: []events.Decoder{{}}},
	} {
		_, err := events.New(r.box, config)
		var invalid *outbox.InvalidError
		if !errors.Is(err, outbox.ErrInvalid) || !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := events.New(nil, events.Config{}); !errors.Is(err, outbox.ErrInvalid) {
		t.Errorf("no box: %v", err)
	}
	if _, err := events.New(r.box, events.Config{Subscriptions: []events.Subscription{toMail, toMail}}); !errors.Is(err, outbox.ErrInvalid) {
		t.Errorf("a name twice: %v", err)
	}
}

// An event with two subscriptions costs one round trip more than its effects alone.
func TestAppendTakesTwoStatements(t *testing.T) {
	t.Parallel()
	r, store := onMemory(t)
	l := r.log(events.Config{Subscriptions: []events.Subscription{toLedger, toMail}})
	var calls []string
	store.Hook(memdb.Hook{Before: func(_ context.Context, call memdb.Call) error { calls = append(calls, call.Operation); return nil }})
	tx := store.Begin()
	defer tx.Rollback()
	if _, err := l.Append(t.Context(), tx, events.Event{Type: "order.placed"}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"AppendEvents", "Enqueue"}; !slices.Equal(calls, want) {
		t.Errorf("statements %q, want %q", calls, want)
	}
}

// Facts are recorded where their effects are suppressed.
func TestAppendSuppressed(t *testing.T) {
	t.Parallel()
	r, store := onMemory(t)
	l := r.log(events.Config{Subscriptions: []events.Subscription{toMail}})
	tx := store.Begin()
	receipts, err := l.Append(outbox.WithSuppressed(t.Context()), tx, events.Event{Type: "x"})
	if err := errors.Join(err, tx.Commit()); err != nil {
		t.Fatal(err)
	}
	if receipts[0].Status != outbox.Recorded || receipts[0].Effects[0].Status != outbox.Suppressed {
		t.Errorf("%+v", receipts)
	}
	if d := store.Dump(); len(d.Events) != 1 || len(d.Messages) != 0 {
		t.Errorf("%d events and %d messages", len(d.Events), len(d.Messages))
	}
}
