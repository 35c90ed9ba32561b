package main

import (
	"context"
	"fmt"
	"time"

	"github.com/fencepost-go/fencepost/bench/floor"
	"github.com/fencepost-go/fencepost/bench/load"
	"github.com/fencepost-go/fencepost/outbox"
)

const leases = 200 // that are timed in a turn

// backlog is W6: how long a lease takes by what waits. Each lease goes on from the last, as a sender's does, and is given back so that the backlog stays; after
// as many messages as the smallest backlog has they begin at the front again, lest larger ones be charged for reading rows for the first time. What matters is
// the ratio of the p99 to that of the smallest backlog. The largest takes some 12 GB: set TMPDIR where memory is scarce.
func backlog(ctx context.Context, s *sitting) error {
	s.report.about = fmt.Sprintf("%d leases of %d a round, each given back", leases, load.Batch)
	s.report.compared, s.report.lessIsBetter = []string{"p99_ms", "p50_ms"}, true
	var turns []turn
	window := s.size(10_000)
	for _, full := range []int{10_000, 100_000, 1_000_000, 10_000_000} {
		waiting := s.size(full)
		variant := count(waiting)
		rig, err := s.rig(ctx, fmt.Sprint("backlog ", full))
		if err != nil {
			return err
		}
		if err := rig.Fill(ctx, load.Filling{Messages: waiting}); err != nil {
			return err
		}
		if err := rig.Analyze(ctx); err != nil {
			return err
		}
		turns = append(turns, turn{ours("pgx, one session at a time"), variant, func(ctx context.Context) ([]figure, error) {
			if err := s.server.Settle(ctx); err != nil {
				return nil, err
			}
			took, err := leaseAndRelease(ctx, rig, window)
			return append(percentiles(took), figure{"backlog", float64(waiting)}), err
		}})
	}
	return s.rounds(ctx, turns)
}

func leaseAndRelease(ctx context.Context, rig *load.Rig, window int) (took []time.Duration, err error) {
	box, consumer, err := load.Sending{Store: rig.Store}.Box()
	if err != nil {
		return nil, err
	}
	lane := outbox.PlannedLane{Lane: outbox.Lane{Kind: floor.Kind}}
	for examined := 0; len(took) < leases; {
		start := time.Now()
		pass, err := box.LeaseLanes(ctx, outbox.LeasePlan{
			Consumer: consumer, For: 30 * time.Second, Lanes: []outbox.PlannedLane{lane}, Quota: load.Batch, Limit: load.Batch,
		})
		if err != nil {
			return nil, err
		}
		if len(pass.Messages) == load.Batch {
			took = append(took, time.Since(start))
		}
		lane.After = pass.Lanes[0].Examined
		if examined += len(pass.Messages); examined >= window {
			lane.After, examined = outbox.Mark{}, 0
		}
		back := make([]outbox.Releasing, len(pass.Messages))
		for i, m := range pass.Messages {
			back[i] = outbox.Releasing{Message: m}
		}
		if err := box.ReleaseMany(ctx, back); err != nil {
			return nil, err
		}
	}
	return took, nil
}
