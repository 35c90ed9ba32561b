package dbtest

import (
	"math"
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/db"
)

var listTests = []test{
	{name: "open messages, whole", run: listsOpenWhole},
	{name: "open messages by state", run: listsOpenStates},
	{name: "open messages in pages", run: listsOpenPages},
	{name: "undelivered messages, whole", run: listsUndeliveredWhole},
	{name: "undelivered messages newest first, in pages", run: listsUndeliveredPages},
	{name: "delivered messages, whole", run: listsDeliveredWhole},
	{name: "delivered messages newest id first, in pages", run: listsDeliveredPages},
	{name: "by scope, consumer, target and kind", run: listsFiltered},
	{name: "a bounded number looked at, telling where it stopped", run: listsBounded},
}

// Listings of everything from the front.
func opens() db.ListOpenParams {
	return db.ListOpenParams{Examine: 1000, AllTenants: true, MaxRows: 100}
}

func undelivereds(outcome string) db.ListUndeliveredParams {
	return db.ListUndeliveredParams{
		Outcome: outcome, BeforeAt: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), BeforeID: math.MaxInt64, Examine: 1000, AllTenants: true, MaxRows: 100,
	}
}

func delivereds() db.ListDeliveredParams {
	return db.ListDeliveredParams{BeforeID: math.MaxInt64, Examine: 1000, AllTenants: true, MaxRows: 100}
}

// The three listings return one form of row.
func (f *fixture) listOpen(p db.ListOpenParams) []db.ListOpenRow {
	f.Helper()
	return listed(run(f, f.Store.ListOpen, p))
}

func (f *fixture) listUndelivered(p db.ListUndeliveredParams) []db.ListOpenRow {
	f.Helper()
	var rows []db.ListOpenRow
	for _, row := range run(f, f.Store.ListUndelivered, p) {
		rows = append(rows, db.ListOpenRow(row))
	}
	return listed(rows)
}

func (f *fixture) listDelivered(p db.ListDeliveredParams) []db.ListOpenRow {
	f.Helper()
	var rows []db.ListOpenRow
	for _, row := range run(f, f.Store.ListDelivered, p) {
		rows = append(rows, db.ListOpenRow(row))
	}
	return listed(rows)
}

// listed turns instants to UTC, in which rows compare.
func listed(rows []db.ListOpenRow) []db.ListOpenRow {
	for i := range rows {
		for _, t := range []*time.Time{&rows[i].ReplayedAt, &rows[i].CreatedAt, &rows[i].DueAt, &rows[i].LeasedUntil, &rows[i].SettledAt} {
			*t = t.UTC()
		}
	}
	return rows
}

// shown picks the ids of matched rows, in their order, and of the closing row.
func shown(rows []db.ListOpenRow) (ids []int64, stopped int64) {
	for _, row := range rows {
		if row.Matched {
			ids = append(ids, row.ID)
		} else {
			stopped = row.ID
		}
	}
	return ids, stopped
}

func listsOpenWhole(f *fixture) {
	dead := f.bury(effect{tenant: "a", key: "x", order: "o"})
	run(f, f.Store.ReplayDead, replaying(dead...))
	h := f.take(f.leasing(lane{tenant: "a"}))
	retry := h.retried(time.Hour)
	run(f, f.Store.SettleRetry, retry)
	d := f.dump()
	m, q := d.Messages[0], d.Queue[0]
	same(f, "rows", f.listOpen(opens()), []db.ListOpenRow{{
		ID: m.ID, Tenant: "a", Consumer: "c", Target: "t", Kind: "k", Key: "x", OrderKey: "o", State: "pending", Attempt: 1, Epoch: 2, Replays: 1,
		ReplayedAt: q.ReplayedAt, Reason: "refused", CreatedAt: m.CreatedAt, DueAt: q.DueAt, LeasedUntil: db.Never, SettledAt: db.Never, Matched: true,
	}})
}

