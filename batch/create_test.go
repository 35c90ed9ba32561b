package batch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/fencepost-go/fencepost/batch"
	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/outbox"
)

// Shows: S4.14 S4.16
func TestCreate(t *testing.T) {
	t.Parallel()
	onStores(t, func(r *rig) {
		s := spec()
		var reports []int
		s.Report = func(receipt batch.Receipt) { reports = append(reports, receipt.Rows) }
		id := r.mustCreate(s, text(4)+"\nx\n{\"n\": 6}\n[]\n", batch.Receipt{Rows: 7, Rejected: 2})
		if !slices.Equal(reports, []int{3, 6, 7}) {
			r.Errorf("told %v", reports)
		}
		r.stands(id, "run 1: 7 = 5 open + 0 delivered + 0 dead + 0 cancelled + 0 expired + 2 rejected, sealed")
		r.perform(2)
		r.stands(id, "run 1: 7 = 0 open + 4 delivered + 1 dead + 0 cancelled + 0 expired + 2 rejected, sealed, completed")
		got, want := r.rows(id, batch.RowsQuery{Limit: 10}), []string{
			"1 delivered  may/1 mail-1", "2 dead  may/2 no such address", "3 delivered  may/3 mail-3", "4 delivered  may/4 mail-4",
			"5 rejected   decode: is no JSON object", "6 delivered  may/6 mail-6", "7 rejected   decode: is no JSON object",
		}
		if !slices.Equal(got, want) {
			r.Errorf("\n got %q\nwant %q", got, want)
		}
		if got := r.ends(); !slices.Equal(got, []string{"close-may"}) {
			r.Errorf("at the end: %q", got)
		}
	})
}

// A Create that ended early goes on, and one that is repeated adds nothing, even when what it stored was performed and removed since.
func TestCreateAgain(t *testing.T) {
	t.Parallel()
	onStores(t, func(r *rig) {
		whole := text(4) + "x\n" + text(5)
		broken := errors.New("the disk is gone")
		in := io.MultiReader(strings.NewReader(text(4)+"x\n"+text(2)), iotest.ErrReader(broken))
		got, err := r.Create(r.Context(), spec(), objects(r).Reader(in))
		if !errors.Is(err, broken) || got.Rows != 6 || got.Rejected != 1 {
			r.Fatalf("%+v, %v", got, err)
		}
		r.perform()
		r.stands(got.ID, "run 1: 6 = 0 open + 5 delivered + 0 dead + 0 cancelled + 0 expired + 1 rejected")
		id := r.mustCreate(spec(), whole, batch.Receipt{Rows: 10, Rejected: 1, Duplicate: 6})
		r.stands(id, "run 1: 10 = 4 open + 5 delivered + 0 dead + 0 cancelled + 0 expired + 1 rejected, sealed")
		r.mustCreate(spec(), whole, batch.Receipt{Rows: 10, Rejected: 1, Duplicate: 10})
		r.perform()
		r.mustCreate(spec(), whole, batch.Receipt{Rows: 10, Rejected: 1, Duplicate: 10})
		r.stands(id, "run 1: 10 = 0 open + 9 delivered + 0 dead + 0 cancelled + 0 expired + 1 rejected, sealed, completed")
		if id != got.ID || len(r.ends()) != 1 {
			r.Errorf("%d and %d, %q", got.ID, id, r.ends())
		}
	})
}

// A row whose delivered message is gone already is not performed a second time by a Create that goes on.
func TestCreateAgainAfterTheMessages(t *testing.T) {
	t.Parallel()
	onStores(t, func(r *rig) {
		in := io.MultiReader(strings.NewReader(text(3)), iotest.ErrReader(io.ErrClosedPipe))
		got, err := r.Create(r.Context(), spec(), objects(r).Reader(in))
		if !errors.Is(err, io.ErrClosedPipe) || got.Rows != 0 {
			r.Fatalf("%+v, %v", got, err)
		}
		in = io.MultiReader(strings.NewReader(text(4)), iotest.ErrReader(io.ErrClosedPipe))
		if got, err = r.Create(r.Context(), spec(), objects(r).Reader(in)); got.Rows != 3 {
			r.Fatalf("%+v, %v", got, err)
		}
		r.drop()
		id := r.mustCreate(spec(), text(4), batch.Receipt{Rows: 4, Duplicate: 3})
		r.stands(id, "run 1: 4 = 1 open + 3 delivered + 0 dead + 0 cancelled + 0 expired + 0 rejected, sealed")
	})
}

