package janitor_test

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/janitor"
	"github.com/fencepost-go/fencepost/outbox"
)

const day = 24 * time.Hour

var by = outbox.By{Actor: "ann", Reason: "a test"}

// A bench is a box in memory, in a bubble of time.
type bench struct {
	*testing.T
	store    *memdb.Store
	box      *outbox.Box
	consumer *outbox.Consumer
	log      strings.Builder

	mu     sync.Mutex
	calls  []string                  // statements sent, but those that enqueue
	fail   func(call string) error   // nil: none fails
	failAt func(params any) error    // likewise
	seen   []outbox.Stats            // measured
	done   []error                   // ticks that ended
	gone   map[outbox.State]int      // told as purged
	limit  []int32                   // max_rows of each PurgeDelivered
	block  func(ctx context.Context) // called before each statement
}

func inBubble(t *testing.T, test func(*bench)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t, store: memdb.New(memdb.Config{}), gone: map[outbox.State]int{}}
		b.store.Hook(memdb.Hook{Before: b.before})
		var err error
		b.box, err = outbox.New(b.store, outbox.Config{
			Logger: slog.New(slog.NewTextHandler(&b.log, nil)),
			Observer: &outbox.Observer{
				Measured: func(_ context.Context, stats outbox.Stats, _ []outbox.Pause) {
					b.locked(func() { b.seen = append(b.seen, stats) })
				},
				Purged: func(_ context.Context, state outbox.State, n int) { b.locked(func() { b.gone[state] += n }) },
				JanitorDone: func(_ context.Context, _ time.Time, err error) {
					b.locked(func() { b.done = append(b.done, err) })
				},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if b.consumer, err = b.box.Consumer("wallets", "ledger", outbox.Policy{}); err != nil {
			t.Fatal(err)
		}
		test(b)
	})
}

