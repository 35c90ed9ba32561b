package main

import (
	"context"
	"time"

	"github.com/fencepost-go/fencepost/bench/load"
)

// beside is W5: a drain in tables that hold many deferred messages of the same lane, and many delivered ones that the janitor has not removed yet. What
// matters is the ratio to the same drain alone.
func beside(ctx context.Context, s *sitting) error {
	messages, deferred, delivered := s.size(100_000), s.size(1_000_000), s.size(5_000_000)
	s.report.about = count(messages) + " messages, beside " + count(deferred) + " deferred and " + count(delivered) + " delivered ones"
	alone, err := s.rig(ctx, "alone")
	if err != nil {
		return err
	}
	full, err := s.rig(ctx, "beside")
	if err != nil {
		return err
	}
	for _, others := range []load.Filling{{Messages: delivered, Settled: time.Hour}, {Messages: deferred, Due: 30 * 24 * time.Hour}} {
		if err := full.Fill(ctx, others); err != nil {
			return err
		}
	}
	if err := full.Analyze(ctx); err != nil {
		return err
	}
	drain := func(rig *load.Rig) func(context.Context) ([]figure, error) {
		return func(ctx context.Context) ([]figure, error) {
			if rig == alone {
				if err := rig.Empty(ctx); err != nil {
					return nil, err
				}
			}
			if err := rig.Fill(ctx, load.Filling{Messages: messages}); err != nil {
				return nil, err
			}
			return s.drained(ctx, messages, func() error { return load.Sending{Store: rig.Store}.Drain(ctx, messages) })
		}
	}
	return s.rounds(ctx, []turn{{plain, "alone", drain(alone)}, {plain, "beside", drain(full)}})
}
