package sender

import (
	"context"
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

const (
	bornFor    = 5 * time.Second // the lease of a message that is born with one
	mostExcept = 100             // lanes without hand-off that an offer names; with more there is none
)

// beginHandOff lets the messages that this process enqueues be born leased to this worker.
func (w *worker) beginHandOff() (ready <-chan struct{}, end func()) {
	if !w.config.HandOff || w.once {
		return nil, func() {}
	}
	handOff, err := w.box.HandOff(outbox.HandOffPlan{
		Consumer: w.consumer, As: w.identity, Kinds: w.kinds, Scope: w.config.Scope, For: min(bornFor, w.shortest), Ask: w.config.Poll,
	})
	if err != nil { // New has checked all of it
		w.log.Error("cannot hand off", "error", err)
		return nil, func() {}
	}
	w.handOff = handOff
	return handOff.Ready(), func() { handOff.End() } // which a stop in good order has called
}

// offer says how much may be born leased: what there is room for beside what is being leased, under the conditions of a lease.
func (w *worker) offer(now time.Time) {
	if w.handOff == nil {
		return
	}
	room := w.room() - w.asked
	if w.closed(now) || w.outage.down || len(w.schedule.troubles) > mostExcept {
		room = 0
	}
	if room > 0 && w.identity != nil {
		w.look(w.trustedUntil) // and take it back
	}
	offer := outbox.Offer{Worker: w.id, Room: room}
	if len(w.schedule.troubles) > 0 {
		offer.Except = make(map[outbox.Lane]bool, len(w.schedule.troubles))
		for lane := range w.schedule.troubles {
			offer.Except[lane] = true
		}
	}
	w.handOff.Offer(offer)
}

// confirm starts what was born leased and is committed, as far as it is not too late and there are slots; the rest is given back.
func (w *worker) confirm(now time.Time) {
	if w.handOff == nil || w.busy[confirming] {
		return
	}
	if w.stop.begun {
		w.outage.forget(confirming)
		w.stopHandOff(now)
		return
	}
	if now.Before(w.confirms.until) {
		w.look(w.confirms.until)
		return
	}
	if !w.may(confirming, now) {
		return
	}
	room := w.free()
	if w.closed(now) {
		room = 0
	}
	var asked []outbox.Born
	for _, born := range w.handOff.Take(now) {
		if !now.Before(born.Late) || born.Committed && len(asked) >= room {
			w.refuse(born)
		} else {
			asked = append(asked, born)
		}
	}
	if next := w.handOff.Next(); !next.IsZero() {
		w.look(next)
	}
	if len(asked) == 0 {
		w.outage.forget(confirming)
		return
	}
	w.ask(asked)
}

// ask confirms messages in one statement for each length of lease.
func (w *worker) ask(asked []outbox.Born) {
	groups := map[time.Duration][]outbox.Born{}
	for _, born := range asked {
		lease := w.leases[born.Message.Kind]
		groups[lease] = append(groups[lease], born)
	}
	handOff, began := w.handOff, time.Now()
	w.unconfirmed = len(asked)
	var answers []func()
	w.call(confirming, w.shortest/3, func(ctx context.Context) error {
		for lease, group := range groups {
			sent := time.Now()
			confirmed, paused, err := handOff.Confirm(ctx, group, lease)
			if err != nil {
				return err
			}
			answers = append(answers, func() {
				w.confirmed(group, confirmed, paused, lease, sent)
				delete(groups, lease)
			})
		}
		return nil
	}, func(err error) {
		w.unconfirmed = 0
		if now := time.Now(); err == nil {
			w.outage.worked(confirming, now)
			w.confirms.called(len(asked), now.Sub(began), now)
		}
		for _, answer := range answers {
			answer()
		}
		for _, group := range groups { // without an answer
			handOff.Again(group)
		}
	})
}

// confirmed takes in what is there of some messages. What is not is rolled back, with its savepoint or as a whole, or still to be committed.
func (w *worker) confirmed(asked []outbox.Born, confirmed, paused []outbox.Message, lease time.Duration, sent time.Time) {
	for _, born := range asked {
		if born.Committed {
			w.handOff.Drop(born.Message.ID)
		}
	}
	n := min(len(confirmed), max(w.free(), 0))
	if w.closed(time.Now()) { // meanwhile
		n = 0
	}
	w.take(confirmed[:n], lease, sent)
	for i, m := range slices.Concat(confirmed, paused) {
		w.handOff.Drop(m.ID)
		if i >= n {
			w.unwanted = append(w.unwanted, &held{Message: m, ends: sent.Add(w.usable(lease)), handed: true})
		}
	}
}

// free is how many messages more may have a slot or wait for one.
func (w *worker) free() int {
	return w.config.Slots + w.pace.ahead(w.config.Slots, w.config.Batch) - w.occupied()
}

// refuse gives back what was born leased, as far as it is there.
func (w *worker) refuse(born outbox.Born) {
	w.handOff.Drop(born.Message.ID)
	w.unwanted = append(w.unwanted, &held{Message: born.Message, ends: born.Ends, handed: true})
}

// stopHandOff gives back what was committed, and after a moment all: of what is still open then, the leases run out.
func (w *worker) stopHandOff(now time.Time) {
	last := w.stop.drain.Add(min(lastWords, w.config.Drain) - w.config.Drain)
	if w.handOff.Pending() && now.Before(last) {
		for _, born := range w.handOff.Take(now) {
			if born.Committed {
				w.refuse(born)
			}
		}
		w.look(last)
		return
	}
	for _, born := range w.handOff.End() {
		w.unwanted = append(w.unwanted, &held{Message: born.Message, ends: born.Ends, handed: true})
	}
	w.handOff = nil
}
