package main

import (
	"context"
	"fmt"
	"time"

	"github.com/fencepost-go/fencepost/db"
)

const (
	auditSamples = 100 // steps, spread over all ids, unless all are asked for
	headStep     = 10_000
)

// agreement looks whether the tables agree about each message: in steps of its own snapshot, along the primary keys.
func (d *doctor) agreement(ctx context.Context) ([]finding, error) {
	var problems []string
	var messages, after, stride int64
	sampled := false
	for {
		rows, err := d.store.AuditMessages(ctx, db.AuditMessagesParams{AfterID: after, Examine: d.step})
		if err != nil {
			return nil, err
		}
		last := len(rows) - 1
		for _, row := range rows[:last] {
			problems = append(problems, fmt.Sprintf("%d: %s", row.ID, row.Problem))
		}
		closing := rows[last]
		messages += closing.Messages
		if closing.ID == 0 {
			break
		}
		if after == 0 {
			stride = (closing.Highest - closing.ID) / auditSamples
		}
		after = closing.ID
		if skipped := stride - int64(d.step); skipped > 0 && !d.full {
			sampled = true
			after += skipped
		}
		d.sayf("compared %s messages, at id %d of %d", thousands(messages), after, closing.Highest)
	}
	looked := fmt.Sprintf("all %s", plural(messages, "message"))
	if sampled {
		looked = fmt.Sprintf("a sample of %s (--full takes all)", plural(messages, "message"))
	}
	if len(problems) > 0 {
		return []finding{found("tables", levelCritical, "they disagree about %s, in %s; do not repair them by hand while senders run",
			plural(len(problems), "message"), looked).with(some(problems))}, nil
	}
	return []finding{found("tables", levelOK, "they agree about %s", looked)}, nil
}

// sayf tells how far a long run has come; others are over before that matters.
func (d *doctor) sayf(format string, args ...any) {
	if d.full {
		d.progress.sayf(format, args...)
	}
}

// heads lists what holds order keys up.
func (d *doctor) heads(ctx context.Context) ([]finding, error) {
	var held []string
	var oldest time.Duration
	next, keys := db.ListHeadsParams{Examine: headStep, Age: waitWarning.Microseconds()}, 0
	for more := true; more; {
		rows, err := d.store.ListHeads(ctx, next)
		if err != nil {
			return nil, err
		}
		last := rows[len(rows)-1]
		for _, row := range rows[:len(rows)-1] {
			waited := row.Now.Sub(row.BornAt)
			oldest = max(oldest, waited)
			held = append(held, fmt.Sprintf("%s key %s: message %d for %s, %s",
				laneText(row.Consumer, row.Target, row.Kind, row.Tenant), row.OrderKey, row.ID, age(waited), why(row)))
		}
		more = last.Consumer != ""
		if more {
			keys += headStep
		}
		if more && !d.full {
			break
		}
		next.AfterConsumer, next.AfterTarget, next.AfterTenant, next.AfterOrderKey = last.Consumer, last.Target, last.Tenant, last.OrderKey
		d.sayf("looked at %s order keys", thousands(int64(keys)))
	}
	f := found("order keys", levelOK, "none is held up for %v", waitWarning)
	if len(held) > 0 {
		f = found("order keys", levelOf(oldest, waitWarning, waitCritical), "%s held up", plural(len(held), "key")).with(some(held))
	}
	if keys > 0 && !d.full {
		f.Finding += fmt.Sprintf(" (of the first %s keys; --full takes all)", thousands(headStep))
	}
	return []finding{f}, nil
}

// why says what the head of an order key waits for.
func why(row db.ListHeadsRow) string {
	switch {
	case row.Blocker != 0:
		return fmt.Sprintf("the dead message %d blocks its key: replay or purge that, or unblock the key", row.Blocker)
	case row.Parked:
		return "it is parked: resolve it"
	case row.Paused:
		return "its lane is paused"
	case row.LeasedUntil.After(row.Now):
		return fmt.Sprintf("leased until %s, attempt %d", instant(row.LeasedUntil), row.Attempt)
	case row.DueAt.After(row.Now):
		return fmt.Sprintf("due again at %s, after attempt %d", instant(row.DueAt), row.Attempt)
	default:
		return "due, and nobody leases it"
	}
}
