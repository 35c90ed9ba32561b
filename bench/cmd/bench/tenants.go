package main

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fencepost-go/fencepost/bench/load"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/sender"
)

// tenants is W7: a drain of the messages of many tenants, each of whom waits from the beginning. What matters is the ratio to one tenant, and
// least_fair_share: what the tenant who got least has got of what each would by right, in the first ten seconds and while nobody has run out.
func tenants(ctx context.Context, s *sitting) error {
	messages := s.size(400_000)
	s.report.about = count(messages) + " messages"
	rig, err := s.rig(ctx, "tenants")
	if err != nil {
		return err
	}
	var turns []turn
	for _, full := range []int{1, 100, 10_000} {
		n := max(1, int(math.Round(float64(full)*max(s.share, 1/float64(full))))) // each has as many messages at any share
		turns = append(turns, turn{plain, count(n) + " tenants", func(ctx context.Context) ([]figure, error) {
			if err := rig.Empty(ctx); err != nil {
				return nil, err
			}
			if err := rig.Fill(ctx, load.Filling{Messages: messages, Tenants: n}); err != nil {
				return nil, err
			}
			f := newFairness(n, messages/2)
			figures, err := s.drained(ctx, messages, func() error {
				f.until = time.Now().Add(10 * time.Second)
				return load.Sending{Store: rig.Store, Config: sender.Config{Scope: outbox.AllTenants}, Settled: f.tick}.Drain(ctx, messages)
			})
			return append(figures, figure{"least_fair_share", f.least()}), err
		}})
	}
	return s.rounds(ctx, turns)
}

// fairness counts what each tenant got of the first messages, until a time.
type fairness struct {
	until time.Time
	first int64
	got   atomic.Int64
	each  []atomic.Int64
}

func newFairness(tenants, first int) *fairness {
	return &fairness{first: int64(first), each: make([]atomic.Int64, tenants)}
}

func (f *fairness) tick(m outbox.Message) {
	tenant, err := strconv.Atoi(strings.TrimPrefix(m.Tenant, "tenant-"))
	if err != nil {
		panic(fmt.Sprintf("nobody filled in tenant %q", m.Tenant))
	}
	if f.got.Load() < f.first && time.Now().Before(f.until) {
		f.got.Add(1)
		f.each[tenant].Add(1)
	}
}

// least is the smallest tenant's share by a fair one.
func (f *fairness) least() float64 {
	least := f.each[0].Load()
	for i := range f.each {
		least = min(least, f.each[i].Load())
	}
	return float64(least) * float64(len(f.each)) / float64(f.got.Load())
}
