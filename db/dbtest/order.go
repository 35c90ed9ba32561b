package dbtest

import (
	"time"

	"github.com/fencepost-go/fencepost/db"
)

var orderTests = []test{
	{name: "grants only the head of a key", run: grantsHead},
	{name: "grants the next when the head is settled", run: grantsNext},
	{name: "keys of other tenants, consumers and targets are others", run: keysApart},
	{name: "a head in backoff, parked or of another kind holds its key", run: headHolds},
	{name: "a smaller id that commits late waits for the lease of a larger one", run: lateCommitWaits},
	{name: "a smaller id takes over a lease that is lost", run: lateCommitTakesOver},
	{name: "a lease that is lost lets the same head run again", run: lostHeadAgain},
	{name: "a retry lets nothing pass", run: retryKeepsPlace},
	{name: "a head that died takes no key that another holds", run: deadHeadWaits},
	{name: "a head that died leaves the lease of another alone", run: deadHeadPasses},
}

// ordered is n effects of the key.
func ordered(key string, n int) []effect {
	effects := some(n)
	for i := range effects {
		effects[i].order = key
	}
	return effects
}

func grantsHead(f *fixture) {
	a, b := f.enqueue(ordered("a", 3)...), f.enqueue(ordered("b", 2)...)
	free := f.enqueue(some(1)...)
	rows, _ := f.leaseDue(f.leasing())
	sameIDs(f, "granted", granted(rows), a[0], b[0], free[0])
	same(f, "rows", len(rows), 3) // what is not the head is not picked
	rows, _ = f.leaseDue(f.leasing())
	same(f, "rows beside the lease of the heads", len(rows), 0)
	same(f, "order leases", len(f.dump().OrderLeases), 2)
}

func grantsNext(f *fixture) {
	ids := f.enqueue(ordered("o", 4)...)
	ends := []func(hold) []int64{
		func(h hold) []int64 { return run(f, f.Store.SettleDelivered, h.delivered()) },
		func(h hold) []int64 { return run(f, f.Store.SettleDead, h.dead("permanent")) },
		func(h hold) []int64 { return run(f, f.Store.SettleDropped, h.dropped()) },
	}
	for i, end := range ends {
		h := f.take(f.leasing())
		sameIDs(f, "granted", h.ids, ids[i])
		sameIDs(f, "settled", end(h), ids[i])
		same(f, "order leases", len(f.dump().OrderLeases), 0)
	}
	f.cancel(ids[3])
	last := f.enqueue(ordered("o", 1)...)
	sameIDs(f, "granted after a cancelled one", f.take(f.leasing()).ids, last...)
}

func keysApart(f *fixture) {
	ids := f.enqueue(effect{order: "o"}, effect{order: "o", tenant: "a"})
	others := f.enqueue(effect{order: "o", consumer: "other"}, effect{order: "o", target: "other"})
	sameIDs(f, "granted", f.take(f.leasing(lane{}, lane{tenant: "a"})).ids, ids...)
	p := f.leasing()
	p.Consumer = "other"
	sameIDs(f, "granted to another consumer", f.take(p).ids, others[0])
	p.Consumer, p.Target, p.Token = "c", "other", f.token()
	sameIDs(f, "granted to another target", f.take(p).ids, others[1])
}

func headHolds(f *fixture) {
	backoff := f.enqueue(ordered("a", 2)...)
	parked := f.enqueue(ordered("b", 2)...)
	h := f.take(f.leasing())
	sameIDs(f, "heads", h.ids, backoff[0], parked[0])
	run(f, f.Store.SettleRetry, h.only(0).retried(time.Hour))
	run(f, f.Store.SettleParked, h.only(1).parked())
	f.enqueue(effect{order: "c", kind: "other"}, effect{order: "c"})
	f.enqueue(effect{order: "d", delay: time.Hour}, effect{order: "d"})
	rows, _ := f.leaseDue(f.leasing())
	same(f, "rows", len(rows), 0)
	same(f, "order leases", len(f.dump().OrderLeases), 0)
}

// late enqueues one message of the key in a transaction that is still open, and then another that commits. Where one transaction writes at a
// time, the smaller id is that of a dead message, and comes late by its replay.
func (f *fixture) late(key string) (first, second int64, commit func() error) {
	f.Helper()
	if f.OneWriter {
		first = f.bury(effect{order: key, maxAge: time.Hour})[0]
		return first, f.enqueue(ordered(key, 1)...)[0], func() error {
			_, err := f.Store.ReplayDead(f.Context(), replaying(first))
			return err
		}
	}
	tx, commit, _ := f.begin()
	rows, err := f.Store.Enqueue(f.Context(), tx, f.params(effect{order: key, maxAge: time.Hour}))
	if err != nil {
		f.Fatal(err)
	}
	return rows[0].ID, f.enqueue(ordered(key, 1)...)[0], commit
}

