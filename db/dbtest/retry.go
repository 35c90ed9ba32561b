package dbtest

import (
	"strings"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

var retryTests = []test{
	{name: "comes due after its delay", run: retryDelays},
	{name: "can leave the attempt unspent", run: retryUnspent},
	{name: "each message with its own arguments", run: retryEachItsOwn},
	{name: "is dead when too old by its own age", run: retryAged},
	{name: "is dead when too old by the policy's age", run: retryPolicyAged},
	{name: "blocks the order key of one that is too old", run: retryAgedBlocks},
	{name: "a delay beyond every calendar ends with it", run: retryForever},
}

// Shows: S3.19
func retryDelays(f *fixture) {
	h := f.hold(some(1)...)
	before := f.queued(h.ids[0])
	same(f, "answer", one(f, f.Store.SettleRetry, h.retried(time.Hour)), db.SettleRetryRow{ID: h.ids[0], Attempt: 1})
	after, now := f.queued(h.ids[0]), f.dump().Now
	if wait := after.DueAt.Sub(now); wait > time.Hour || wait < 59*time.Minute {
		f.Errorf("due in %v", wait)
	}
	before.DueAt, before.LastError = after.DueAt, "refused"
	before.Token, before.LeasedUntil, before.LeasedBy = db.FreeToken, db.Never, 0
	same(f, "queue row", after, before)
	f.Age(f, 59*time.Minute)
	sameIDs(f, "granted before it is due", f.take(f.leasing()).ids)
	f.Age(f, time.Minute)
	rows, _ := f.leaseDue(f.leasing())
	sameIDs(f, "granted when it is due", granted(rows), h.ids...)
	same(f, "attempt, unsure", []any{rows[0].Attempt, rows[0].Unsure}, []any{int32(2), false})
}

func retryUnspent(f *fixture) {
	h := f.hold(some(2)...)
	p := h.retried(0)
	p.Unspent = true
	for _, row := range run(f, f.Store.SettleRetry, p) {
		q := f.queued(row.ID)
		same(f, "attempt, epoch", []int64{int64(row.Attempt), int64(q.Attempt), q.Epoch}, []int64{0, 0, 1})
	}
}

func retryEachItsOwn(f *fixture) {
	h := f.hold(some(3)...)
	p := h.retried(0)
	p.Delays = []int64{0, time.Hour.Microseconds(), 2 * time.Hour.Microseconds()}
	p.Unsures = []bool{true, false, true}
	p.LastErrors = []string{"", strings.Repeat("é", 128), "short"}
	run(f, f.Store.SettleRetry, p)
	start := f.queued(h.ids[0]).DueAt
	for i, id := range h.ids {
		q := f.queued(id)
		same(f, "unsure, error", []any{q.Unsure, q.LastError}, []any{p.Unsures[i], p.LastErrors[i]})
		want := start.Add(time.Duration(p.Delays[i]) * time.Microsecond)
		if off := q.DueAt.Sub(want).Abs(); off > time.Minute {
			f.Errorf("due %v, %v off", q.DueAt, off)
		}
	}
	rows, _ := f.leaseDue(f.leasing())
	same(f, "unsure at the next lease", rows[0].Unsure, true)
}

func retryAged(f *fixture) {
	f.enqueue(effect{maxAge: time.Hour}, effect{maxAge: 2 * time.Hour})
	p := f.leasing()
	p.Lease, p.Worker = db.LongestLease.Microseconds(), 7
	h := f.take(p)
	f.Age(f, 55*time.Minute)
	run(f, f.Store.Renew, h.renewed(db.LongestLease))
	f.Age(f, 5*time.Minute)
	retry := h.retried(time.Minute)
	retry.Unspent = true // which the dead one's attempt is not
	got := map[int64]db.SettleRetryRow{}
	for _, row := range run(f, f.Store.SettleRetry, retry) {
		got[row.ID] = row
	}
	same(f, "answers", got, map[int64]db.SettleRetryRow{h.ids[0]: {ID: h.ids[0], Attempt: 1, Aged: true}, h.ids[1]: {ID: h.ids[1], Attempt: 0}})
	s := f.settled(h.ids[0])
	same(f, "settlement", s, tables.Settlement{
		MessageID: h.ids[0], Epoch: 1, SettledBy: 7, SettledAt: s.SettledAt, ReplayedAt: db.Never, Attempt: 1, Outcome: "dead", Cause: "age",
		Reason: "refused, in full",
	})
	f.fates("pending", h.ids[1])
}

func retryPolicyAged(f *fixture) {
	f.enqueue(effect{}, effect{}, effect{maxAge: time.Hour})
	f.Age(f, time.Minute)
	h := f.take(f.leasing())
	p := h.retried(0)
	p.MaxAges = []int64{time.Minute.Microseconds(), (2 * time.Minute).Microseconds(), (2 * time.Hour).Microseconds()}
	run(f, f.Store.SettleRetry, p)
	f.fates("dead", h.ids[0])
	f.fates("pending", h.ids[1:]...)
}

func retryAgedBlocks(f *fixture) {
	f.enqueue(effect{order: "a", maxAge: time.Hour}, effect{order: "b"})
	f.Age(f, time.Hour-leaseTime)
	h := f.take(f.leasing())
	run(f, f.Store.Renew, h.renewed(time.Minute))
	f.Age(f, leaseTime)
	p := h.retried(0)
	p.BlockOnDead = true
	run(f, f.Store.SettleRetry, p)
	same(f, "order leases", f.dump().OrderLeases, []tables.OrderLease{
		{MessageID: h.ids[0], LeasedUntil: db.Never, Blocked: true, Consumer: "c", Target: "t", OrderKey: "a"},
	})
}

func retryForever(f *fixture) {
	h := f.hold(some(1)...)
	p := h.retried(0)
	p.Delays[0] = (365 * 24 * time.Hour).Microseconds() * 10_000
	run(f, f.Store.SettleRetry, p)
	sameInstant(f, "due", f.queued(h.ids[0]).DueAt, tables.Forever)
}
