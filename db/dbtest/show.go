package dbtest

import (
	"time"

	"github.com/fencepost-go/fencepost/db"
)

var showTests = []test{
	{name: "an open message whole", run: showsOpen},
	{name: "a leased message with its worker", run: showsLeased},
	{name: "a settled message whole", run: showsSettled},
	{name: "in its scope", run: showsScope},
}

// show reads a message, instants in UTC.
func (f *fixture) show(id int64) db.ShowMessageRow {
	f.Helper()
	row := one(f, f.Store.ShowMessage, db.ShowMessageParams{ID: id, AllTenants: true})
	for _, t := range []*time.Time{&row.CreatedAt, &row.ReplayedAt, &row.SettledAt, &row.DueAt, &row.BornAt, &row.ExpiresAt, &row.LeasedUntil} {
		*t = t.UTC()
	}
	return row
}

func showsOpen(f *fixture) {
	id := f.enqueue(effect{
		tenant: "a", key: "x", order: "o", priority: -2, payload: []byte("body"), metadata: "{}", position: 4, event: "e", maxAge: time.Hour,
		delay: time.Minute,
	})[0]
	d := f.dump()
	m, q := d.Messages[0], d.Queue[0]
	same(f, "message", f.show(id), db.ShowMessageRow{
		ID: id, Tenant: "a", Consumer: "c", Target: "t", Kind: "k", Key: "x", OrderKey: "o", Priority: -2, MaxAge: time.Hour.Microseconds(),
		SourcePosition: 4, SourceEventID: "e", CreatedAt: m.CreatedAt, Digest: m.Digest, Metadata: "{}", Payload: []byte("body"), State: "pending",
		ReplayedAt: db.Never, SettledAt: db.Never, DueAt: q.DueAt, BornAt: q.BornAt, ExpiresAt: q.ExpiresAt,
		LeasedUntil: db.Never,
	})
}

func showsLeased(f *fixture) {
	f.enqueue(some(1)...)
	h := f.takeAs(f.register("w"))
	row := f.show(h.ids[0])
	same(f, "leased", []any{row.State, row.Worker, row.Attempt, row.Epoch}, []any{"leased", "w", int32(1), int64(1)})
	sameInstant(f, "leased until", row.LeasedUntil, f.queued(h.ids[0]).LeasedUntil)
	f.Age(f, leaseTime)
	row = f.show(h.ids[0])
	same(f, "lost", []string{row.State, row.Worker}, []string{"pending", "w"})
	run(f, f.Store.Release, h.released())
	same(f, "given back", f.show(h.ids[0]).Worker, "")
	parked := f.park(effect{priority: 1})[0]
	row = f.show(parked)
	same(f, "parked", []string{row.State, row.Reason}, []string{"parked", "no answer"})
}

func showsSettled(f *fixture) {
	f.enqueue(effect{key: "x"})
	p := f.takeAs(f.register("w")).delivered()
	p.Results[0] = "receipt 5"
	run(f, f.Store.SettleDelivered, p)
	d := f.dump()
	m, s := d.Messages[0], d.Settlements[0]
	same(f, "delivered", f.show(m.ID), db.ShowMessageRow{
		ID: m.ID, Consumer: "c", Target: "t", Kind: "k", Key: "x", CreatedAt: m.CreatedAt, Digest: m.Digest, Payload: []byte{}, State: "delivered",
		Attempt: 1, Epoch: 1, ReplayedAt: db.Never, Result: "receipt 5", SettledAt: s.SettledAt, DueAt: db.Never, BornAt: db.Never,
		ExpiresAt: db.Never, LeasedUntil: db.Never, Worker: "w",
	})
	row := f.show(f.bury(some(1)...)[0])
	same(f, "dead", []string{row.State, row.Cause, row.Reason, row.Worker}, []string{"dead", "permanent", "no such account", ""})
	run(f, f.Store.ReplayDead, db.ReplayDeadParams{Ids: []int64{row.ID}, AllTenants: true, Actor: "ann", Reason: "repaired"})
	row = f.show(row.ID)
	same(f, "replayed", []any{row.Attempt, row.AttemptLimit, row.BornAt}, []any{int32(1), int32(2), row.ReplayedAt})
}

func showsScope(f *fixture) {
	id := f.enqueue(effect{tenant: "a"})[0]
	for _, p := range []db.ShowMessageParams{{ID: id}, {ID: id, Scope: []string{"", "b"}}, {ID: 1 << 60, AllTenants: true}} {
		same(f, "shown", len(run(f, f.Store.ShowMessage, p)), 0)
	}
	same(f, "shown in scope", one(f, f.Store.ShowMessage, db.ShowMessageParams{ID: id, Scope: []string{"b", "a"}}).ID, id)
}