// drop performs what is due under a policy that keeps nothing of it.
func (r *rig) drop() {
	r.Helper()
	consumer, err := r.Box().Consumer("invites", "mail", outbox.Policy{DropDelivered: true})
	if err != nil {
		r.Fatal(err)
	}
	worker, err := r.Box().RegisterWorker(r.Context(), "w", "h")
	if err != nil {
		r.Fatal(err)
	}
	messages, err := r.Box().Lease(r.Context(), consumer, outbox.LeaseRequest{Worker: worker, Kinds: []string{"invite"}, Scope: outbox.AllTenants, Limit: 100, For: time.Minute})
	if err != nil {
		r.Fatal(err)
	}
	for _, m := range messages {
		if _, err := r.Box().Settle(r.Context(), consumer, outbox.AllTenants, m, outbox.Delivered()); err != nil {
			r.Fatal(err)
		}
	}
}

// What is not the same under a key is a conflict that names it, and changes nothing.
func TestConflicts(t *testing.T) {
	t.Parallel()
	onStores(t, func(r *rig) {
		id := r.mustCreate(spec(), text(4)+"x\n", batch.Receipt{Rows: 5, Rejected: 1})
		before := r.rows(id, batch.RowsQuery{Limit: 10})
		for name, change := range map[string]func(*batch.Spec){
			"target": func(s *batch.Spec) { s.Target = "post" }, "kind": func(s *batch.Spec) { s.Kind = "other" },
			"priority": func(s *batch.Spec) { s.Priority = 1 }, "age": func(s *batch.Spec) { s.MaxAge = time.Hour },
			"no end": func(s *batch.Spec) { s.OnComplete = nil }, "another end": func(s *batch.Spec) { s.OnComplete.Payload = nil },
			"its key": func(s *batch.Spec) { s.OnComplete.Key = "k" }, "its consumer": func(s *batch.Spec) { s.OnComplete.Consumer = "c" },
			"its priority": func(s *batch.Spec) { s.OnComplete.Priority = 1 }, "its metadata": func(s *batch.Spec) { s.OnComplete.Metadata = nil },
		} {
			s := spec()
			change(&s)
			_, err := r.create(s, text(4)+"x\n")
			var conflict *batch.ConflictError
			if !errors.As(err, &conflict) || !errors.Is(err, batch.ErrConflict) || conflict.ID != id {
				r.Errorf("another %s: %v", name, err)
			}
		}
		for input, row := range map[string]int{
			"{\"n\": 0}\n":             1,
			text(3) + "{\"n\":4}\nx\n": 4, // a space less
			text(2) + "x\n" + text(1):  3,
			text(4) + "{}\n":           5,
			text(4):                    5,
			text(3):                    4,
			"":                         1,
		} {
			_, err := r.create(spec(), input)
			var conflict *batch.RowConflictError
			if !errors.As(err, &conflict) || !errors.Is(err, batch.ErrConflict) || conflict.Row != row || !strings.Contains(err.Error(), fmt.Sprint(row)) {
				r.Errorf("%q: %v, want a conflict of row %d", input, err, row)
			}
		}
		if _, err := r.create(spec(), text(4)+"x\n{}\n"); !errors.Is(err, batch.ErrSealed) || !strings.Contains(err.Error(), "row 6") {
			r.Errorf("a row more: %v", err)
		}
		if after := r.rows(id, batch.RowsQuery{Limit: 10}); !slices.Equal(before, after) {
			r.Errorf("\nbefore %q\n after %q", before, after)
		}
	})
}

// A message that somebody else enqueued under a row's key is the row if it is the same, and a conflict if it is not.
func TestKeysThatAreTaken(t *testing.T) {
	t.Parallel()
	onStores(t, func(r *rig) {
		err := r.store.Transact(r.Context(), func(tx db.Tx) error {
			_, err := r.Box().EnqueueMany(r.Context(), tx, []outbox.Effect{
				{Tenant: "acme", Consumer: "invites", Target: "mail", Kind: "invite", Key: "may/2", Payload: []byte(`{"n": 2}`)},
				{Tenant: "acme", Consumer: "invites", Target: "mail", Kind: "invite", Key: "june/2", Payload: []byte(`{"n": 3}`)},
			})
			return err
		})
		if err != nil {
			r.Fatal(err)
		}
		r.perform()
		id := r.mustCreate(spec(), text(2), batch.Receipt{Rows: 2})
		r.stands(id, "run 1: 2 = 1 open + 1 delivered + 0 dead + 0 cancelled + 0 expired + 0 rejected, sealed")
		s := spec()
		s.Key = "june"
		var conflict *batch.RowConflictError
		if _, err := r.create(s, text(2)); !errors.As(err, &conflict) || conflict.Row != 2 {
			r.Error(err)
		}
	})
}

