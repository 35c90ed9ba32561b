package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/memdb"
)

// Shows: S1.30 S4.1
func TestListPagesEachState(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	outcomes := map[State]Outcome{
		StateDelivered: Delivered(), StateDead: Failed(Permanent(errDown)), StateParked: Failed(Unknown(errDown)), StatePending: Failed(errDown),
	}
	want := map[State][]string{}
	for i := range 24 {
		m := b.leaseOne(fmt.Sprintf("key-%02d", i))
		state := []State{StateDelivered, StateDead, StateParked, StatePending, StateLeased, StateCancelled}[i%6]
		if outcome, ok := outcomes[state]; ok {
			b.settle(m, outcome)
		}
		if state == StateCancelled {
			if _, err := b.box.Cancel(t.Context(), Scope{}, []int64{m.ID}, ann); err != nil {
				t.Fatal(err)
			}
		}
		want[state] = append(want[state], m.Key)
	}
	for _, state := range []State{StateDelivered, StateDead, StateCancelled} {
		slices.Reverse(want[state])
	}
	for state, keys := range want {
		query := ListQuery{State: state, Filter: Filter{Consumer: "wallets", Kind: "charge"}, Limit: 3}
		var got []string
		for {
			page, err := b.box.List(t.Context(), Scope{}, query)
			if err != nil || len(page.Messages) > 3 {
				t.Fatal(page, err)
			}
			for _, m := range page.Messages {
				if m.State != state {
					t.Errorf("%s: listed %+v", state, m)
				}
				got = append(got, m.Key)
			}
			if !page.More {
				break
			}
			query.From = page.Next
		}
		if !slices.Equal(got, keys) {
			t.Errorf("%s: %v, want %v", state, got, keys)
		}
	}
	open, err := b.box.List(t.Context(), Scope{}, ListQuery{Limit: 1000})
	if err != nil || len(open.Messages) != 12 || open.More {
		t.Errorf("%d open, more %t, %v", len(open.Messages), open.More, err)
	}
	for name, query := range map[string]ListQuery{
		"another consumer": {State: StateDead, Filter: Filter{Consumer: "mails"}, Limit: 9},
		"another target":   {State: StateDelivered, Filter: Filter{Target: "elsewhere"}, Limit: 9},
	} {
		if page, err := b.box.List(t.Context(), Scope{}, query); err != nil || len(page.Messages) != 0 || page.More {
			t.Errorf("%s: %+v, %v", name, page, err)
		}
	}
	if page, err := b.box.List(t.Context(), Tenants("acme"), ListQuery{State: StateDead, Limit: 9}); err != nil || len(page.Messages) != 0 {
		t.Errorf("another tenant: %+v, %v", page, err)
	}
	if _, err := b.box.List(t.Context(), Scope{}, ListQuery{State: "lost", Limit: 9}); !errors.Is(err, ErrInvalid) {
		t.Errorf("no state: %v", err)
	}
	calls := b.calls()
	for _, limit := range []int{0, -1} {
		if page, err := b.box.List(t.Context(), Scope{}, ListQuery{Limit: limit}); err != nil || len(page.Messages) != 0 || page.More || len(*calls) != 0 {
			t.Errorf("limit %d: %+v, %v", limit, page, err)
		}
	}
}

// A page that a bound on what is looked at cut short says where to go on.
func TestListGoesOnAfterAnEmptyPage(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	var effects []Effect
	for i := range 1500 {
		effects = append(effects, effect(fmt.Sprint(i)))
	}
	wanted := effect("wanted")
	wanted.Kind = "refund"
	b.enqueue(append(effects, wanted)...)
	query := ListQuery{State: StatePending, Filter: Filter{Kind: "refund"}, Limit: 5}
	first, err := b.box.List(t.Context(), Scope{}, query)
	if err != nil || len(first.Messages) != 0 || !first.More {
		t.Fatalf("%+v, %v", first, err)
	}
	query.From = first.Next
	second, err := b.box.List(t.Context(), Scope{}, query)
	if err != nil || len(second.Messages) != 1 || second.Messages[0].Key != "wanted" || second.More {
		t.Errorf("%+v, %v", second, err)
	}
}

