package dbtest

import (
	"fmt"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

var batchTogetherTests = []test{
	{name: "of all that end the last rows one completes", run: batchLastTogether},
	{name: "a seal beside the last settle completes once", run: batchSealTogether},
	{name: "cancel beside settle completes once", run: batchCancelTogether},
	{name: "replay beside settle loses no row", run: batchReplayTogether},
}

// Shows: I25
func batchLastTogether(f *fixture) {
	for round := range 10 {
		const n = 8
		id, _ := f.batch(recording(fmt.Sprint(round)), some(n)...)
		h := f.take(f.leasing())
		f.together(n, func(i int, store db.Store) {
			switch i % 4 {
			case 0, 1:
				runOn(f, store.SettleDelivered, h.only(i).delivered())
			case 2:
				runOn(f, store.SettleDead, h.only(i).dead("moot"))
			default:
				runOn(f, store.CancelOpen, db.CancelOpenParams{Ids: h.ids[i : i+1], AllTenants: true, Actor: "ann", Reason: "race"})
			}
		})
		f.completed(fmt.Sprint("round ", round), id, true, 1)
		same(f, "recorded", len(f.recorded()), round+1)
	}
}

func batchSealTogether(f *fixture) {
	for round := range 10 {
		id := f.begun(recording(fmt.Sprint(round)))
		f.fill(filling(id, 1, f.enqueue(some(2)...)...))
		h := f.take(f.leasing())
		f.together(3, func(i int, store db.Store) {
			if i == 2 {
				runOn(f, store.SealBatch, sealing(id))
				return
			}
			runOn(f, store.SettleDelivered, h.only(i).delivered())
		})
		f.completed(fmt.Sprint("round ", round), id, true, 1)
		same(f, "recorded", len(f.recorded()), round+1)
	}
}

func batchCancelTogether(f *fixture) {
	const n = 40
	id, messages := f.batch(recording("b"), some(n)...)
	h := f.take(f.leasing())
	f.together(4, func(i int, store db.Store) {
		for from := 0; from < n; from += 8 {
			part := hold{h.ids[from : from+8], h.tokens[from : from+8]}
			if i%2 == 0 {
				runOn(f, store.SettleDelivered, part.delivered())
			} else {
				runOn(f, store.CancelOpen, db.CancelOpenParams{Ids: messages[n-from-8 : n-from], AllTenants: true, Actor: "ann", Reason: "race"})
			}
		}
	})
	f.completed("cancelled and settled", id, true, 1)
	same(f, "recorded", f.recorded(), []string{"all of b"})
}

// Whoever comes first, the batch is open afterwards, with the replayed rows: in the first run or the second.
func batchReplayTogether(f *fixture) {
	for round := range 10 {
		id, _ := f.batch(recording(fmt.Sprint(round)), some(4)...)
		h := f.take(f.leasing())
		run(f, f.Store.SettleDead, hold{h.ids[:2], h.tokens[:2]}.dead("permanent"))
		f.together(4, func(i int, store db.Store) {
			if i < 2 {
				runOn(f, store.ReplayDead, replaying(h.ids[i]))
			} else {
				runOn(f, store.SettleDelivered, h.only(i).delivered())
			}
		})
		c := f.count(id)
		same(f, "open", []any{c.Open, c.Delivered, c.CompletedAt.Equal(tables.Forever)}, []any{int64(2), int64(2), true})
		same(f, "recorded", int32(len(f.recorded())), c.Run-1)
		run(f, f.Store.SettleDelivered, f.take(f.leasing()).delivered())
		f.completed("in the end", id, true, c.Run)
		f.Reset(f)
	}
}
