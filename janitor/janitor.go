package janitor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

// Purged counts messages removed, by the state they had ended in.
type Purged struct {
	Delivered, Dead, Cancelled, Expired int
}

// Total of all states.
func (p Purged) Total() int { return p.Delivered + p.Dead + p.Cancelled + p.Expired }

// Report is what one tick did.
type Report struct {
	Purged Purged
	// Overdue messages, which nobody had leased within their age and the grace, are settled as expired now.
	Overdue int
	// Acts of operators that were forgotten, and Workers not seen for as long as dead messages are kept.
	Acts, Workers int
	// Events and Claims that were removed.
	Events, Claims int
	// Batches is how many batches and rows of batches were removed.
	Batches int
	// Busy says that another process was purging, which ended this tick: what it leaves is for the next.
	Busy bool
}

// A Janitor keeps a box small. Its methods may be called from several goroutines at once.
type Janitor struct {
	box    *outbox.Box
	config Config // with its defaults
	log    *slog.Logger
	last   atomic.Int64 // success, Unix microseconds
}

// New makes a janitor of a box. It reports every problem of the Config at once, as outbox.ErrInvalid, and sends no query.
func New(box *outbox.Box, config Config) (*Janitor, error) {
	if box == nil {
		return nil, failed("new", &outbox.InvalidError{Field: "box", Problem: "is nil"})
	}
	config = config.withDefaults()
	// A count of nothing checks the scope, which belongs to outbox, without being sent.
	_, scopeErr := box.CountOverdue(context.Background(), config.Scope, outbox.Cursor{}, config.Grace, 0)
	if err := errors.Join(config.check(), scopeErr); err != nil {
		return nil, failed("new", err)
	}
	return &Janitor{box: box, config: config, log: box.Logger()}, nil
}

// LastSuccess is when a tick of this janitor last ended without an error; zero before the first. A tick that found another janitor at work is
// neither a success nor a failure, so that of all processes the latest counts.
func (j *Janitor) LastSuccess() time.Time {
	if at := j.last.Load(); at != 0 {
		return time.UnixMicro(at)
	}
	return time.Time{}
}

// Run purges and measures until ctx ends: at once, and then every Config.Every and Config.Measure. It returns nil; an error of a tick is
// logged, and the next tick comes as usual.
func (j *Janitor) Run(ctx context.Context) error {
	var loops sync.WaitGroup
	loops.Go(func() {
		walks := j.walks()
		every(ctx, j.config.Every, func() {
			report, err := j.tick(ctx, walks, false)
			if err == nil || ctx.Err() == nil {
				j.logged(report, err)
			}
		})
	})
	loops.Go(func() {
		every(ctx, j.config.Measure, func() {
			if err := j.measure(ctx); err != nil && ctx.Err() == nil {
				j.log.Warn("janitor: cannot measure; will try again", "err", j.box.Redacted(err.Error()))
			}
		})
	})
	loops.Wait()
	return nil
}

// RunOnce measures, goes over all rows once and reports what it did, also beside an error; for cron and tests. It does nothing, and is Busy,
// when another janitor is at a step as it begins; later on it takes turns with others. The error joins those of all classes: each is worked
// on whatever became of the others. Retryable.
func (j *Janitor) RunOnce(ctx context.Context) (Report, error) {
	measured := j.measure(ctx)
	report, err := j.tick(ctx, j.walks(), true)
	return report, failed("run once", errors.Join(measured, err))
}

// every calls f at once and then every period, until ctx ends.
func every(ctx context.Context, period time.Duration, f func()) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for ctx.Err() == nil {
		f()
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// tick goes on with all walks. A stop in the middle is neither a success nor a failure.
func (j *Janitor) tick(ctx context.Context, walks []*walk, patient bool) (report Report, err error) {
	var errs []error
	for i, w := range walks {
		err := w.tick(ctx, j.config, patient && i > 0, func(n int) {
			*report.of(w.class) += n
			if state, ok := states[w.class]; ok {
				j.box.Observer().Purged(ctx, state, n)
			}
		})
		if errors.Is(err, errBusy) {
			report.Busy = true
			break
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", w.class, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	err = errors.Join(errs...)
	if !report.Busy && ctx.Err() == nil {
		now := time.Now()
		if err == nil {
			j.last.Store(now.UnixMicro())
		}
		j.box.Observer().JanitorDone(ctx, now, err)
	}
	return report, err
}

// logged says what a tick of Run did.
func (j *Janitor) logged(r Report, err error) {
	counts := []any{
		"delivered", r.Purged.Delivered, "dead", r.Purged.Dead, "cancelled", r.Purged.Cancelled, "expired", r.Purged.Expired, "overdue", r.Overdue, "acts", r.Acts, "workers", r.Workers,
		"events", r.Events, "claims", r.Claims, "batches", r.Batches,
	}
	switch {
	case err != nil:
		j.log.Error("janitor: tick failed; the next one comes as usual", append(counts, "err", j.box.Redacted(err.Error()))...)
	case r.Purged.Total()+r.Overdue+r.Events+r.Claims+r.Batches > 0:
		j.log.Info("janitor: purged", counts...)
	}
}

// measure tells the observer what waits.
func (j *Janitor) measure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, j.config.Timeout)
	defer cancel()
	stats, err := j.box.Stats(ctx, j.config.Scope)
	if err != nil {
		return err
	}
	pauses, err := j.box.Pauses(ctx, j.config.Scope)
	if err != nil {
		return err
	}
	j.box.Observer().Measured(ctx, stats, pauses)
	return nil
}

// failed puts the package's name and the verb before an error that leaves the package.
func failed(verb string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("janitor: %s: %w", verb, err)
}
