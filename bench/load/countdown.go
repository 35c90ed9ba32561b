package load

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// A Countdown waits for so many things to happen.
type Countdown struct {
	left atomic.Int64
	done chan struct{}
}

// NewCountdown of at least one thing.
func NewCountdown(n int) *Countdown {
	c := &Countdown{done: make(chan struct{})}
	c.left.Store(int64(n))
	return c
}

// Tick says that n more have happened.
func (c *Countdown) Tick(n int) {
	if after := c.left.Add(-int64(n)); after <= 0 && after+int64(n) > 0 {
		close(c.done)
	}
}

// patience bounds one drain: one that stops short must not stop the run.
const patience = 20 * time.Minute

// Wait returns when all have happened.
func (c *Countdown) Wait(ctx context.Context) error {
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(patience):
		return fmt.Errorf("%d messages are left after %v", c.left.Load(), patience)
	}
}
