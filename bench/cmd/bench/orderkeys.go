package main

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/fencepost-go/fencepost/bench/load"
	"github.com/fencepost-go/fencepost/outbox"
)

const hotKey = "account-0" // what Filling calls the only one

// orderKeys is W15: a thousand order keys with a few messages each, and one with very many. What matters is that a message of the hot key costs one round
// trip, so that the key is as fast as round trips are, and that the warm keys are as fast beside it as alone.
func orderKeys(ctx context.Context, s *sitting) error {
	hot, warm := s.size(10_000), s.size(50_000)
	s.report.about = count(hot) + " messages of the hot key, " + count(warm) + " of 1,000 warm ones"
	rig, err := s.rig(ctx, "order keys")
	if err != nil {
		return err
	}
	hotly, warmly := load.Filling{Messages: hot, Keys: 1}, load.Filling{Messages: warm, Keys: 1_000, KeysFrom: 1}
	run := func(until int, counts func(outbox.Message) bool, fillings ...load.Filling) func(context.Context) ([]figure, error) {
		return func(ctx context.Context) ([]figure, error) {
			if err := rig.Empty(ctx); err != nil {
				return nil, err
			}
			for _, f := range fillings {
				if err := rig.Fill(ctx, f); err != nil {
					return nil, err
				}
			}
			trip, err := roundTrip(ctx, rig)
			if err != nil {
				return nil, err
			}
			var all atomic.Int64
			before := rig.Trips()
			figures, err := s.drained(ctx, until, func() error {
				left := load.NewCountdown(until)
				return load.Sending{Store: rig.Store, Settled: func(m outbox.Message) {
					all.Add(1)
					if counts(m) {
						left.Tick(1)
					}
				}}.While(ctx, left.Wait)
			})
			if err != nil {
				return nil, err
			}
			return append(figures,
				figure{"round_trips_per_message", float64(rig.Trips()-before) / float64(all.Load())},
				figure{"messages_per_round_trip_time", figures[0].value * trip.Seconds()},
			), nil
		}
	}
	isHot := func(m outbox.Message) bool { return m.OrderKey == hotKey }
	isWarm := func(m outbox.Message) bool { return m.OrderKey != hotKey }
	return s.rounds(ctx, []turn{
		{plain, "warm alone", run(warm, isWarm, warmly)},
		{plain, "warm beside hot", run(warm, isWarm, hotly, warmly)},
		{plain, "hot alone", run(hot, isHot, hotly)},
	})
}

// roundTrip is the median time of the least that a store does in one: a transaction of its own around a statement that finds nothing.
func roundTrip(ctx context.Context, rig *load.Rig) (time.Duration, error) {
	box, consumer, err := load.Sending{Store: rig.Store, Consumer: "nobody"}.Box()
	if err != nil {
		return 0, err
	}
	took := make([]time.Duration, 200)
	for i := range took {
		start := time.Now()
		if _, err := box.DueLanes(ctx, outbox.LaneQuery{Consumer: consumer, Kinds: []string{"none"}, Limit: 1}); err != nil {
			return 0, err
		}
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}
