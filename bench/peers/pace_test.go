package peers

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace([]time.Duration{time.Second, time.Second, 2 * time.Second})
		start := time.Now()
		latencies, err := p.run(t.Context(), nil, func(_ context.Context, pool stamped, number int) error {
			time.Sleep(10 * time.Second) // which delays no other message
			pool.committed()
			time.AfterFunc(time.Duration(number)*time.Millisecond, func() {
				for range 2 { // a second performance does not count
					if err := p.begin(numbered(number, payload)); err != nil {
						t.Error(err)
					}
				}
			})
			return nil
		})
		want := []time.Duration{0, time.Millisecond, 2 * time.Millisecond}
		if took := time.Since(start); err != nil || !slices.Equal(latencies, want) || took != 12*time.Second+2*time.Millisecond {
			t.Errorf("got %v, %v after %v", latencies, err, took)
		}
	})
}

func TestPaceFails(t *testing.T) {
	broken := errors.New("broken")
	if _, err := newPace(make([]time.Duration, 3)).run(t.Context(), nil, func(context.Context, stamped, int) error { return broken }); err != broken {
		t.Errorf("got %v", err)
	}
}

func TestNumbered(t *testing.T) {
	if text := numbered(42, payload); len(text) != payload || text[:9] != "00000042x" {
		t.Errorf("got %q of %d bytes", text, len(text))
	}
}
