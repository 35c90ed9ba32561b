package sender

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/outbox"
)

// handing runs a sender with hand-off that has found nothing to do. Only what a test lets happen wakes it then: it polls once an hour, but for a
// Poll of the test's.
func (b *bench) handing(config Config) (stop func() error) {
	b.Helper()
	config.HandOff = true
	if config.Poll == 0 {
		config.Poll = time.Hour
	}
	stop = b.run(b.sender(config))
	wait(flushAfter)
	b.took()
	return stop
}

// begin enqueues in a transaction that stays open.
func (b *bench) begin(effects ...outbox.Effect) (*memdb.Tx, outbox.Receipts) {
	b.Helper()
	tx := b.store.Begin()
	receipts, err := b.box.EnqueueMany(b.Context(), tx, effects)
	if err != nil {
		b.Fatal(err)
	}
	return tx, receipts
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// seen keeps the messages that a handler was called with.
type seen struct {
	mu  sync.Mutex
	all []outbox.Message
}

func (s *seen) do(_ context.Context, m outbox.Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, m)
	return nil
}

func (s *seen) list() []outbox.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// What is handed off is performed after one renewal, without a scan or a lease, and its handler sees what a lease would have shown it.
func TestHandOffTakesOneRoundTrip(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		b.observe(&outbox.Observer{Propagate: func(context.Context) map[string]string { return map[string]string{"traceparent": "00-a-b-01"} }})
		whole := func(e *outbox.Effect) {
			e.Priority, e.Payload, e.Metadata, e.SourcePosition, e.SourceEventID = 3, []byte("body"), map[string]string{"a": "b"}, 9, "evt"
		}
		var leased, handed seen
		plain := b.enqueue(effect("a", whole))[0]
		b.runOnce(b.sender(Config{Handlers: doing(leased.do)}))
		stop := b.handing(Config{Handlers: doing(handed.do)})
		id := b.enqueue(effect("b", whole))[0]
		wait(flushAfter)
		if calls := b.took(); !slices.Equal(calls, []string{"EnqueueLeased", "Renew", "SettleDelivered"}) {
			b.Errorf("called %v", calls)
		}
		want, got := leased.list()[0], handed.list()[0]
		if got.CreatedAt.IsZero() || !got.CreatedAt.Equal(got.DueAt) || got.ID != id || got.LeasedUntil.Before(time.Now().Add(29*time.Second)) {
			b.Errorf("handed %+v", got)
		}
		if lane := got.Lane(); lane.Priority != 3 || got.Fence().Epoch != 1 || plain == id {
			b.Errorf("handed %+v in %v", got, lane)
		}
		for _, m := range []*outbox.Message{&want, &got} { // what differs from one message to the next
			*m = outbox.Message{
				Tenant: m.Tenant, Consumer: m.Consumer, Target: m.Target, Kind: m.Kind, OrderKey: m.OrderKey, Priority: m.Priority, Payload: m.Payload,
				Metadata: m.Metadata, SourcePosition: m.SourcePosition, SourceEventID: m.SourceEventID, Attempt: m.Attempt, Epoch: m.Epoch,
				Replays: m.Replays, Unsure: m.Unsure,
			}
		}
		if !reflect.DeepEqual(got, want) {
			b.Errorf("handed %#v, leased %#v", got, want)
		}
		b.must(stop())
	})
}

// What may not be handed off is stored as ever, and performed as ever.
func TestHandOffNever(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		b.enqueue(effect("duplicate"))
		b.pauseKind("paused")
		handlers := Handlers{"charge": {Do: succeed}, "paused": {Do: succeed}}
		stop := b.handing(Config{Handlers: handlers})
		cases := map[string]outbox.Effect{
			"an order key":       effect("a", func(e *outbox.Effect) { e.OrderKey = "o" }),
			"a delay":            effect("b", func(e *outbox.Effect) { e.Delay = time.Minute }),
			"a due time":         effect("c", func(e *outbox.Effect) { e.DueAt = time.Now().Add(time.Hour) }),
			"a paused lane":      effect("d", func(e *outbox.Effect) { e.Kind = "paused" }),
			"a kind of others":   effect("e", func(e *outbox.Effect) { e.Kind = "email" }),
			"a tenant of others": effect("f", func(e *outbox.Effect) { e.Tenant = "acme" }),
			"another target":     effect("g", func(e *outbox.Effect) { e.Target = "elsewhere" }),
			"another consumer":   effect("h", func(e *outbox.Effect) { e.Consumer = "mails" }),
		}
		for what, e := range cases {
			tx, receipts := b.begin(e)
			b.must(tx.Commit())
			if q := b.row(receipts[0].ID); q.Attempt != 0 || b.leased() > 0 {
				b.Errorf("%s: %+v", what, q)
			}
		}
		tx, receipts := b.begin(effect("duplicate"), effect("handed"))
		b.must(tx.Commit())
		if receipts[0].Status != outbox.Duplicate || b.leased() != 1 {
			b.Errorf("beside a duplicate: %+v, %d leased", receipts, b.leased())
		}
		receipts.Committed()
		wait(flushAfter)
		if b.outcomes()[receipts[1].ID] != "delivered" {
			b.Error("what was handed off beside a duplicate is not delivered")
		}
		b.must(stop())
	})
}

