package badinput

import (
	"fmt"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

// refuseNames is a text that is not UTF-8 wherever a call takes one to compare with: B3. Each is refused and named before a statement is sent: a
// driver that sends lists as JSON would compare with another text.
func refuseNames(f *fixture) {
	const bad = "a\xff"
	by := outbox.By{Actor: "ann", Reason: "a test"}
	second := func(_ any, err error) error { return err }
	pattern := func(change func(*outbox.LanePattern)) outbox.LanePattern {
		lanes := outbox.LanePattern{Consumer: "wallets", Target: "ledger", Kind: "charge"}
		change(&lanes)
		return lanes
	}
	f.silently("B3", func() {
		for field, lanes := range map[string]outbox.LanePattern{
			"Consumer": pattern(func(p *outbox.LanePattern) { p.Consumer = bad }),
			"Target":   pattern(func(p *outbox.LanePattern) { p.Target = bad }),
			"Kind":     pattern(func(p *outbox.LanePattern) { p.Kind = bad }),
			"Tenant":   pattern(func(p *outbox.LanePattern) { p.Tenant = bad }),
		} {
			f.refused("B3 pause", second(f.box.Pause(f.Context(), outbox.AllTenants, lanes, outbox.PauseLeasing, by)), field)
			f.refused("B3 resume", second(f.box.Resume(f.Context(), outbox.AllTenants, lanes, by)), field)
			if filter := (outbox.Filter{Consumer: lanes.Consumer, Target: lanes.Target, Kind: lanes.Kind}); field != "Tenant" {
				f.refused("B3 list", second(f.box.List(f.Context(), outbox.Scope{}, outbox.ListQuery{Filter: filter, Limit: 1})), field)
				bulk := outbox.BulkReplay{Filter: filter, Attempts: outbox.ResetAttempts, Limit: 1}
				f.refused("B3 replay matching", second(f.box.ReplayMatching(f.Context(), outbox.Scope{}, bulk, by)), field)
			}
			if field != "Kind" {
				key := outbox.OrderKey{Tenant: lanes.Tenant, Consumer: lanes.Consumer, Target: lanes.Target, Key: "o"}
				f.refused("B3 unblock", second(f.box.Unblock(f.Context(), outbox.AllTenants, key, by)), field)
			}
		}
		key := outbox.OrderKey{Consumer: "wallets", Target: "ledger", Key: bad}
		f.refused("B3 unblock", second(f.box.Unblock(f.Context(), outbox.AllTenants, key, by)), "Key")
		f.refused("B3 release worker", second(f.box.ReleaseWorker(f.Context(), outbox.Scope{}, bad, by)), "Worker")
		f.refused("B3 register worker", second(f.box.RegisterWorker(f.Context(), bad, "host")), "Worker")
		f.refused("B3 actor", second(f.box.Cancel(f.Context(), outbox.Scope{}, []int64{1}, outbox.By{Actor: bad, Reason: "r"})), "Actor")

		due := outbox.LaneQuery{Consumer: f.consumer, Kinds: []string{bad}, Limit: 1}
		f.refused("B3 due lanes", second(f.box.DueLanes(f.Context(), due)), "Kinds")
		f.refused("B3 lease", second(f.box.Lease(f.Context(), f.consumer, outbox.LeaseRequest{Kinds: []string{bad}, Limit: 1, For: time.Minute})), "Kinds")
		next := outbox.SuccessorPlan{Consumer: f.consumer, Kinds: []string{bad}, For: time.Minute}
		f.refused("B3 lease successors", second(f.box.LeaseSuccessors(f.Context(), next)), "Kinds")
		for field, lane := range map[string]outbox.Lane{"Kind": {Kind: bad}, "Tenant": {Kind: "charge", Tenant: bad}} {
			plan := outbox.LeasePlan{Consumer: f.consumer, For: time.Minute, Lanes: []outbox.PlannedLane{{Lane: lane}}, Quota: 1, Limit: 1}
			f.refused("B3 lease lanes", second(f.box.LeaseLanes(f.Context(), plan)), field)
		}
		scope := outbox.Tenants("acme", bad)
		for i, err := range []error{
			second(f.box.Stats(f.Context(), scope)),
			second(f.box.Show(f.Context(), scope, 1)),
			second(f.box.Pauses(f.Context(), scope)),
			second(f.box.List(f.Context(), scope, outbox.ListQuery{Limit: 1})),
			second(f.box.Cancel(f.Context(), scope, []int64{1}, by)),
			second(f.box.Replay(f.Context(), scope, []int64{1}, outbox.ResetAttempts, by)),
			second(f.box.Resolve(f.Context(), scope, []int64{1}, outbox.AsDead, by)),
			second(f.box.ReleaseWorker(f.Context(), scope, "w", by)),
			second(f.box.PurgeDelivered(f.Context(), scope, outbox.Cursor{}, time.Hour, 1)),
			second(f.box.PurgeUndelivered(f.Context(), scope, outbox.StateDead, outbox.Cursor{}, time.Hour, 1)),
			second(f.box.PurgeAudit(f.Context(), scope, outbox.Cursor{}, time.Hour, 1)),
			second(f.box.ExpireUnleased(f.Context(), scope, outbox.Cursor{}, time.Hour, 1)),
			second(f.box.CountOverdue(f.Context(), scope, outbox.Cursor{}, time.Hour, 1)),
			second(f.box.SettleMany(f.Context(), f.consumer, scope, nil)),
			second(f.box.DueLanes(f.Context(), outbox.LaneQuery{Consumer: f.consumer, Kinds: []string{"charge"}, Scope: scope, Limit: 1})),
		} {
			f.refused(fmt.Sprintf("B3 scope, call %d", i), err, "Scope")
		}
	})
	tx := f.Begin()
	for field, effect := range map[string]outbox.Effect{
		"Tenant":   {Tenant: bad, Consumer: "wallets", Key: "k"},
		"Consumer": {Consumer: bad, Key: "k"},
		"Key":      {Consumer: "wallets", Key: bad},
	} {
		f.refused("B3 find", second(f.box.Find(f.Context(), tx.Handle, []outbox.Effect{effect})), field)
	}
	if err := tx.Rollback(); err != nil {
		f.Error(err)
	}
}