func TestShowSpeaksOfItsScopeOnly(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	id := b.enqueue(effect("k"))[0].ID
	for _, scope := range []Scope{{}, AllTenants, Tenants("")} {
		if got, err := b.box.Show(t.Context(), scope, id); err != nil || got.ID != id {
			t.Errorf("%v: %+v, %v", scope, got, err)
		}
	}
	if _, err := b.box.Show(t.Context(), Tenants("acme"), id); !errors.Is(err, ErrNotFound) {
		t.Errorf("a foreign message: %v", err)
	}
	if _, err := b.box.Show(t.Context(), Tenants(), id); !errors.Is(err, ErrInvalid) {
		t.Errorf("a scope of nobody: %v", err)
	}
}

func TestStatsCounts(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	b.settle(b.leaseOne("dead"), Failed(Permanent(errDown)))
	b.settle(b.leaseOne("parked"), Failed(Unknown(errDown)))
	leased := b.leaseOne("leased")
	deferred := effect("deferred")
	deferred.Delay = time.Hour
	b.enqueue(effect("due"), deferred)
	b.store.Age(time.Second)
	stats, err := b.box.Stats(t.Context(), Scope{})
	if err != nil || len(stats.Lanes) != 1 || len(stats.Parked) != 1 {
		t.Fatal(stats, err)
	}
	lane := stats.Lanes[0]
	if lane.Due != 1 || lane.Deferred != 1 || lane.Leased != 1 || lane.Lane != leased.Lane() || lane.Age < time.Second || stats.MoreLanes {
		t.Errorf("lane %+v", lane)
	}
	if stats.Parked[0] != (ParkedCount{"wallets", "ledger", "charge", 1}) || stats.Dead != 1 || stats.Cancelled != 0 || stats.Health.Now.IsZero() {
		t.Errorf("stats %+v", stats)
	}
}

func TestPurgeWalks(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	for i := range 6 {
		b.settle(b.leaseOne(fmt.Sprint(i)), []Outcome{Delivered(), Failed(Permanent(errDown))}[i%2])
	}
	b.store.Age(3 * time.Hour)
	b.settle(b.leaseOne("new"), Delivered())

	removed, steps := 0, 0
	for from := (Cursor{}); ; steps++ {
		sweep, err := b.box.PurgeDelivered(t.Context(), AllTenants, from, time.Hour, 2)
		if err != nil {
			t.Fatal(err)
		}
		removed += sweep.Count
		if from = sweep.Next; from == (Cursor{}) {
			break
		}
	}
	if removed != 3 || steps < 3 {
		t.Errorf("removed %d delivered in %d steps", removed, steps)
	}
	if sweep, err := b.box.PurgeUndelivered(t.Context(), AllTenants, StateDead, Cursor{}, time.Hour, 2); err != nil || sweep.Count != 2 {
		t.Errorf("removed dead: %+v, %v", sweep, err)
	}
	if sweep, err := b.box.PurgeUndelivered(t.Context(), AllTenants, StateCancelled, Cursor{}, time.Hour, 2); err != nil || sweep != (Sweep{}) {
		t.Errorf("removed cancelled: %+v, %v", sweep, err)
	}

	calls := b.calls()
	for name, purge := range map[string]func(keep time.Duration) error{
		"delivered": func(keep time.Duration) error {
			_, err := b.box.PurgeDelivered(t.Context(), AllTenants, Cursor{}, keep, 9)
			return err
		},
		"audit": func(keep time.Duration) error {
			_, err := b.box.PurgeAudit(t.Context(), AllTenants, Cursor{}, keep, 9)
			return err
		},
		"dead": func(keep time.Duration) error {
			_, err := b.box.PurgeUndelivered(t.Context(), AllTenants, StateDead, Cursor{}, keep, 9)
			return err
		},
		"workers": func(keep time.Duration) error { _, err := b.box.PurgeWorkers(t.Context(), keep, 9); return err },
	} {
		for _, keep := range []time.Duration{0, -1, 1} {
			if err := purge(keep); !errors.Is(err, ErrInvalid) {
				t.Errorf("%s kept for %v: %v", name, keep, err)
			}
		}
	}
	if _, err := b.box.PurgeUndelivered(t.Context(), AllTenants, StateDelivered, Cursor{}, time.Hour, 9); !errors.Is(err, ErrInvalid) {
		t.Errorf("delivered as undelivered: %v", err)
	}
	if _, err := b.box.ExpireUnleased(t.Context(), AllTenants, Cursor{}, -1, 9); !errors.Is(err, ErrInvalid) {
		t.Errorf("negative grace: %v", err)
	}
	if sweep, err := b.box.PurgeDelivered(t.Context(), AllTenants, Cursor{}, time.Hour, 0); err != nil || sweep != (Sweep{}) {
		t.Errorf("limit 0: %+v, %v", sweep, err)
	}
	if len(*calls) != 0 {
		t.Errorf("sent %v", *calls)
	}
}

