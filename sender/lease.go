package sender

import (
	"context"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

// scanWithin bounds a scan. It holds no lease, and over very many dead entries it takes seconds however short the leases are.
const scanWithin = 10 * time.Second

// lease looks for due messages and leases what there is room for.
func (w *worker) lease(now time.Time) {
	room := w.room() - w.unconfirmed
	if room <= 0 || w.closed(now) || !w.may(leasing, now) {
		return
	}
	if w.schedule.hasCommitsAlone() && now.Before(w.passes.until) {
		w.look(w.passes.until)
		return
	}
	at := w.schedule.scanAt()
	if now.Before(at) || w.schedule.hurries() {
		if p, ok := w.schedule.plan(now, min(room, w.most)); ok {
			w.pass(p)
			return
		}
	}
	if now.Before(at) {
		w.look(at)
		return
	}
	w.scan(now)
}

// closed says whether nothing more is to be taken on.
func (w *worker) closed(now time.Time) bool {
	return w.stop.begun || w.pressing || w.untrusted(now) || w.secluded(now)
}

// room is how many messages there are slots for, with some to wait where handlers are short. Those that wait are used up by half before
// more are leased, so that a lease is not asked for each.
func (w *worker) room() int {
	ahead, occupied := w.pace.ahead(w.config.Slots, w.config.Batch), w.occupied()
	if over := occupied - w.config.Slots; over >= 0 && over > ahead/2 {
		return 0
	}
	room := w.config.Slots + ahead - occupied
	if w.once {
		room = min(room, onceAtMost-w.counts.Leased)
	}
	return room
}

// occupied is how many messages have a slot or wait for one.
func (w *worker) occupied() int { return len(w.running.all) + len(w.waiting) + w.following }

// scan asks which lanes have due messages.
func (w *worker) scan(now time.Time) {
	query := outbox.LaneQuery{Consumer: w.consumer, Kinds: w.kinds, Scope: w.config.Scope, Limit: maxDueLanes}
	since, woken := w.schedule.scan(now)
	var due []outbox.DueLane
	var round *round[[]outbox.DueLane]
	w.call(leasing, scanWithin, func(ctx context.Context) (err error) {
		due, round, err = w.team.scans.answer(ctx, w, query, since, woken)
		return err
	}, func(err error) {
		if err != nil {
			w.schedule.wake()
			w.leaseFailed(err)
			return
		}
		w.schedule.scanned(due, round.began, round.ended)
		if len(due) > 0 {
			w.team.scans.leave(w)
			return
		}
		w.team.scans.willing(w, query)
		w.outage.worked(leasing, time.Now())
		w.observer.Rescan(w.handlers, w.consumer, round.ended.Sub(round.began))
	})
}

// pass leases from the lanes of a plan.
func (w *worker) pass(p plan) {
	request := outbox.LeasePlan{
		Consumer: w.consumer, Worker: w.id, As: w.identity, Scope: w.config.Scope, For: p.lease,
		Lanes: p.planned(), Quota: p.quota, Limit: p.limit,
	}
	began, within := time.Now(), w.shortest/3
	var pass outbox.Pass
	w.asked = p.limit
	w.call(leasing, within, func(ctx context.Context) (err error) {
		pass, err = w.box.LeaseLanes(ctx, request)
		return err
	}, func(err error) {
		now := time.Now()
		w.asked = 0
		if err != nil {
			w.askLess()
			w.leaseFailed(err)
			return
		}
		w.outage.worked(leasing, now)
		moved := len(pass.Messages) + len(pass.Buried)
		w.passes.called(moved, now.Sub(began), now)
		if moved >= w.most && now.Sub(began) < within/3 {
			w.most = min(2*w.most, w.config.Batch)
		}
		if w.schedule.passed(p, pass.Lanes, moved, now.Sub(began), now) {
			w.observer.Rescan(w.handlers, w.consumer, w.schedule.took)
		}
		w.counts.Dead += len(pass.Buried)
		w.take(pass.Messages, p.lease, began)
	})
}

// askLess makes the next pass smaller after one whose answer did not come. That may be for its size, over a slow link, and it may have leased
// messages nevertheless: each time spends an attempt of theirs. Passes grow again while they are full and take well under what they may.
func (w *worker) askLess() { w.most = max(w.most/4, 1) }

// planned is what to ask for.
func (p plan) planned() []outbox.PlannedLane {
	lanes := make([]outbox.PlannedLane, len(p.lanes))
	for i, l := range p.lanes {
		lanes[i] = outbox.PlannedLane{Lane: l.Lane, After: l.after()}
	}
	return lanes
}

// leaseFailed ends a RunOnce; a Run tries again.
func (w *worker) leaseFailed(err error) {
	if w.once {
		w.beginStop(err)
	}
}

// take holds messages that were leased for so long, and asked for at the given time.
func (w *worker) take(messages []outbox.Message, lease time.Duration, since time.Time) {
	w.counts.Leased += len(messages)
	lease = w.usable(lease)
	for _, m := range messages {
		h := &held{Message: m, handler: w.config.Handlers[m.Kind], since: since, lease: lease, ends: since.Add(lease)}
		w.waiting = append(w.waiting, h)
		w.schedule.take(m.Lane())
		if w.suspect(h) {
			w.suspects++
		}
	}
}

// usable is the part of a lease that handlers are given. Counted from before the statement was sent it ends before the lease; a hundredth
// more makes up for a timer that is late. The grace is for what they do when their contexts have ended.
func (w *worker) usable(lease time.Duration) time.Duration { return lease - lease/100 - w.config.Grace }
