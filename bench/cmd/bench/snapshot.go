package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/fencepost-go/fencepost/bench/load"
	"github.com/fencepost-go/fencepost/outbox"
)

// snapshot is W4: a drain while another session holds an old snapshot, so that no index entry of what was performed can be removed and they pile up. What
// matters is the ratio to the control run, and that the last third is as fast as the first.
func snapshot(ctx context.Context, s *sitting) error {
	messages := s.size(300_000)
	s.report.about = count(messages) + " messages"
	var turns []turn
	for _, variant := range []string{"control", "old snapshot"} {
		rig, err := s.rig(ctx, variant)
		if err != nil {
			return err
		}
		turns = append(turns, turn{plain, variant, func(ctx context.Context) ([]figure, error) {
			if err := rig.Empty(ctx); err != nil {
				return nil, err
			}
			if err := rig.Fill(ctx, load.Filling{Messages: messages}); err != nil {
				return nil, err
			}
			if variant != "control" {
				release, err := hold(ctx, rig)
				if err != nil {
					return nil, err
				}
				defer release()
			}
			t := thirds{of: int64(messages)}
			figures, err := s.drained(ctx, messages, func() error {
				t.start = time.Now()
				return load.Sending{Store: rig.Store, Settled: func(outbox.Message) { t.tick() }}.Drain(ctx, messages)
			})
			return append(figures, figure{"last_third_to_first", t.ratio()}), err
		}})
	}
	return s.rounds(ctx, turns)
}

// hold keeps a snapshot of now.
func hold(ctx context.Context, rig *load.Rig) (release func(), err error) {
	tx, err := rig.DB.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	release = func() { _ = tx.Rollback() } // it changed nothing
	if _, err = tx.ExecContext(ctx, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"); err == nil {
		_, err = tx.ExecContext(ctx, "SELECT count(*) FROM pg_class")
	}
	if err != nil {
		release()
	}
	return release, err
}

// thirds tells how the rate changes during a drain.
type thirds struct {
	of                   int64
	start                time.Time
	settled              atomic.Int64
	first, second, third time.Time
}

func (t *thirds) tick() {
	switch t.settled.Add(1) {
	case t.of / 3:
		t.first = time.Now()
	case t.of * 2 / 3:
		t.second = time.Now()
	case t.of:
		t.third = time.Now()
	}
}

// ratio is the rate of the last third by that of the first.
func (t *thirds) ratio() float64 {
	return float64(t.first.Sub(t.start)) / float64(t.third.Sub(t.second))
}