func (b *bench) locked(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

func (b *bench) before(ctx context.Context, call memdb.Call) error {
	b.mu.Lock()
	fail, failAt, block := b.fail, b.failAt, b.block
	b.calls = append(b.calls, call.Operation)
	if arg, ok := call.Params.(db.PurgeDeliveredParams); ok {
		b.limit = append(b.limit, arg.MaxRows)
	}
	b.mu.Unlock()
	if block != nil {
		block(ctx)
	}
	if failAt != nil {
		if err := failAt(call.Params); err != nil {
			return err
		}
	}
	if fail != nil {
		return fail(call.Operation)
	}
	return nil
}

func (b *bench) janitor(config janitor.Config) *janitor.Janitor {
	b.Helper()
	j, err := janitor.New(b.box, config)
	if err != nil {
		b.Fatal(err)
	}
	return j
}

func (b *bench) enqueue(effects ...outbox.Effect) (ids []int64) {
	b.Helper()
	err := memdb.InTx(b.Context(), b.store, b.box, func(tx *memdb.Tx) error {
		receipts, err := b.box.EnqueueMany(b.Context(), tx, effects)
		for _, r := range receipts {
			ids = append(ids, r.ID)
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return ids
}

func effect(change ...func(*outbox.Effect)) outbox.Effect {
	e := outbox.Effect{Consumer: "wallets", Target: "ledger", Kind: "charge", Key: rand.Text(), Payload: []byte("{}")}
	for _, f := range change {
		f(&e)
	}
	return e
}

// settle leases what is due and settles it so.
func (b *bench) settle(n int, outcome outbox.Outcome) {
	b.Helper()
	for range n {
		b.enqueue(effect())
	}
	b.settleDue(n, outcome)
}

func (b *bench) settleDue(n int, outcome outbox.Outcome) {
	b.Helper()
	worker, err := b.box.RegisterWorker(b.Context(), "w", "h")
	if err != nil {
		b.Fatal(err)
	}
	for done := 0; done < n; {
		messages, err := b.box.Lease(b.Context(), b.consumer, outbox.LeaseRequest{Worker: worker, Kinds: []string{"charge"}, Limit: 100, For: time.Minute})
		if err != nil || len(messages) == 0 {
			b.Fatal(len(messages), err)
		}
		for _, m := range messages {
			if _, err := b.box.Settle(b.Context(), b.consumer, outbox.Scope{}, m, outcome); err != nil {
				b.Fatal(err)
			}
		}
		done += len(messages)
	}
}

func (b *bench) runOnce(j *janitor.Janitor) janitor.Report {
	b.Helper()
	report, err := j.RunOnce(b.Context())
	if err != nil {
		b.Error(err)
	}
	return report
}

// left counts what is stored.
func (b *bench) left() int { return len(b.store.Dump().Messages) }

// Shows: S3.7 S3.22
func TestEachClassHasItsRetention(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.settle(2, outbox.Delivered())
		b.settle(3, outbox.Failed(outbox.Permanent(errors.New("no"))))
		cancelled := b.enqueue(effect())
		if _, err := b.box.Cancel(b.Context(), outbox.Scope{}, cancelled, by); err != nil {
			b.Fatal(err)
		}
		b.enqueue(effect(func(e *outbox.Effect) { e.MaxAge = time.Minute }))
		b.enqueue(effect(func(e *outbox.Effect) { e.MaxAge = outbox.NoMaxAge }))
		j := b.janitor(janitor.Config{Cancelled: 10 * day})

		for _, step := range []struct {
			after time.Duration
			want  janitor.Report
			left  int
		}{
			{0, janitor.Report{}, 8},
			{day + time.Minute, janitor.Report{Overdue: 1}, 8},
			{6 * day, janitor.Report{Purged: janitor.Purged{Delivered: 2}}, 6},
			{3 * day, janitor.Report{Purged: janitor.Purged{Cancelled: 1}}, 5},
			{20 * day, janitor.Report{Purged: janitor.Purged{Dead: 3}, Workers: 2}, 2},
			{day + time.Hour, janitor.Report{Purged: janitor.Purged{Expired: 1}}, 1},
			{400 * day, janitor.Report{Acts: 1}, 1}, // what has no age is never too old
		} {
			time.Sleep(step.after)
			foretold, err := j.Count(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			want := step.want
			want.Acts, want.Workers = 0, 0
			if foretold != want {
				b.Errorf("after %v more: foretold %+v, want %+v", step.after, foretold, want)
			}
			if got := b.runOnce(j); got != step.want || b.left() != step.left {
				b.Errorf("after %v more: %+v and %d left, want %+v and %d", step.after, got, b.left(), step.want, step.left)
			}
		}
		if got := b.gone[outbox.StateDead]; got != 3 {
			b.Errorf("the observer heard of %d dead", got)
		}
	})
}

func TestKeepForever(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.settle(1, outbox.Delivered())
		b.settle(1, outbox.Failed(outbox.Permanent(errors.New("no"))))
		time.Sleep(100 * 365 * day)
		keep := janitor.KeepForever
		j := b.janitor(janitor.Config{Delivered: keep, Dead: keep, Cancelled: keep, Expired: keep, Audit: keep})
		b.calls = nil
		if got := b.runOnce(j); got != (janitor.Report{}) || b.left() != 2 {
			b.Errorf("%+v, %d left", got, b.left())
		}
		if slices.ContainsFunc(b.calls, func(call string) bool { return strings.HasPrefix(call, "Purge") }) {
			b.Errorf("sent %v", b.calls)
		}
	})
}

// Zero is the default, never "at once"; less than a minute is a number that lost its unit.
func TestC74RefusedRetentions(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.settle(1, outbox.Delivered())
		time.Sleep(6 * day)
		for _, bad := range []time.Duration{-1, -time.Hour, 1, 59 * time.Second} {
			_, err := janitor.New(b.box, janitor.Config{Delivered: bad, Dead: bad, Cancelled: bad, Expired: bad, Audit: bad, Grace: bad})
			for _, field := range []string{"Delivered", "Dead", "Cancelled", "Expired", "Audit", "Grace"} {
				if !errors.Is(err, outbox.ErrInvalid) || !strings.Contains(err.Error(), field) {
					b.Errorf("%v: %v does not name %s", bad, err, field)
				}
			}
		}
		if b.runOnce(b.janitor(janitor.Config{Delivered: 0})); b.left() != 1 {
			b.Error("the zero value removed what its default keeps")
		}
	})
}

