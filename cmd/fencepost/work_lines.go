package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/sender"
)

// waitingLines is how many lines may wait for a slow reader of stdout, which must not hold up the sender.
const waitingLines = 10_000

// settledLines prints what was settled.
type settledLines struct {
	lines   chan settledLine
	leftOut atomic.Int64
	// close waits for the lines that are left, when nothing is settled any more.
	close func() error
}

type settledLine struct {
	At       time.Time `json:"at"`
	Became   string    `json:"became"`
	ID       string    `json:"id"`
	Consumer string    `json:"consumer"`
	Target   string    `json:"target"`
	Kind     string    `json:"kind"`
	Tenant   string    `json:"tenant"`
	Key      string    `json:"key"`
	Attempt  int       `json:"attempt"`
	Delay    float64   `json:"delay_seconds,omitempty"` // until the next attempt
	Reason   string    `json:"reason,omitempty"`
}

func newSettledLines(cmd *cobra.Command) *settledLines {
	l := &settledLines{lines: make(chan settledLine, waitingLines)}
	printed := make(chan error)
	go func() {
		var err error
		for line := range l.lines {
			if err == nil {
				err = line.print(cmd)
			}
		}
		printed <- err
	}()
	l.close = sync.OnceValue(func() error {
		close(l.lines)
		err := <-printed
		if n := l.leftOut.Load(); n > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "stdout was too slow for %s lines, which are left out\n", thousands(n))
		}
		return err
	})
	return l
}

func (l *settledLines) observer() *outbox.Observer {
	add := func(m outbox.Message, became string, delay time.Duration, reason string) {
		line := settledLine{
			At: time.Now().UTC(), Became: became, ID: strconv.FormatInt(m.ID, 10), Consumer: m.Consumer, Target: m.Target, Kind: m.Kind,
			Tenant: m.Tenant, Key: m.Key, Attempt: m.Attempt, Delay: delay.Seconds(), Reason: reason,
		}
		select {
		case l.lines <- line:
		default:
			l.leftOut.Add(1)
		}
	}
	return &outbox.Observer{
		Settled: func(_ context.Context, m outbox.Message, _ outbox.Outcome, r outbox.Result) {
			if word := became(r); word != "" {
				add(m, word, r.Delay, r.Reason)
			}
		},
		GivenBack: func(_ context.Context, messages []outbox.Message) {
			for _, m := range messages {
				add(m, "given back", 0, "")
			}
		},
		LeaseLost: func(_ context.Context, m outbox.Message) { add(m, "lost", 0, "") },
	}
}

// became is what a settle made of a message, in one word; none for a lease that was lost, which the observer is told apart.
func became(r outbox.Result) string {
	switch {
	case r.Status == outbox.Acknowledged, r.State == outbox.StateDelivered:
		return "delivered"
	case r.Status == outbox.RetryScheduled, r.State == outbox.StatePending:
		return "retried"
	case r.Status == outbox.DeadLettered, r.State == outbox.StateDead:
		return "dead"
	case r.Status == outbox.Parked, r.State == outbox.StateParked:
		return "parked"
	default:
		return ""
	}
}

func (l settledLine) print(cmd *cobra.Command) error {
	if asJSON(cmd) {
		return printLine(cmd, l)
	}
	var p page
	p.linef("%s  %-10s  %s  %s/%s  %s  %s  %s  attempt %d  %s", instant(l.At), l.Became, l.ID, l.Consumer, l.Target, l.Kind, orDash(l.Tenant), l.Key,
		l.Attempt, orDash(shortened(l.Reason)))
	_, err := io.WriteString(cmd.OutOrStdout(), p.String())
	return err
}

type countsReport struct {
	Leased    int `json:"leased"`
	Delivered int `json:"delivered"`
	Retried   int `json:"retried"`
	Dead      int `json:"dead"`
	Parked    int `json:"parked"`
	Released  int `json:"released"`
	Lost      int `json:"lost"`
}

// printCounts is the last line of a --once.
func printCounts(cmd *cobra.Command, counts sender.Counts) error {
	if asJSON(cmd) {
		return printLine(cmd, countsReport(counts))
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "leased %d: delivered %d, retried %d, dead %d, parked %d, released %d, lost %d\n", counts.Leased,
		counts.Delivered, counts.Retried, counts.Dead, counts.Parked, counts.Released, counts.Lost)
	return err
}

// printLine prints a JSON object on one line.
func printLine(cmd *cobra.Command, value any) error {
	line, err := json.Marshal(value)
	if err != nil {
		return err
	}
	_, err = cmd.OutOrStdout().Write(printableJSON(append(line, '\n')))
	return err
}

// A printableWriter is for JSON; see printableJSON.
type printableWriter struct{ to io.Writer }

func (w printableWriter) Write(p []byte) (int, error) {
	if _, err := w.to.Write(printableJSON(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}
