package dbtest

import (
	"errors"
	"time"

	"github.com/fencepost-go/fencepost/db"
)

var bornTests = []test{
	{name: "stores a message with its lease, whole", run: bornWhole},
	{name: "leases only what may be leased", run: bornGuards},
	{name: "leases nothing in a paused lane", run: bornPaused},
	{name: "leases no duplicate", run: bornOnce},
	{name: "keeps others out until the lease is over", run: bornKeepsOut},
	{name: "gives a lease to renew, release and settle like any", run: bornHeld},
	{name: "leaves nothing to renew after a rollback", run: bornRolledBack},
	{name: "renews nothing before the commit", run: bornUnseen, sideBySide: true},
}

// born are the params of effects that worker 77 is to lease as they are stored.
func (f *fixture) born(effects ...effect) db.EnqueueLeasedParams {
	p := f.params(effects...)
	born := db.EnqueueLeasedParams{
		Tenants: p.Tenants, Consumers: p.Consumers, Targets: p.Targets, Kinds: p.Kinds, Keys: p.Keys, OrderKeys: p.OrderKeys,
		Priorities: p.Priorities, Digests: p.Digests, Metadatas: p.Metadatas, Payloads: p.Payloads, SourcePositions: p.SourcePositions,
		SourceEventIds: p.SourceEventIds, MaxAges: p.MaxAges, DueAts: p.DueAts, Delays: p.Delays, Token: f.token(),
	}
	for range effects {
		born.Leases, born.Workers = append(born.Leases, leaseTime.Microseconds()), append(born.Workers, 77)
	}
	return born
}

// beginBoth opens a transaction of who produces and sends.
func (f *fixture) beginBoth() (tx db.Tx, commit, rollback func() error) {
	f.Helper()
	if f.BeginBoth == nil {
		return f.begin()
	}
	tx, commit, rollback = f.BeginBoth(f)
	f.Cleanup(func() { _ = rollback() })
	return tx, commit, rollback
}

// bear stores them in a transaction that commits.
func (f *fixture) bear(p db.EnqueueLeasedParams) []db.EnqueueLeasedRow {
	f.Helper()
	tx, commit, _ := f.beginBoth()
	rows, err := f.Store.EnqueueLeased(f.Context(), tx, p)
	if err := errors.Join(err, commit()); err != nil {
		f.Fatalf("enqueue leased: %v", err)
	}
	return rows
}

func heldBy(p db.EnqueueLeasedParams, rows []db.EnqueueLeasedRow) (h hold) {
	for _, row := range rows {
		h.ids, h.tokens = append(h.ids, row.ID), append(h.tokens, p.Token)
	}
	return h
}

func bornWhole(f *fixture) {
	e := effect{
		tenant: "acme", key: "order-1", priority: 5, payload: []byte("body"), metadata: `{"a":"b"}`, position: 9, event: "evt", maxAge: time.Hour,
	}
	f.record(e)
	free := f.dump()
	f.Reset(f)
	p := f.born(e)
	rows := f.bear(p)
	d := f.dump()
	m, q := d.Messages[0], d.Queue[0]
	same(f, "stored", []any{len(rows), rows[0].ID, rows[0].Stored}, []any{1, m.ID, true})
	sameInstant(f, "leased at, as told", time.UnixMicro(rows[0].LeasedAt), q.DueAt)
	sameInstant(f, "created", m.CreatedAt, q.DueAt)
	sameInstant(f, "leased until", q.LeasedUntil, q.DueAt.Add(leaseTime))
	message, row := free.Messages[0], free.Queue[0] // but for the lease all is as Enqueue stores it
	message.ID, message.CreatedAt = m.ID, m.CreatedAt
	same(f, "message", m, message)
	row.MessageID, row.DueAt, row.BornAt, row.ExpiresAt = m.ID, m.CreatedAt, m.CreatedAt, m.CreatedAt.Add(time.Hour)
	row.Attempt, row.Epoch, row.Token, row.LeasedBy, row.LeasedUntil = 1, 1, p.Token, 77, q.LeasedUntil
	same(f, "queue row", q, row)
}

func bornGuards(f *fixture) {
	p := f.born(effect{order: "o"}, effect{delay: time.Hour}, effect{due: time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC)}, effect{}, effect{})
	p.Leases[3] = 0 // not asked for
	rows := f.bear(p)
	for i, row := range rows {
		q := f.queued(row.ID)
		if leased := q.Attempt == 1; leased != (i == 4) || leased != (row.LeasedAt != 0) || !row.Stored || !leased && (!q.LeasedUntil.Equal(db.Never) || q.Epoch != 0 || q.LeasedBy != 0) {
			f.Errorf("effect %d: %+v", i, q)
		}
	}
	same(f, "order leases", len(f.dump().OrderLeases), 0)
}

