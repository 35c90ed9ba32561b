package sender

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

// Fifty handlers succeed at the very moment of the stop: all are recorded, and nothing stays leased.
func TestC19StopAsHandlersSucceed(t *testing.T) {
	onStores(t, func(r *rig, use driver) {
		const handlers = 50
		p := r.process(use, setup{})
		for round := range 4 {
			started, succeed := make(chan struct{}, handlers), make(chan struct{})
			ctx, cancel := context.WithCancel(r.Context())
			s := p.sender(Config{Slots: handlers, Handlers: doing(func(context.Context, outbox.Message) error {
				started <- struct{}{}
				<-succeed
				return nil
			})})
			done := make(chan error, 1)
			go func() { done <- s.Run(ctx) }()
			p.enqueue(prefixed(time.Duration(round).String(), handlers)...)
			for range handlers {
				receive(r, "a handler", started)
			}
			if round%2 == 0 { // which of the two the loop sees first is chance
				close(succeed)
				cancel()
			} else {
				cancel()
				close(succeed)
			}
			if err := receive(r, "the stop", done); err != nil {
				r.Error(err)
			}
			if delivered := r.outcomes()["delivered"]; delivered != (round+1)*handlers || r.leases() != 0 {
				r.Errorf("after round %d: %d delivered, %d leases left", round, delivered, r.leases())
			}
		}
	})
}

// A handler that ignores its context does not hold up the stop, which names it. What it returns late changes nothing; another sender has
// performed its message.
func TestC21StopBesideADeafHandler(t *testing.T) {
	onStores(t, func(r *rig, use driver) {
		drain := time.Second
		if full {
			drain = 2 * time.Second
		}
		first := r.process(use, setup{})
		started, wake := make(chan struct{}, 1), make(chan struct{})
		returned := make(chan struct{})
		stop := first.run(first.sender(Config{Lease: 3 * time.Second, Drain: drain, Handlers: doing(func(context.Context, outbox.Message) error {
			started <- struct{}{}
			<-wake
			defer close(returned)
			return nil
		})}))
		id := first.enqueue(effect("a"))[0]
		receive(r, "the handler", started)
		stalled := r.stalls()
		began := time.Now()
		err := stop()
		if took := time.Since(began); took > drain+500*time.Millisecond+stalled() {
			r.Errorf("stopped after %v", took)
		}
		var still *StillRunningError
		if !errors.As(err, &still) || !slices.Equal(still.IDs, []int64{id}) {
			r.Errorf("got %v", err)
		}

		taken, finish := make(chan struct{}, 1), make(chan struct{})
		second := r.process(use, setup{})
		stopSecond := second.run(second.sender(Config{Handlers: doing(func(context.Context, outbox.Message) error {
			taken <- struct{}{}
			<-finish
			return nil
		})}))
		receive(r, "the takeover", taken)
		version := r.version(id)
		close(wake)
		receive(r, "the late return", returned)
		if again := r.version(id); again != version {
			r.Errorf("the row's version became %s, was %s", again, version)
		}
		close(finish)
		r.eventually("the delivery", func() bool { return r.outcomes()["delivered"] == 1 })
		if err := stopSecond(); err != nil {
			r.Error(err)
		}
	})
}