func listsOpenStates(f *fixture) {
	parked, lost := f.park(effect{}), f.hold(effect{}).ids
	f.Age(f, leaseTime)
	pending := f.enqueue(effect{kind: "waits"})
	leased := f.hold(effect{priority: 1}).ids
	for state, want := range map[string][]int64{
		"parked": parked, "leased": leased, "pending": {lost[0], pending[0]}, "": {parked[0], lost[0], pending[0], leased[0]}, "dead": nil,
	} {
		p := opens()
		p.State = state
		ids, _ := shown(f.listOpen(p))
		same(f, "state "+state, ids, want)
	}
	row := f.listOpen(opens())[3]
	sameInstant(f, "leased until", row.LeasedUntil, f.queued(leased[0]).LeasedUntil)
}

func listsOpenPages(f *fixture) {
	ids := f.enqueue(some(5)...)
	p := opens()
	p.MaxRows = 2
	for _, want := range [][]int64{ids[0:2], ids[2:4], ids[4:5], nil} {
		got, _ := shown(f.listOpen(p))
		same(f, "page", got, want)
		if len(got) > 0 {
			p.AfterID = got[len(got)-1]
		}
	}
}

// Shows: S1.31
func listsUndeliveredWhole(f *fixture) {
	id := f.bury(effect{tenant: "a", key: "x", order: "o"})[0]
	run(f, f.Store.ReplayDead, replaying(id))
	run(f, f.Store.SettleDead, f.take(f.leasing(lane{tenant: "a"})).dead("moot"))
	d := f.dump()
	m, s := d.Messages[0], d.Settlements[0]
	same(f, "rows", f.listUndelivered(undelivereds("dead")), []db.ListOpenRow{{
		ID: id, Tenant: "a", Consumer: "c", Target: "t", Kind: "k", Key: "x", OrderKey: "o", State: "dead", Attempt: 1, Epoch: 2, Replays: 1,
		ReplayedAt: s.ReplayedAt, Cause: "moot", Reason: "no such account", CreatedAt: m.CreatedAt, DueAt: db.Never, LeasedUntil: db.Never,
		SettledAt: s.SettledAt, Matched: true,
	}})
	for _, outcome := range []string{"cancelled", "expired", "delivered"} {
		same(f, outcome, len(f.listUndelivered(undelivereds(outcome))), 0)
	}
}

func listsUndeliveredPages(f *fixture) {
	together := f.bury(some(3)...) // settled at one instant or close to it
	f.Age(f, time.Hour)
	last := f.bury(some(2)...)
	f.deliver(effect{})
	p := undelivereds("dead")
	p.MaxRows = 2
	var pages [][]int64
	for rows := f.listUndelivered(p); len(rows) > 0; rows = f.listUndelivered(p) {
		ids, _ := shown(rows)
		pages = append(pages, ids)
		p.BeforeAt, p.BeforeID = rows[len(rows)-1].SettledAt, ids[len(ids)-1]
	}
	same(f, "sizes", []int{len(pages[0]), len(pages[1]), len(pages[2])}, []int{2, 2, 1})
	sameIDs(f, "first page", pages[0], last...)
	sameIDs(f, "the others", slices.Concat(pages[1], pages[2]), together...)
}

func listsDeliveredWhole(f *fixture) {
	id := f.deliver(effect{tenant: "a", key: "x", order: "o"})[0]
	d := f.dump()
	same(f, "rows", f.listDelivered(delivereds()), []db.ListOpenRow{{
		ID: id, Tenant: "a", Consumer: "c", Target: "t", Kind: "k", Key: "x", OrderKey: "o", State: "delivered", Attempt: 1, Epoch: 1,
		ReplayedAt: db.Never, CreatedAt: d.Messages[0].CreatedAt, DueAt: db.Never, LeasedUntil: db.Never, SettledAt: d.Settlements[0].SettledAt, Matched: true,
	}})
}

