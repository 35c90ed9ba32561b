package janitor

import (
	"context"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

// Count goes over all rows and counts what RunOnce would remove and settle as expired now; it changes nothing. Acts, Workers,
// Events, Claims and Batches are not counted. Retryable.
func (j *Janitor) Count(ctx context.Context) (Report, error) {
	var report Report
	err := j.count(ctx, func(ctx context.Context, from outbox.Cursor) (outbox.Cursor, error) {
		swept, err := j.box.CountOverdue(ctx, j.config.Scope, from, j.config.Grace, j.config.Batch)
		report.Overdue += swept.Count
		return swept.Next, err
	})
	if err != nil {
		return Report{}, failed("count", err)
	}
	keep := outbox.Periods{
		Delivered: finite(j.config.Delivered), Dead: finite(j.config.Dead), Cancelled: finite(j.config.Cancelled), Expired: finite(j.config.Expired),
	}
	err = j.count(ctx, func(ctx context.Context, from outbox.Cursor) (outbox.Cursor, error) {
		old, next, err := j.box.CountOld(ctx, j.config.Scope, from, keep, j.config.Batch)
		for class, state := range states {
			*report.of(class) += old[state]
		}
		return next, err
	})
	return report, failed("count", err)
}

// count repeats a step until the walk is at its end.
func (j *Janitor) count(ctx context.Context, step func(context.Context, outbox.Cursor) (outbox.Cursor, error)) error {
	for from := (outbox.Cursor{}); ; {
		bounded, cancel := context.WithTimeout(ctx, j.config.Timeout)
		next, err := step(bounded, from)
		cancel()
		if err != nil || next == (outbox.Cursor{}) {
			return err
		}
		from = next
	}
}

// finite is a period as outbox takes it, with zero for ever.
func finite(keep time.Duration) time.Duration {
	if keep == KeepForever {
		return 0
	}
	return keep
}
