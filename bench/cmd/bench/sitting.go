package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/bench/contest"
)

// A sitting is one workload on a server of its own, with what came of it so far.
type sitting struct {
	options
	server *contest.Server
	report report
	close  []func() error // in the end, the last first
}

// sit runs a workload.
func sit(ctx context.Context, o options, run func(context.Context, *sitting) error) (_ report, err error) {
	server, err := contest.Start(ctx)
	if err != nil {
		return report{}, err
	}
	s := &sitting{options: o, server: server, report: report{server: server.Version, rounds: o.rounds}, close: []func() error{server.Close}}
	defer func() {
		for _, closing := range slices.Backward(s.close) {
			err = errors.Join(err, closing())
		}
	}()
	if s.report.machine, err = server.Machine(ctx); err == nil {
		err = run(ctx, s)
	}
	return s.report, err
}

// size is the chosen share of a workload's full size, in whole thousands.
func (s *sitting) size(full int) int {
	return max(1, int(math.Round(float64(full)*s.share/1_000))) * 1_000
}

// span is the chosen share of a workload's full time, in whole seconds.
func (s *sitting) span(full time.Duration) time.Duration {
	return max(time.Second, time.Duration(float64(full)*s.share).Round(time.Second))
}

// invite opens those contenders that were asked for and can take part, each on a database of its own.
func invite[C contest.Contender](ctx context.Context, s *sitting, contenders ...C) (present []C, err error) {
	for i, c := range contenders {
		if len(s.peers) > 0 && c.Name() != fencepost && !slices.Contains(s.peers, c.Name()) {
			continue
		}
		dsn, err := s.server.Database(ctx, fmt.Sprintf("%s %d", c.Name(), i)) // several may be one product
		if err != nil {
			return nil, err
		}
		if err := c.Open(ctx, dsn); errors.Is(err, contest.ErrAbsent) {
			fmt.Fprintf(os.Stderr, "  %s: %v\n", c.Name(), err)
			continue
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name(), err)
		}
		s.close = append(s.close, func() error { return c.Close(context.WithoutCancel(ctx)) })
		present = append(present, c)
	}
	return present, nil
}

// A turn is what one contender does in each round.
type turn struct {
	contender contest.Contender
	variant   string // of the workload, where there are several; the contender's own where it has one
	run       func(context.Context) ([]figure, error)
}

// row is the peer and the variant that figures are reported under.
func (t turn) row() (peer, variant string) {
	if c, varied := t.contender.(interface{ Variant() string }); varied {
		return t.contender.Name(), c.Variant()
	}
	return t.contender.Name(), t.variant
}

// rounds lets them take turns, each round another one first: nobody always has to work while the server cleans up after the same one.
func (s *sitting) rounds(ctx context.Context, turns []turn) error {
	for round := range s.options.rounds {
		for i := range turns {
			t := turns[(round+i)%len(turns)]
			peer, variant := t.row()
			figures, err := t.run(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", label(peer, variant), err)
			}
			s.report.add(peer, variant, t.contender.Settings(), figures...)
			fmt.Fprintf(os.Stderr, "  round %d of %d: %s: %s %s\n", round+1, s.options.rounds,
				label(peer, variant), format(figures[0].value), title(figures[0].name))
		}
	}
	return nil
}

// measured does some work on tables at rest, which says of how many messages it was, and gives what it took as figures.
func (s *sitting) measured(ctx context.Context, work func() (messages int, err error)) ([]figure, error) {
	if err := s.server.Settle(ctx); err != nil {
		return nil, err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	u, err := s.server.Measure(ctx, work)
	runtime.ReadMemStats(&after)
	return []figure{
		{"rate", u.Rate()},
		{"client_cpu_us", u.Micros(u.Client)},
		{"server_cpu_us", u.Micros(u.Server)},
		{"wal_bytes", float64(u.WAL) / float64(u.Messages)},
		{"client_allocs_per_message", float64(after.Mallocs-before.Mallocs) / float64(u.Messages)}, // of this process
	}, err
}
