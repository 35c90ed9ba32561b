package peers

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestStreamWaitsForTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := newCountdown(1)
		var performed atomic.Int64
		messages, err := stream(t.Context(), 4, time.Second, left, func(context.Context, int64) error {
			time.Sleep(100 * time.Millisecond)
			time.AfterFunc(time.Minute, func() {
				performed.Add(1)
				left.tick()
			})
			return nil
		})
		if err != nil || messages != 40 || performed.Load() != 40 {
			t.Errorf("%d messages, %d performed, %v; want 40", messages, performed.Load(), err)
		}
	})
}

func TestStreamFails(t *testing.T) {
	broken := errors.New("broken")
	if _, err := stream(t.Context(), 4, time.Minute, newCountdown(1), func(context.Context, int64) error { return broken }); err != broken {
		t.Errorf("got %v", err)
	}
}

func TestProcessed(t *testing.T) {
	if n, err := processed("number of clients: 4\nnumber of transactions actually processed: 19345\nlatency average = 0.2 ms\n"); err != nil || n != 19345 {
		t.Errorf("got %d, %v", n, err)
	}
	if _, err := processed("none"); err == nil {
		t.Error("no number is one")
	}
}
