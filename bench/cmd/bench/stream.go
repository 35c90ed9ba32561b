package main

import (
	"context"
	"fmt"
	"time"

	"github.com/fencepost-go/fencepost/bench/contest"
	"github.com/fencepost-go/fencepost/bench/peers"
)

// stream is W2. A rate counts what was put in and performed, up to the last one's being recorded as done.
func stream(ctx context.Context, s *sitting) error {
	const producers = 4
	// With its least cooldown River fetches few jobs at a time here and is half as fast.
	river := &peers.River{Producers: producers, Cooldown: 10 * time.Millisecond, Poll: time.Second}
	contenders, err := invite[contest.Streamer](ctx, s,
		&peers.Fencepost{Producers: producers}, &peers.Pgbench{}, river, peers.Graphile(), peers.PgBoss())
	if err != nil {
		return err
	}
	span := s.span(20 * time.Second)
	s.report.about = fmt.Sprintf("%d producers, %v", producers, span)
	var turns []turn
	for _, c := range contenders {
		turns = append(turns, turn{contender: c, run: func(ctx context.Context) ([]figure, error) {
			if err := c.Fill(ctx, 0); err != nil {
				return nil, fmt.Errorf("fill: %w", err)
			}
			return s.measured(ctx, func() (int, error) { return c.Stream(ctx, producers, span) })
		}})
	}
	return s.rounds(ctx, turns)
}
