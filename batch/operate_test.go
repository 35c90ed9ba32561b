package batch_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/batch"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/outbox"
)

// A rerun touches the dead rows and no other; the counts include all, and each completion records its effect once.
// Shows: S4.18
func TestRerun(t *testing.T) {
	t.Parallel()
	onStores(t, func(r *rig) {
		id := r.mustCreate(spec(), text(5)+"x\n", batch.Receipt{Rows: 6, Rejected: 1})
		r.perform(2, 4)
		r.stands(id, "run 1: 6 = 0 open + 3 delivered + 2 dead + 0 cancelled + 0 expired + 1 rejected, sealed, completed")
		r.rerun(id, 2)
		r.stands(id, "run 2: 6 = 2 open + 3 delivered + 0 dead + 0 cancelled + 0 expired + 1 rejected, sealed")
		if got := r.rows(id, batch.RowsQuery{Fate: batch.FateOpen, Limit: 9}); !slices.Equal(got, []string{"2 open pending may/2", "4 open pending may/4"}) {
			r.Errorf("%q", got)
		}
		r.rerun(id, 0)
		r.perform(4)
		r.stands(id, "run 2: 6 = 0 open + 4 delivered + 1 dead + 0 cancelled + 0 expired + 1 rejected, sealed, completed")
		r.rerun(id, 1)
		r.perform()
		r.stands(id, "run 3: 6 = 0 open + 5 delivered + 0 dead + 0 cancelled + 0 expired + 1 rejected, sealed, completed")
		r.rerun(id, 0)
		r.stands(id, "run 3: 6 = 0 open + 5 delivered + 0 dead + 0 cancelled + 0 expired + 1 rejected, sealed, completed")
		if ends := r.ends(); !slices.Equal(ends, []string{"close-may", "close-may/run-2", "close-may/run-3"}) {
			r.Errorf("%q", ends)
		}
	})
}

func (r *rig) rerun(id int64, want int) {
	r.Helper()
	if n, err := r.Rerun(r.Context(), outbox.AllTenants, id, by); n != want || err != nil {
		r.Errorf("%d were brought back, not %d: %v", n, want, err)
	}
}

func (r *rig) cancel(id int64, want int) {
	r.Helper()
	if n, err := r.Cancel(r.Context(), outbox.AllTenants, id, by); n != want || err != nil {
		r.Errorf("%d were cancelled, not %d: %v", n, want, err)
	}
}

// A cancelled batch completes; what had an end keeps it.
func TestCancel(t *testing.T) {
	t.Parallel()
	onStores(t, func(r *rig) {
		id := r.mustCreate(spec(), text(3), batch.Receipt{Rows: 3})
		r.perform(3)
		s := spec()
		s.Key, s.OnComplete.Key = "june", "close-june"
		other := r.mustCreate(s, text(5), batch.Receipt{Rows: 5})
		r.cancel(id, 0)
		r.stands(id, "run 1: 3 = 0 open + 2 delivered + 1 dead + 0 cancelled + 0 expired + 0 rejected, sealed, completed")
		r.cancel(other, 5)
		r.cancel(other, 0)
		r.rerun(other, 0)
		r.stands(other, "run 1: 5 = 0 open + 0 delivered + 0 dead + 5 cancelled + 0 expired + 0 rejected, sealed, completed")
		if ends := r.ends(); !slices.Equal(ends, []string{"close-may", "close-june"}) {
			r.Errorf("%q", ends)
		}
	})
}

// A batch that is cancelled while it is created takes no more rows.
func TestCancelWhileCreating(t *testing.T) {
	t.Parallel()
	onStores(t, func(r *rig) {
		in := make(chan map[string]any, 4)
		for range 4 { // a chunk, and a row that shows that the chunk is stored
			in <- map[string]any{}
		}
		type created struct {
			batch.Receipt
			err error
		}
		done := make(chan created, 1)
		stored := make(chan int64, 10)
		s := spec()
		s.Report = func(receipt batch.Receipt) { stored <- receipt.ID }
		go func() {
			receipt, err := r.Create(r.Context(), s, objects(r).Channel(in))
			done <- created{receipt, err}
		}()
		id := <-stored
		r.cancel(id, 3)
		close(in)
		got := <-done
		if !errors.Is(got.err, batch.ErrSealed) || got.Rows != 3 {
			r.Errorf("%+v", got)
		}
		r.stands(id, "run 1: 3 = 0 open + 0 delivered + 0 dead + 3 cancelled + 0 expired + 0 rejected, sealed, completed")
	})
}

