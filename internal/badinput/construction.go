package badinput

import (
	"math"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

// refuseConstruction is what no box, consumer or call can be made of: B12, B27, B28.
// Shows: S1.13
func refuseConstruction(f *fixture) {
	_, err := outbox.New(nil, outbox.Config{})
	f.refused("B27 nil store", err, "store")
	for row, refuse := range map[string]struct {
		field  string
		config outbox.Config
	}{
		"B27 kind twice":           {"Kinds", outbox.Config{Kinds: []string{"a", "a"}}},
		"B27 blank kind":           {"Kinds", outbox.Config{Kinds: []string{""}}},
		"B28 negative payload":     {"MaxPayload", outbox.Config{MaxPayload: -1}},
		"B28 payload over 1 MiB":   {"MaxPayload", outbox.Config{MaxPayload: 1<<20 + 1}},
		"B12 policy of the config": {"MaxAttempts", outbox.Config{Policy: outbox.Policy{MaxAttempts: -1}}},
	} {
		_, err := outbox.New(f.Store, refuse.config)
		f.refused(row, err, refuse.field)
	}
	for row, refuse := range map[string]struct {
		field  string
		policy outbox.Policy
	}{
		"B12 negative attempts":  {"MaxAttempts", outbox.Policy{MaxAttempts: math.MinInt}},
		"B12 10,001 attempts":    {"MaxAttempts", outbox.Policy{MaxAttempts: 10_001}},
		"B12 most attempts":      {"MaxAttempts", outbox.Policy{MaxAttempts: math.MaxInt}},
		"B28 negative delay":     {"InitialDelay", outbox.Policy{InitialDelay: -1}},
		"B28 negative cap":       {"MaxDelay", outbox.Policy{MaxDelay: -1}},
		"B28 jitter of 150 %":    {"Jitter", outbox.Policy{Jitter: 150}},
		"B28 negative jitter":    {"Jitter", outbox.Policy{Jitter: -1}},
		"B28 negative age":       {"MaxAge", outbox.Policy{MaxAge: -1}},
		"B28 age over 100 years": {"MaxAge", outbox.Policy{MaxAge: outbox.NoMaxAge - 1}},
		"B28 negative snooze":    {"MaxSnooze", outbox.Policy{MaxSnooze: -1}},
		"B28 the first of many":  {"MaxAttempts", outbox.Policy{MaxAttempts: -1, Jitter: -1, MaxSnooze: -1}},
	} {
		_, err := f.box.Consumer("wallets", "ledger", refuse.policy)
		f.refused(row, err, refuse.field)
	}
	_, err = f.box.Consumer(" ", "ledger", outbox.Policy{})
	f.refused("B1 consumer", err, "Consumer")
	_, err = f.box.Consumer("wallets", "*", outbox.Policy{})
	f.refused("B1 target", err, "Target")
	if _, err := f.box.Consumer("wallets", "ledger", outbox.Policy{
		MaxAttempts: 10_000, InitialDelay: 1, MaxDelay: math.MaxInt64, Jitter: outbox.NoJitter, MaxAge: outbox.NoMaxAge, MaxSnooze: math.MaxInt64,
	}); err != nil {
		f.Errorf("B28 the widest policy: %v", err)
	}

	m := f.leaseOne("k")
	f.silently("B27 nil consumer", func() {
		_, err := f.box.Lease(f.Context(), nil, outbox.LeaseRequest{Kinds: []string{"charge"}, Limit: 1, For: time.Minute})
		f.refused("B27 nil consumer, lease", err, "Consumer")
		_, err = f.box.Settle(f.Context(), nil, outbox.AllTenants, m, outbox.Delivered())
		f.refused("B27 nil consumer, settle", err, "Consumer")
		_, err = f.box.DueLanes(f.Context(), outbox.LaneQuery{Kinds: []string{"charge"}, Limit: 1})
		f.refused("B27 nil consumer, due lanes", err, "Consumer")
		_, err = f.box.LeaseSuccessors(f.Context(), outbox.SuccessorPlan{})
		f.refused("B27 nil consumer, successors", err, "Consumer")
	})
}
