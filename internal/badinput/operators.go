package badinput

import (
	"slices"

	"github.com/fencepost-go/fencepost/outbox"
)

// answerOperators is what operators ask for and cannot have: B1, B22, B23.
func answerOperators(f *fixture) {
	by := outbox.By{Actor: "ann", Reason: "a test"}
	foreign := valid("foreign")
	foreign.Tenant = "acme"
	delivered := f.leaseOne("delivered")
	f.settle(delivered, outbox.Delivered())
	leased := f.leaseOne("leased")
	receipts := f.enqueue(valid("pending"), foreign)
	pending, theirs := receipts[0].ID, receipts[1].ID
	const absent = 1 << 60
	ids := []int64{absent, pending, theirs, delivered.ID, 0, -1}

	replayed, err := f.box.Replay(f.Context(), outbox.Scope{}, ids, outbox.PreserveAttempts, by)
	if err != nil || slices.ContainsFunc(replayed, func(a outbox.Acted) bool { return a.Status != outbox.NotDead }) || len(replayed) != len(ids) {
		f.Errorf("B22: %+v, %v", replayed, err)
	}
	cancelled, err := f.box.Cancel(f.Context(), outbox.Scope{}, append(ids, leased.ID), by)
	want := []outbox.Status{outbox.NotFound, outbox.Done, outbox.NotFound, outbox.NotOpen, outbox.NotFound, outbox.NotFound, outbox.Done}
	for i, answer := range cancelled {
		if answer.Status != want[i] {
			f.Errorf("B23: answer %d is %+v, want %s", i, answer, want[i])
		}
	}
	if err != nil || len(cancelled) != len(want) || f.show(theirs).State != outbox.StatePending {
		f.Errorf("B23: %+v, %v", cancelled, err)
	}

	f.silently("B22 refusals", func() {
		acts := map[string]func(ids []int64, by outbox.By) error{
			"replay": func(ids []int64, by outbox.By) error {
				_, err := f.box.Replay(f.Context(), outbox.Scope{}, ids, outbox.ResetAttempts, by)
				return err
			},
			"cancel": func(ids []int64, by outbox.By) error {
				_, err := f.box.Cancel(f.Context(), outbox.Scope{}, ids, by)
				return err
			},
			"resolve": func(ids []int64, by outbox.By) error {
				_, err := f.box.Resolve(f.Context(), outbox.Scope{}, ids, outbox.AsDead, by)
				return err
			},
		}
		for name, act := range acts {
			f.refused("B22 10⁶ ids, "+name, act(make([]int64, 1_000_000), by), "IDs")
			f.refused("B22 no actor, "+name, act(ids, outbox.By{Reason: "r"}), "Actor")
			f.refused("B22 NUL in the actor, "+name, act(ids, outbox.By{Actor: "\x00", Reason: "r"}), "Actor")
			f.refused("B22 blank reason, "+name, act(ids, outbox.By{Actor: "ann", Reason: " \n"}), "Reason")
			if err := act(nil, by); err != nil {
				f.Errorf("B22 no ids, %s: %v", name, err)
			}
		}
		_, err := f.box.Replay(f.Context(), outbox.Scope{}, ids, 0, by)
		f.refused("B22 attempts", err, "Attempts")
		_, err = f.box.Cancel(f.Context(), outbox.Tenants(), ids, by)
		f.refused("B23 scope of nobody", err, "Scope")
		_, err = f.box.ReleaseWorker(f.Context(), outbox.Scope{}, " ", by)
		f.refused("B1 blank worker", err, "Worker")
		_, err = f.box.RegisterWorker(f.Context(), "", "host")
		f.refused("B1 no worker", err, "Worker")
	})
}