// A batch is seen and changed within its tenant only.
func TestScope(t *testing.T) {
	t.Parallel()
	onStores(t, func(r *rig) {
		id := r.mustCreate(spec(), text(3)+"x\n", batch.Receipt{Rows: 4, Rejected: 1})
		ctx, mine, others := r.Context(), outbox.Tenants("acme"), outbox.Tenants("", "other")
		for name, err := range map[string]error{
			"progress": second(r.Progress(ctx, others, id)), "show": second(r.Show(ctx, others, id)),
			"cancel": second(r.Cancel(ctx, others, id, by)), "rerun": second(r.Rerun(ctx, others, id, by)),
			"find": second(r.Find(ctx, "other", "invites", "may")), "unknown": second(r.Progress(ctx, mine, id+1)),
		} {
			if !errors.Is(err, batch.ErrNotFound) {
				r.Errorf("%s: %v", name, err)
			}
		}
		for name, n := range map[string]int{"rows": r.count(r.ListRows(ctx, others, id, batch.RowsQuery{Limit: 9})), "batches": r.listed(others, batch.ListQuery{Limit: 9})} {
			if n != 0 {
				r.Errorf("%d %s", n, name)
			}
		}
		p, err := r.Show(ctx, mine, id)
		if err != nil || p.Tenant != "acme" || p.Consumer != "invites" || p.Target != "mail" || p.Kind != "invite" || p.Key != "may" || p.ID != id || !p.Sealed() {
			r.Errorf("%+v, %v", p, err)
		}
		if found, err := r.Find(ctx, "acme", "invites", "may"); found != id || err != nil {
			r.Errorf("%d, %v", found, err)
		}
		if n, err := r.Cancel(ctx, mine, id, by); n != 3 || err != nil {
			r.Errorf("%d, %v", n, err)
		}
	})
}

func (r *rig) count(rows []batch.RowSummary, err error) int {
	r.Helper()
	if err != nil {
		r.Error(err)
	}
	return len(rows)
}

func (r *rig) listed(scope outbox.Scope, query batch.ListQuery) int {
	r.Helper()
	n := 0
	for {
		page, err := r.List(r.Context(), scope, query)
		if err != nil {
			r.Fatal(err)
		}
		if n += len(page.Batches); !page.More {
			return n
		}
		query.Before = page.Next
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	onStores(t, func(r *rig) {
		ids := map[string]int64{}
		for _, key := range []string{"a", "b", "c"} {
			s := spec()
			s.Key, s.OnComplete = key, nil
			ids[key] = r.mustCreate(s, text(5), batch.Receipt{Rows: 5})
		}
		r.cancel(ids["b"], 5)
		for name, test := range map[string]struct {
			query batch.ListQuery
			want  int
		}{
			"all": {batch.ListQuery{Limit: 100}, 3}, "page by page": {batch.ListQuery{Limit: 1}, 3}, "unfinished": {batch.ListQuery{Limit: 1, Unfinished: true}, 2},
			"of the consumer": {batch.ListQuery{Limit: 2, Consumer: "invites"}, 3}, "of another": {batch.ListQuery{Limit: 2, Consumer: "books"}, 0},
			"none": {batch.ListQuery{}, 0}, "before": {batch.ListQuery{Limit: 2, Before: ids["c"]}, 2},
		} {
			if got := r.listed(outbox.AllTenants, test.query); got != test.want {
				r.Errorf("%s: %d, want %d", name, got, test.want)
			}
		}
		page, err := r.List(r.Context(), outbox.AllTenants, batch.ListQuery{Limit: 2})
		if err != nil || page.Batches[0].Key != "c" || page.Batches[1].Key != "b" || !page.Batches[1].Completed() || page.Batches[0].Completed() || !page.Batches[0].Sealed() {
			r.Errorf("%+v, %v", page, err)
		}
		if got := r.rows(ids["a"], batch.RowsQuery{After: 2, Limit: 2}); !slices.Equal(got, []string{"3 open pending a/3", "4 open pending a/4"}) {
			r.Errorf("%q", got)
		}
		if got := r.rows(ids["b"], batch.RowsQuery{Fate: batch.FateCancelled, After: 4, Limit: 2}); len(got) != 1 {
			r.Errorf("%q", got)
		}
		if got := r.rows(ids["b"], batch.RowsQuery{}); got != nil {
			r.Errorf("%q", got)
		}
	})
}

// Cancel goes through a batch of several pages while a sender has some of its rows.
func TestCancelOfMany(t *testing.T) {
	t.Parallel()
	r := newRig(t, memdb.New(memdb.Config{}))
	b, err := newBatches(r.store, batch.Config{Chunk: 1000})
	if err != nil {
		t.Fatal(err)
	}
	r.Batches = b
	id := r.mustCreate(spec(), text(2500), batch.Receipt{Rows: 2500})
	consumer, err := r.Box().Consumer("invites", "mail", outbox.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	worker, err := r.Box().RegisterWorker(t.Context(), "w", "h")
	if err != nil {
		t.Fatal(err)
	}
	leased, err := r.Box().Lease(t.Context(), consumer, outbox.LeaseRequest{Worker: worker, Kinds: []string{"invite"}, Scope: outbox.AllTenants, Limit: 100, For: time.Minute})
	if err != nil || len(leased) != 100 {
		t.Fatal(len(leased), err)
	}
	if p, err := r.Show(t.Context(), outbox.AllTenants, id); err != nil || p.Leased != 100 || p.Open != 2500 {
		t.Errorf("%+v, %v", p, err)
	}
	r.cancel(id, 2500)
	if result, err := r.Box().Settle(context.Background(), consumer, outbox.AllTenants, leased[0], outbox.Delivered()); err != nil || result.Status != outbox.StaleLease {
		t.Errorf("%+v, %v", result, err)
	}
	r.stands(id, "run 1: 2500 = 0 open + 0 delivered + 0 dead + 2500 cancelled + 0 expired + 0 rejected, sealed, completed")
}
