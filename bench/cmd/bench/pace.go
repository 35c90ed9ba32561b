package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/bench/contest"
	"github.com/fencepost-go/fencepost/bench/peers"
)

// pace is W3. The times are the same for all and in every round; a message is put in at its time however the others fare.
func pace(ctx context.Context, s *sitting) error {
	const (
		second    = 300 // messages
		warm      = 300 // messages before those that count
		producers = 8   // connections for them
	)
	contenders, err := invite[contest.Pacer](ctx, s,
		&peers.Fencepost{Producers: producers}, &peers.Fencepost{Producers: producers, Listen: true},
		&peers.Fencepost{Producers: producers, HandOff: true}, &peers.River{Producers: producers})
	if err != nil {
		return err
	}
	messages := s.size(6_000)
	times := schedule(warm+messages, second)
	s.report.about = fmt.Sprintf("%d messages, %d a second at random times; from the commit's answer to the start of the handler", messages, second)
	s.report.compared = []string{"p50_ms", "p99_ms"}
	s.report.lessIsBetter = true
	var turns []turn
	for _, c := range contenders {
		turns = append(turns, turn{contender: c, run: func(ctx context.Context) (figures []figure, err error) {
			if err := c.Fill(ctx, 0); err != nil {
				return nil, fmt.Errorf("fill: %w", err)
			}
			var latencies []time.Duration
			spent, err := s.measured(ctx, func() (int, error) {
				latencies, err = c.Pace(ctx, times)
				return len(times), err
			})
			if err != nil {
				return nil, err
			}
			return append(percentiles(latencies[warm:]), spent...), nil
		}})
	}
	return s.rounds(ctx, turns)
}

// schedule has so many random times, so many a second.
func schedule(messages, second int) []time.Duration {
	random := rand.New(rand.NewPCG(1, 2))
	times := make([]time.Duration, messages)
	at := time.Duration(0)
	for i := range times {
		at += time.Duration(random.ExpFloat64() * float64(time.Second) / float64(second))
		times[i] = at
	}
	return times
}

// percentiles are those that one looks at, in milliseconds.
func percentiles(latencies []time.Duration) []figure {
	var millis []float64
	for _, latency := range latencies {
		millis = append(millis, latency.Seconds()*1_000)
	}
	slices.Sort(millis)
	return []figure{{"p50_ms", percentile(millis, 50)}, {"p95_ms", percentile(millis, 95)}, {"p99_ms", percentile(millis, 99)}}
}
