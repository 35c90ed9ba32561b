package property_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/outbox"
)

// refuses runs a call that must be refused for its arguments, before anything is sent (I30). That no row changed, sync sees.
func (m *machine) refuses(action string, call func() error) {
	sent := m.sent()
	if err := call(); !errors.Is(err, outbox.ErrInvalid) {
		m.rt.Fatalf("%s with illegal arguments: %v", action, err)
	}
	equal(m, "operations sent by "+action+" with illegal arguments", m.sent(), sent)
	m.count(action, "invalid")
}

// sent counts the operations that reached the store, where somebody counts.
func (m *machine) sent() int {
	if m.stage.sent == nil {
		return 0
	}
	return m.stage.sent()
}

func (m *machine) drawName(label string, of map[string]func()) string {
	return one(m.rt, label, slices.Sorted(maps.Keys(of)))
}

// illegal makes one call that no argument of which was ever valid, or no right to make.
func (m *machine) illegal() {
	c, nobody := m.drawClient(), outbox.Tenants()
	everybody, blank := outbox.AllTenants, outbox.By{Actor: " ", Reason: "r"}
	ids := m.drawIDs(func(*row) bool { return true })
	held := outbox.Message{}
	if len(m.hands) > 0 {
		held = one(m.rt, "hand", m.hands).Message
	}
	forged := outbox.Message{ID: ids[0], Consumer: c.consumer, Target: c.target} // with the token of a row that nobody holds
	pick := func(calls ...func() error) func() error { return one(m.rt, "call", calls) }
	calls := map[string]func() func() error{
		"lease": func() func() error {
			return pick(
				func() error {
					return second(m.box.Lease(m.ctx, nil, outbox.LeaseRequest{Kinds: kinds, Limit: 1, For: unit}))
				},
				func() error {
					return second(m.box.Lease(m.ctx, c.Consumer, outbox.LeaseRequest{Kinds: kinds, Limit: 1, For: db.LongestLease + 1}))
				},
				func() error {
					return second(m.box.Lease(m.ctx, c.Consumer, outbox.LeaseRequest{Kinds: []string{"*"}, Limit: 1, For: unit}))
				},
				func() error {
					return second(m.box.Lease(m.ctx, c.Consumer, outbox.LeaseRequest{Kinds: kinds, Limit: 1, For: unit, Scope: nobody}))
				},
			)
		},
		"lease lanes": func() func() error {
			twice := []outbox.PlannedLane{{Lane: outbox.Lane{Kind: "a"}}, {Lane: outbox.Lane{Kind: "a"}}}
			return pick(
				func() error {
					return second(m.box.LeaseLanes(m.ctx, outbox.LeasePlan{Consumer: c.Consumer, Lanes: twice, Quota: 1, Limit: 1, For: unit}))
				},
				func() error {
					return second(m.box.LeaseLanes(m.ctx, outbox.LeasePlan{Consumer: c.Consumer, Lanes: twice[:1], Quota: 1, Limit: 1, For: 2 * time.Hour}))
				},
			)
		},
		"lease successors": func() func() error {
			return pick(func() error {
				return second(m.box.LeaseSuccessors(m.ctx, outbox.SuccessorPlan{Consumer: c.Consumer, Kinds: kinds, Scope: nobody, For: unit}))
			})
		},
		"renew": func() func() error {
			return pick(
				func() error { return second(m.box.Renew(m.ctx, []outbox.Message{forged}, unit)) },
				func() error { return second(m.box.Renew(m.ctx, []outbox.Message{held}, 2*time.Hour)) },
			)
		},
		"release": func() func() error {
			return pick(func() error { return m.box.Release(m.ctx, forged) })
		},
		"cancel": func() func() error {
			return pick(
				func() error { return second(m.box.Cancel(m.ctx, everybody, ids, blank)) },
				func() error { return second(m.box.Cancel(m.ctx, nobody, ids, by)) },
				func() error { return second(m.box.Cancel(m.ctx, everybody, make([]int64, 1001), by)) },
			)
		},
		"replay": func() func() error {
			return pick(
				func() error { return second(m.box.Replay(m.ctx, everybody, ids, 0, by)) },
				func() error {
					return second(m.box.Replay(m.ctx, everybody, ids, outbox.ResetAttempts, outbox.By{Actor: "ann", Reason: "\n"}))
				},
			)
		},
		"replay matching": func() func() error {
			return pick(func() error {
				return second(m.box.ReplayMatching(m.ctx, everybody, outbox.BulkReplay{Attempts: outbox.ResetAttempts, Limit: 10}, by))
			})
		},
		"resolve": func() func() error {
			return pick(
				func() error { return second(m.box.Resolve(m.ctx, everybody, ids, 0, by)) },
				func() error { return second(m.box.Resolve(m.ctx, everybody, ids, outbox.AsRetry, blank)) },
			)
		},
		"pause": func() func() error {
			return pick(
				func() error {
					return second(m.box.Pause(m.ctx, outbox.Scope{}, outbox.Everything, outbox.PauseLeasing, by))
				},
				func() error {
					return second(m.box.Pause(m.ctx, everybody, outbox.LanePattern{}, outbox.PauseLeasing, by))
				},
				func() error { return second(m.box.Pause(m.ctx, everybody, outbox.Everything, 7, by)) },
			)
		},
		"resume": func() func() error {
			return pick(func() error { return second(m.box.Resume(m.ctx, outbox.Scope{}, outbox.Everything, by)) })
		},
		"release worker": func() func() error {
			return pick(func() error { return second(m.box.ReleaseWorker(m.ctx, everybody, " ", by)) })
		},
		"unblock": func() func() error {
			key := outbox.OrderKey{Tenant: "acme", Consumer: c.consumer, Target: c.target, Key: "x"}
			return pick(
				func() error { return second(m.box.Unblock(m.ctx, outbox.Scope{}, key, by)) },
				func() error { return second(m.box.Unblock(m.ctx, everybody, outbox.OrderKey{}, by)) },
			)
		},
		"purge": func() func() error {
			return pick(
				func() error { return second(m.box.PurgeDelivered(m.ctx, everybody, outbox.Cursor{}, 0, 10)) },
				func() error {
					return second(m.box.PurgeUndelivered(m.ctx, everybody, outbox.StateParked, outbox.Cursor{}, time.Hour, 10))
				},
				func() error {
					return second(m.box.PurgeUndelivered(m.ctx, nobody, outbox.StateDead, outbox.Cursor{}, time.Hour, 10))
				},
				func() error { return second(m.box.PurgeWorkers(m.ctx, 0, 10)) },
			)
		},
		"expire": func() func() error {
			return pick(func() error { return second(m.box.ExpireUnleased(m.ctx, everybody, outbox.Cursor{}, -1, 10)) })
		},
		"list": func() func() error {
			return pick(
				func() error { return second(m.box.List(m.ctx, everybody, outbox.ListQuery{State: "lost", Limit: 10})) },
				func() error { return second(m.box.List(m.ctx, nobody, outbox.ListQuery{Limit: 10})) },
			)
		},
		"show": func() func() error {
			return pick(func() error { return second(m.box.Show(m.ctx, nobody, ids[0])) })
		},
		"stats": func() func() error {
			return pick(func() error { return second(m.box.Stats(m.ctx, nobody)) })
		},
		"worker": func() func() error {
			return pick(func() error { return second(m.box.RegisterWorker(m.ctx, strings.Repeat("w", 129), "host")) })
		},
		"settle": func() func() error {
			settling := func(message outbox.Message, o outbox.Outcome) func() error {
				return func() error { return second(m.box.Settle(m.ctx, c.Consumer, everybody, message, o)) }
			}
			return pick(
				settling(forged, outbox.Delivered()), // a malformed token (B18)
				settling(held, outbox.Outcome{}),
				settling(held, outbox.Failed(errors.New(" \t"))),
				func() error { return second(m.box.Settle(m.ctx, c.Consumer, nobody, held, outbox.Delivered())) },
				func() error { return second(m.box.Settle(m.ctx, nil, everybody, held, outbox.Delivered())) },
			)
		},
	}
	action := one(m.rt, "action", slices.Sorted(maps.Keys(calls)))
	m.refuses(action, calls[action]())
}

// second is the error of a call.
func second[R any](_ R, err error) error { return err }
