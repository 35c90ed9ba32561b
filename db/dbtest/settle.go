package dbtest

import (
	"strconv"
	"strings"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

var settleTests = []test{
	{name: "delivered, with what the handler recorded", run: settlesDelivered},
	{name: "dropped, leaving nothing", run: settlesDropped},
	{name: "dead, with cause and reason", run: settlesDead},
	{name: "dead, blocking the order key", run: settlesDeadBlocked},
	{name: "parked, until an operator decides", run: settlesParked},
	{name: "each message with its own arguments", run: settlesEachItsOwn},
	{name: "a thousand at once", run: settlesThousand},
	{name: "tells what became of what it did not change", run: findsFates},
	{name: "accepts a late delivery when asked", run: settlesLate},
}

func settlesDelivered(f *fixture) {
	f.enqueue(some(1)...)
	lease := f.leasing()
	lease.Worker = 7
	h := f.take(lease)
	p := h.delivered()
	p.Results[0] = strings.Repeat("é", 2048)
	sameIDs(f, "settled", run(f, f.Store.SettleDelivered, p), h.ids...)
	s := f.settled(h.ids[0])
	if age := f.dump().Now.Sub(s.SettledAt); age < 0 || age > time.Minute {
		f.Errorf("settled %v ago", age)
	}
	same(f, "settlement", s, tables.Settlement{
		MessageID: h.ids[0], Epoch: 1, SettledBy: 7, SettledAt: s.SettledAt, ReplayedAt: db.Never, Attempt: 1, Outcome: "delivered", Result: p.Results[0],
	})
	same(f, "queue", len(f.dump().Queue), 0)
}

func settlesDropped(f *fixture) {
	h := f.hold(effect{key: "a", order: "o"}, effect{key: "b"})
	sameIDs(f, "settled", run(f, f.Store.SettleDropped, h.only(0).dropped()), h.ids[0])
	d := f.dump()
	same(f, "rows left", []int{len(d.Messages), len(d.Queue), len(d.Settlements), len(d.OrderLeases)}, []int{1, 1, 0, 0})
	f.enqueue(effect{key: "a"}) // the key is free again
	if row := f.record(effect{key: "b"})[0]; row.Stored {
		f.Error("the key of the other is free")
	}
}

func settlesDead(f *fixture) {
	h := f.hold(some(3)...)
	p := h.dead("")
	p.Causes = []string{"permanent", "moot", "attempts"}
	p.Reasons[1] = strings.Repeat("é", 2048)
	sameIDs(f, "settled", run(f, f.Store.SettleDead, p), h.ids...)
	for i, id := range h.ids {
		s := f.settled(id)
		same(f, "settlement", []any{s.Outcome, s.Cause, s.Reason, s.Attempt, s.Epoch}, []any{"dead", p.Causes[i], p.Reasons[i], int32(1), int64(1)})
	}
}

func settlesDeadBlocked(f *fixture) {
	f.enqueue(effect{order: "a"}, effect{order: "b"}, effect{})
	h := f.take(f.leasing())
	p := h.dead("permanent")
	p.BlockOnDead = true
	run(f, f.Store.SettleDead, p)
	next := f.enqueue(effect{order: "a"}, effect{order: "b"}, effect{order: "d"})
	rows, _ := f.leaseDue(f.leasing())
	sameIDs(f, "refused", withFate(rows, db.FateRefused), next[:2]...)
	sameIDs(f, "granted", granted(rows), next[2])
}

func settlesParked(f *fixture) {
	f.enqueue(some(1)...)
	before := f.dump().Queue[0]
	h := f.take(f.leasing())
	sameIDs(f, "settled", run(f, f.Store.SettleParked, h.parked()), h.ids...)
	before.State, before.Attempt, before.Epoch, before.Unsure, before.LastError = tables.Parked, 1, 1, true, "no answer"
	same(f, "queue row", f.queued(h.ids[0]), before)
	f.Age(f, 24*time.Hour)
	sameIDs(f, "granted a day later", f.take(f.leasing()).ids)
}

func settlesEachItsOwn(f *fixture) {
	h := f.hold(some(4)...)
	f.cancel(h.ids[0])
	p := h.delivered()
	p.Results = []string{"0", "1", "2", "3"}
	copy(p.Tokens[2*db.TokenSize:], f.token())
	sameIDs(f, "settled", run(f, f.Store.SettleDelivered, p), h.ids[1], h.ids[3])
	same(f, "results", []string{f.settled(h.ids[1]).Result, f.settled(h.ids[3]).Result}, []string{"1", "3"})
	f.fates("leased", h.ids[2])
}

func settlesThousand(f *fixture) {
	const n = 1000
	f.enqueue(some(n)...)
	lease := f.leasing()
	lease.Quota, lease.MaxRows = n, n
	h := f.take(lease)
	same(f, "granted", len(h.ids), n)
	same(f, "renewed", len(run(f, f.Store.Renew, h.renewed(time.Minute))), n)
	p := h.delivered()
	for i, id := range h.ids {
		p.Results[i] = strconv.FormatInt(id, 10)
	}
	sameIDs(f, "settled", run(f, f.Store.SettleDelivered, p), h.ids...)
	for _, s := range f.dump().Settlements {
		same(f, "result", s.Result, strconv.FormatInt(s.MessageID, 10))
	}
}

// Shows: S4.28
func findsFates(f *fixture) {
	retried, parked, dead := f.hold(effect{}), f.park(effect{tenant: "a"})[0], f.bury(effect{tenant: "b"})[0]
	retry := retried.retried(time.Hour)
	retry.Unspent = true
	run(f, f.Store.SettleRetry, retry)
	h := f.hold(effect{kind: "held"})
	lost := f.hold(effect{kind: "lost"})
	f.Age(f, leaseTime/2)
	run(f, f.Store.Renew, h.renewed(leaseTime))
	f.Age(f, leaseTime/2)
	ids := []int64{retried.ids[0], parked, dead, h.ids[0], lost.ids[0], 1 << 60}
	got := map[int64]db.FindFatesRow{}
	for _, row := range run(f, f.Store.FindFates, db.FindFatesParams{Ids: ids, AllTenants: true}) {
		got[row.ID] = row
	}
	same(f, "fates", got, map[int64]db.FindFatesRow{
		ids[0]: {ID: ids[0], State: "pending", Epoch: 1, Reason: "refused"},
		ids[1]: {ID: ids[1], State: "parked", Epoch: 1, Attempt: 1, Reason: "no answer"},
		ids[2]: {ID: ids[2], State: "dead", Epoch: 1, Attempt: 1, Cause: "permanent", Reason: "no such account"},
		ids[3]: {ID: ids[3], State: "leased", Epoch: 1, Attempt: 1, Held: true},
		ids[4]: {ID: ids[4], State: "pending", Epoch: 1, Attempt: 1, Held: true},
	})
	scoped := one(f, f.Store.FindFates, db.FindFatesParams{Ids: ids, Scope: []string{"b"}})
	same(f, "in scope", scoped.ID, dead)
}

// Shows: S3.18
func settlesLate(f *fixture) {
	h := f.hold(effect{}, effect{}, effect{order: "o"})
	f.Age(f, leaseTime)
	delivered, dropped := hold{h.ids[:2], h.tokens[:2]}.delivered(), h.only(2).dropped()
	delivered.AcceptLate, dropped.AcceptLate = true, true
	sameIDs(f, "dropped late", run(f, f.Store.SettleDropped, dropped), h.ids[2])
	next := f.take(f.leasing())
	sameIDs(f, "granted meanwhile", next.ids, h.ids[:2]...)
	f.unchanged("a late delivery after the next lease", func() {
		sameIDs(f, "delivered", run(f, f.Store.SettleDelivered, delivered))
	})
	f.Age(f, leaseTime)
	late := next.delivered()
	late.AcceptLate = true
	sameIDs(f, "delivered late", run(f, f.Store.SettleDelivered, late), next.ids...)
}
