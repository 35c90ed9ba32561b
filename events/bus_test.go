package events_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/outbox"
)

// A busRig is a bus in memory whose handlers note their calls.
type busRig struct {
	*rig
	memory *memdb.Store
	log    *events.Log
	bus    *events.Bus
	calls  []string
}

func newBus(t *testing.T, config events.BusConfig) *busRig {
	t.Helper()
	r, memory := onMemory(t)
	b := &busRig{rig: r, memory: memory, log: r.log(events.Config{Subscriptions: []events.Subscription{events.ToBus("shop")}})}
	if config.Slots == 0 {
		config.Slots = 1
	}
	var err error
	if b.bus, err = events.NewBus(b.log, "shop", config); err != nil {
		t.Fatal(err)
	}
	return b
}

// on subscribes a handler that notes its call and answers by a function of the call's number, from one.
func (b *busRig) on(name string, answer func(call int) error, types ...string) {
	b.Helper()
	call := 0
	err := b.bus.Subscribe(name, func(_ context.Context, _ db.Tx, e events.Event) error {
		call++
		b.calls = append(b.calls, name+" "+e.ID)
		if answer == nil {
			return nil
		}
		return answer(call)
	}, types...)
	if err != nil {
		b.Fatal(err)
	}
}

// once lets the bus deliver what is due and returns the calls that made.
func (b *busRig) once() []string {
	b.Helper()
	b.calls = nil
	if _, err := b.bus.Sender().RunOnce(b.Context()); err != nil {
		b.Fatal(err)
	}
	return b.calls
}

