package main

import (
	"context"
	"fmt"
	"time"

	"github.com/fencepost-go/fencepost/bench/load"
	"github.com/fencepost-go/fencepost/sender"
)

const poll = 500 * time.Millisecond // the default

// idle is W14: what the consumers of a process cost while there is nothing to do. What matters is the number of queries in a poll interval, which should
// not rise with the consumers, and the share of a core.
func idle(ctx context.Context, s *sitting) error {
	window := s.span(10 * time.Second)
	s.report.about = fmt.Sprintf("%v without messages, polled every %v", window, poll)
	s.report.compared, s.report.lessIsBetter = []string{"queries_per_poll"}, true
	rig, err := s.rig(ctx, "idle")
	if err != nil {
		return err
	}
	var turns []turn
	for _, n := range []int{1, 20} {
		turns = append(turns, turn{ours("pgx, a sender for each consumer, a pool of 4"), fmt.Sprint("consumers: ", n), func(ctx context.Context) ([]figure, error) {
			return s.idling(ctx, rig, n, window)
		}})
	}
	return s.rounds(ctx, turns)
}

func (s *sitting) idling(ctx context.Context, rig *load.Rig, consumers int, window time.Duration) ([]figure, error) {
	box, _, err := load.Sending{Store: rig.Store}.Box()
	if err != nil {
		return nil, err
	}
	senders := make([]*sender.Sender, consumers)
	for i := range senders {
		if senders[i], err = (load.Sending{Within: box, Consumer: fmt.Sprint("consumer-", i), Config: sender.Config{Poll: poll}}).Sender(); err != nil {
			return nil, err
		}
	}
	var figures []figure
	running, stop := context.WithCancel(ctx)
	defer stop()
	err = beforeEnd(running, func() error {
		if err := wait(ctx, 2*time.Second); err != nil { // they start
			return err
		}
		before := rig.Trips()
		u, err := s.server.Measure(ctx, func() (int, error) { return 1, wait(ctx, window) })
		figures = []figure{
			{"queries_per_poll", float64(rig.Trips()-before) / (u.Wall.Seconds() / poll.Seconds())},
			{"client_core_percent", 100 * u.Client.Seconds() / u.Wall.Seconds()},
			{"server_core_percent", 100 * u.Server.Seconds() / u.Wall.Seconds()},
		}
		return err
	}, func(ctx context.Context) error { return sender.RunAll(ctx, senders...) })
	return figures, err
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
