package dbtest

import (
	"time"

	"github.com/fencepost-go/fencepost/db"
)

var countTests = []test{
	{name: "lanes, by what can run", run: countsLanes},
	{name: "lanes up to a cap", run: countsCapped},
	{name: "lanes in pages and in scope", run: countsPages},
	{name: "parked messages by lane", run: countsParked},
	{name: "undelivered messages by outcome", run: countsUndelivered},
	{name: "what slows the queue down", run: readsHealth},
}

func counting() db.CountLanesParams {
	return db.CountLanesParams{Cap: 100, AllTenants: true, MaxRows: 100, AfterPriority: db.FirstPriority}
}

func (f *fixture) countLanes(p db.CountLanesParams) []db.CountLanesRow {
	f.Helper()
	rows := run(f, f.Store.CountLanes, p)
	for i := range rows {
		if rows[i].Now.Before(rows[i].Earliest.Add(-time.Hour)) {
			f.Errorf("earliest %v, now %v", rows[i].Earliest, rows[i].Now)
		}
		rows[i].Earliest, rows[i].Now = time.Time{}, time.Time{}
	}
	return rows
}

func countsLanes(f *fixture) {
	f.park(effect{})
	f.hold(some(2)...)
	f.enqueue(effect{}, effect{}, effect{}, effect{delay: time.Minute})
	f.enqueue(effect{priority: -1, delay: time.Minute}, effect{tenant: "a"})
	f.deliver(effect{tenant: "b"})
	same(f, "lanes", f.countLanes(counting()), []db.CountLanesRow{
		{Consumer: "c", Target: "t", Kind: "k", Priority: -1, Deferred: 1},
		{Consumer: "c", Target: "t", Kind: "k", Due: 3, Deferred: 1, Leased: 2},
		{Consumer: "c", Target: "t", Kind: "k", Tenant: "a", Due: 1},
	})
	f.Age(f, leaseTime)
	same(f, "when the leases are over", f.countLanes(counting())[1].Due, 5)
	first := f.dump().Queue[1]
	sameInstant(f, "earliest", run(f, f.Store.CountLanes, counting())[1].Earliest, first.DueAt)
}

func countsCapped(f *fixture) {
	f.enqueue(some(5)...)
	p := counting()
	p.Cap = 3
	same(f, "lanes", f.countLanes(p), []db.CountLanesRow{{Consumer: "c", Target: "t", Kind: "k", Due: 3}})
}

func countsPages(f *fixture) {
	f.enqueue(effect{tenant: "a"}, effect{tenant: "a", priority: 1}, effect{tenant: "b"}, effect{tenant: "b", priority: 1}, effect{tenant: "d"})
	p := counting()
	p.AllTenants, p.Scope, p.MaxRows = false, []string{"a", "d"}, 2
	p.AfterConsumer, p.AfterTarget, p.AfterKind, p.AfterTenant, p.AfterPriority = "c", "t", "k", "a", 0
	same(f, "lanes", f.countLanes(p), []db.CountLanesRow{
		{Consumer: "c", Target: "t", Kind: "k", Tenant: "a", Priority: 1, Due: 1},
		{Consumer: "c", Target: "t", Kind: "k", Tenant: "d", Due: 1},
	})
	p.AfterTenant = "d"
	same(f, "lanes at the end", len(f.countLanes(p)), 0)
}

func countsParked(f *fixture) {
	f.park(some(3)...)
	f.park(effect{kind: "a", tenant: "x"})
	f.enqueue(some(1)...)
	count := func(p db.CountParkedParams) []db.CountParkedRow { return run(f, f.Store.CountParked, p) }
	a, k := db.CountParkedRow{Consumer: "c", Target: "t", Kind: "a", Parked: 1}, db.CountParkedRow{Consumer: "c", Target: "t", Kind: "k", Parked: 3}
	same(f, "parked", count(db.CountParkedParams{AllTenants: true, Cap: 100}), []db.CountParkedRow{a, k})
	same(f, "in scope", count(db.CountParkedParams{Scope: []string{"x"}, Cap: 100}), []db.CountParkedRow{a})
	k.Parked = 1
	same(f, "capped", count(db.CountParkedParams{AllTenants: true, Cap: 2}), []db.CountParkedRow{a, k})
}

func countsUndelivered(f *fixture) {
	f.deliver(effect{})
	f.bury(some(3)...)
	f.cancel(f.enqueue(effect{})...)
	count := func(limit int32) map[string]int64 {
		counts := map[string]int64{}
		for _, row := range run(f, f.Store.CountUndelivered, db.CountUndeliveredParams{Cap: limit}) {
			counts[row.Outcome] = row.Settled
		}
		return counts
	}
	same(f, "undelivered", count(100), map[string]int64{"dead": 3, "cancelled": 1, "expired": 0})
	same(f, "capped", count(2), map[string]int64{"dead": 2, "cancelled": 1, "expired": 0})
}

func readsHealth(f *fixture) {
	row := one(f, f.Store.ReadHealth, db.ReadHealthParams{SchemaName: f.Store.Schema()})
	if row.OldestSnapshot < 0 || row.LiveRows < 0 || row.DeadRows < 0 || row.SettledEstimate < 0 || row.ServerVersion == "" {
		f.Errorf("health: %+v", row)
	}
	if off := f.dump().Now.Sub(row.Now); off < 0 || off > time.Minute {
		f.Errorf("now %v ago", off)
	}
}

var schemaTests = []test{
	{name: "is the one the store works with", run: schemaVersion},
	{name: "may be used by the role", run: roleMay},
}

func schemaVersion(f *fixture) {
	oldest, newest := f.Store.SchemaRange()
	rows, err := f.Store.ReadVersion(f.Context())
	if err != nil || len(rows) != 1 || rows[0] < oldest || rows[0] > newest {
		f.Errorf("version %v of %d to %d, %v", rows, oldest, newest, err)
	}
}

func roleMay(f *fixture) {
	row := one(f, f.Store.CheckRole, db.CheckRoleParams{SchemaName: f.Store.Schema()})
	same(f, "may lease and settle", []bool{row.MayLease, row.MaySettle}, []bool{true, true})
	if rows, err := f.Store.CheckRole(f.Context(), db.CheckRoleParams{SchemaName: "absent"}); err != nil || len(rows) != 1 {
		f.Errorf("of an absent schema: %+v, %v", rows, err)
	}
}
