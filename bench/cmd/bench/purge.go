package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fencepost-go/fencepost/bench/load"
	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/janitor"
)

// purge is W11: how long the leases of a busy sender take while a janitor removes messages that were delivered long ago, as fast as it does by default. What
// matters is the ratio of the p95. Leases count while the janitor is at it.
func purge(ctx context.Context, s *sitting) error {
	messages, old := s.size(600_000), s.size(1_000_000)
	s.report.about = count(messages) + " messages to send, " + count(old) + " old ones"
	s.report.compared, s.report.lessIsBetter = []string{"p95_ms"}, true
	rig, err := s.rig(ctx, "purge")
	if err != nil {
		return err
	}
	var turns []turn
	for _, variant := range []string{"alone", "while purging"} {
		turns = append(turns, turn{plain, variant, func(ctx context.Context) ([]figure, error) {
			if err := rig.Empty(ctx); err != nil {
				return nil, err
			}
			for _, f := range []load.Filling{{Messages: old, Settled: 8 * 24 * time.Hour}, {Messages: messages}} {
				if err := rig.Fill(ctx, f); err != nil {
					return nil, err
				}
			}
			if err := rig.Analyze(ctx); err != nil {
				return nil, err
			}
			store := &timedLeases{Store: rig.Store}
			sending := load.Sending{Store: store}
			purged, began := 0, time.Now()
			var took time.Duration
			figures, err := s.drained(ctx, messages, func() error {
				if variant == "alone" {
					return sending.Drain(ctx, messages)
				}
				return beforeEnd(ctx, func() error { return sending.Drain(ctx, messages) }, func(ctx context.Context) error {
					defer func() { took = time.Since(began) }()
					began = time.Now()
					n, err := purgeOnce(ctx, rig)
					purged = n
					store.stop()
					return err
				})
			})
			if err != nil {
				return nil, err
			}
			if len(store.took) == 0 {
				return nil, errors.New("the janitor was done before the first lease")
			}
			rate := 0.0
			if took > 0 {
				rate = float64(purged) / took.Seconds()
			}
			return append(figures, append(percentiles(store.took), figure{"purged_per_s", rate})...), nil
		}})
	}
	return s.rounds(ctx, turns)
}

// beforeEnd does one thing, and another beside it that ends with it at the latest.
func beforeEnd(ctx context.Context, one func() error, beside func(context.Context) error) error {
	besideCtx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- beside(besideCtx) }()
	err := one()
	stop()
	return errors.Join(err, <-ended)
}

// purgeOnce has a janitor go over all rows, and says how many it removed until ctx ended.
func purgeOnce(ctx context.Context, rig *load.Rig) (int, error) {
	box, _, err := load.Sending{Store: rig.Store}.Box()
	if err != nil {
		return 0, err
	}
	j, err := janitor.New(box, janitor.Config{})
	if err != nil {
		return 0, err
	}
	report, err := j.RunOnce(ctx)
	if ctx.Err() != nil {
		err = nil // that was to be
	}
	return report.Purged.Delivered, err
}

// timedLeases takes the time of each lease.
type timedLeases struct {
	db.Store

	mu      sync.Mutex
	stopped bool
	took    []time.Duration
}

func (t *timedLeases) LeaseDue(ctx context.Context, arg db.LeaseDueParams) ([]db.LeaseDueRow, error) {
	start := time.Now()
	rows, err := t.Store.LeaseDue(ctx, arg)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.stopped && len(rows) > 1 { // one is the closing row of an empty pass
		t.took = append(t.took, time.Since(start))
	}
	return rows, err
}

func (t *timedLeases) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
}
