package main

import (
	"slices"
	"testing"
	"time"
)

func TestSchedule(t *testing.T) {
	times := schedule(30_000, 300)
	if !slices.IsSorted(times) || !slices.Equal(times, schedule(30_000, 300)) {
		t.Error("the times are not sorted or not the same each time")
	}
	if last := times[len(times)-1]; last < 97*time.Second || last > 103*time.Second {
		t.Errorf("30,000 messages take %v, want some 100 s", last)
	}
}

func TestPercentiles(t *testing.T) {
	var latencies []time.Duration
	for i := range 1_000 {
		latencies = append(latencies, time.Duration(1_000-i)*time.Millisecond)
	}
	if got, want := percentiles(latencies), []figure{{"p50_ms", 500}, {"p95_ms", 950}, {"p99_ms", 990}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
