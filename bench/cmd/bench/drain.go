package main

import (
	"context"
	"fmt"

	"github.com/fencepost-go/fencepost/bench/contest"
	"github.com/fencepost-go/fencepost/bench/peers"
)

// drain is W1.
func drain(ctx context.Context, s *sitting) error {
	contenders, err := invite[contest.Drainer](ctx, s, &peers.Fencepost{}, &peers.Floor{}, &peers.River{}, &peers.Watermill{}, peers.Graphile(), peers.PgBoss())
	if err != nil {
		return err
	}
	messages := s.size(200_000)
	s.report.about = fmt.Sprintf("%d messages", messages)
	var turns []turn
	for _, c := range contenders {
		turns = append(turns, turn{contender: c, run: func(ctx context.Context) ([]figure, error) {
			if err := c.Fill(ctx, messages); err != nil {
				return nil, fmt.Errorf("fill: %w", err)
			}
			return s.measured(ctx, func() (int, error) { return messages, c.Drain(ctx, messages) })
		}})
	}
	return s.rounds(ctx, turns)
}
