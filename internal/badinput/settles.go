package badinput

import (
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fencepost-go/fencepost/outbox"
)

func (f *fixture) settle(m outbox.Message, outcome outbox.Outcome) outbox.Result {
	f.Helper()
	result, err := f.box.Settle(f.Context(), f.consumer, outbox.AllTenants, m, outcome)
	if err != nil {
		f.Fatal(err)
	}
	return result
}

// answerBadSettles is a settle by somebody who does not hold the lease: B13, B18.
func answerBadSettles(f *fixture) {
	by := outbox.By{Actor: "ann", Reason: "a test"}
	down := errors.New("down")
	stale := func(row string, m outbox.Message) {
		f.Helper()
		before := f.show(m.ID)
		for _, outcome := range []outbox.Outcome{outbox.Delivered(), outbox.Failed(down), outbox.Failed(outbox.Moot(down)), outbox.Failed(outbox.Unknown(down))} {
			if got := f.settle(m, outcome); got.Status != outbox.StaleLease {
				f.Errorf("B18 %s: %s answered %+v", row, outcome.Verdict(), got)
			}
		}
		if after := f.show(m.ID); after.State != before.State || after.Epoch != before.Epoch || after.Attempt != before.Attempt || after.Reason != before.Reason {
			f.Errorf("B18 %s: %+v became %+v", row, before, after)
		}
	}
	delivered := f.leaseOne("delivered")
	f.settle(delivered, outbox.Delivered())
	stale("settled twice", delivered)

	dead := f.leaseOne("replayed")
	f.settle(dead, outbox.Failed(outbox.Permanent(down)))
	if answers, err := f.box.Replay(f.Context(), outbox.AllTenants, []int64{dead.ID}, outbox.ResetAttempts, by); err != nil || answers[0].Status != outbox.Done {
		f.Fatal(answers, err)
	}
	stale("settled after a replay", dead)
	again := f.lease()
	stale("settled after a replay and a lease", dead)
	f.settle(again[0], outbox.Delivered())

	lost := f.leaseOne("lost")
	f.Age(2 * time.Minute)
	stale("lease is over", lost)
	f.lease()
	stale("leased by another", lost)

	f.silently("B18 malformed token", func() {
		byHand := outbox.Message{ID: lost.ID, Consumer: lost.Consumer, Target: lost.Target, Epoch: lost.Epoch}
		_, err := f.box.Settle(f.Context(), f.consumer, outbox.AllTenants, byHand, outbox.Delivered())
		f.refused("B18 malformed token", err, "Message")
		f.refused("B18 malformed token", f.box.Release(f.Context(), byHand), "Message")
		_, err = f.box.Settle(f.Context(), f.consumer, outbox.AllTenants, lost, outbox.Outcome{})
		f.refused("B18 no outcome", err, "Outcome")
	})

	for name, backoff := range map[string]func(int) time.Duration{
		"panics":      func(int) time.Duration { panic("boom") },
		"is negative": func(int) time.Duration { return -1 << 63 },
		"is huge":     func(int) time.Duration { return 1<<63 - 1 },
	} {
		consumer, err := f.box.Consumer("wallets", "ledger", outbox.Policy{Backoff: backoff, MaxDelay: time.Minute})
		if err != nil {
			f.Fatal(err)
		}
		got, err := f.box.Settle(f.Context(), consumer, outbox.AllTenants, f.leaseOne("backoff "+name), outbox.Failed(down))
		if err != nil || got.Status != outbox.RetryScheduled || got.Delay <= 0 || got.Delay > time.Minute {
			f.Errorf("B13 %s: %+v, %v", name, got, err)
		}
	}
}

// recordAnyText is that recording a failure never fails: B19.
func recordAnyText(f *fixture) {
	for row, text := range map[string]string{
		"NUL":              "a\x00b",
		"bad UTF-8":        "\xff\xfe\xc3",
		"10 MB":            strings.Repeat("0123456789", 1<<20),
		"10 MB of bytes":   strings.Repeat("\x80", 10<<20),
		"cut in a rune":    strings.Repeat("日", 4096),
		"cut in a surplus": strings.Repeat("x", 4095) + "\U0001F600",
		"escapes":          "\x1b[31mred\x1b[0m\r\n\ttab",
		"quotes":           `'; DROP TABLE message; --"\`,
	} {
		for name, wrap := range map[string]func(error) error{
			"retry":  func(err error) error { return err },
			"dead":   outbox.Permanent,
			"parked": outbox.Unknown,
		} {
			m := f.leaseOne(row + " " + name)
			result := f.settle(m, outbox.OutcomeOf(wrap(errors.New(text))))
			got := f.show(m.ID)
			if result.Status == outbox.StaleLease || got.Reason != result.Reason {
				f.Errorf("B19 %s, %s: %s, %.80q is not %.80q", row, name, result.Status, got.Reason, result.Reason)
			}
			if got.Reason == "" || len(got.Reason) > 4096 || !utf8.ValidString(got.Reason) || strings.ContainsAny(got.Reason, "\x00\x1b") {
				f.Errorf("B19 %s, %s: recorded %.80q", row, name, got.Reason)
			}
		}
	}
	m, blank := f.leaseOne("blank"), " \n"
	f.silently("B19 blank", func() {
		_, err := f.box.Settle(f.Context(), f.consumer, outbox.AllTenants, m, outbox.Failed(errors.New(blank)))
		f.refused("B19 blank", err, "Reason")
	})
	if got := f.settle(m, outbox.OutcomeOf(outbox.Permanent(errors.New("")))); got.Status != outbox.DeadLettered || got.Reason != "*errors.errorString" {
		f.Errorf("B19 empty: %+v", got)
	}
	m = f.leaseOne("result")
	if got := f.settle(m, outbox.DeliveredWith(strings.Repeat("\x00日", 4096))); got.Status != outbox.Acknowledged || len(f.show(m.ID).Result) > 4096 {
		f.Errorf("B19 result: %+v", got)
	}
}