func TestExpireUnleased(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	old := effect("old")
	old.MaxAge = time.Minute
	id := b.enqueue(old, effect("young"))[0].ID
	b.store.Age(time.Hour + time.Minute)
	sweep, err := b.box.ExpireUnleased(t.Context(), AllTenants, Cursor{}, time.Hour, 10)
	if err != nil || sweep.Count != 1 || sweep.Next.ID != id+1 {
		t.Errorf("swept %+v, %v", sweep, err)
	}
	if sweep, err = b.box.ExpireUnleased(t.Context(), AllTenants, sweep.Next, time.Hour, 10); err != nil || sweep != (Sweep{}) {
		t.Errorf("at the end %+v, %v", sweep, err)
	}
	if got := b.show(id); got.State != StateExpired {
		t.Errorf("became %+v", got)
	}
}

func TestCheckSchema(t *testing.T) {
	t.Parallel()
	for version, want := range map[int64]error{
		0: nil, -1: ErrSchemaTooOld, db.OldestSchema - 1: ErrSchemaTooOld, db.NewestSchema + 1: nil, db.RefusedSchema - 1: nil,
		db.RefusedSchema: ErrSchemaTooNew, 1 << 40: ErrSchemaTooNew,
	} {
		box, err := New(memdb.New(memdb.Config{Version: version}), Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := box.CheckSchema(t.Context()); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("version %d: %v", version, err)
		}
	}
}

type inSchema struct {
	*memdb.Store
	name string
}

func (s inSchema) Schema() string { return s.name }

type inFile struct{ *memdb.Store }

func (inFile) DSN() string { return "sqlite:/srv/shop.db" }

// Before a migration the error says what to do, and no more.
func TestCheckSchemaWithoutTables(t *testing.T) {
	t.Parallel()
	bare := memdb.New(memdb.Config{})
	bare.Hook(memdb.Hook{Before: func(context.Context, memdb.Call) error { return db.ErrNoSchema }})
	for want, store := range map[string]db.Store{
		"schema \"outbox\" has no tables: run `fencepost migrate`":                           bare,
		"schema \"billing\" has no tables: run `fencepost migrate --schema billing`":         inSchema{bare, "billing"},
		"schema \"outbox\" has no tables: run `fencepost migrate --dsn sqlite:/srv/shop.db`": inFile{bare},
	} {
		box, err := New(store, Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := box.CheckSchema(t.Context()); !errors.Is(err, db.ErrNoSchema) || err.Error() != "outbox: check schema: "+want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestRoleProblems(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	if role, err := b.box.CheckRole(t.Context()); err != nil || len(role.Problems()) != 0 {
		t.Errorf("a good role: %v, %v", role.Problems(), err)
	}
	if got := (Role{Superuser: true, Owner: true, BypassRLS: true}).Problems(); len(got) != 5 {
		t.Errorf("problems %q", got)
	}
}
