package main

import (
	"context"

	"github.com/fencepost-go/fencepost/bench/load"
)

// payloads is W9: a drain of larger messages, of bytes that cannot be compressed. What matters is how the rate falls, and the bytes a second.
func payloads(ctx context.Context, s *sitting) error {
	messages := s.size(20_000)
	s.report.about = count(messages) + " messages"
	rig, err := s.rig(ctx, "payloads")
	if err != nil {
		return err
	}
	var turns []turn
	for _, p := range []struct {
		name  string
		bytes int
	}{{"200 bytes", 200}, {"1 KiB", 1 << 10}, {"10 KiB", 10 << 10}, {"60 KiB", 60 << 10}} {
		turns = append(turns, turn{plain, p.name, func(ctx context.Context) ([]figure, error) {
			if err := rig.Empty(ctx); err != nil {
				return nil, err
			}
			if err := rig.Fill(ctx, load.Filling{Messages: messages, Payload: p.bytes}); err != nil {
				return nil, err
			}
			figures, err := s.drained(ctx, messages, func() error { return load.Sending{Store: rig.Store}.Drain(ctx, messages) })
			if err != nil {
				return nil, err
			}
			return append(figures, figure{"mb_per_s", figures[0].value * float64(p.bytes) / 1e6}), nil
		}})
	}
	return s.rounds(ctx, turns)
}
