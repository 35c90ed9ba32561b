package dbtest

import (
	"cmp"
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/db"
)

// Defaults of the leases that tests take.
const (
	leaseTime    = 30 * time.Second
	attemptLimit = 12
)

// A lane within consumer "c" and target "t"; the zero one is kind "k".
type lane struct {
	kind, tenant string
	priority     int16
}

// leasing is a lease of everything due in the lanes, or in the zero lane, from the front.
func (f *fixture) leasing(lanes ...lane) db.LeaseDueParams {
	if len(lanes) == 0 {
		lanes = []lane{{}}
	}
	n := len(lanes)
	p := db.LeaseDueParams{
		AfterDues: make([]time.Time, n), AfterIds: make([]int64, n), AttemptLimits: slices.Repeat([]int32{attemptLimit}, n), MaxAges: make([]int64, n),
		AllTenants: true, Consumer: "c", Target: "t", Lease: leaseTime.Microseconds(), LongestLease: db.LongestLease.Microseconds(),
		Examine: 1000, Quota: 100, MaxRows: 100, Token: f.token(),
	}
	for _, l := range lanes {
		p.Kinds = append(p.Kinds, or(l.kind, "k"))
		p.Tenants = append(p.Tenants, l.tenant)
		p.Priorities = append(p.Priorities, l.priority)
	}
	return p
}

// leaseDue leases and returns the rows in (lane, due, id) order, without the closing row, and the closing row's instant.
func (f *fixture) leaseDue(p db.LeaseDueParams) ([]db.LeaseDueRow, time.Time) {
	f.Helper()
	rows := run(f, f.Store.LeaseDue, p)
	closing := slices.IndexFunc(rows, func(r db.LeaseDueRow) bool { return r.Fate == db.FateClosing })
	if closing < 0 {
		f.Fatalf("no closing row among %d", len(rows))
	}
	now := rows[closing].DueAt
	return sortLeased(slices.Delete(rows, closing, closing+1)), now
}

// A hold is the leases that a worker has: ids in rising order with their tokens.
type hold struct {
	ids    []int64
	tokens [][]byte
}

// take leases and holds what was granted.
func (f *fixture) take(p db.LeaseDueParams) hold {
	f.Helper()
	rows, _ := f.leaseDue(p)
	var h hold
	for _, id := range granted(rows) {
		h.ids, h.tokens = append(h.ids, id), append(h.tokens, p.Token)
	}
	return h
}

// hold enqueues the effects, all of one lane, and leases them.
func (f *fixture) hold(effects ...effect) hold {
	f.Helper()
	ids := f.enqueue(effects...)
	e := effects[0]
	p := f.leasing(lane{e.kind, e.tenant, e.priority})
	p.Consumer, p.Target = or(e.consumer, "c"), or(e.target, "t")
	h := f.take(p)
	sameIDs(f, "leased", h.ids, ids...)
	return h
}

// granted picks the rising ids of the granted rows.
func granted(rows []db.LeaseDueRow) []int64 { return withFate(rows, db.FateGranted) }

func withFate(rows []db.LeaseDueRow, fate int32) []int64 {
	var ids []int64
	for _, r := range ofFate(rows, fate) {
		ids = append(ids, r.ID)
	}
	slices.Sort(ids)
	return ids
}

func ofFate(rows []db.LeaseDueRow, fate int32) []db.LeaseDueRow {
	return slices.DeleteFunc(slices.Clone(rows), func(r db.LeaseDueRow) bool { return r.Fate != fate })
}

func (h hold) only(i int) hold { return hold{h.ids[i : i+1], h.tokens[i : i+1]} }

// with is the hold with another token on every message.
func (h hold) with(token []byte) hold {
	return hold{h.ids, slices.Repeat([][]byte{token}, len(h.ids))}
}

