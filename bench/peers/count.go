// Package peers has the contenders: fencepost, the floor, and other products, each set up as its own documents advise for the work.
package peers

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// payload is what a message carries.
const payload = 200

// chunk is how many messages are put in by one statement where a product takes several.
const chunk = 1_000

// A countdown waits for so many things to happen.
type countdown struct {
	left atomic.Int64
	done chan struct{}
}

func newCountdown(n int) *countdown {
	c := &countdown{done: make(chan struct{})}
	c.left.Store(int64(n))
	return c
}

func (c *countdown) tick() {
	if c.left.Add(-1) == 0 {
		close(c.done)
	}
}

// patience bounds one drain: a product that stops short must not stop the contest.
const patience = 10 * time.Minute

func (c *countdown) wait(ctx context.Context) error {
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(patience):
		return fmt.Errorf("%d messages are left after %v", c.left.Load(), patience)
	}
}