func (b *bench) pauseKind(kind string) {
	b.Helper()
	lane := outbox.LanePattern{Consumer: outbox.Any, Target: outbox.Any, Kind: kind, Tenant: outbox.Any}
	_, err := b.box.Pause(b.Context(), outbox.AllTenants, lane, outbox.PauseLeasing, outbox.By{Actor: "op", Reason: "test"})
	b.must(err)
}

// A lane whose target is unavailable has nothing born in it until a probe reaches the target; others have.
func TestHandOffSparesAnUnavailableTarget(t *testing.T) {
	inBubble(t, outbox.Policy{InitialDelay: 10 * time.Second, Jitter: outbox.NoJitter}, func(b *bench) {
		var up atomic.Bool
		stop := b.handing(Config{Poll: time.Second, Handlers: Handlers{"email": {Do: succeed}, "charge": {Do: func(context.Context, outbox.Message) error {
			if !up.Load() {
				return outbox.Unavailable(errors.New("connection refused"))
			}
			return nil
		}}}})
		b.enqueue(effect("a"))
		wait(flushAfter)
		born := func(kind, key string) bool {
			tx, receipts := b.begin(effect(key, func(e *outbox.Effect) { e.Kind = kind }))
			b.must(tx.Commit())
			defer receipts.Committed()
			return b.row(receipts[0].ID).Attempt == 1
		}
		if born("charge", "b") || !born("email", "c") {
			b.Error("born in the lane that is held back, or not in the other")
		}
		up.Store(true)
		wait(time.Minute)
		if !born("charge", "d") {
			b.Error("not born after the target was reached")
		}
		wait(time.Second)
		if n := len(b.outcomes()); n != 4 {
			b.Errorf("%d settled", n)
		}
		b.must(stop())
	})
}

// Nothing is born beyond the free slots; what was born and finds its slot taken is given back unspent.
func TestHandOffNeedsASlot(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		release := make(chan struct{})
		stop := b.handing(Config{Slots: 2, Poll: time.Second, Handlers: doing(func(context.Context, outbox.Message) error {
			<-release
			return nil
		})})
		early, pending := b.begin(effect("a"), effect("b"), effect("c"))
		if err := early.Commit(); err != nil || b.leased() != 2 {
			b.Errorf("%d born for 2 slots: %v", b.leased(), err)
		}
		pending[2:].Committed() // takes a slot
		wait(10 * time.Millisecond)
		pending[:2].Committed() // of which one is too much
		wait(10 * time.Millisecond)
		back := b.row(pending[0].ID)
		if other := b.row(pending[1].ID); back.Attempt > other.Attempt {
			back = other
		}
		if back.Attempt != 0 || back.Unsure || b.leased() != 2 || b.called("Release") != 1 {
			b.Errorf("given back %+v, %d leased, called %v", back, b.leased(), b.took())
		}
		if tx, receipts := b.begin(effect("d")); tx.Commit() != nil || b.row(receipts[0].ID).Attempt != 0 {
			b.Error("born without a free slot")
		}
		close(release)
		wait(5 * time.Second)
		if n := len(b.outcomes()); n != 4 {
			b.Errorf("%d settled", n)
		}
		b.must(stop())
	})
}

