package badinput

import (
	"context"
	"errors"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

// refuseEndedContexts is that every call returns at once when its context is over: B26.
func refuseEndedContexts(f *fixture) {
	by := outbox.By{Actor: "ann", Reason: "a test"}
	m := f.leaseOne("k")
	tx := f.Begin()
	cancelled, cancel := context.WithCancel(f.Context())
	cancel()
	late, cancelLate := context.WithDeadline(f.Context(), time.Now().Add(-time.Second))
	defer cancelLate()
	all := outbox.AllTenants
	for name, call := range map[string]func(context.Context) error{
		"enqueue":      func(ctx context.Context) error { return second(f.box.Enqueue(ctx, tx.Handle, valid("new"))) },
		"enqueue many": func(ctx context.Context) error { return second(f.box.EnqueueMany(ctx, tx.Handle, nil)) },
		"lease": func(ctx context.Context) error {
			return second(f.box.Lease(ctx, f.consumer, outbox.LeaseRequest{Kinds: []string{"charge"}, Limit: 1, For: time.Minute}))
		},
		"due lanes": func(ctx context.Context) error {
			return second(f.box.DueLanes(ctx, outbox.LaneQuery{Consumer: f.consumer, Kinds: []string{"charge"}, Limit: 1}))
		},
		"lease lanes": func(ctx context.Context) error {
			lanes := []outbox.PlannedLane{{Lane: m.Lane()}}
			return second(f.box.LeaseLanes(ctx, outbox.LeasePlan{Consumer: f.consumer, Lanes: lanes, Quota: 1, Limit: 1}))
		},
		"lease successors": func(ctx context.Context) error {
			return second(f.box.LeaseSuccessors(ctx, outbox.SuccessorPlan{Consumer: f.consumer, Kinds: []string{"charge"}}))
		},
		"renew":   func(ctx context.Context) error { return second(f.box.Renew(ctx, []outbox.Message{m}, time.Minute)) },
		"release": func(ctx context.Context) error { return f.box.Release(ctx, m) },
		"settle": func(ctx context.Context) error {
			return second(f.box.Settle(ctx, f.consumer, all, m, outbox.Delivered()))
		},
		"cancel": func(ctx context.Context) error { return second(f.box.Cancel(ctx, all, []int64{m.ID}, by)) },
		"replay": func(ctx context.Context) error {
			return second(f.box.Replay(ctx, all, []int64{m.ID}, outbox.ResetAttempts, by))
		},
		"resolve": func(ctx context.Context) error {
			return second(f.box.Resolve(ctx, all, []int64{m.ID}, outbox.AsDead, by))
		},
		"pause":          func(ctx context.Context) error { return second(f.box.Pause(ctx, all, outbox.Everything, 0, by)) },
		"resume":         func(ctx context.Context) error { return second(f.box.Resume(ctx, all, outbox.Everything, by)) },
		"pauses":         func(ctx context.Context) error { return second(f.box.Pauses(ctx, all)) },
		"release worker": func(ctx context.Context) error { return second(f.box.ReleaseWorker(ctx, all, "pod-0", by)) },
		"unblock": func(ctx context.Context) error {
			return second(f.box.Unblock(ctx, all, outbox.OrderKey{Consumer: "c", Target: "t", Key: "k"}, by))
		},
		"list":  func(ctx context.Context) error { return second(f.box.List(ctx, all, outbox.ListQuery{Limit: 1})) },
		"show":  func(ctx context.Context) error { return second(f.box.Show(ctx, all, m.ID)) },
		"stats": func(ctx context.Context) error { return second(f.box.Stats(ctx, all)) },
		"purge delivered": func(ctx context.Context) error {
			return second(f.box.PurgeDelivered(ctx, all, outbox.Cursor{}, time.Hour, 1))
		},
		"purge dead": func(ctx context.Context) error {
			return second(f.box.PurgeUndelivered(ctx, all, outbox.StateDead, outbox.Cursor{}, time.Hour, 1))
		},
		"purge workers": func(ctx context.Context) error { return second(f.box.PurgeWorkers(ctx, time.Hour, 1)) },
		"purge audit": func(ctx context.Context) error {
			return second(f.box.PurgeAudit(ctx, all, outbox.Cursor{}, time.Hour, 1))
		},
		"expire": func(ctx context.Context) error {
			return second(f.box.ExpireUnleased(ctx, all, outbox.Cursor{}, time.Hour, 1))
		},
		"count old": func(ctx context.Context) error {
			_, _, err := f.box.CountOld(ctx, all, outbox.Cursor{}, outbox.Periods{Dead: time.Hour}, 1)
			return err
		},
		"count overdue": func(ctx context.Context) error {
			return second(f.box.CountOverdue(ctx, all, outbox.Cursor{}, time.Hour, 1))
		},
		"register worker": func(ctx context.Context) error { return second(f.box.RegisterWorker(ctx, "pod-0", "host")) },
		"touch worker":    func(ctx context.Context) error { return second(f.box.TouchWorkers(ctx, []int64{1})) },
		"check schema":    func(ctx context.Context) error { return f.box.CheckSchema(ctx) },
		"check role":      func(ctx context.Context) error { return second(f.box.CheckRole(ctx)) },
	} {
		f.silently("B26 "+name, func() {
			if err := call(cancelled); !errors.Is(err, context.Canceled) {
				f.Errorf("B26 %s, cancelled: %v", name, err)
			}
			if err := call(late); !errors.Is(err, context.DeadlineExceeded) {
				f.Errorf("B26 %s, too late: %v", name, err)
			}
		})
	}
	if _, err := f.box.Enqueue(f.Context(), tx.Handle, valid("after")); err != nil || tx.Commit() != nil {
		f.Errorf("B26: the transaction cannot go on: %v", err)
	}
}

// second drops what stands beside an error.
func second[T any](_ T, err error) error { return err }