// Many that create one batch at once make one.
func TestCreatesAtOnce(t *testing.T) {
	t.Parallel()
	onStores(t, func(r *rig) {
		var all sync.WaitGroup
		var mu sync.Mutex
		ids, duplicates := map[int64]bool{}, 0
		for range 6 {
			all.Go(func() {
				got, err := r.create(spec(), text(20)+"x\n")
				mu.Lock()
				defer mu.Unlock()
				if ids[got.ID] = true; err != nil || got.Rows != 21 {
					r.Errorf("%+v, %v", got, err)
				}
				duplicates += got.Duplicate
			})
		}
		all.Wait()
		if len(ids) != 1 || duplicates != 5*21 {
			r.Fatalf("%v, %d duplicates", ids, duplicates)
		}
		for id := range ids {
			r.stands(id, "run 1: 21 = 20 open + 0 delivered + 0 dead + 0 cancelled + 0 expired + 1 rejected, sealed")
		}
	})
}

// A batch without a good row is completed when it is sealed.
func TestNothingToDo(t *testing.T) {
	t.Parallel()
	onStores(t, func(r *rig) {
		r.stands(r.mustCreate(spec(), "", batch.Receipt{}), "run 1: 0 = 0 open + 0 delivered + 0 dead + 0 cancelled + 0 expired + 0 rejected, sealed, completed")
		s := spec()
		s.Key, s.OnComplete.Key = "june", "close-june"
		r.stands(r.mustCreate(s, "x\ny\n", batch.Receipt{Rows: 2, Rejected: 2}),
			"run 1: 2 = 0 open + 0 delivered + 0 dead + 0 cancelled + 0 expired + 2 rejected, sealed, completed")
		if ends := r.ends(); !slices.Equal(ends, []string{"close-may", "close-june"}) {
			r.Errorf("%q", ends)
		}
	})
}

func TestSuppressed(t *testing.T) {
	t.Parallel()
	r := newRig(t, memdb.New(memdb.Config{}))
	got, err := r.Create(outbox.WithSuppressed(t.Context()), spec(), objects(t).Reader(strings.NewReader(text(4)+"x\n")))
	if err != nil || got != (batch.Receipt{Rows: 5, Rejected: 1}) {
		t.Errorf("%+v, %v", got, err)
	}
	if page, err := r.List(t.Context(), outbox.AllTenants, batch.ListQuery{Limit: 1}); err != nil || len(page.Batches) > 0 {
		t.Errorf("%+v, %v", page, err)
	}
}

