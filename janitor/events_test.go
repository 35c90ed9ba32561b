package janitor_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/sqlitedb"
	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/janitor"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/schema"
)

// A stream is a box with events and claims in it.
type stream struct {
	*testing.T
	box *outbox.Box
	log *events.Log
}

func newStream(t *testing.T, box *outbox.Box) stream {
	t.Helper()
	l, err := events.New(box, events.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return stream{t, box, l}
}

func (s stream) transact(fn func(tx db.Tx) error) {
	s.Helper()
	if err := s.box.Store().Transact(s.Context(), fn); err != nil {
		s.Fatal(err)
	}
}

func (s stream) append(ids ...string) {
	s.Helper()
	s.transact(func(tx db.Tx) error {
		for _, id := range ids {
			if _, err := s.log.Append(s.Context(), tx, events.Event{ID: id, Type: "paid"}); err != nil {
				return err
			}
		}
		return nil
	})
}

// read waits for the wanted ids: another transaction of the server may hold the stream back for a moment.
func (s stream) read(want ...string) (page events.Page) {
	s.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		var err error
		if page, err = s.log.Read(s.Context(), events.Cursor{}, 100, events.Filter{}); err != nil {
			s.Fatal(err)
		}
		var ids []string
		for _, e := range page.Events {
			ids = append(ids, e.ID)
		}
		switch {
		case slices.Equal(ids, want):
			return page
		case time.Now().After(deadline):
			s.Fatalf("the stream has %v, want %v", ids, want)
		}
	}
}

// save moves a reader that has saved nothing yet.
func (s stream) save(name string, to events.Cursor) {
	s.Helper()
	s.transact(func(tx db.Tx) error { return s.log.SaveReader(s.Context(), tx, name, events.Cursor{}, to) })
}