func (h hold) renewed(lease time.Duration) db.RenewParams {
	return db.RenewParams{Ids: h.ids, Tokens: slices.Concat(h.tokens...), Lease: lease.Microseconds(), LongestLease: db.LongestLease.Microseconds()}
}

func (h hold) released() db.ReleaseParams {
	return db.ReleaseParams{Ids: h.ids, Tokens: slices.Concat(h.tokens...), Unsures: make([]bool, len(h.ids))}
}

func (h hold) delivered() db.SettleDeliveredParams {
	return db.SettleDeliveredParams{
		Ids: h.ids, Tokens: slices.Concat(h.tokens...), Results: make([]string, len(h.ids)), Consumer: "c", Target: "t", AllTenants: true,
	}
}

func (h hold) dropped() db.SettleDroppedParams {
	return db.SettleDroppedParams{Ids: h.ids, Tokens: slices.Concat(h.tokens...), Consumer: "c", Target: "t", AllTenants: true}
}

func (h hold) retried(delay time.Duration) db.SettleRetryParams {
	n := len(h.ids)
	return db.SettleRetryParams{
		Ids: h.ids, Tokens: slices.Concat(h.tokens...), Delays: slices.Repeat([]int64{delay.Microseconds()}, n), MaxAges: make([]int64, n), Unsures: make([]bool, n),
		LastErrors: slices.Repeat([]string{"refused"}, n), Reasons: slices.Repeat([]string{"refused, in full"}, n),
		Consumer: "c", Target: "t", AllTenants: true,
	}
}

func (h hold) dead(cause string) db.SettleDeadParams {
	n := len(h.ids)
	return db.SettleDeadParams{
		Ids: h.ids, Tokens: slices.Concat(h.tokens...), Causes: slices.Repeat([]string{cause}, n), Reasons: slices.Repeat([]string{"no such account"}, n),
		Consumer: "c", Target: "t", AllTenants: true,
	}
}

func (h hold) parked() db.SettleParkedParams {
	return db.SettleParkedParams{
		Ids: h.ids, Tokens: slices.Concat(h.tokens...), LastErrors: slices.Repeat([]string{"no answer"}, len(h.ids)), Consumer: "c", Target: "t", AllTenants: true,
	}
}

// bury enqueues the effects and settles them as dead.
func (f *fixture) bury(effects ...effect) []int64 {
	f.Helper()
	h := f.hold(effects...)
	sameIDs(f, "dead", run(f, f.Store.SettleDead, h.dead("permanent")), h.ids...)
	return h.ids
}

// deliver enqueues the effects and settles them as delivered.
func (f *fixture) deliver(effects ...effect) []int64 {
	f.Helper()
	h := f.hold(effects...)
	sameIDs(f, "delivered", run(f, f.Store.SettleDelivered, h.delivered()), h.ids...)
	return h.ids
}

// park enqueues the effects and parks them.
func (f *fixture) park(effects ...effect) []int64 {
	f.Helper()
	h := f.hold(effects...)
	sameIDs(f, "parked", run(f, f.Store.SettleParked, h.parked()), h.ids...)
	return h.ids
}

// cancel ends open messages.
func (f *fixture) cancel(ids ...int64) {
	f.Helper()
	sameIDs(f, "cancelled", run(f, f.Store.CancelOpen, db.CancelOpenParams{Ids: ids, AllTenants: true, Actor: "ann", Reason: "by hand"}), ids...)
}

// replaying brings messages back, their attempts reset.
func replaying(ids ...int64) db.ReplayDeadParams {
	return db.ReplayDeadParams{Ids: ids, AllTenants: true, Reset: true, Actor: "ann", Reason: "fixed"}
}

func sortLeased(rows []db.LeaseDueRow) []db.LeaseDueRow {
	slices.SortFunc(rows, func(a, b db.LeaseDueRow) int {
		return cmp.Or(cmp.Compare(a.LaneNo, b.LaneNo), a.DueAt.Compare(b.DueAt), cmp.Compare(a.ID, b.ID))
	})
	return rows
}