// A rollback leaves nothing; its slots can be handed off again once two thirds of the lease are over. An insert that fails keeps none.
func TestHandOffAfterRollbacks(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		stop := b.handing(Config{Slots: 2, Handlers: doing(succeed)})
		b.failing("EnqueueLeased", errors.New("connection reset"))
		for range 5 {
			tx := b.store.Begin()
			if _, err := b.box.Enqueue(b.Context(), tx, effect("a")); err == nil {
				b.Error("enqueued")
			}
			b.must(tx.Rollback())
		}
		b.failing("EnqueueLeased", nil)
		born := func(want int) {
			b.Helper()
			b.took()
			tx, _ := b.begin(effect("a"))
			b.must(tx.Rollback())
			if n := b.called("EnqueueLeased"); n != want {
				b.Errorf("%d born, want %d", n, want)
			}
		}
		born(1)
		born(1)
		born(0)
		wait(bornFor)
		born(1)
		if d := b.store.Dump(); len(d.Messages)+len(d.Queue) > 0 {
			b.Errorf("left %+v", d)
		}
		b.must(stop())
	})
}

// What is committed without a word is found after a Poll, with its first attempt; what is committed later than that, when two thirds of the lease
// are over; and what is committed after the lease is leased anew, with its attempt spent.
func TestHandOffUnheard(t *testing.T) {
	for _, c := range []struct {
		after            time.Duration // the insert the commit comes
		says             bool
		attempt, epoch   int
		performed, later time.Duration
	}{
		{0, false, 1, 1, 1100 * time.Millisecond, time.Second},
		{2 * time.Second, false, 1, 2, 5 * time.Second, 3 * time.Second},
		{2 * time.Second, true, 1, 1, 2 * time.Second, 2 * time.Second},
		{4 * time.Second, true, 2, 2, 7 * time.Second, 5 * time.Second},
		{time.Minute, true, 2, 2, time.Minute, time.Minute},
	} {
		t.Run(fmt.Sprint(c.after, c.says), func(t *testing.T) {
			inBubble(t, outbox.Policy{}, func(b *bench) {
				var performed seen
				var at time.Time
				stop := b.handing(Config{Poll: time.Second, Handlers: doing(func(ctx context.Context, m outbox.Message) error {
					at = time.Now()
					return performed.do(ctx, m)
				})})
				began := time.Now()
				tx, receipts := b.begin(effect("a"))
				wait(c.after)
				b.must(tx.Commit())
				if c.says {
					receipts.Committed()
				}
				wait(10 * time.Second)
				all := performed.list()
				if len(all) != 1 || all[0].Attempt != c.attempt || int(all[0].Epoch) != c.epoch || all[0].Unsure != (c.attempt > 1) {
					b.Fatalf("performed %+v", all)
				}
				if took := at.Sub(began); took < c.later || took > c.performed {
					b.Errorf("performed after %v", took)
				}
				b.must(stop())
			})
		})
	}
}

// A message too old by the time of its commit is left to the lease statement, which buries it.
func TestHandOffOfWhatGrewOld(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		stop := b.handing(Config{Poll: time.Second, Handlers: doing(succeed)})
		tx, receipts := b.begin(effect("a", func(e *outbox.Effect) { e.MaxAge = time.Second }))
		wait(2 * time.Second)
		b.must(tx.Commit())
		receipts.Committed()
		wait(10 * time.Second)
		if got := b.outcomes()[receipts[0].ID]; got != "dead" {
			b.Errorf("it is %q", got)
		}
		b.must(stop())
	})
}

// A pause that comes between the insert and the commit holds the message back.
func TestHandOffMeetsAPause(t *testing.T) {
	for _, mode := range []outbox.PauseMode{outbox.PauseLeasing, outbox.PauseCancel} {
		inBubbleNamed(t, fmt.Sprint(mode), func(b *bench) {
			stop := b.handing(Config{Handlers: doing(succeed)})
			tx, receipts := b.begin(effect("a"))
			b.pause(mode)
			b.must(tx.Commit())
			receipts.Committed()
			wait(time.Second)
			if q := b.row(receipts[0].ID); q.Attempt != 0 || b.leased() > 0 {
				b.Errorf("not given back: %+v", q)
			}
			b.must(stop())
		})
	}
}

func inBubbleNamed(t *testing.T, name string, test func(*bench)) {
	t.Run(name, func(t *testing.T) { inBubble(t, outbox.Policy{}, test) })
}

