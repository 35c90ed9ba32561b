package batch_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencepost-go/fencepost/batch"
	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/outbox"
)

// However many watch and however fast rows end, progress is told once in its time, and its rows are counted no more often; the last word is that
// the batch is completed.
// Shows: S4.17
func TestWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memdb.New(memdb.Config{})
		r := newRig(t, store)
		id := r.mustCreate(spec(), text(300), batch.Receipt{Rows: 300})
		var mu sync.Mutex
		var counted []time.Time
		store.Hook(memdb.Hook{Before: func(_ context.Context, call memdb.Call) error {
			if _, ok := call.Params.(db.CountBatchParams); ok {
				mu.Lock()
				defer mu.Unlock()
				counted = append(counted, time.Now())
			}
			return nil
		}})
		var watchers sync.WaitGroup
		for n := range 50 {
			watchers.Go(func() {
				time.Sleep(time.Duration(n) * 7 * time.Millisecond)
				var last batch.Progress
				var at time.Time
				for p, err := range r.Watch(t.Context(), outbox.AllTenants, id, time.Second) {
					if err != nil || p == last || !at.IsZero() && time.Since(at) < 500*time.Millisecond {
						t.Errorf("%v after %v: %s, before %s", err, time.Since(at), standing(p), standing(last))
					}
					last, at = p, time.Now()
				}
				if !last.Completed() || last.Delivered != 300 {
					t.Errorf("the last: %s", standing(last))
				}
			})
		}
		consumer, err := r.Box().Consumer("invites", "mail", outbox.Policy{})
		if err != nil {
			t.Fatal(err)
		}
		worker, err := r.Box().RegisterWorker(t.Context(), "w", "h")
		if err != nil {
			t.Fatal(err)
		}
		for {
			messages, err := r.Box().Lease(t.Context(), consumer, outbox.LeaseRequest{Worker: worker, Kinds: []string{"invite"}, Scope: outbox.AllTenants, Limit: 5, For: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			if len(messages) == 0 {
				break
			}
			for _, m := range messages {
				if _, err := r.Box().Settle(t.Context(), consumer, outbox.AllTenants, m, outbox.Delivered()); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(130 * time.Millisecond)
		}
		watchers.Wait()
		if len(counted) < 5 || len(counted) > 12 {
			t.Errorf("counted %d times", len(counted))
		}
		for i := 1; i < len(counted); i++ {
			if gap := counted[i].Sub(counted[i-1]); gap < time.Second {
				t.Errorf("counted again after %v", gap)
			}
		}
	})
}

// An outage is told, and watching goes on; what is not there, is not this watcher's or is over ends it.
func TestWatchErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memdb.New(memdb.Config{})
		r := newRig(t, store)
		id := r.mustCreate(spec(), text(3), batch.Receipt{Rows: 3})
		down, failures := errors.New("down"), 0
		store.Hook(memdb.Hook{Before: func(_ context.Context, call memdb.Call) error {
			if _, ok := call.Params.(db.CountBatchParams); ok && failures < 3 {
				failures++
				return down
			}
			return nil
		}})
		began, errs, told := time.Now(), 0, 0
		for p, err := range r.Watch(t.Context(), outbox.AllTenants, id, 0) {
			switch {
			case errors.Is(err, down):
				errs++
			case err != nil:
				t.Fatal(err)
			case p.Open > 0:
				told++
				r.cancel(id, 3)
			}
		}
		if errs != 3 || told != 1 || time.Since(began) != 4*time.Second {
			t.Errorf("%d errors and %d told in %v", errs, told, time.Since(began))
		}
		for name, test := range map[string]struct {
			scope outbox.Scope
			id    int64
			want  error
		}{
			"another tenant's": {outbox.Tenants("other"), id, batch.ErrNotFound}, "unknown": {outbox.AllTenants, id + 1, batch.ErrNotFound},
		} {
			n := 0
			for _, err := range r.Watch(t.Context(), test.scope, test.id, 0) {
				if n++; !errors.Is(err, test.want) {
					t.Errorf("%s: %v", name, err)
				}
			}
			if n != 1 {
				t.Errorf("%s: %d", name, n)
			}
		}
		s := spec()
		s.Key, s.OnComplete.Key = "june", "close-june"
		open := r.mustCreate(s, text(3), batch.Receipt{Rows: 3})
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		n := 0
		for p, err := range r.Watch(ctx, outbox.AllTenants, open, time.Minute) {
			if n++; n == 1 && p.Open != 3 || n == 2 && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%d: %s, %v", n, standing(p), err)
			}
			if n == 1 { // another's look is no way around the scope
				for _, err := range r.Watch(t.Context(), outbox.Tenants("other"), open, time.Minute) {
					if !errors.Is(err, batch.ErrNotFound) {
						t.Error(err)
					}
				}
			}
		}
		if n != 2 {
			t.Errorf("%d", n)
		}
	})
}
