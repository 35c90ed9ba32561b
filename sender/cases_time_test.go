package sender

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/outbox"
)

// passes notes how many messages each lease brought.
type passes struct {
	db.Store
	mu    sync.Mutex
	sizes []int
}

func (p *passes) LeaseDue(ctx context.Context, arg db.LeaseDueParams) ([]db.LeaseDueRow, error) {
	rows, err := p.Store.LeaseDue(ctx, arg)
	granted := 0
	for _, row := range rows {
		if row.Fate == db.FateGranted {
			granted++
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sizes = append(p.sizes, granted)
	return rows, err
}

// What failed together does not come back together: delays are spread over the promised window, and stored so.
func TestC14FailuresAreSpread(t *testing.T) {
	onPgxAndFile(t, func(r *rig, use driver) {
		p := r.process(use, setup{})
		p.enqueue(prefixed("failing", 1000)...)
		s := p.sender(Config{Slots: 100, Handlers: doing(func(context.Context, outbox.Message) error { return errors.New("refused") })})
		if counts := p.runOnce(s); counts.Retried != 1000 {
			r.Fatalf("%+v", counts)
		}
		const initial, window = 30 * time.Second, 6 * time.Second // of the default policy: jitter 20 %
		slices.Sort(p.retries)
		least, most := p.retries[0], p.retries[len(p.retries)-1]
		if least <= initial-window || most > initial || most-least < window/2 {
			r.Errorf("delays from %v to %v", least, most)
		}
		buckets := map[int64]int{}
		for _, q := range r.beside.Dump(r).Queue {
			buckets[q.DueAt.UnixMilli()/100]++
		}
		for bucket, n := range buckets {
			if n > 50 {
				r.Errorf("%d of 1000 messages come due within 100 ms (at %v)", n, time.UnixMilli(bucket*100))
			}
		}
	})
}

// When many leases end at once they are taken over a batch at a time.
func TestC14LeasesThatEndTogether(t *testing.T) {
	onPgxAndFile(t, func(r *rig, use driver) {
		leases := &passes{}
		p := r.process(use, setup{wrap: func(store db.Store) db.Store {
			leases.Store = store
			return leases
		}})
		p.enqueue(prefixed("lost", 1000)...)
		p.leaseAll(0, 1000, time.Millisecond)
		leases.sizes = nil
		if counts := p.runOnce(p.sender(Config{Slots: 40, Batch: 50, Handlers: doing(succeed)})); counts.Delivered != 1000 {
			r.Fatalf("%+v", counts)
		}
		if most := slices.Max(leases.sizes); most > 50 {
			r.Errorf("a pass leased %d messages", most)
		}
	})
}

// The clocks of all processes are an hour off the database's. Nothing is performed twice or early, and delays are right: only the database's
// clock decides.
func TestC38ClocksDisagree(t *testing.T) {
	t.Parallel()
	for name, offset := range map[string]string{"processes behind": "1 hour", "processes ahead": "-1 hour"} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.shiftClock(offset)
			r.testClock()
		})
	}
}

// shiftClock puts the clock that statements read in this database off by an interval.
func (r *rig) shiftClock(offset string) {
	r.Helper()
	statements := []string{"CREATE SCHEMA shifted"}
	for function, volatility := range map[string]string{"now": "STABLE", "statement_timestamp": "STABLE", "clock_timestamp": "VOLATILE"} {
		statements = append(statements, "CREATE FUNCTION shifted."+function+"() RETURNS timestamptz LANGUAGE sql "+volatility+
			" AS $$ SELECT pg_catalog."+function+"() + interval '"+offset+"' $$")
	}
	statements = append(statements, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = shifted, pg_catalog', current_database()); END $$`)
	for _, statement := range statements {
		if _, err := r.beside.DB.ExecContext(r.Context(), statement); err != nil {
			r.Fatal(err)
		}
	}
}

func (r *rig) testClock() {
	var performed calls
	const delay, long = 3 * time.Second, 6 * time.Second
	delayed := make(chan time.Time, 10)
	config := Config{Lease: 3 * time.Second, Handlers: doing(func(ctx context.Context, m outbox.Message) error {
		performed.add(m)
		switch m.Key {
		case "delayed":
			delayed <- time.Now()
		case "long":
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(long): // two leases
			}
		}
		return nil
	})}
	first, second, producer := r.process(usePgx, setup{}), r.process(usePq, setup{}), r.process(usePgx, setup{})
	stopFirst, stopSecond := first.run(first.sender(config)), second.run(second.sender(config))
	stalled := r.stalls()
	effects := []outbox.Effect{
		effect("now"), effect("long"),
		effect("delayed", func(e *outbox.Effect) { e.Delay = delay }),
		effect("past", func(e *outbox.Effect) { e.DueAt = time.Now().Add(-24 * time.Hour) }),
	}
	sent := time.Now()
	producer.enqueue(effects...)
	committed := time.Now()
	at := receive(r, "the delayed message", delayed)
	if early := at.Sub(sent); early < delay {
		r.Errorf("performed %v after it was enqueued", early)
	}
	if late := at.Sub(committed); late > delay+5*time.Second+stalled() {
		r.Errorf("performed %v after the commit", late)
	}
	r.eventually("deliveries", func() bool { return r.outcomes()["delivered"] == len(effects) })
	if err := errors.Join(stopFirst(), stopSecond()); err != nil {
		r.Error(err)
	}
	performed.once(r, effects)
}

// What nobody performed in time is set aside and not performed late, in backoff as well, and is counted by kind.
// Shows: S3.5
func TestC43TooOld(t *testing.T) {
	onPgxAndFile(t, func(r *rig, use driver) {
		p := r.process(use, setup{})
		var performed calls
		fail := true
		handler := Handler{MaxAge: time.Hour, Do: func(_ context.Context, m outbox.Message) error {
			performed.add(m)
			if fail {
				return errors.New("refused")
			}
			return nil
		}}
		s := p.sender(Config{Handlers: Handlers{"charge": handler, "email": handler}})
		email := func(e *outbox.Effect) { e.Kind = "email" }
		p.enqueue(effect("in backoff"))
		if counts := p.runOnce(s); counts.Retried != 1 {
			r.Fatalf("%+v", counts)
		}
		fail = false
		p.enqueue(effect("stale"), effect("stale email", email))
		r.beside.Age(r, 3*time.Hour)
		p.enqueue(effect("fresh"), effect("fresh email", email))
		if counts := p.runOnce(s); counts.Delivered != 2 || counts.Dead != 3 {
			r.Errorf("%+v", counts)
		}
		performed.once(r, []outbox.Effect{effect("in backoff"), effect("fresh"), effect("fresh email")})
		kinds := map[string]int{}
		for _, burial := range p.burials {
			if burial.Cause != outbox.CauseAge {
				r.Errorf("%v died of %s", burial.Message, burial.Cause)
			}
			kinds[burial.Message.Kind]++
		}
		if kinds["charge"] != 2 || kinds["email"] != 1 {
			r.Errorf("counted %v", kinds)
		}
		for _, settled := range r.beside.Dump(r).Settlements {
			if settled.Outcome == "dead" && !slices.Contains([]string{"too old", "too old; last error: refused"}, settled.Reason) {
				r.Errorf("the reason is %q", settled.Reason)
			}
		}
	})
}
