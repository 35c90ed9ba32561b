package main

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1_000: "1,000", 10_000_000: "10,000,000", 1_020_003: "1,020,003"} {
		if got := count(n); got != want {
			t.Errorf("%d is written %q, want %q", n, got, want)
		}
	}
}

// The first third takes 3 s, the others 6 s each.
func TestThirds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counted := thirds{of: 9, start: time.Now()}
		for i := range 9 {
			time.Sleep(time.Second)
			if i >= 3 {
				time.Sleep(time.Second)
			}
			counted.tick()
		}
		if got := counted.ratio(); got != 0.5 {
			t.Errorf("the last third's rate is %v of the first's", got)
		}
	})
}

func TestFairness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFairness(2, 8)
		f.until = time.Now().Add(time.Minute)
		for i := range 100 { // of which the first 8 count: 6 of one tenant, 2 of the other
			tenant := 0
			if i < 8 && i%4 == 3 || i >= 8 {
				tenant = 1
			}
			f.tick(outbox.Message{Tenant: fmt.Sprint("tenant-", tenant)})
		}
		if got := f.least(); got != 0.5 {
			t.Errorf("the smaller tenant got %v of its share", got)
		}
	})
}

func TestBeforeEnd(t *testing.T) {
	ended := false
	err := beforeEnd(t.Context(), func() error { return nil }, func(ctx context.Context) error {
		<-ctx.Done()
		ended = true
		return nil
	})
	if err != nil || !ended {
		t.Errorf("%v, ended: %v", err, ended)
	}
}

func TestOnlyTheChildsArgumentsMakeAChild(t *testing.T) {
	for _, args := range [][]string{nil, {"W1"}, {"W1", "W2"}} {
		if is, err := child(t.Context(), args); is || err != nil {
			t.Errorf("%v: %v, %v", args, is, err)
		}
	}
}
