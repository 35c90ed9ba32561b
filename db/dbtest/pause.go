package dbtest

import (
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

var pauseTests = []test{
	{name: "stands until it is lifted", run: pauseStands},
	{name: "a second one takes the first one's place", run: pauseReplaces},
	{name: "is lifted by its exact names", run: resumeExact},
	{name: "is listed in its scope, wildcards to everybody", run: pauseListed},
	{name: "writes who did it and why", run: pauseAudited},
}

func (f *fixture) pause(consumer, target, kind, tenant string, mode int16) {
	f.Helper()
	one(f, f.Store.PauseLane, db.PauseLaneParams{
		Consumer: consumer, Target: target, Kind: kind, Tenant: tenant, Mode: mode, Actor: "ann", Reason: "maintenance",
	})
}

func (f *fixture) resume(consumer, target, kind, tenant string) []time.Time {
	f.Helper()
	return run(f, f.Store.ResumeLane, db.ResumeLaneParams{
		Consumer: consumer, Target: target, Kind: kind, Tenant: tenant, Actor: "ben", Reason: "done",
	})
}

func pauseStands(f *fixture) {
	id := f.enqueue(some(1)...)[0]
	at := one(f, f.Store.PauseLane, db.PauseLaneParams{
		Consumer: "*", Target: "*", Kind: "*", Tenant: "*", Mode: 1, Actor: "ann", Reason: "copied database",
	})
	same(f, "pauses", f.dump().Pauses, []tables.Pause{
		{PausedAt: at.UTC(), Mode: 1, Consumer: "*", Target: "*", Kind: "*", Tenant: "*", Actor: "ann", Reason: "copied database"},
	})
	sameIDs(f, "granted", f.take(f.leasing()).ids)
	sameInstant(f, "lifted", f.resume("*", "*", "*", "*")[0], at)
	sameIDs(f, "granted after it was lifted", f.take(f.leasing()).ids, id)
}

func pauseReplaces(f *fixture) {
	f.pause("c", "t", "k", "a", 1)
	f.Age(f, time.Hour)
	before := f.dump().Pauses[0].PausedAt
	f.pause("c", "t", "k", "a", 0)
	after := f.dump().Pauses
	same(f, "pauses", len(after), 1)
	same(f, "mode", after[0].Mode, 0)
	if !after[0].PausedAt.After(before) {
		f.Errorf("paused at %v, then at %v", before, after[0].PausedAt)
	}
}

func resumeExact(f *fixture) {
	f.pause("c", "t", "k", "a", 0)
	f.unchanged("a resume of others", func() {
		for _, names := range [][4]string{{"*", "t", "k", "a"}, {"c", "*", "k", "a"}, {"c", "t", "*", "a"}, {"c", "t", "k", "*"}, {"c", "t", "k", ""}} {
			same(f, "lifted", len(f.resume(names[0], names[1], names[2], names[3])), 0)
		}
	})
	same(f, "lifted", len(f.resume("c", "t", "k", "a")), 1)
	same(f, "lifted twice", len(f.resume("c", "t", "k", "a")), 0)
}

func pauseListed(f *fixture) {
	f.pause("c", "t", "k", "b", 0)
	f.pause("c", "t", "k", "a", 1)
	f.pause("c", "t", "k", "*", 0)
	f.pause("c", "t", "k", "", 0)
	listed := func(p db.ListPausesParams) map[string]int32 {
		modes := map[string]int32{}
		for _, row := range run(f, f.Store.ListPauses, p) {
			same(f, "pause", []string{row.Consumer, row.Target, row.Kind, row.Actor, row.Reason}, []string{"c", "t", "k", "ann", "maintenance"})
			modes[row.Tenant] = row.Mode
		}
		return modes
	}
	same(f, "all", listed(db.ListPausesParams{AllTenants: true}), map[string]int32{"": 0, "*": 0, "a": 1, "b": 0})
	same(f, "of one tenant", listed(db.ListPausesParams{Scope: []string{"a"}}), map[string]int32{"*": 0, "a": 1})
	same(f, "without a tenant", listed(db.ListPausesParams{Scope: []string{""}}), map[string]int32{"": 0, "*": 0})
}

func pauseAudited(f *fixture) {
	f.pause("c", "*", "k", "a", 0)
	f.resume("c", "*", "k", "a")
	same(f, "pause", f.audits("pause"), []tables.Audit{{Action: "pause", Tenant: "a", Actor: "ann", Reason: "maintenance", Detail: "c * k"}})
	same(f, "resume", f.audits("resume"), []tables.Audit{{Action: "resume", Tenant: "a", Actor: "ben", Reason: "done", Detail: "c * k"}})
}

var unblockTests = []test{
	{name: "frees the key that a dead message blocks", run: unblockFrees},
	{name: "nothing else", run: unblockExact},
}

// blocked leaves key "o" of the tenant blocked by a dead message.
func (f *fixture) blocked(tenant string) int64 {
	f.Helper()
	h := f.hold(effect{order: "o", tenant: tenant})
	p := h.dead("permanent")
	p.BlockOnDead = true
	run(f, f.Store.SettleDead, p)
	return h.ids[0]
}

func unblocking(consumer, target, tenant, key string) db.UnblockKeyParams {
	return db.UnblockKeyParams{Consumer: consumer, Target: target, Tenant: tenant, OrderKey: key, Actor: "ann", Reason: "by hand"}
}

func unblockFrees(f *fixture) {
	dead := f.blocked("a")
	next := f.enqueue(effect{order: "o", tenant: "a"})
	sameIDs(f, "granted", f.take(f.leasing(lane{tenant: "a"})).ids)
	same(f, "unblocked", one(f, f.Store.UnblockKey, unblocking("c", "t", "a", "o")), dead)
	sameIDs(f, "granted after", f.take(f.leasing(lane{tenant: "a"})).ids, next...)
	f.fates("dead", dead)
	same(f, "audit", f.audits("unblock"), []tables.Audit{
		{MessageID: dead, Action: "unblock", Tenant: "a", Actor: "ann", Reason: "by hand", Detail: "o"},
	})
}

func unblockExact(f *fixture) {
	f.blocked("a")
	f.hold(effect{order: "o"})
	f.unchanged("an unblock of others", func() {
		for _, p := range []db.UnblockKeyParams{
			unblocking("other", "t", "a", "o"), unblocking("c", "other", "a", "o"), unblocking("c", "t", "b", "o"), unblocking("c", "t", "a", "p"),
			unblocking("c", "t", "", "o"), // which is leased, not blocked
		} {
			sameIDs(f, "unblocked", run(f, f.Store.UnblockKey, p))
		}
	})
}
