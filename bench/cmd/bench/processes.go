package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/fencepost-go/fencepost/bench/load"
)

// processes is W8: a drain by several processes that only send, which are connected before it begins. What matters is the ratio to one.
func processes(ctx context.Context, s *sitting) error {
	messages := s.size(200_000)
	s.report.about = count(messages) + " messages"
	rig, err := s.rig(ctx, "processes")
	if err != nil {
		return err
	}
	var turns []turn
	for _, n := range []int{1, 2, 4, 8} {
		turns = append(turns, turn{plain, fmt.Sprint("processes: ", n), func(ctx context.Context) ([]figure, error) {
			_, figures, err := s.drainByChildren(ctx, rig, n, messages, messages)
			return figures, err
		}})
	}
	return s.rounds(ctx, turns)
}

// drainByChildren fills a rig, and has so many processes drain messages of it. It gives the most memory that one of them took.
func (s *sitting) drainByChildren(ctx context.Context, rig *load.Rig, n, due, drained int) (peak int64, figures []figure, err error) {
	if err := rig.Empty(ctx); err != nil {
		return 0, nil, err
	}
	if err := rig.Fill(ctx, load.Filling{Messages: due}); err != nil {
		return 0, nil, err
	}
	var children []*load.Child
	defer func() {
		for _, c := range children {
			err = errors.Join(err, c.End())
		}
	}()
	for range n {
		c, err := load.StartChild(ctx, rig.DSN)
		if err != nil {
			return 0, nil, err
		}
		children = append(children, c)
	}
	settled := load.NewCountdown(drained)
	figures, err = s.drained(ctx, drained, func() error {
		for _, c := range children {
			if err := c.Begin(settled); err != nil {
				return err
			}
		}
		return settled.Wait(ctx)
	})
	for _, c := range children {
		most, peakErr := c.Peak()
		peak, err = max(peak, most), errors.Join(err, peakErr)
	}
	return peak, figures, err
}
