package sender

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/outbox"
)

func many(n int, change ...func(*outbox.Effect)) []outbox.Effect {
	effects := make([]outbox.Effect, n)
	for i := range effects {
		effects[i] = effect(fmt.Sprint(i), change...)
	}
	return effects
}

func TestSettlesGoTogether(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		b.enqueue(many(400)...)
		counts := b.runOnce(b.sender(Config{Slots: 200, Batch: 200, Handlers: doing(succeed)}))
		if n := b.called("SettleDelivered"); counts.Delivered != 400 || n > 4 {
			b.Errorf("%d settles for %d deliveries", n, counts.Delivered)
		}
	})
}

func TestFullSettleDoesNotWait(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		stop := b.run(b.sender(Config{Slots: flushFull, Handlers: doing(succeed)}))
		b.enqueue(many(flushFull)...)
		wait(0)
		if n := len(b.outcomes()); n != flushFull {
			b.Errorf("settled %d", n)
		}
		if err := stop(); err != nil {
			b.Error(err)
		}
	})
}

func TestSettleWaitsNoLongerThanTheFlush(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		stop := b.run(b.sender(Config{Handlers: doing(succeed)}))
		wait(time.Second)
		id := b.enqueue(effect("a"))[0]
		wait(flushAfter)
		if b.outcomes()[id] != "delivered" {
			b.Error("not settled")
		}
		if err := stop(); err != nil {
			b.Error(err)
		}
	})
}

// losing lets statements be executed and loses their answers.
func (b *bench) losing(operation string, lose func() bool) {
	b.store.Hook(memdb.Hook{Before: b.before, After: func(_ context.Context, call memdb.Call, err error) error {
		if call.Operation == operation && err == nil && lose() {
			return errors.New("connection reset")
		}
		return err
	}})
}

// A settle whose answer is lost is sent again; the first one was recorded, which the second finds.
func TestLostAnswerOfASettle(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		var performed journal
		lost := 0
		b.losing("SettleDelivered", func() bool {
			lost++
			return lost == 1
		})
		b.enqueue(effect("a"))
		counts := b.runOnce(b.sender(Config{Handlers: doing(func(_ context.Context, m outbox.Message) error {
			performed.note(m)
			return nil
		})}))
		if got := performed.list(); counts.Delivered != 1 || counts.Lost != 0 || len(got) != 1 {
			b.Errorf("counted %+v, performed %v", counts, got)
		}
	})
}

// While a settle is not answered nothing more is leased; at the end of the lease it is given up, with one record that finds the message.
// Shows: S1.18
func TestUnansweredSettle(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		var performed journal
		stop := b.run(b.sender(Config{Handlers: doing(func(_ context.Context, m outbox.Message) error {
			performed.note(m)
			return nil
		})}))
		wait(time.Second)
		b.failing("SettleDelivered", errors.New("disk full"))
		b.enqueue(effect("key-a"))
		wait(100 * time.Millisecond)
		b.took()
		b.enqueue(effect("key-b"))
		wait(28 * time.Second)
		calls := b.took()
		if n := b.called("SettleDelivered"); slices.Contains(calls, "LeaseDue") || slices.Contains(calls, "DueLanes") {
			b.Errorf("leased although a settle was not answered: %v (%d)", calls, n)
		}
		settles := 0
		for _, call := range calls {
			if call == "SettleDelivered" {
				settles++
			}
		}
		if settles < 5 || settles > 30 {
			b.Errorf("%d settles in 28 s", settles)
		}
		if got := performed.list(); !slices.Equal(got, []string{"key-a"}) {
			b.Errorf("performed %v", got)
		}
		wait(10 * time.Second) // key-a was leased again meanwhile
		lines := b.log.lines("settle was not answered")
		if len(lines) != 1 || !strings.Contains(lines[0], "key=key-a") || !strings.Contains(lines[0], "id=1") || !strings.Contains(lines[0], "epoch=1") {
			b.Errorf("logged %v", lines)
		}
		b.failing("SettleDelivered", nil)
		wait(40 * time.Second)
		if got := b.outcomes(); len(got) != 2 {
			b.Errorf("settled %v", got)
		}
		if err := stop(); err != nil {
			b.Error(err)
		}
	})
}

// The messages of an order key follow each other without a scan each.
func TestSuccessorsFollow(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		var performed journal
		running := 0
		s := b.sender(Config{Handlers: doing(func(_ context.Context, m outbox.Message) error {
			if running++; running > 1 {
				b.Error("two messages of one key at once")
			}
			performed.note(m)
			time.Sleep(time.Millisecond)
			running--
			return nil
		})})
		b.enqueue(many(50, func(e *outbox.Effect) { e.OrderKey = "wallet 7" })...)
		began := time.Now()
		counts := b.runOnce(s)
		took := time.Since(began)
		if counts.Delivered != 50 || took > 60*time.Millisecond || b.called("LeaseDue") > 5 {
			b.Errorf("counted %+v in %v with %d leases", counts, took, b.called("LeaseDue"))
		}
		for i, key := range performed.list() {
			if key != fmt.Sprint(i) {
				b.Fatalf("performed %v", performed.list())
			}
		}
	})
}

// A successor has the slot of the message before it: nothing else was leased for that slot, to wait until it is given back.
func TestSuccessorsDoNotCrowd(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		s := b.sender(Config{Slots: 2, Handlers: doing(func(context.Context, outbox.Message) error {
			time.Sleep(25 * time.Second)
			return nil
		})})
		b.enqueue(many(6, func(e *outbox.Effect) { e.OrderKey = "wallet 7" })...)
		for i := range 6 {
			b.enqueue(effect(fmt.Sprint("free ", i)))
		}
		if counts := b.runOnce(s); counts.Delivered != 12 || counts.Released != 0 {
			b.Errorf("counted %+v", counts)
		}
	})
}

// What a settle recorded whose answer was lost is counted as what it was.
func TestLostAnswersAreCounted(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want Counts
	}{
		"delivered": {nil, Counts{Leased: 1, Delivered: 1}},
		"retried":   {errors.New("no"), Counts{Leased: 1, Retried: 1}},
		"dead":      {outbox.Permanent(errors.New("no")), Counts{Leased: 1, Dead: 1}},
		"parked":    {outbox.Unknown(errors.New("no")), Counts{Leased: 1, Parked: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, outbox.Policy{}, func(b *bench) {
				lost := 0
				b.store.Hook(memdb.Hook{After: func(_ context.Context, call memdb.Call, err error) error {
					if strings.HasPrefix(call.Operation, "Settle") && err == nil && lost == 0 {
						lost++
						return errDown
					}
					return err
				}})
				b.enqueue(effect("a"))
				counts := b.runOnce(b.sender(Config{Handlers: doing(func(context.Context, outbox.Message) error { return test.err })}))
				if counts != test.want || lost != 1 {
					b.Errorf("counted %+v after %d lost answers, want %+v", counts, lost, test.want)
				}
			})
		})
	}
}