// What a payload may not be is a rejected row; a reason fits, and passes through Redact.
func TestLongRows(t *testing.T) {
	t.Parallel()
	onStores(t, func(r *rig) {
		long := `{"a": "` + strings.Repeat("x", outbox.DefaultMaxPayload) + `"}`
		id := r.mustCreate(spec(), text(1)+long+"\n", batch.Receipt{Rows: 2, Rejected: 1})
		if got := r.rows(id, batch.RowsQuery{Fate: batch.FateRejected, Limit: 9}); len(got) != 1 || !strings.Contains(got[0], "2 rejected   decode: has 65545 bytes, more than a payload may have") {
			r.Errorf("%q", got)
		}
	})
	box, err := outbox.New(memdb.New(memdb.Config{}), outbox.Config{Redact: func(text string) string { return strings.ReplaceAll(text, "secret", "…") }})
	if err != nil {
		t.Fatal(err)
	}
	b, err := batch.New(box, batch.Config{})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := batch.NewRows(batch.RowsConfig[map[string]any]{Cross: func(map[string]any) error {
		return errors.New("secret\x00" + strings.Repeat("日", 1000))
	}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := b.Create(t.Context(), spec(), rows.Reader(strings.NewReader("{}")))
	if err != nil {
		t.Fatal(err)
	}
	listed, err := b.ListRows(t.Context(), outbox.AllTenants, got.ID, batch.RowsQuery{Limit: 1})
	if err != nil || len(listed) != 1 || len(listed[0].Reason) > 1024 || !strings.HasPrefix(listed[0].Reason, "cross-field: …\ufffd日") || !strings.HasSuffix(listed[0].Reason, "日") {
		t.Errorf("%+v, %v", listed, err)
	}
}

// What is wrong is told by its field before anything is sent.
func TestBadInput(t *testing.T) {
	t.Parallel()
	_, err := batch.New(nil, batch.Config{Chunk: 1001})
	refused(t, "config", err, "box", "Chunk")
	store := memdb.New(memdb.Config{})
	r := newRig(t, store)
	sent := 0
	store.Hook(memdb.Hook{Before: func(context.Context, memdb.Call) error {
		sent++
		return nil
	}})
	for row, bad := range map[string]struct {
		change func(*batch.Spec)
		field  string
	}{
		"blank tenant":      {func(s *batch.Spec) { s.Tenant = " " }, "Tenant"},
		"any tenant":        {func(s *batch.Spec) { s.Tenant = "*" }, "Tenant"},
		"no consumer":       {func(s *batch.Spec) { s.Consumer = "" }, "Consumer"},
		"long target":       {func(s *batch.Spec) { s.Target = strings.Repeat("t", 129) }, "Target"},
		"kind with a NUL":   {func(s *batch.Spec) { s.Kind = "\x00" }, "Kind"},
		"no key":            {func(s *batch.Spec) { s.Key = "" }, "Key"},
		"blank key":         {func(s *batch.Spec) { s.Key = "\t" }, "Key"},
		"long key":          {func(s *batch.Spec) { s.Key = strings.Repeat("k", 201) }, "Key"},
		"negative age":      {func(s *batch.Spec) { s.MaxAge = -1 }, "MaxAge"},
		"end: no consumer":  {func(s *batch.Spec) { s.OnComplete.Consumer = "" }, "OnComplete.Consumer"},
		"end: long key":     {func(s *batch.Spec) { s.OnComplete.Key = strings.Repeat("k", 201) }, "OnComplete.Key"},
		"end: longer key":   {func(s *batch.Spec) { s.OnComplete.Key = strings.Repeat("k", 256) }, "OnComplete.Key"},
		"end: a row's key":  {func(s *batch.Spec) { s.OnComplete.Consumer, s.OnComplete.Key = s.Consumer, "may/7" }, "OnComplete.Key"},
		"end: payload":      {func(s *batch.Spec) { s.OnComplete.Payload = make([]byte, 64<<10+1) }, "OnComplete.Payload"},
		"end: metadata":     {func(s *batch.Spec) { s.OnComplete.Metadata = map[string]string{"": ""} }, "OnComplete.Metadata"},
		"end: other tenant": {func(s *batch.Spec) { s.OnComplete.Tenant = "other" }, "OnComplete.Tenant"},
		"end: order":        {func(s *batch.Spec) { s.OnComplete.OrderKey = "o" }, "OnComplete"},
		"end: delay":        {func(s *batch.Spec) { s.OnComplete.Delay = 1 }, "OnComplete"},
		"end: due":          {func(s *batch.Spec) { s.OnComplete.DueAt = time.Now() }, "OnComplete"},
		"end: age":          {func(s *batch.Spec) { s.OnComplete.MaxAge = time.Hour }, "OnComplete"},
		"end: source":       {func(s *batch.Spec) { s.OnComplete.SourcePosition = 1 }, "OnComplete"},
	} {
		s := spec()
		bad.change(&s)
		_, err := r.create(s, text(1))
		refused(t, row, err, bad.field+" ")
		if bad.field == "Key" {
			refused(t, row, second(r.Find(t.Context(), s.Tenant, s.Consumer, s.Key)), "Key")
		}
	}
	_, err = r.Create(t.Context(), spec(), batch.Source{})
	refused(t, "no source", err, "source")
	none := outbox.Tenants()
	refused(t, "scope of progress", second(r.Progress(t.Context(), none, 1)), "Scope")
	refused(t, "scope of rows", second(r.ListRows(t.Context(), none, 1, batch.RowsQuery{Fate: "lost", After: -1})), "Scope", "Fate", "After")
	refused(t, "list", second(r.List(t.Context(), none, batch.ListQuery{Consumer: "\xff"})), "Scope", "Consumer")
	refused(t, "cancel", second(r.Cancel(t.Context(), outbox.AllTenants, 1, outbox.By{Actor: "a"})), "Reason")
	refused(t, "rerun", second(r.Rerun(t.Context(), outbox.AllTenants, 1, outbox.By{Reason: "a"})), "Actor")
	refused(t, "rerun in no scope", second(r.Rerun(t.Context(), none, 1, by)), "Scope")
	for _, every := range []time.Duration{-1, 99 * time.Millisecond, 2 * time.Hour} {
		for _, err := range r.Watch(t.Context(), outbox.AllTenants, 1, every) {
			refused(t, every.String(), err, "every")
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Create(over, spec(), objects(t).Reader(strings.NewReader(""))); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if sent != 0 {
		t.Errorf("%d statements were sent", sent)
	}
}
