// Package peers has the contenders: fencepost, the floor, and other products, each set up as its own documents advise for the work.
package peers

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
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

// more waits for another one, while there are some left.
func (c *countdown) more() { c.left.Add(1) }

func (c *countdown) tick() {
	if c.left.Add(-1) == 0 {
		close(c.done)
	}
}

// patience bounds one turn: a product that stops short must not stop the contest.
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

// stream has so many producers run one transaction after the other for so long, and waits for all to be performed. A transaction puts in one message, of
// a number of its own, for which left, made with 1, ticks.
func stream(ctx context.Context, producers int, span time.Duration, left *countdown, transaction func(ctx context.Context, number int64) error) (messages int, err error) {
	group, producing := errgroup.WithContext(ctx)
	end := time.Now().Add(span)
	var number atomic.Int64
	for range producers {
		group.Go(func() error {
			for time.Now().Before(end) {
				left.more()
				if err := transaction(producing, number.Add(1)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	left.tick()
	return int(number.Load()), left.wait(ctx)
}

// pools are one for who performs and one for who produces, so that neither waits for the other's connections.
func pools(ctx context.Context, dsn string, performing, producers int) (perform, produce *pgxpool.Pool, err error) {
	if perform, err = pgxpool.New(ctx, fmt.Sprintf("%s&pool_max_conns=%d", dsn, performing)); err != nil {
		return nil, nil, err
	}
	produce, err = pgxpool.New(ctx, fmt.Sprintf("%s&pool_max_conns=%d", dsn, max(1, producers)))
	return perform, produce, err
}

// producersPool says how many connections producers have, where there are some.
func producersPool(producers int) string {
	if producers == 0 {
		return ""
	}
	return fmt.Sprintf(" and one of %d for producers", producers)
}