// A renewal that fails, or in which an observer ends its goroutine, is sent again.
func TestHandOffConfirmsAgain(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		ended := false
		b.observe(&outbox.Observer{Leased: func(context.Context, []outbox.Message) {
			if !ended {
				ended = true
				runtime.Goexit()
			}
		}})
		stop := b.handing(Config{Handlers: doing(succeed)})
		b.failing("Renew", errors.New("connection reset"))
		id := b.enqueue(effect("a"))[0]
		wait(time.Second)
		b.failing("Renew", nil)
		wait(2 * time.Second)
		if b.outcomes()[id] != "delivered" || !ended {
			b.Errorf("it is %+v; called %v", b.row(id), b.took())
		}
		b.must(stop())
	})
}

// A stop gives back what was born, as far as it is committed; of what is open still, the lease runs out and another takes over.
func TestHandOffAtAStop(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		stop := b.handing(Config{Handlers: doing(succeed)})
		unheard, told := b.begin(effect("a"))
		b.must(unheard.Commit())
		open, pending := b.begin(effect("b"))
		began := time.Now()
		done := make(chan error, 1)
		go func() { done <- stop() }()
		wait(100 * time.Millisecond)
		during, receipts := b.begin(effect("c"))
		b.must(during.Commit())
		if b.row(receipts[0].ID).Attempt != 0 {
			b.Error("born during the stop")
		}
		if err := <-done; err != nil || time.Since(began) > lastWords {
			b.Errorf("stopped after %v: %v", time.Since(began), err)
		}
		if q := b.row(told[0].ID); q.Attempt != 0 {
			b.Errorf("not given back: %+v", q)
		}
		b.must(open.Commit())
		pending.Committed()
		var other seen
		b.run(b.sender(Config{Handlers: doing(other.do)}))
		wait(bornFor + time.Second)
		if n := len(other.list()); n != 3 || len(b.outcomes()) != 3 {
			b.Errorf("another performed %d", n)
		}
	})
}

// Once the credential is revoked nothing is handed off, nor before it was verified.
func TestHandOffObeysTheCredential(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		b.open(outbox.Config{Logger: b.log.logger(), RequireCredential: true})
		credential := b.credential("w", "wallets", "")
		done := b.started(b.sender(Config{HandOff: true, Name: "w", Credential: credential, Handlers: doing(succeed), Poll: time.Hour}))
		b.took()
		open, pending := b.begin(effect("a"))
		if b.called("EnqueueLeased") != 1 {
			b.Error("nothing was handed off")
		}
		b.revoke("w")
		wait(touchEvery)
		b.must(open.Commit())
		pending.Committed()
		b.enqueue(effect("b"))
		wait(10 * time.Second)
		if err := <-done; !errors.Is(err, outbox.ErrRevoked) || errors.Is(err, ErrLeasesLeft) {
			b.Errorf("run: %v", err)
		}
		if b.called("EnqueueLeased") != 1 || len(b.outcomes()) > 0 {
			b.Errorf("called %v", b.took())
		}
	})
}

// While the credential cannot be looked up nothing is born either.
func TestHandOffWithoutTrust(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		stop := b.handing(Config{Name: "w", Credential: b.credential("w", "wallets", ""), Handlers: doing(succeed)})
		b.failing("FindCredential", errors.New("connection reset"))
		wait(trusted)
		b.took()
		b.enqueue(effect("a"))
		if b.called("EnqueueLeased") > 0 {
			b.Error("handed off")
		}
		b.failing("FindCredential", nil)
		wait(time.Minute)
		b.must(stop())
	})
}

// A RunOnce hands nothing off, nor does a sender without the setting; a policy of one attempt cannot.
func TestHandOffIsOptIn(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		if counts := b.runOnce(b.sender(Config{HandOff: true, Handlers: doing(succeed)})); counts != (Counts{}) {
			b.Errorf("counted %+v", counts)
		}
		stop := b.run(b.sender(Config{Handlers: doing(succeed)}))
		synctest.Wait()
		b.enqueue(effect("a"))
		if b.called("EnqueueLeased") > 0 {
			b.Error("handed off")
		}
		b.must(stop())
		b.enqueue(effect("b"))
		if b.called("EnqueueLeased") > 0 {
			b.Error("handed off to nobody")
		}
		once, err := b.box.Consumer("wallets", "ledger", outbox.Policy{MaxAttempts: 1})
		b.must(err)
		if _, err := New(b.box, once, Config{HandOff: true, Handlers: doing(succeed)}); !errors.Is(err, outbox.ErrInvalid) {
			b.Errorf("of one attempt: %v", err)
		}
	})
}