func bornPaused(f *fixture) {
	for _, z := range [][4]string{{"c", "t", "k", "acme"}, {"*", "t", "k", "acme"}, {"c", "*", "k", "acme"}, {"c", "t", "*", "acme"}, {"c", "t", "k", "*"}, {"*", "*", "*", "*"}} {
		f.pause(z[0], z[1], z[2], z[3], 0)
		row := f.bear(f.born(effect{tenant: "acme"}))[0]
		same(f, "leased at", row.LeasedAt, 0)
		sameInstant(f, "leased until", f.queued(row.ID).LeasedUntil, db.Never)
		f.resume(z[0], z[1], z[2], z[3])
	}
	f.pause("c", "t", "other", "acme", 1)
	if row := f.bear(f.born(effect{tenant: "acme"}))[0]; row.LeasedAt == 0 {
		f.Error("not leased beside the pause of another kind")
	}
}

func bornOnce(f *fixture) {
	id := f.enqueue(effect{key: "a"})[0]
	before := f.queued(id)
	rows := f.bear(f.born(effect{key: "a"}, effect{key: "b"}, effect{key: "b", payload: []byte("second")}))
	same(f, "stored", []bool{rows[0].Stored, rows[1].Stored, rows[2].Stored}, []bool{false, true, false})
	same(f, "leased", []bool{rows[0].LeasedAt != 0, rows[1].LeasedAt != 0, rows[2].LeasedAt != 0}, []bool{false, true, false})
	same(f, "the row that has the key", f.queued(id), before)
}

func bornKeepsOut(f *fixture) {
	p := f.born(some(1)...)
	row := f.bear(p)[0]
	f.fates("leased", row.ID)
	sameIDs(f, "granted beside it", f.take(f.leasing()).ids)
	f.Age(f, leaseTime)
	rows, _ := f.leaseDue(f.leasing())
	if len(rows) != 1 || rows[0].ID != row.ID || rows[0].Attempt != 2 || rows[0].Epoch != 2 || !rows[0].Unsure {
		f.Fatalf("granted after it: %+v", rows)
	}
	f.unchanged("the lease that is over", func() {
		same(f, "renewed", len(run(f, f.Store.Renew, heldBy(p, []db.EnqueueLeasedRow{row}).renewed(time.Minute))), 0)
	})
}

func bornHeld(f *fixture) {
	p := f.born(some(3)...)
	rows := f.bear(p)
	h := heldBy(p, rows)
	same(f, "renewed", len(run(f, f.Store.Renew, h.renewed(time.Hour))), 3)
	sameIDs(f, "released", run(f, f.Store.Release, h.only(0).released()), h.ids[0])
	q := f.queued(h.ids[0])
	same(f, "given back", []any{q.Attempt, q.Epoch, q.Unsure, q.LeasedBy}, []any{int32(0), int64(1), false, int64(0)})
	run(f, f.Store.SettleDelivered, h.only(1).delivered())
	same(f, "settled", []any{f.settled(h.ids[1]).Attempt, f.settled(h.ids[1]).Epoch, f.settled(h.ids[1]).SettledBy}, []any{int32(1), int64(1), int64(77)})
	f.cancel(h.ids[2])
	f.fates("cancelled", h.ids[2])
}

func bornRolledBack(f *fixture) {
	f.unchanged("a rollback", func() {
		p := f.born(some(1)...)
		tx, _, rollback := f.beginBoth()
		rows, err := f.Store.EnqueueLeased(f.Context(), tx, p)
		if err := errors.Join(err, rollback()); err != nil {
			f.Fatal(err)
		}
		same(f, "renewed", len(run(f, f.Store.Renew, heldBy(p, rows).renewed(time.Minute))), 0)
		same(f, "released", len(run(f, f.Store.Release, heldBy(p, rows).released())), 0)
	})
}

func bornUnseen(f *fixture) {
	p := f.born(some(1)...)
	tx, commit, _ := f.beginBoth()
	rows, err := f.Store.EnqueueLeased(f.Context(), tx, p)
	if err != nil {
		f.Fatal(err)
	}
	h := heldBy(p, rows)
	same(f, "renewed before the commit", len(run(f, f.Store.Renew, h.renewed(time.Minute))), 0)
	if err := commit(); err != nil {
		f.Fatal(err)
	}
	same(f, "renewed after it", len(run(f, f.Store.Renew, h.renewed(time.Minute))), 1)
}
