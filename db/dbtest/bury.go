package dbtest

import (
	"strings"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

var buryTests = []test{
	{name: "whose attempts are spent", run: buriesSpent},
	{name: "whose leases were lost until attempts ran out", run: buriesExhausted},
	{name: "too old by its own age", run: buriesAged},
	{name: "too old by the lane's age", run: buriesLaneAged},
	{name: "spent comes before too old", run: buriesSpentFirst},
	{name: "at exactly the limit, not before", run: buriesAtLimit},
	{name: "the message's own limit only raises the lane's", run: buriesAboveOwnLimit},
	{name: "beside those it grants", run: buriesBeside},
	{name: "keeps the last error whole", run: buriesWithError},
	{name: "an ordered one lets its key go", run: buriesHeadFree},
	{name: "an ordered one blocks its key when asked", run: buriesHeadBlocked},
}

// buried leases and returns the rows of what was buried, and checks them against the settlements.
func (f *fixture) buried(p db.LeaseDueParams, want ...int64) []db.LeaseDueRow {
	f.Helper()
	rows, _ := f.leaseDue(p)
	rows = ofFate(rows, db.FateBuried)
	var ids []int64
	for _, row := range rows {
		ids = append(ids, row.ID)
		s := f.settled(row.ID)
		same(f, "settlement", []any{s.Outcome, s.Cause, s.Reason, s.Attempt, s.Epoch, s.Replays},
			[]any{"dead", row.Cause, row.Reason, row.Attempt, row.Epoch, row.Replays})
	}
	sameIDs(f, "buried", ids, want...)
	f.fates("dead", want...)
	return rows
}

// limited is a lease in the zero lane with so many attempts.
func (f *fixture) limited(attempts int32) db.LeaseDueParams {
	p := f.leasing()
	p.AttemptLimits[0] = attempts
	return p
}

func buriesSpent(f *fixture) {
	h := f.hold(effect{key: "a", payload: []byte("body")})
	run(f, f.Store.SettleRetry, h.retried(0))
	row := f.buried(f.limited(1), h.ids...)[0]
	same(f, "buried", []any{row.Cause, row.Reason, row.Key, string(row.Payload), row.Attempt, row.LaneNo},
		[]any{"attempts", "attempts spent; last error: refused", "a", "body", int32(1), int32(1)})
}

// Shows: S3.16
func buriesExhausted(f *fixture) {
	f.enqueue(some(1)...)
	p := f.leasing()
	p.Worker = 7
	h := f.take(p)
	f.Age(f, leaseTime)
	row := f.buried(f.limited(1), h.ids...)[0]
	same(f, "buried", []any{row.Cause, row.Reason}, []any{"exhausted", "leases lost until attempts ran out"})
	same(f, "settled by", f.settled(row.ID).SettledBy, 7)
	sameIDs(f, "settled by its worker", run(f, f.Store.SettleDelivered, h.delivered()))
}

// Shows: S3.20
func buriesAged(f *fixture) {
	id := f.enqueue(effect{maxAge: time.Hour})[0]
	f.Age(f, time.Hour)
	row := f.buried(f.leasing(), id)[0]
	same(f, "buried", []any{row.Cause, row.Reason, row.Attempt, row.Epoch}, []any{"age", "too old", int32(0), int64(0)})
}

func buriesLaneAged(f *fixture) {
	ids := f.enqueue(effect{maxAge: time.Hour}, effect{maxAge: time.Second})
	f.Age(f, 30*time.Minute)
	p := f.leasing()
	p.MaxAges[0] = (2 * time.Hour).Microseconds() // which only shortens
	f.buried(p, ids[1])
	f.Age(f, leaseTime)
	p.MaxAges[0], p.Token = (30 * time.Minute).Microseconds(), f.token()
	same(f, "cause", f.buried(p, ids[0])[0].Cause, "age")
}

func buriesSpentFirst(f *fixture) {
	h := f.hold(effect{maxAge: time.Hour})
	run(f, f.Store.SettleRetry, h.retried(0))
	f.Age(f, time.Hour)
	same(f, "cause", f.buried(f.limited(1), h.ids...)[0].Cause, "attempts")
}

func buriesAtLimit(f *fixture) {
	id := f.enqueue(some(1)...)[0]
	for range 3 {
		h := f.take(f.limited(3))
		sameIDs(f, "granted", h.ids, id)
		run(f, f.Store.SettleRetry, h.retried(0))
	}
	same(f, "attempt", f.buried(f.limited(3), id)[0].Attempt, 3)
}

func buriesAboveOwnLimit(f *fixture) {
	id := f.bury(some(1)...)[0]
	again := replaying(id)
	again.Reset = false
	run(f, f.Store.ReplayDead, again)
	for range 2 {
		h := f.take(f.limited(3))
		sameIDs(f, "granted by the lane's limit", h.ids, id)
		run(f, f.Store.SettleRetry, h.retried(0))
	}
	f.buried(f.limited(3), id)
	run(f, f.Store.ReplayDead, again)
	sameIDs(f, "granted by its own limit", f.take(f.limited(1)).ids, id)
}

func buriesBeside(f *fixture) {
	old := f.enqueue(effect{maxAge: time.Second}, effect{maxAge: time.Second})
	fresh := f.enqueue(some(2)...)
	f.Age(f, time.Second)
	rows, _ := f.leaseDue(f.leasing())
	sameIDs(f, "buried", withFate(rows, db.FateBuried), old...)
	sameIDs(f, "granted", granted(rows), fresh...)
}

func buriesWithError(f *fixture) {
	h := f.hold(some(1)...)
	retry := h.retried(0)
	retry.LastErrors[0] = strings.Repeat("é", 128)
	run(f, f.Store.SettleRetry, retry)
	same(f, "reason", f.buried(f.limited(1), h.ids...)[0].Reason, "attempts spent; last error: "+strings.Repeat("é", 128))
}

func buriesHeadFree(f *fixture) {
	ids := f.enqueue(effect{order: "o", maxAge: time.Second}, effect{order: "o"})
	f.take(f.leasing())
	f.Age(f, leaseTime)
	f.buried(f.leasing(), ids[0])
	same(f, "order leases", len(f.dump().OrderLeases), 0)
	sameIDs(f, "granted next", f.take(f.leasing()).ids, ids[1])
}

func buriesHeadBlocked(f *fixture) {
	ids := f.enqueue(effect{order: "o", maxAge: time.Second}, effect{order: "o"}, effect{maxAge: time.Second})
	f.Age(f, time.Second)
	p := f.leasing()
	p.BlockOnDead = true
	f.buried(p, ids[0], ids[2])
	same(f, "order leases", f.dump().OrderLeases, []tables.OrderLease{
		{MessageID: ids[0], LeasedUntil: db.Never, Blocked: true, Consumer: "c", Target: "t", OrderKey: "o"},
	})
	rows, _ := f.leaseDue(f.leasing())
	sameIDs(f, "refused", withFate(rows, db.FateRefused), ids[1])
	sameIDs(f, "granted", granted(rows))
}
