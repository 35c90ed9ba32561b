package main

import (
	"context"
	"fmt"

	"github.com/fencepost-go/fencepost/bench/load"
)

// ours is fencepost where no other product takes part, by its settings.
type ours string

var plain = ours(fmt.Sprintf("pgx, one sender, Slots %d, Batch %d, a pool of %d", load.Slots, load.Batch, load.Connections))

func (ours) Name() string                       { return fencepost }
func (o ours) Settings() string                 { return string(o) }
func (ours) Open(context.Context, string) error { return nil }
func (ours) Close(context.Context) error        { return nil }

// rig is a database of its own for a variant.
func (s *sitting) rig(ctx context.Context, name string) (*load.Rig, error) {
	dsn, err := s.server.Database(ctx, name)
	if err != nil {
		return nil, err
	}
	r, err := load.Open(ctx, dsn)
	if err == nil {
		s.close = append(s.close, r.Close)
	}
	return r, err
}

// count writes a number of things for a reader, with a comma after each thousand.
func count(n int) string {
	if n < 1_000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", count(n/1_000), n%1_000)
}

// drained is measured work that performs so many messages.
func (s *sitting) drained(ctx context.Context, messages int, drain func() error) ([]figure, error) {
	return s.measured(ctx, func() (int, error) { return messages, drain() })
}
