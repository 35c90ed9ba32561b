package dbtest

import (
	"strings"
	"time"

	"github.com/fencepost-go/fencepost/db"
)

var checkTests = []test{
	{name: "of a message refuse what Go should have", run: checksMessage},
	{name: "of a queue row and a settlement too", run: checksSettle},
	{name: "of an operator's act too", run: checksOperate},
}

// refuses checks that an enqueue fails and leaves nothing.
func (f *fixture) refuses(what string, p db.EnqueueParams) {
	f.Helper()
	f.unchanged(what, func() {
		tx, _, rollback := f.begin()
		if _, err := f.Store.Enqueue(f.Context(), tx, p); err == nil {
			f.Errorf("%s was stored", what)
		}
		if err := rollback(); err != nil {
			f.Errorf("%s: rollback: %v", what, err)
		}
	})
}

// Shows: S3.9
func checksMessage(f *fixture) {
	long := strings.Repeat("x", 129)
	bad := map[string]func(*db.EnqueueParams){
		"tenant *":        func(p *db.EnqueueParams) { p.Tenants[0] = "*" },
		"consumer *":      func(p *db.EnqueueParams) { p.Consumers[0] = "*" },
		"target *":        func(p *db.EnqueueParams) { p.Targets[0] = "*" },
		"kind *":          func(p *db.EnqueueParams) { p.Kinds[0] = "*" },
		"blank tenant":    func(p *db.EnqueueParams) { p.Tenants[0] = " \t\n" },
		"blank consumer":  func(p *db.EnqueueParams) { p.Consumers[0] = "" },
		"blank target":    func(p *db.EnqueueParams) { p.Targets[0] = "\v\f\r" },
		"blank kind":      func(p *db.EnqueueParams) { p.Kinds[0] = " " },
		"blank key":       func(p *db.EnqueueParams) { p.Keys[0] = "\n" },
		"blank order key": func(p *db.EnqueueParams) { p.OrderKeys[0] = " " },
		"long tenant":     func(p *db.EnqueueParams) { p.Tenants[0] = long },
		"long consumer":   func(p *db.EnqueueParams) { p.Consumers[0] = strings.Repeat("é", 64) + "x" },
		"long target":     func(p *db.EnqueueParams) { p.Targets[0] = long },
		"long kind":       func(p *db.EnqueueParams) { p.Kinds[0] = long },
		"long order key":  func(p *db.EnqueueParams) { p.OrderKeys[0] = long },
		"long key":        func(p *db.EnqueueParams) { p.Keys[0] = strings.Repeat("x", 256) },
		"long event id":   func(p *db.EnqueueParams) { p.SourceEventIds[0] = strings.Repeat("x", 65) },
		"long metadata":   func(p *db.EnqueueParams) { p.Metadatas[0] = strings.Repeat("x", 65537) },
		"long payload":    func(p *db.EnqueueParams) { p.Payloads[0] = make([]byte, 1<<20+1) },
		"no digest":       func(p *db.EnqueueParams) { p.Digests[0] = nil },
		"short digest":    func(p *db.EnqueueParams) { p.Digests[0] = make([]byte, 31) },
		"position":        func(p *db.EnqueueParams) { p.SourcePositions[0] = -1 },
		"age":             func(p *db.EnqueueParams) { p.MaxAges[0] = -1 },
		"long age":        func(p *db.EnqueueParams) { p.MaxAges[0] = 3155760000000001 },
		"far due time":    func(p *db.EnqueueParams) { p.DueAts[0] = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"NUL":             func(p *db.EnqueueParams) { p.Keys[0] = "a\x00b" },
		"a bad second":    func(p *db.EnqueueParams) { p.Keys[1] = "" },
	}
	for what, spoil := range bad {
		p := f.params(some(2)...)
		spoil(&p)
		f.refuses(what, p)
	}
}

func checksSettle(f *fixture) {
	h := f.hold(some(2)...)
	refused := func(what string, err error) {
		f.Helper()
		if err == nil {
			f.Errorf("%s was stored", what)
		}
	}
	f.unchanged("refused settles", func() {
		for what, text := range map[string][2]string{
			"cause": {"tired", "reason"}, "no cause": {"", "reason"}, "blank reason": {"moot", " \n"}, "long reason": {"moot", strings.Repeat("x", 4097)},
		} {
			p := h.dead(text[0])
			p.Reasons[1] = text[1]
			_, err := f.Store.SettleDead(f.Context(), p)
			refused(what, err)
		}
		delivered, retry, parked := h.delivered(), h.retried(0), h.parked()
		delivered.Results[1] = strings.Repeat("x", 4097)
		retry.LastErrors[1] = strings.Repeat("é", 128) + "x"
		parked.LastErrors[1] = strings.Repeat("x", 257)
		_, err := f.Store.SettleDelivered(f.Context(), delivered)
		refused("long result", err)
		_, err = f.Store.SettleRetry(f.Context(), retry)
		refused("long error of a retry", err)
		_, err = f.Store.SettleParked(f.Context(), parked)
		refused("long error of a parked one", err)
	})
	f.enqueue(effect{priority: 1})
	for what, token := range map[string][]byte{"short token": make([]byte, 15), "nobody's token": db.FreeToken} {
		p := f.leasing(lane{priority: 1})
		p.Token = token
		f.unchanged(what, func() {
			_, err := f.Store.LeaseDue(f.Context(), p)
			refused(what, err)
		})
	}
}

func checksOperate(f *fixture) {
	dead, parked, open := f.bury(effect{}), f.park(effect{}), f.enqueue(effect{})
	f.blocked("a")
	for what, by := range map[string][2]string{
		"blank actor": {" ", "reason"}, "long actor": {strings.Repeat("x", 129), "reason"}, "blank reason": {"ann", "\t"},
		"long reason": {"ann", strings.Repeat("x", 4097)},
	} {
		unblock, release := unblocking("c", "t", "a", "o"), db.RegisterWorkerParams{Name: " "}
		unblock.Actor, unblock.Reason = by[0], by[1]
		f.unchanged(what, func() {
			for i, act := range []func() error{
				func() error {
					return failed(f.Store.CancelOpen(f.Context(), db.CancelOpenParams{Ids: open, AllTenants: true, Actor: by[0], Reason: by[1]}))
				},
				func() error {
					return failed(f.Store.ReplayDead(f.Context(), db.ReplayDeadParams{Ids: dead, AllTenants: true, Actor: by[0], Reason: by[1]}))
				},
				func() error {
					return failed(f.Store.ResolveRetry(f.Context(), db.ResolveRetryParams{Ids: parked, AllTenants: true, Actor: by[0], Reason: by[1]}))
				},
				func() error {
					return failed(f.Store.ResolveSettled(f.Context(), db.ResolveSettledParams{Ids: parked, Outcome: "dead", AllTenants: true, Actor: by[0], Reason: by[1]}))
				},
				func() error {
					return failed(f.Store.PauseLane(f.Context(), db.PauseLaneParams{Consumer: "c", Target: "t", Kind: "k", Tenant: "a", Actor: by[0], Reason: by[1]}))
				},
				func() error { return failed(f.Store.UnblockKey(f.Context(), unblock)) },
				func() error { return failed(f.Store.RegisterWorker(f.Context(), release)) },
			} {
				if act() == nil {
					f.Errorf("act %d with %s was recorded", i, what)
				}
			}
		})
	}
	f.unchanged("an outcome that is none", func() {
		for _, outcome := range []string{"", "parked", "lost"} {
			if failed(f.Store.ResolveSettled(f.Context(), resolving(outcome, parked...))) == nil {
				f.Errorf("resolved as %q", outcome)
			}
		}
		for _, p := range []db.PauseLaneParams{
			{Target: "t", Kind: "k", Actor: "ann", Reason: "r"}, {Consumer: "c", Kind: "k", Actor: "ann", Reason: "r"},
			{Consumer: "c", Target: "t", Actor: "ann", Reason: "r"}, {Consumer: "c", Target: "t", Kind: "k", Mode: 2, Actor: "ann", Reason: "r"},
		} {
			if failed(f.Store.PauseLane(f.Context(), p)) == nil {
				f.Errorf("paused %+v", p)
			}
		}
	})
}

func failed[R any](_ []R, err error) error { return err }
