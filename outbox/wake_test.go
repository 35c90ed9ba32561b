package outbox

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost-go/fencepost/internal/memdb"
)

func TestNotifierCoalesces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Config{}, Policy{})
		calls := b.calls()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- b.box.RunNotifier(ctx) }()
		synctest.Wait()
		if len(*calls) != 0 {
			t.Errorf("woke without a commit: %v", *calls)
		}
		for range 1000 { // ten a millisecond, for 100 ms
			b.box.Committed(1)
			time.Sleep(100 * time.Microsecond)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := len(*calls); n < 10 || n > 11 {
			t.Errorf("sent %d hints in 100 ms, want at most one in 10 ms and one after the last commit", n)
		}
		b.box.Committed()
		time.Sleep(time.Second)
		synctest.Wait()
		if n := len(*calls); n > 11 {
			t.Error("a commit of nothing woke the senders")
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("ended with %v", err)
		}
	})
}

func TestNotifierOutlivesAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &recorder{}
		b := newBench(t, Config{Logger: log.logger()}, Policy{})
		tries := 0
		b.store.Hook(memdb.Hook{Before: func(context.Context, memdb.Call) error { tries++; return errors.New("down") }})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- b.box.RunNotifier(ctx) }()
		for range 200 {
			b.box.Committed(1)
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
		<-done
		if n := len(log.lines()); tries < 100 || n < 1 || n > 3 {
			t.Errorf("%d tries in two seconds, logged %q", tries, log.lines())
		}
	})
}

func TestCommittedWakesEveryListener(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	one, stopOne := b.box.Woken()
	other, stopOther := b.box.Woken()
	defer stopOther()
	tx := b.store.Begin()
	receipt, err := b.box.Enqueue(t.Context(), tx, effect("k"))
	if err != nil || tx.Commit() != nil {
		t.Fatal(err)
	}
	for range 3 { // never blocks
		receipt.Committed()
	}
	if len(one) != 1 || len(other) != 1 {
		t.Error("a flag is not set")
	}
	<-one
	stopOne()
	receipt.Committed()
	if len(one) != 0 {
		t.Error("a flag was set after its end")
	}
	Receipt{Status: Recorded}.Committed() // made by hand: nothing to tell
}