// record records receipts of some tenants under a key each.
func (s stream) record(tenant string, keys ...string) {
	s.Helper()
	s.transact(func(tx db.Tx) error {
		for _, key := range keys {
			if _, err := s.box.Store().RecordClaim(s.Context(), tx, db.RecordClaimParams{
				Tenant: tenant, Scope: "books", Key: key, Digest: make([]byte, 32), State: db.ClaimCompleted,
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// claims counts those that are there, of some keys of a tenant.
func (s stream) claims(tenant string, keys ...string) (n int) {
	s.Helper()
	s.transact(func(tx db.Tx) error {
		for _, key := range keys {
			rows, err := s.box.Store().FindClaims(s.Context(), tx, db.FindClaimsParams{
				Tenants: []string{tenant}, Scopes: []string{"books"}, Keys: []string{key}, Digests: [][]byte{make([]byte, 32)},
			})
			if err != nil {
				return err
			}
			n += len(rows)
		}
		return nil
	})
	return n
}

func TestEventsHaveTheirRetention(t *testing.T) {
	inBubble(t, func(b *bench) {
		s := newStream(b.T, b.box)
		s.append("a", "b", "c")
		s.save("search", s.read("a", "b", "c").Events[0].Cursor())
		time.Sleep(5 * day)
		s.append("d")

		config := janitor.Config{Scope: outbox.AllTenants, Events: 10 * day}
		for _, step := range []struct {
			after  time.Duration
			config janitor.Config
			left   []string
		}{
			{1000 * day, janitor.Config{Scope: outbox.AllTenants}, []string{"a", "b", "c", "d"}},
			{0, config, []string{"b", "c", "d"}}, // the reader has yet to read these
			{0, janitor.Config{Scope: outbox.AllTenants, Events: 1004 * day, ForceEvents: true}, []string{"d"}},
		} {
			time.Sleep(step.after)
			before := len(s.read(s.ids()...).Events)
			got := b.runOnce(b.janitor(step.config))
			if s.read(step.left...); got.Events != before-len(step.left) {
				b.Errorf("%d events were removed, %d are left of %d", got.Events, len(step.left), before)
			}
		}
		if removed, err := s.log.RemoveReader(b.Context(), "search"); !removed || err != nil {
			b.Fatal(removed, err)
		}
		if got := b.runOnce(b.janitor(config)); got.Events != 1 || len(s.ids()) != 0 {
			b.Errorf("without the reader: %+v, %v left", got, s.ids())
		}
	})
}

func (s stream) ids() (ids []string) {
	s.Helper()
	page, err := s.log.Read(s.Context(), events.Cursor{}, 100, events.Filter{})
	if err != nil {
		s.Fatal(err)
	}
	for _, e := range page.Events {
		ids = append(ids, e.ID)
	}
	return ids
}

func TestClaimsHaveTheirRetention(t *testing.T) {
	inBubble(t, func(b *bench) {
		s := newStream(b.T, b.box)
		s.record("acme", "1", "2", "3")
		s.record("", "1", "2", "3")
		s.transact(func(tx db.Tx) error {
			_, err := b.store.Claim(b.Context(), tx, db.ClaimParams{
				Scope: "books", Key: "held", Digest: make([]byte, 32), Token: slices.Repeat([]byte{1}, 16), Hold: day.Microseconds(),
			})
			return err
		})
		time.Sleep(60 * day)
		if got := b.runOnce(b.janitor(janitor.Config{})); got.Claims != 0 {
			b.Errorf("after 60 days %d went", got.Claims)
		}
		time.Sleep(time.Second)
		// One row a step: those of acme, which ended at the same time and come first, are passed by.
		if got := b.runOnce(b.janitor(janitor.Config{Scope: outbox.Tenants(""), Batch: 1})); got.Claims != 3 || s.claims("acme", "1", "2", "3") != 3 {
			b.Errorf("of the tenant %q: %+v", "", got)
		}
		if got := b.runOnce(b.janitor(janitor.Config{Scope: outbox.AllTenants})); got.Claims != 3 || s.claims("", "held") != 1 {
			b.Errorf("of all tenants: %+v, held %d", got, s.claims("", "held"))
		}
		time.Sleep(day)
		if got := b.runOnce(b.janitor(janitor.Config{Scope: outbox.AllTenants})); got.Claims != 1 || s.claims("", "held") != 0 {
			b.Errorf("of what nobody took over: %+v, held %d", got, s.claims("", "held"))
		}
	})
}

func TestBatchesHaveTheirRetention(t *testing.T) {
	inBubble(t, func(b *bench) {
		begin := func(key string, rejected int, sealed bool) {
			rows, err := b.store.AddBatch(b.Context(), db.AddBatchParams{
				Consumer: "c", Target: "t", Kind: "k", Key: key, Digest: make([]byte, 32), CompleteDigest: []byte{}, CompletePayload: []byte{},
			})
			if err != nil {
				b.Fatal(err)
			}
			p := db.AddBatchRowsParams{BatchID: rows[0].ID, AllTenants: true, MessageIds: make([]int64, rejected), Reasons: slices.Repeat([]string{"no"}, rejected)}
			for n := range rejected {
				p.Numbers = append(p.Numbers, int32(n+1))
			}
			err = b.store.Transact(b.Context(), func(tx db.Tx) error {
				_, err := b.store.AddBatchRows(b.Context(), tx, p)
				return err
			})
			if err == nil && sealed {
				_, err = b.store.SealBatch(b.Context(), db.SealBatchParams{ID: rows[0].ID, AllTenants: true})
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		begin("filling", 2, false)
		begin("old", 25, true)
		time.Sleep(day)
		begin("young", 3, true)
		time.Sleep(29 * day)
		if got := b.runOnce(b.janitor(janitor.Config{})); got.Batches != 0 {
			b.Errorf("after 30 days %d went", got.Batches)
		}
		time.Sleep(time.Second)
		if got := b.runOnce(b.janitor(janitor.Config{Batches: janitor.KeepForever})); got.Batches != 0 {
			b.Errorf("kept for ever, %d went", got.Batches)
		}
		if got := b.runOnce(b.janitor(janitor.Config{Batch: 4})); got.Batches != 26 {
			b.Errorf("in steps %d went, want the batch and its 25 rows", got.Batches)
		}
		if d := b.store.Dump(); len(d.Batches) != 2 || len(d.BatchRows) != 5 {
			b.Errorf("left %d batches and %d rows", len(d.Batches), len(d.BatchRows))
		}
		var invalid *outbox.InvalidError
		if _, err := janitor.New(b.box, janitor.Config{Batches: time.Second}); !errors.As(err, &invalid) || invalid.Field != "Batches" {
			b.Errorf("a second: %v", err)
		}
	})
}

// A bound that would break a promise is refused by the name of its field; the defaults follow from each other.
func TestRefusedRetentionsOfEventsAndClaims(t *testing.T) {
	inBubble(t, func(b *bench) {
		for _, c := range []struct {
			field  string
			config janitor.Config
		}{
			{"Events", janitor.Config{Events: time.Second, Scope: outbox.AllTenants}},
			{"Events", janitor.Config{Events: day}},
			{"Claims", janitor.Config{Claims: 29 * day}},
			{"Claims", janitor.Config{Claims: 100 * day, Dead: janitor.KeepForever}},
		} {
			var invalid *outbox.InvalidError
			if _, err := janitor.New(b.box, c.config); !errors.As(err, &invalid) || invalid.Field != c.field {
				b.Errorf("%+v: %v", c.config, err)
			}
		}
		for _, good := range []janitor.Config{
			{Dead: janitor.KeepForever}, {Dead: 100 * day}, {Claims: 30 * day}, {Claims: janitor.KeepForever, Dead: 100 * day},
		} {
			b.janitor(good)
		}
	})
}

// What a bubble cannot show: the statements of the databases, in steps.
func TestEventsAndClaimsOnDatabases(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) (*outbox.Box, *sql.DB, [2]string){"pgx": openServer, "sqlite": openFile} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box, pool, age := open(t)
			s := newStream(t, box)
			s.append("a", "b", "c", "d", "e")
			s.record("acme", "1", "2", "3", "4", "5")
			s.save("search", s.read("a", "b", "c", "d", "e").Events[3].Cursor())
			for _, statement := range age {
				if _, err := pool.ExecContext(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			s.append("f")
			s.record("acme", "6")
			s.read("a", "b", "c", "d", "e", "f")
			config := janitor.Config{Scope: outbox.AllTenants, Events: 10 * day, Batch: 2}
			for _, step := range []struct {
				force bool
				want  janitor.Report
				left  []string
			}{
				{false, janitor.Report{Events: 4, Claims: 5}, []string{"e", "f"}},
				{true, janitor.Report{Events: 1}, []string{"f"}},
				{true, janitor.Report{}, []string{"f"}},
			} {
				config.ForceEvents = step.force
				j, err := janitor.New(box, config)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := j.RunOnce(t.Context()); got != step.want || err != nil {
					t.Errorf("with force %v: %+v, %v; want %+v", step.force, got, err, step.want)
				}
				s.read(step.left...)
			}
			if n := s.claims("acme", "1", "2", "3", "4", "5", "6"); n != 1 {
				t.Errorf("%d claims are left", n)
			}
		})
	}
}

// The databases, and statements that let what is there age by more than 60 days.

func openServer(t *testing.T) (*outbox.Box, *sql.DB, [2]string) {
	r := newRig(t)
	return r.box, stdlib.OpenDBFromPool(r.pool), [2]string{
		"UPDATE outbox.event SET recorded_at = recorded_at - interval '61 days'", "UPDATE outbox.claim SET ended_at = ended_at - interval '61 days'",
	}
}

func openFile(t *testing.T) (*outbox.Box, *sql.DB, [2]string) {
	store, err := sqlitedb.Open(filepath.Join(t.TempDir(), "shop.db"), sqlitedb.Config{Synchronous: sqlitedb.Normal})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	if err := schema.Up(context.WithoutCancel(t.Context()), store.DB(), schema.Config{Dialect: schema.SQLite}); err != nil {
		t.Fatal(err)
	}
	box, err := outbox.New(store, outbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return box, store.DB(), [2]string{
		"UPDATE outbox_event SET recorded_at = recorded_at - 61 * 86400000000", "UPDATE outbox_claim SET ended_at = ended_at - 61 * 86400000000",
	}
}