func lateCommitWaits(f *fixture) {
	first, second, commit := f.late("o")
	h := f.take(f.leasing())
	sameIDs(f, "granted", h.ids, second)
	if err := commit(); err != nil {
		f.Fatal(err)
	}
	rows, _ := f.leaseDue(f.leasing())
	sameIDs(f, "refused", withFate(rows, db.FateRefused), first)
	sameIDs(f, "granted beside", granted(rows))
	run(f, f.Store.SettleDelivered, h.delivered())
	sameIDs(f, "granted after", f.take(f.leasing()).ids, first)
}

func lateCommitTakesOver(f *fixture) {
	first, second, commit := f.late("o")
	lost := f.take(f.leasing())
	f.Age(f, leaseTime)
	if err := commit(); err != nil {
		f.Fatal(err)
	}
	h := f.take(f.leasing())
	sameIDs(f, "granted", h.ids, first)
	f.unchanged("what the lost one does", func() {
		same(f, "renewed", len(run(f, f.Store.Renew, lost.renewed(leaseTime))), 0)
		sameIDs(f, "settled", run(f, f.Store.SettleDelivered, lost.delivered()))
	})
	late := lost.delivered()
	late.AcceptLate = true
	sameIDs(f, "settled late", run(f, f.Store.SettleDelivered, late), second)
	same(f, "the order lease's", f.dump().OrderLeases[0].MessageID, first) // the late one must not free it
	run(f, f.Store.SettleDelivered, h.delivered())
}

func lostHeadAgain(f *fixture) {
	ids := f.enqueue(ordered("o", 2)...)
	f.take(f.leasing())
	f.Age(f, leaseTime)
	rows, _ := f.leaseDue(f.leasing())
	sameIDs(f, "granted", granted(rows), ids[0])
	same(f, "unsure", rows[0].Unsure, true)
	same(f, "order leases", len(f.dump().OrderLeases), 1)
}

func retryKeepsPlace(f *fixture) {
	ids := f.enqueue(ordered("o", 2)...)
	for range 3 {
		h := f.take(f.leasing())
		sameIDs(f, "granted", h.ids, ids[0])
		run(f, f.Store.SettleRetry, h.retried(time.Hour))
		sameIDs(f, "granted meanwhile", f.take(f.leasing()).ids)
		f.Age(f, time.Hour)
	}
}

// overtaken leaves the head of key "o" too old while the message behind it runs.
func (f *fixture) overtaken() (head int64, running hold) {
	f.Helper()
	head, behind, commit := f.late("o")
	running = f.take(f.leasing())
	sameIDs(f, "granted", running.ids, behind)
	if err := commit(); err != nil {
		f.Fatal(err)
	}
	f.Age(f, leaseTime/2)
	run(f, f.Store.Renew, running.renewed(db.LongestLease))
	f.Age(f, 59*time.Minute)
	run(f, f.Store.Renew, running.renewed(db.LongestLease))
	f.Age(f, time.Minute)
	return head, running
}

// Were the key blocked by the dead head at once, an operator who unblocks it would let a third message run beside the second.
func deadHeadWaits(f *fixture) {
	head, running := f.overtaken()
	p := f.leasing()
	p.BlockOnDead = true
	rows, _ := f.leaseDue(p)
	sameIDs(f, "refused", withFate(rows, db.FateRefused), head)
	same(f, "rows", len(rows), 1)
	sameIDs(f, "settled", run(f, f.Store.SettleDelivered, running.delivered()), running.ids...)
	p.Token = f.token()
	f.buried(p, head)
	same(f, "blocked", f.dump().OrderLeases[0].Blocked, true)
}

func deadHeadPasses(f *fixture) {
	head, running := f.overtaken()
	f.buried(f.leasing(), head)
	third := f.enqueue(effect{order: "o"})
	rows, _ := f.leaseDue(f.leasing())
	same(f, "rows beside the running one", len(rows), 0)
	sameIDs(f, "settled", run(f, f.Store.SettleDelivered, running.delivered()), running.ids...)
	sameIDs(f, "granted", f.take(f.leasing()).ids, third...)
}
