package sender

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/outbox"
)

// slowly is a sender that would find nothing for an hour by itself.
func (b *bench) slowly(config Config) *Sender {
	config.Poll = time.Hour
	config.Handlers = doing(succeed)
	return b.sender(config)
}

// unheard stores an effect without telling anybody in this process.
func (b *bench) unheard(key string) {
	b.Helper()
	tx := b.store.Begin()
	if _, err := b.box.Enqueue(b.Context(), tx, effect(key)); err != nil {
		b.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		b.Fatal(err)
	}
}

func TestHintsWakeTheSender(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		stop := b.run(b.slowly(Config{Listen: true}))
		wait(time.Second)
		b.unheard("a")
		wait(time.Minute)
		if len(b.outcomes()) != 0 {
			b.Error("performed without a hint")
		}
		if err := b.store.Wake(b.Context()); err != nil {
			b.Fatal(err)
		}
		wait(flushAfter)
		if len(b.outcomes()) != 1 {
			b.Error("not performed at a hint")
		}
		if err := stop(); err != nil {
			b.Error(err)
		}
	})
}

// A RunOnce looks until nothing is due, so it needs no connection to listen on.
func TestRunOnceDoesNotListen(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		b.store.Hook(memdb.Hook{Before: func(_ context.Context, call memdb.Call) error {
			if call.Operation == "Listen" {
				b.Error("listened")
			}
			return nil
		}})
		b.enqueue(effect("a"))
		if counts := b.runOnce(b.sender(Config{Listen: true, Handlers: doing(succeed)})); counts.Delivered != 1 {
			b.Errorf("counted %+v", counts)
		}
	})
}

// A hint that comes while the database cannot be asked is not forgotten.
// Shows: S4.11
func TestHintDuringAnOutage(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		stop := b.run(b.slowly(Config{Listen: true}))
		wait(time.Second)
		b.unheard("a")
		b.failing("DueLanes", errDown)
		if err := b.store.Wake(b.Context()); err != nil {
			b.Fatal(err)
		}
		wait(time.Second)
		b.failing("DueLanes", nil)
		wait(10 * time.Second)
		if len(b.outcomes()) != 1 {
			b.Error("not performed after the outage")
		}
		if err := stop(); err != nil {
			b.Error(err)
		}
	})
}

// Hints are lost while there is no connection; after a reconnect the sender looks.
func TestReconnectIsAHint(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		stop := b.run(b.slowly(Config{Listen: true}))
		wait(time.Minute)
		b.store.Disconnect()
		wait(time.Millisecond)
		b.unheard("a")
		_ = b.store.Wake(b.Context())
		wait(2 * time.Second)
		if len(b.outcomes()) != 1 {
			b.Error("not performed after the reconnect")
		}
		if err := stop(); err != nil {
			b.Error(err)
		}
	})
}

// Observers hear of each connection that listens, once of its beginning and once of its end.
func TestObserversHearOfListening(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		var mu sync.Mutex
		var heard []bool
		said := func(want ...bool) {
			b.Helper()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(heard, want) {
				b.Errorf("heard %v, want %v", heard, want)
			}
		}
		b.observe(&outbox.Observer{Listening: func(_ context.Context, up bool) {
			mu.Lock()
			defer mu.Unlock()
			heard = append(heard, up)
		}})
		stop := b.run(b.slowly(Config{Listen: true}))
		wait(time.Second)
		_ = b.store.Wake(b.Context())
		wait(time.Second)
		said(true)
		b.store.Disconnect()
		wait(time.Millisecond)
		said(true, false)
		wait(2 * time.Second)
		said(true, false, true)
		if err := stop(); err != nil {
			b.Error(err)
		}
		said(true, false, true, false)
	})
}

func TestNotifyTellsOtherProcesses(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		other, err := outbox.New(b.store, outbox.Config{})
		if err != nil {
			b.Fatal(err)
		}
		s, err := New(other, b.consumer, Config{Listen: true, Poll: time.Hour, Handlers: doing(succeed)})
		if err != nil {
			b.Fatal(err)
		}
		stop := b.run(s)
		idle, err := New(b.box, b.consumer, Config{Notify: true, Handlers: Handlers{"other kind": {Do: succeed}}})
		if err != nil {
			b.Fatal(err)
		}
		stopIdle := b.run(idle)
		wait(time.Second)
		b.enqueue(effect("a"))
		wait(time.Second)
		if len(b.outcomes()) != 1 || b.called("Wake") != 1 {
			b.Errorf("settled %v after %d hints", b.outcomes(), b.called("Wake"))
		}
		if err, err2 := stop(), stopIdle(); err != nil || err2 != nil {
			b.Error(err, err2)
		}
	})
}

// A sender that cannot hear says so once, and polls.
func TestC58DeafOrNoListener(t *testing.T) {
	for name, refusal := range map[string]error{"hints do not arrive": db.ErrDeafListener, "cannot listen": db.ErrNoListener} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, outbox.Policy{}, func(b *bench) {
				b.store.Hook(memdb.Hook{Before: func(_ context.Context, call memdb.Call) error {
					if call.Operation == "Listen" {
						return refusal
					}
					return nil
				}})
				stop := b.run(b.sender(Config{Listen: true, Handlers: doing(succeed)}))
				wait(time.Minute)
				b.unheard("a")
				wait(time.Hour)
				if lines := b.log.lines(name); len(lines) != 1 || len(b.outcomes()) != 1 {
					b.Errorf("logged %v, settled %v", lines, b.outcomes())
				}
				if err := stop(); err != nil {
					b.Error(err)
				}
			})
		})
	}
}