func listsDeliveredPages(f *fixture) {
	ids := f.deliver(some(3)...)
	f.bury(some(1)...)
	ids = append(ids, f.deliver(some(2)...)...)
	p := delivereds()
	p.MaxRows = 2
	for _, want := range [][]int64{{ids[4], ids[3]}, {ids[2], ids[1]}, {ids[0]}, nil} {
		got, _ := shown(f.listDelivered(p))
		same(f, "page", got, want)
		if len(got) > 0 {
			p.BeforeID = got[len(got)-1]
		}
	}
}

// Shows: S1.30 S4.29
func listsFiltered(f *fixture) {
	effects := []effect{{}, {tenant: "a"}, {consumer: "other"}, {target: "other"}, {kind: "other"}}
	filters := []struct {
		all                    bool
		scope                  []string
		consumer, target, kind string
		want                   []int
	}{
		{all: true, want: []int{0, 1, 2, 3, 4}},
		{scope: []string{"a"}, want: []int{1}},
		{scope: []string{"", "b"}, want: []int{0, 2, 3, 4}},
		{},
		{all: true, consumer: "other", want: []int{2}},
		{all: true, target: "other", want: []int{3}},
		{all: true, kind: "other", want: []int{4}},
		{all: true, consumer: "c", target: "t", kind: "k", want: []int{0, 1}},
		{all: true, consumer: "other", target: "other"},
	}
	open := f.enqueue(effects...)
	gone := f.enqueue(effects...)
	f.cancel(gone...)
	for _, by := range filters {
		o, u := opens(), undelivereds("cancelled")
		o.AllTenants, o.Scope, o.Consumer, o.Target, o.Kind = by.all, by.scope, by.consumer, by.target, by.kind
		u.AllTenants, u.Scope, u.Consumer, u.Target, u.Kind = by.all, by.scope, by.consumer, by.target, by.kind
		var wantOpen, wantGone []int64
		for _, i := range by.want {
			wantOpen, wantGone = append(wantOpen, open[i]), append(wantGone, gone[i])
		}
		ids, _ := shown(f.listOpen(o))
		sameIDs(f, "open", ids, wantOpen...)
		ids, _ = shown(f.listUndelivered(u))
		sameIDs(f, "cancelled", ids, wantGone...)
	}
	delivered := f.deliver(effect{tenant: "a", priority: 1}, effect{tenant: "a", priority: 1})
	d := delivereds()
	d.AllTenants, d.Scope, d.Kind = false, []string{"a"}, "k"
	ids, _ := shown(f.listDelivered(d))
	sameIDs(f, "delivered", ids, delivered...)
	d.Scope = []string{""}
	ids, _ = shown(f.listDelivered(d))
	sameIDs(f, "delivered elsewhere", ids)
}

func listsBounded(f *fixture) {
	ids := f.enqueue(effect{kind: "x"}, effect{}, effect{kind: "x"}, effect{kind: "x"}, effect{})
	p := opens()
	p.Kind, p.Examine = "k", 3
	got, stopped := shown(f.listOpen(p))
	same(f, "first", slices.Concat(got, []int64{stopped}), []int64{ids[1], ids[2]})
	p.AfterID = stopped
	got, stopped = shown(f.listOpen(p))
	same(f, "second", slices.Concat(got, []int64{stopped}), []int64{ids[4], 0})
	p.AfterID, p.MaxRows = 0, 1
	got, stopped = shown(f.listOpen(p))
	same(f, "a full page", slices.Concat(got, []int64{stopped}), []int64{ids[1], 0})

	f.cancel(ids...)
	u := undelivereds("cancelled")
	u.Kind, u.Examine = "absent", 2
	rows := f.listUndelivered(u)
	_, stopped = shown(rows)
	s := f.settled(stopped)
	sameInstant(f, "stopped at", rows[0].SettledAt, s.SettledAt)
	u.Examine, u.BeforeAt, u.BeforeID = 1000, s.SettledAt, stopped
	u.Kind = ""
	got, _ = shown(f.listUndelivered(u))
	same(f, "left", len(got), 3)

	delivered := f.deliver(some(3)...)
	d := delivereds()
	d.Kind, d.Examine = "absent", 2
	_, stopped = shown(f.listDelivered(d))
	same(f, "stopped at", stopped, delivered[1])
}
