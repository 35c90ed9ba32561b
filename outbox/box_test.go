package outbox

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/internal/memdb"
)

// A bench is a box over an empty store in memory, with one consumer.
type bench struct {
	*testing.T
	store    *memdb.Store
	box      *Box
	consumer *Consumer
}

func newBench(t *testing.T, config Config, policy Policy) *bench {
	t.Helper()
	if config.Logger == nil {
		config.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	store := memdb.New(memdb.Config{})
	box, err := New(store, config)
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := box.Consumer("wallets", "ledger", policy)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{T: t, store: store, box: box, consumer: consumer}
}

// effect is a valid effect of the bench's consumer.
func effect(key string) Effect {
	return Effect{Consumer: "wallets", Target: "ledger", Kind: "charge", Key: key, Payload: []byte("payload of " + key)}
}

// enqueue stores effects in a transaction of its own.
func (b *bench) enqueue(effects ...Effect) Receipts {
	b.Helper()
	var receipts Receipts
	err := memdb.InTx(b.Context(), b.store, b.box, func(tx *memdb.Tx) (err error) {
		receipts, err = b.box.EnqueueMany(b.Context(), tx, effects)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return receipts
}

// lease leases at most limit messages of kind charge, of all tenants.
func (b *bench) lease(limit int) []Message {
	b.Helper()
	request := LeaseRequest{Kinds: []string{"charge"}, Scope: AllTenants, Limit: limit, For: 30 * time.Second}
	messages, err := b.box.Lease(b.Context(), b.consumer, request)
	if err != nil {
		b.Fatal(err)
	}
	return messages
}

// leaseOne enqueues an effect and leases it.
func (b *bench) leaseOne(key string) Message {
	b.Helper()
	b.enqueue(effect(key))
	messages := b.lease(1)
	if len(messages) != 1 {
		b.Fatalf("leased %v", messages)
	}
	return messages[0]
}

func (b *bench) settle(message Message, outcome Outcome) Result {
	b.Helper()
	result, err := b.box.Settle(b.Context(), b.consumer, AllTenants, message, outcome)
	if err != nil {
		b.Fatal(err)
	}
	return result
}

func (b *bench) show(id int64) Details {
	b.Helper()
	details, err := b.box.Show(b.Context(), AllTenants, id)
	if err != nil {
		b.Fatal(err)
	}
	return details
}

// calls counts the operations that reach the store from now on.
func (b *bench) calls() *[]string {
	var calls []string
	b.store.Hook(memdb.Hook{Before: func(_ context.Context, call memdb.Call) error {
		calls = append(calls, call.Operation)
		return nil
	}})
	return &calls
}
