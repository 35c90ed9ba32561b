package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/fencepost-go/fencepost/bench/load"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/sender"
)

// batches is W10: a drain by how many messages a lease takes. What matters is from where on the rate rises no more. A size that is refused is left out.
func batches(ctx context.Context, s *sitting) error {
	s.report.about = "2,000 leases or 200,000 messages, whichever is less, at share 1"
	rig, err := s.rig(ctx, "batches")
	if err != nil {
		return err
	}
	var turns []turn
	for _, batch := range []int{1, 10, 100, 500, 1_000, 2_000} {
		messages := s.size(min(200_000, 2_000*batch))
		sending := load.Sending{Store: rig.Store, Config: sender.Config{Batch: batch, Slots: max(load.Slots, batch)}}
		if _, err := sending.Sender(); errors.Is(err, outbox.ErrInvalid) {
			fmt.Fprintf(os.Stderr, "  batch %d: %v\n", batch, err)
			continue
		}
		turns = append(turns, turn{ours("pgx, one sender, Slots 1,000"), "batch " + count(batch), func(ctx context.Context) ([]figure, error) {
			if err := rig.Empty(ctx); err != nil {
				return nil, err
			}
			if err := rig.Fill(ctx, load.Filling{Messages: messages}); err != nil {
				return nil, err
			}
			figures, err := s.drained(ctx, messages, func() error { return sending.Drain(ctx, messages) })
			return append(figures, figure{"batch", float64(batch)}), err
		}})
	}
	return s.rounds(ctx, turns)
}