// state is that of the only message.
func (b *busRig) state() string {
	b.Helper()
	d := b.memory.Dump()
	switch {
	case len(d.Settlements) == 1:
		return d.Settlements[0].Outcome
	case len(d.Queue) == 1:
		return "open"
	}
	b.Fatalf("%d settlements, %d open", len(d.Settlements), len(d.Queue))
	return ""
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

var errSystem = errors.New("no connection")

// Shows: S2.2 S2.4 S2.5 S2.7
func TestBusAsksOnlyThoseWithoutReceipt(t *testing.T) {
	t.Parallel()
	b := newBus(t, events.BusConfig{})
	b.on("stock", nil, "order.placed")
	b.on("mail", func(call int) error {
		if call == 1 {
			return errSystem
		}
		return nil
	})
	b.on("other", nil, "order.shipped")
	b.on("last", nil, "order.placed", "order.shipped")
	b.append(b.log, events.Event{ID: "e-1", Type: "order.placed"})
	same(t, "first", b.once(), []string{"stock e-1", "mail e-1", "last e-1"})
	if b.state() != "open" {
		t.Error("the event is settled")
	}
	b.memory.Age(time.Minute)
	same(t, "second", b.once(), []string{"mail e-1"})
	if b.state() != "delivered" {
		t.Errorf("the event is %s", b.state())
	}
	if claims := b.memory.Dump().Claims; len(claims) != 3 || claims[0].Scope != "shop:last" || claims[0].Key != "e-1" || claims[0].State != db.ClaimCompleted {
		t.Errorf("receipts %+v", claims)
	}
}

// Shows: S2.6
func TestBusRecordsRejections(t *testing.T) {
	t.Parallel()
	b := newBus(t, events.BusConfig{})
	err := b.bus.Subscribe("stock", func(ctx context.Context, tx db.Tx, e events.Event) error {
		b.calls = append(b.calls, "stock")
		_, err := b.box.Enqueue(ctx, tx, outbox.Effect{Consumer: "c", Target: "t", Kind: "k", Key: "of a rejected event"})
		return errors.Join(err, fmt.Errorf("checking: %w", events.Reject("no such article")))
	})
	if err != nil {
		t.Fatal(err)
	}
	b.on("mail", func(call int) error {
		if call == 1 {
			return errSystem
		}
		return events.Reject(" ")
	})
	b.append(b.log, events.Event{ID: "e-1", Type: "x"})
	same(t, "first", b.once(), []string{"stock", "mail e-1"})
	b.memory.Age(time.Minute)
	same(t, "second", b.once(), []string{"mail e-1"})
	if b.state() != "delivered" {
		t.Errorf("the event is %s", b.state())
	}
	d := b.memory.Dump()
	if len(d.Messages) != 1 {
		t.Errorf("what the handler wrote was not rolled back: %+v", d.Messages)
	}
	if len(d.Claims) != 2 || d.Claims[1].State != db.ClaimRejected || d.Claims[1].Reason != "no such article" || d.Claims[0].Reason == "" {
		t.Errorf("receipts %+v", d.Claims)
	}
}

// Shows: S2.8
func TestBusDeadLetterNamesTheHandlers(t *testing.T) {
	t.Parallel()
	b := newBus(t, events.BusConfig{Retries: 1})
	b.on("stock", nil)
	b.on("mail", func(int) error { return errSystem })
	b.on("print", func(int) error { panic("out of paper") })
	b.append(b.log, events.Event{ID: "e-1", Type: "x"})
	same(t, "first", b.once(), []string{"stock e-1", "mail e-1", "print e-1"})
	b.memory.Age(time.Minute)
	same(t, "second", b.once(), []string{"mail e-1", "print e-1"})
	d := b.memory.Dump()
	if len(d.Settlements) != 1 || d.Settlements[0].Outcome != "dead" || d.Settlements[0].Cause != "attempts" {
		t.Fatalf("settlements %+v", d.Settlements)
	}
	for _, want := range []string{"mail: no connection", "print: the function panicked: out of paper", "mail, print; "} {
		if !strings.Contains(d.Settlements[0].Reason, want) {
			t.Errorf("%q does not say %q", d.Settlements[0].Reason, want)
		}
	}
}

// Shows: S2.11
func TestBusWithoutSubscriber(t *testing.T) {
	t.Parallel()
	b := newBus(t, events.BusConfig{})
	b.on("stock", nil, "order.placed")
	b.append(b.log, events.Event{ID: "e-1", Type: "nobody wants it"})
	same(t, "calls", b.once(), nil)
	if b.state() != "delivered" {
		t.Errorf("the event is %s", b.state())
	}
	if err := b.bus.Subscribe("late", func(context.Context, db.Tx, events.Event) error { return nil }); !errors.Is(err, outbox.ErrInvalid) {
		t.Errorf("subscribing after the start: %v", err)
	}
}

// Shows: S2.12 S2.13
func TestBusDefaults(t *testing.T) {
	t.Parallel()
	b := newBus(t, events.BusConfig{})
	b.on("mail", func(int) error { return errSystem })
	b.append(b.log, events.Event{ID: "e-1", Type: "x"})
	for retry := 1; ; retry++ {
		if calls := b.once(); len(calls) != 1 {
			t.Fatalf("retry %d: %q", retry, calls)
		}
		if b.state() != "open" {
			if retry != 11 {
				t.Errorf("dead after %d attempts, want 11", retry)
			}
			break
		}
		base := min(5*time.Minute, time.Second<<(retry-1))
		q := b.memory.Dump().Queue[0]
		if delay := time.Until(q.DueAt); delay > base || delay < base*4/5-5*time.Second {
			t.Errorf("retry %d after %v, want %v shortened by a fifth at most", retry, delay, base)
		}
		b.memory.Age(base)
	}
}

// Shows: S2.9 S2.10
func TestBusGoesOnElsewhere(t *testing.T) {
	t.Parallel()
	b := newBus(t, events.BusConfig{})
	b.on("stock", nil)
	b.on("mail", nil)
	b.append(b.log, events.Event{ID: "e-1", Type: "x"})
	// Another process had it, its first handler's transaction committed, and it died.
	if m := b.leased("shop", "bus", "event"); len(m) != 1 || m[0].Attempt != 1 {
		t.Fatalf("leased %v", m)
	}
	err := b.store.Transact(t.Context(), func(tx db.Tx) error {
		_, err := b.store.RecordClaim(t.Context(), tx, db.RecordClaimParams{Scope: "shop:stock", Key: "e-1", Digest: b.memory.Dump().Events[0].Digest, State: db.ClaimCompleted})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "while it is leased", b.once(), nil)
	b.memory.Age(2 * time.Minute)
	same(t, "once the lease is over", b.once(), []string{"mail e-1"})
	if b.state() != "delivered" {
		t.Errorf("the event is %s", b.state())
	}
}

// Whatever one handler does, the others have their turn, and an event that is as it was appended.
func TestBusHandlersAreApart(t *testing.T) {
	t.Parallel()
	b := newBus(t, events.BusConfig{})
	err := errors.Join(
		b.bus.Subscribe("ends its goroutine", func(context.Context, db.Tx, events.Event) error { runtime.Goexit(); return nil }),
		b.bus.Subscribe("typed nil", func(context.Context, db.Tx, events.Event) error { return (*typedError)(nil) }),
		b.bus.Subscribe("scribbles", func(_ context.Context, _ db.Tx, e events.Event) error {
			e.Payload[0], e.Metadata["by"] = 'X', "nobody"
			return nil
		}),
		b.bus.Subscribe("reads", func(_ context.Context, _ db.Tx, e events.Event) error {
			b.calls = append(b.calls, string(e.Payload)+" by "+e.Metadata["by"])
			return nil
		}),
	)
	if err != nil {
		t.Fatal(err)
	}
	b.append(b.log, events.Event{ID: "e-1", Type: "x", Payload: []byte("paid"), Metadata: map[string]string{"by": "ann"}})
	same(t, "calls", b.once(), []string{"paid by ann"})
	if q := b.memory.Dump().Queue; len(q) != 1 || !strings.Contains(q[0].LastError, "handlers failed (2): ends its goroutine, typed nil;") {
		t.Errorf("%+v", q)
	}
}

type typedError struct{ text string }

func (e *typedError) Error() string { return e.text } // panics for nil

// An id that comes again after its event was purged is another event, which the receipt of the first does not settle.
func TestBusReusedID(t *testing.T) {
	t.Parallel()
	b := newBus(t, events.BusConfig{})
	b.on("stock", nil)
	b.append(b.log, events.Event{ID: "e-1", Type: "x", Payload: []byte("one")})
	same(t, "first", b.once(), []string{"stock e-1"})
	b.memory.Age(time.Hour)
	purged, err := b.store.PurgeEvents(t.Context(), db.PurgeEventsParams{Keep: 1, MaxRows: 10})
	if err != nil || purged[0].Removed != 1 {
		t.Fatalf("%+v, %v", purged, err)
	}
	if _, err := b.store.PurgeDelivered(t.Context(), db.PurgeDeliveredParams{Keep: 1, MaxRows: 10, AllTenants: true}); err != nil {
		t.Fatal(err)
	}
	b.append(b.log, events.Event{ID: "e-1", Type: "x", Payload: []byte("two")})
	same(t, "again", b.once(), nil)
	if b.state() != "open" {
		t.Errorf("an event that nobody handled is %s", b.state())
	}
}

func TestBusBeside(t *testing.T) {
	t.Parallel()
	b := newBus(t, events.BusConfig{})
	err := b.bus.SubscribeBeside("push", func(_ context.Context, e events.Event) error {
		b.calls = append(b.calls, "push "+e.ID)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b.on("mail", func(call int) error {
		if call == 1 {
			return errSystem
		}
		return nil
	})
	b.append(b.log, events.Event{ID: "e-1", Type: "x"})
	same(t, "first", b.once(), []string{"push e-1", "mail e-1"})
	b.memory.Age(time.Minute)
	same(t, "second", b.once(), []string{"mail e-1"})
}

// The event is gone, so nobody can handle it.
func TestBusWithoutSource(t *testing.T) {
	t.Parallel()
	b := newBus(t, events.BusConfig{})
	b.on("mail", nil)
	b.append(b.log, events.Event{ID: "e-1", Type: "x"})
	b.memory.Age(time.Hour)
	if rows, err := b.store.PurgeEvents(t.Context(), db.PurgeEventsParams{Keep: 1, MaxRows: 10}); err != nil || rows[0].Removed != 1 {
		t.Fatalf("%+v, %v", rows, err)
	}
	same(t, "calls", b.once(), nil)
	if d := b.memory.Dump(); len(d.Settlements) != 1 || d.Settlements[0].Cause != "permanent" {
		t.Errorf("settlements %+v", d.Settlements)
	}
}

func TestBadBuses(t *testing.T) {
	t.Parallel()
	r, _ := onMemory(t)
	l := r.log(events.Config{Subscriptions: []events.Subscription{events.ToBus("shop"), toMail}})
	for name, test := range map[string]struct {
		bus    string
		config events.BusConfig
		field  string
	}{
		"no subscription":      {"other", events.BusConfig{}, "name"},
		"another subscription": {"mails", events.BusConfig{}, "name"},
		"retries":              {"shop", events.BusConfig{Retries: -1}, "Retries"},
		"slots":                {"shop", events.BusConfig{Slots: -1}, "Slots"},
		"delay":                {"shop", events.BusConfig{InitialDelay: -1}, "InitialDelay"},
		"timeout":              {"shop", events.BusConfig{Timeout: -1}, "Timeout"},
		"long timeout":         {"shop", events.BusConfig{Timeout: time.Hour + 1}, "Timeout"},
	} {
		_, err := events.NewBus(l, test.bus, test.config)
		var invalid *outbox.InvalidError
		if !errors.Is(err, outbox.ErrInvalid) || !errors.As(err, &invalid) || invalid.Field != test.field {
			t.Errorf("%s: %v", name, err)
		}
	}
	bus, err := events.NewBus(l, "shop", events.BusConfig{})
	if err != nil {
		t.Fatal(err)
	}
	fine := func(context.Context, db.Tx, events.Event) error { return nil }
	if err := bus.Subscribe("a", fine); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"twice": bus.Subscribe("a", fine), "no name": bus.Subscribe(" ", fine), "nil": bus.Subscribe("b", nil),
		"long": bus.Subscribe(strings.Repeat("n", 124), fine), "type": bus.Subscribe("c", fine, "*"), "nil beside": bus.SubscribeBeside("d", nil),
	} {
		if !errors.Is(err, outbox.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Every slot needs a connection while a handler runs, and the bus needs one more: with fewer it would stand still.
func TestBusNeedsConnections(t *testing.T) {
	t.Parallel()
	r := openPgx(t) // a pool of 8
	l := r.log(events.Config{Subscriptions: []events.Subscription{events.ToBus("shop")}})
	if _, err := events.NewBus(l, "shop", events.BusConfig{Slots: 8}); !errors.Is(err, outbox.ErrInvalid) || !strings.Contains(err.Error(), "9 connections") {
		t.Errorf("eight slots: %v", err)
	}
	for _, slots := range []int{0, 7} {
		if _, err := events.NewBus(l, "shop", events.BusConfig{Slots: slots}); err != nil {
			t.Errorf("%d slots: %v", slots, err)
		}
	}
}
