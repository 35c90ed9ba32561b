package badinput

import (
	"errors"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/outbox"
)

// answerTakenKeys is what a key that is taken answers: B15, B16.
func answerTakenKeys(f *fixture) {
	first := f.enqueue(valid("k"))[0]
	other := valid("k")
	other.Payload = []byte("other")
	tx := f.Begin()
	receipts, err := f.box.EnqueueMany(f.Context(), tx.Handle, []outbox.Effect{valid("new"), other, valid("k"), valid("new"), other})
	var conflict *outbox.KeyConflictError
	if !errors.Is(err, outbox.ErrKeyConflict) || !errors.As(err, &conflict) || len(conflict.Conflicts) != 2 ||
		conflict.Conflicts[0].Index != 1 || conflict.Conflicts[1].Index != 4 || conflict.Conflicts[0].ID != first.ID {
		f.Errorf("B15: %v", err)
	}
	want := []outbox.Status{outbox.Recorded, outbox.Conflicted, outbox.Duplicate, outbox.Duplicate, outbox.Conflicted}
	for i, receipt := range receipts {
		if receipt.Status != want[i] {
			f.Errorf("B16: receipt %d is %+v, want %s", i, receipt, want[i])
		}
	}
	if len(receipts) != len(want) || receipts[3].ID != receipts[0].ID || receipts[2].ID != first.ID {
		f.Fatalf("B16: receipts %+v", receipts)
	}
	if _, err := f.box.Enqueue(f.Context(), tx.Handle, valid("after")); err != nil {
		f.Errorf("B15: the transaction cannot go on: %v", err)
	}
	if err := tx.Commit(); err != nil {
		f.Errorf("B15: the transaction cannot commit: %v", err)
	}
	if got := f.show(receipts[0].ID); got.Key != "new" {
		f.Errorf("B16: stored %+v", got)
	}
}

// passBrokenTransactions is a transaction in which nothing can succeed: its error is passed on and no other is opened. B17.
func passBrokenTransactions(f *fixture) {
	if _, err := f.box.Enqueue(f.Context(), nil, valid("nil")); err == nil {
		f.Error("B17 nil: no error")
	}
	for name, begin := range f.Broken {
		receipt, err := f.box.Enqueue(f.Context(), begin(), valid(name))
		if err == nil || errors.Is(err, outbox.ErrInvalid) || receipt != (outbox.Receipt{}) {
			f.Errorf("B17 %s: %+v, %v", name, receipt, err)
		}
	}
	for name, tx := range f.Foreign {
		f.silently(name, func() {
			if _, err := f.box.Enqueue(f.Context(), tx, valid(name)); !errors.Is(err, db.ErrForeignTx) {
				f.Errorf("B17 %s: %v", name, err)
			}
		})
	}
	if left := f.lease(); len(left) != 0 {
		f.Errorf("B17: stored %v", left)
	}
}
