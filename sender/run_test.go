package sender

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/outbox"
)

func TestRunPerformsWhatIsEnqueued(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		var performed journal
		stop := b.run(b.sender(Config{Handlers: doing(func(_ context.Context, m outbox.Message) error {
			performed.note(m)
			return nil
		})}))
		wait(time.Second)
		ids := b.enqueue(effect("a"), effect("b"))
		wait(100 * time.Millisecond) // woken: less than a poll
		if got := performed.list(); !slices.Equal(slices.Sorted(slices.Values(got)), []string{"a", "b"}) {
			b.Errorf("performed %v", got)
		}
		if got := b.outcomes(); got[ids[0]] != "delivered" || got[ids[1]] != "delivered" {
			b.Errorf("settled %v", got)
		}
		if err := stop(); err != nil {
			b.Error(err)
		}
	})
}

func TestIdlePollIsOneQuery(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		stop := b.run(b.sender(Config{Handlers: doing(succeed)}))
		wait(0)
		if got, want := b.took(), []string{"ReadVersion", "CheckRole", "RegisterWorker", "DueLanes"}; !slices.Equal(got, want) {
			b.Errorf("started with %v, want %v", got, want)
		}
		wait(9900 * time.Millisecond)
		want := slices.Repeat([]string{"DueLanes"}, 19) // every 500 ms
		if got := b.took(); !slices.Equal(got, want) {
			b.Errorf("idle with %v, want %v", got, want)
		}
		wait(time.Second)
		if got := b.took(); !slices.Contains(got, "TouchWorkers") {
			b.Errorf("after 10 s only %v", got)
		}
		if err := stop(); err != nil {
			b.Error(err)
		}
	})
}

// Shows: S3.17
func TestNoHandlersNoQuery(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		s := b.sender(Config{})
		stop := b.run(s)
		b.enqueue(effect("a"))
		wait(time.Minute)
		counts := b.runOnce(s)
		if err := stop(); err != nil {
			b.Error(err)
		}
		if got := b.took(); len(got) > 0 || counts != (Counts{}) {
			b.Errorf("sent %v, counted %+v", got, counts)
		}
	})
}

// Shows: S3.12 S3.24
func TestRunOnce(t *testing.T) {
	inBubble(t, outbox.Policy{MaxAttempts: 2, InitialDelay: time.Minute}, func(b *bench) {
		fail := errors.New("refused")
		s := b.sender(Config{Handlers: doing(func(_ context.Context, m outbox.Message) error {
			switch m.Key {
			case "retried":
				return fail
			case "dead":
				return outbox.Permanent(fail)
			case "parked":
				return outbox.Unknown(fail)
			}
			return nil
		})})
		b.enqueue(effect("delivered"), effect("retried"), effect("dead"), effect("parked"), effect("later", func(e *outbox.Effect) { e.Delay = time.Hour }))
		if got, want := b.runOnce(s), (Counts{Leased: 4, Delivered: 1, Retried: 1, Dead: 1, Parked: 1}); !reflect.DeepEqual(got, want) {
			b.Errorf("first %+v, want %+v", got, want)
		}
		wait(time.Minute)
		if got, want := b.runOnce(s), (Counts{Leased: 1, Dead: 1}); !reflect.DeepEqual(got, want) {
			b.Errorf("second %+v, want %+v", got, want)
		}
	})
}

// A scan over very many dead entries may take longer than a statement that keeps a lease.
func TestSlowScanOfShortLeases(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		b.store.Hook(memdb.Hook{Before: func(ctx context.Context, call memdb.Call) error {
			if call.Operation != "DueLanes" {
				return nil
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(9 * time.Second):
				return nil
			}
		}})
		b.enqueue(effect("a"))
		if counts := b.runOnce(b.sender(Config{Lease: time.Second, Handlers: doing(succeed)})); counts.Delivered != 1 {
			b.Errorf("counted %+v", counts)
		}
	})
}

// What one sender asks for counts for all, so they come to ask at the same times.
func TestIdlePollIsOneQueryForAllSenders(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		var senders []*Sender
		for _, name := range []string{"wallets", "mail", "search", "audit"} {
			consumer, err := b.box.Consumer(name, "ledger", outbox.Policy{})
			if err != nil {
				b.Fatal(err)
			}
			s, err := New(b.box, consumer, Config{Handlers: doing(succeed)})
			if err != nil {
				b.Fatal(err)
			}
			senders = append(senders, s)
		}
		ctx, cancel := context.WithCancel(b.Context())
		ended := make(chan error, 1)
		go func() { ended <- RunAll(ctx, senders...) }()
		wait(time.Second) // they start
		b.took()
		wait(time.Minute)
		polls, touches := 0, 0
		for _, call := range b.took() {
			switch call {
			case "DueLanes":
				polls++
			case "TouchWorkers":
				touches++
			default:
				b.Errorf("idle with %s", call)
			}
		}
		if polls != 120 || touches != 6 {
			b.Errorf("%d polls and %d touches in a minute, want 120 and 6", polls, touches)
		}
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
}

// A commit that the shared question missed is found by the next one, a poll later at most, whosever it is.
func TestSharedPollsMissNothing(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		var performed journal
		handlers := doing(func(_ context.Context, m outbox.Message) error {
			performed.note(m)
			return nil
		})
		other, err := b.box.Consumer("mail", "ledger", outbox.Policy{})
		if err != nil {
			b.Fatal(err)
		}
		second, err := New(b.box, other, Config{Handlers: handlers})
		if err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithCancel(b.Context())
		ended := make(chan error, 1)
		first := b.sender(Config{Handlers: handlers})
		go func() { ended <- RunAll(ctx, first, second) }()
		producer, err := outbox.New(b.store, outbox.Config{Logger: b.log.logger()}) // another process: nobody is woken
		if err != nil {
			b.Fatal(err)
		}
		b.box = producer
		for i := range 50 {
			wait(377 * time.Millisecond)
			e := effect(fmt.Sprint("key-", i))
			if i%2 == 0 {
				e.Consumer = "mail"
			}
			b.enqueue(e)
			wait(510 * time.Millisecond)
			if n := len(performed.list()); n != i+1 {
				b.Fatalf("%d of %d messages are performed within a poll", n, i+1)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
}