func TestConfigIsChecked(t *testing.T) {
	inBubble(t, func(b *bench) {
		for field, config := range map[string]janitor.Config{
			"Every":   {Every: time.Millisecond},
			"Measure": {Measure: 25 * time.Hour},
			"Timeout": {Timeout: 2 * time.Hour},
			"Pause":   {Pause: -time.Second},
			"Batch":   {Batch: 1001},
			"Scope":   {Scope: outbox.Tenants()},
		} {
			var invalid *outbox.InvalidError
			if _, err := janitor.New(b.box, config); !errors.As(err, &invalid) || invalid.Field != field {
				b.Errorf("%s: %v", field, err)
			}
		}
		if _, err := janitor.New(nil, janitor.Config{}); !errors.Is(err, outbox.ErrInvalid) {
			b.Error(err)
		}
		if len(b.calls) > 0 {
			b.Errorf("sent %v", b.calls)
		}
	})
}

func TestScopeIsKept(t *testing.T) {
	inBubble(t, func(b *bench) {
		ids := b.enqueue(effect(), effect(func(e *outbox.Effect) { e.Tenant = "acme" }))
		if _, err := b.box.Cancel(b.Context(), outbox.AllTenants, ids, by); err != nil {
			b.Fatal(err)
		}
		time.Sleep(31 * day)
		if got := b.runOnce(b.janitor(janitor.Config{})); got.Purged.Cancelled != 1 || b.left() != 1 {
			b.Errorf("the scope of no tenant: %+v", got)
		}
		if got := b.runOnce(b.janitor(janitor.Config{Scope: outbox.AllTenants})); got.Purged.Cancelled != 1 || b.left() != 0 {
			b.Errorf("all tenants: %+v", got)
		}
	})
}

// What fails is named; the others are worked on all the same, and the next tick comes as usual.
func TestClassesAreIndependent(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.settle(1, outbox.Delivered())
		b.settle(1, outbox.Failed(outbox.Permanent(errors.New("no"))))
		time.Sleep(31 * day)
		down := errors.New("no space left on device")
		b.fail = func(call string) error {
			if call == "PurgeDelivered" {
				return down
			}
			return nil
		}
		j := b.janitor(janitor.Config{})
		report, err := j.RunOnce(b.Context())
		if report.Purged != (janitor.Purged{Dead: 1}) || !errors.Is(err, down) || !strings.Contains(err.Error(), "delivered: ") {
			b.Errorf("%+v, %v", report, err)
		}
		if !j.LastSuccess().IsZero() || len(b.done) != 1 || !errors.Is(b.done[0], down) {
			b.Errorf("last success %v, told of %v", j.LastSuccess(), b.done)
		}

		ctx, cancel := context.WithCancel(b.Context())
		ended := make(chan error)
		go func() { ended <- j.Run(ctx) }()
		time.Sleep(90 * time.Second)
		b.locked(func() { b.fail = nil })
		time.Sleep(time.Minute)
		cancel()
		if err := <-ended; err != nil || b.left() != 0 || j.LastSuccess().IsZero() {
			b.Errorf("%v, %d left, last success %v", err, b.left(), j.LastSuccess())
		}
		if got := b.log.String(); strings.Count(got, "no space left") != 2 {
			b.Errorf("logged %s", got)
		}
	})
}

// Shows: S3.23
func TestTickAtStartAndThenEveryPeriod(t *testing.T) {
	inBubble(t, func(b *bench) {
		j := b.janitor(janitor.Config{Every: time.Minute, Measure: 20 * time.Second})
		ctx, cancel := context.WithCancel(b.Context())
		ended := make(chan error)
		go func() { ended <- j.Run(ctx) }()
		synctest.Wait()
		b.locked(func() {
			if len(b.done) != 1 || len(b.seen) != 1 {
				b.Errorf("at start %d ticks, %d measures", len(b.done), len(b.seen))
			}
		})
		time.Sleep(150 * time.Second)
		cancel()
		if err := <-ended; err != nil || len(b.done) != 3 || len(b.seen) != 8 {
			b.Errorf("%v, %d ticks, %d measures", err, len(b.done), len(b.seen))
		}
	})
}
