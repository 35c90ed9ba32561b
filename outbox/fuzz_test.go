package outbox

import (
	"bytes"
	"errors"
	"maps"
	"math"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/internal/memdb"
)

// I30: an effect is refused before any statement or stored as it is; never does the database refuse what Go let pass. The store in memory
// has the CHECKs of the schema.
func FuzzEnqueue(f *testing.F) {
	f.Add("", "wallets", "ledger", "charge", "k", "", []byte("{}"), "name", "value", int64(0), int64(0), int64(0), int64(0), "")
	f.Add("acme", "c\x00", "*", " ", "\xff", "\u0085", []byte{}, "traceparent", "\x00", int64(-1), int64(math.MaxInt64), int64(1), int64(-1), "e")
	f.Add("*", "\u00a0", "t", "k", "*", "*", []byte(nil), "", "\u2028", int64(math.MaxInt64), int64(0), int64(253402300800), int64(1), "\u3000")
	f.Fuzz(func(t *testing.T, tenant, consumer, target, kind, key, orderKey string, payload []byte, name, value string,
		delay, maxAge, due, position int64, event string) {
		store := memdb.New(memdb.Config{})
		box, err := New(store, Config{})
		if err != nil {
			t.Fatal(err)
		}
		given := Effect{
			Tenant: tenant, Consumer: consumer, Target: target, Kind: kind, Key: key, OrderKey: orderKey, Payload: payload,
			Metadata: map[string]string{name: value}, Delay: time.Duration(delay), MaxAge: time.Duration(maxAge),
			SourcePosition: position, SourceEventID: event, Priority: int16(delay),
		}
		if due != 0 {
			given.DueAt = time.Unix(due, position)
		}
		tx := store.Begin()
		receipts, err := box.EnqueueMany(t.Context(), tx, []Effect{given, given})
		if err == nil {
			err = tx.Commit()
		}
		if errors.Is(err, ErrInvalid) {
			return
		}
		if err != nil || receipts[0].Status != Recorded || receipts[1].Status != Duplicate || receipts[1].ID != receipts[0].ID {
			t.Fatalf("%+v: %+v, %v", given, receipts, err)
		}
		got, err := box.Show(t.Context(), AllTenants, receipts[0].ID)
		if err != nil || got.Tenant != tenant || got.Consumer != consumer || got.Target != target || got.Kind != kind || got.Key != key ||
			got.OrderKey != orderKey || !bytes.Equal(got.Payload, payload) || !maps.Equal(got.Metadata, given.Metadata) ||
			got.SourcePosition != position || got.SourceEventID != event || got.Priority != given.Priority {
			t.Errorf("%+v came back as %+v, %v", given, got, err)
		}
	})
}

// I13: a delay lies in (base × (1 − jitter), base], base is at most the cap, and the same message and attempt give the same delay.
func FuzzRetryDelay(f *testing.F) {
	f.Add("k", int64(30*time.Second), int64(15*time.Minute), 20, 1)
	f.Add("", int64(1), int64(math.MaxInt64), 100, math.MaxInt32)
	box, err := New(memdb.New(memdb.Config{}), Config{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, key string, initial, limit int64, jitter, attempt int) {
		consumer, err := box.Consumer("c", "t", Policy{InitialDelay: time.Duration(initial), MaxDelay: time.Duration(limit), Jitter: jitter})
		if err != nil {
			return
		}
		policy, m := consumer.Policy(), Message{Consumer: "c", Key: key}
		base := curve(policy.InitialDelay, policy.MaxDelay, attempt)
		delay := box.RetryDelay(consumer, m, attempt)
		least := float64(base) * float64(100-policy.Jitter) / 100
		if delay <= 0 || delay > base || base > policy.MaxDelay || float64(delay) < least*(1-1e-9)-1 {
			t.Errorf("attempt %d of %+v: %v from %v", attempt, policy, delay, base)
		}
		if next := curve(policy.InitialDelay, policy.MaxDelay, attempt+1); attempt < math.MaxInt && next < base {
			t.Errorf("attempt %d of %+v: %v, then %v", attempt, policy, base, next)
		}
		if again := box.RetryDelay(consumer, m, attempt); again != delay {
			t.Errorf("attempt %d of %+v: %v, then %v", attempt, policy, delay, again)
		}
	})
}
