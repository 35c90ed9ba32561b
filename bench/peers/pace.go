package peers

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
)

// A pace puts in messages at given times, and takes down when each was committed and when its handler began, since the start.
type pace struct {
	times, committed []time.Duration
	begun            []atomic.Int64
	left             *countdown
	start            time.Time
}

func newPace(times []time.Duration) *pace {
	return &pace{
		times: times, committed: make([]time.Duration, len(times)), begun: make([]atomic.Int64, len(times)), left: newCountdown(len(times)), start: time.Now(),
	}
}

// numbered is a text of so many bytes that begins with a number.
func numbered(number, size int) string {
	return fmt.Sprintf("%08d", number) + strings.Repeat("x", size-8)
}

// begin is called by a handler with the text of its message.
func (p *pace) begin(text string) error {
	now := time.Since(p.start)
	number, err := strconv.Atoi(text[:8])
	if err == nil && p.begun[number].CompareAndSwap(0, int64(now)) { // else it is performed once more
		p.left.tick()
	}
	return err
}

// run starts each transaction at its time whether or not those before it are over, and waits for the last handler to begin. It gives what passed from
// when a commit was answered to when the handler began, 0 for one that was quicker than the answer.
func (p *pace) run(ctx context.Context, pool *pgxpool.Pool, transaction func(ctx context.Context, pool stamped, number int) error) ([]time.Duration, error) {
	group, producing := errgroup.WithContext(ctx)
	p.start = time.Now()
	for number, due := range p.times {
		select {
		case <-time.After(due - time.Since(p.start)):
		case <-producing.Done():
			return nil, group.Wait()
		}
		group.Go(func() error {
			return transaction(producing, stamped{pool, func() { p.committed[number] = time.Since(p.start) }}, number)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if err := p.left.wait(ctx); err != nil {
		return nil, err
	}
	latencies := make([]time.Duration, len(p.times))
	for number := range latencies {
		latencies[number] = max(0, time.Duration(p.begun[number].Load())-p.committed[number])
	}
	return latencies, nil
}

// stamped is a pool whose transactions tell when their commit was answered.
type stamped struct {
	pool      *pgxpool.Pool
	committed func()
}

func (s stamped) Begin(ctx context.Context) (pgx.Tx, error) {
	tx, err := s.pool.Begin(ctx)
	return stampedTx{tx, s.committed}, err
}

type stampedTx struct {
	pgx.Tx
	committed func()
}

func (tx stampedTx) Commit(ctx context.Context) error {
	err := tx.Tx.Commit(ctx)
	tx.committed()
	return err
}
