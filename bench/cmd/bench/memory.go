package main

import (
	"context"
	"os"

	"github.com/fencepost-go/fencepost/bench/load"
)

// memory is W12: the most memory that a process takes which is nothing but a sender, during W1 and while a million messages wait. What matters is that it is
// bounded whatever waits.
func memory(ctx context.Context, s *sitting) error {
	messages, million := s.size(200_000), s.size(1_000_000)
	s.report.about = count(messages) + " messages are sent"
	s.report.compared, s.report.lessIsBetter = []string{"peak_mb"}, true
	rig, err := s.rig(ctx, "memory")
	if err != nil {
		return err
	}
	var turns []turn
	for _, due := range []int{messages, million} {
		turns = append(turns, turn{ours(plain.Settings() + ", in a process of its own"), count(due) + " due", func(ctx context.Context) ([]figure, error) {
			peak, figures, err := s.drainByChildren(ctx, rig, 1, due, messages)
			return append(figures, figure{"peak_mb", float64(peak) / 1e6}), err
		}})
	}
	return s.rounds(ctx, turns)
}

// child is what this program does as one of the processes that only send.
func child(ctx context.Context, args []string) (is bool, err error) {
	if len(args) != 2 || args[0] != load.ChildCommand {
		return false, nil
	}
	return true, load.RunChild(ctx, args[1], os.Stdin, os.Stdout)
}
