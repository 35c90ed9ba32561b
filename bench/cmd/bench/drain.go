package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/fencepost-go/fencepost/bench/contest"
	"github.com/fencepost-go/fencepost/bench/peers"
)

// drainers are the contenders of W1, fencepost first.
func drainers() []contest.Drainer {
	return []contest.Drainer{&peers.Fencepost{}, &peers.Floor{}, &peers.River{}, &peers.Watermill{}}
}

// drain is W1. Contenders take turns, each on a database of its own that was just filled.
func drain(ctx context.Context, o options) (_ report, err error) {
	server, err := contest.Start(ctx)
	if err != nil {
		return report{}, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	contenders := slices.DeleteFunc(drainers(), func(d contest.Drainer) bool {
		return len(o.peers) > 0 && d.Name() != fencepost && !slices.Contains(o.peers, d.Name())
	})
	if err := named(o.peers, contenders); err != nil {
		return report{}, err
	}
	for _, c := range contenders {
		dsn, err := server.Database(ctx, c.Name())
		if err != nil {
			return report{}, err
		}
		if err := c.Open(ctx, dsn); err != nil {
			return report{}, fmt.Errorf("%s: %w", c.Name(), err)
		}
		defer func() { err = errors.Join(err, c.Close(context.WithoutCancel(ctx))) }()
	}
	messages := max(1, int(math.Round(200*o.share))) * 1_000 // whole statements
	r := report{server: server.Version, messages: messages}
	for round := range o.rounds {
		for _, c := range contenders {
			if err := c.Fill(ctx, messages); err != nil {
				return r, fmt.Errorf("%s: fill: %w", c.Name(), err)
			}
			if err := server.Settle(ctx); err != nil {
				return r, err
			}
			usage, err := server.Measure(ctx, messages, func() error { return c.Drain(ctx, messages) })
			if err != nil {
				return r, fmt.Errorf("%s: drain: %w", c.Name(), err)
			}
			r.add(c.Name(), c.Settings(), usage)
			fmt.Fprintf(os.Stderr, "  round %d of %d: %-10s %7.0f messages a second\n", round+1, o.rounds, c.Name(), usage.Rate())
		}
	}
	return r, nil
}

// named refuses a peer that nobody is called.
func named(peers []string, contenders []contest.Drainer) error {
	for _, name := range peers {
		if !slices.ContainsFunc(contenders, func(c contest.Drainer) bool { return c.Name() == name }) {
			return fmt.Errorf("there is no peer %q", name)
		}
	}
	return nil
}
