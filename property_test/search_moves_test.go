package property_test

import "fmt"

// A move is one step that somebody may take.
type move struct {
	name    string
	verb    verb
	worker  int  // of a worker's move
	message int  // of a move about one message
	unspent bool // the attempt is given back
	do      func(*world) bool
}

// A verb is what a move does, as far as the invariants tell moves apart.
type verb int

const (
	verbOther verb = iota
	verbLease
	verbRenew
	verbSettle
	verbRelease
	verbTakeAway
	verbCancel
	verbReplay
	verbResolve
	verbPurge
	verbExpire
)

// byHandle says whether the verb is a worker's, with a handle that may be out of date.
func (v verb) byHandle() bool { return v == verbRenew || v == verbSettle || v == verbRelease }

var workers = [2]string{"worker A", "worker B"}

// moves are all that can happen. A move that cannot happen in a state answers false and must not touch it.
func (u *universe) moves() []move {
	all := []move{
		{name: "a unit of time passes", do: func(w *world) bool { w.now++; return true }},
		{name: "operator: pause everything", do: func(w *world) bool { return len(w.pauses) == 0 && done(func() { w.setPause(everything) }) }},
		{name: "operator: resume", do: func(w *world) bool { return w.resume(everything) }},
		{name: "operator: unblock", do: func(w *world) bool { return w.unblock(w.envelopes[1].orderKey()) > 0 }},
		{name: "janitor: purge delivered", verb: verbPurge, do: purging(delivered)},
		{name: "janitor: purge dead", verb: verbPurge, do: purging(dead)},
		{name: "janitor: purge cancelled", verb: verbPurge, do: purging(cancelled)},
		{name: "janitor: purge expired", verb: verbPurge, do: purging(expired)},
		{name: "janitor: expire", verb: verbExpire, do: func(w *world) bool { return len(w.expire(scope{all: true}, graceUnits)) > 0 }},
	}
	for message := range u.envelopes {
		all = append(all, operatorMoves(message)...)
		for worker, who := range workers {
			all = append(all, u.handlerMoves(worker, who, message)...)
		}
	}
	for worker, who := range workers {
		all = append(all,
			move{name: who + ": crash", do: func(w *world) bool {
				return w.hands[worker] != [2]int64{} && done(func() { w.hands[worker] = [2]int64{} })
			}},
			move{name: who + ": lease successors", verb: verbLease, worker: worker, do: func(w *world) bool { return w.leaseSuccessors(worker) }},
			move{name: "operator: release the leases of " + who, verb: verbTakeAway, do: func(w *world) bool {
				return len(w.takeAway(u.settler.scope, []int64{int64(worker + 1)})) > 0
			}},
		)
	}
	return all
}

func done(f func()) bool { f(); return true }

func purging(outcome state) func(*world) bool {
	return func(w *world) bool {
		for _, id := range w.purge(scope{all: true}, outcome, keepUnits, 1) {
			w.gone[id-1] = true
			return true
		}
		return false
	}
}

// operatorMoves are those of a producer and of an operator about one message. A producer may commit as late as it likes, the message with
// the smaller id after the other.
func operatorMoves(message int) []move {
	id, everybody := int64(message+1), scope{all: true}
	absent := func(w *world) bool { return !w.gone[message] && w.find(id) == nil }
	resolve := func(verdict state) func(*world) bool {
		return func(w *world) bool { return w.resolve(everybody, id, verdict, "", w.block) }
	}
	all := []move{
		{name: "producer: commit", do: func(w *world) bool {
			return absent(w) && done(func() { w.commit(&w.envelopes[message], w.now) })
		}},
		{name: "producer: roll back", do: func(w *world) bool { return absent(w) && done(func() { w.gone[message] = true }) }},
		{name: "operator: cancel", verb: verbCancel, do: func(w *world) bool { return w.cancel(everybody, id, "") }},
		{name: "operator: replay", verb: verbReplay, do: func(w *world) bool { return w.replay(everybody, id, false) }},
		{name: "operator: replay with reset", verb: verbReplay, do: func(w *world) bool { return w.replay(everybody, id, true) }},
		{name: "operator: resolve as delivered", verb: verbResolve, do: resolve(delivered)},
		{name: "operator: resolve as dead", verb: verbResolve, do: resolve(dead)},
		{name: "operator: resolve for a retry", verb: verbResolve, do: resolve(pending)},
	}
	for i := range all {
		all[i].name, all[i].message = fmt.Sprint(all[i].name, " message ", id), message
	}
	return all
}

// handlerMoves are those of a worker about one message: with the handle it has, whether that is current or not.
func (u *universe) handlerMoves(worker int, who string, message int) []move {
	with := func(do func(*world, handle)) func(*world) bool {
		return func(w *world) bool {
			h := handle{id: int64(message + 1), token: w.hands[worker][message]}
			return h.token > 0 && done(func() { do(w, h) })
		}
	}
	all := []move{
		{name: "lease", verb: verbLease, do: func(w *world) bool { return w.leaseOne(worker, message) }},
		{name: "renew", verb: verbRenew, do: with(func(w *world, h handle) { w.renew(h, leaseUnits) })},
		// Of one message the handler has always started and of the other never, which keeps the search within its time.
		{name: "release", verb: verbRelease, unspent: true, do: with(func(w *world, h handle) { w.release(h, message == 1) })},
		{name: "settle as delivered", verb: verbSettle, do: with(func(w *world, h handle) { w.deliver(u.settler, h, "") })},
		{name: "settle as dead", verb: verbSettle, do: with(func(w *world, h handle) { w.bury(u.settler, h, "permanent", "") })},
		{name: "settle as parked", verb: verbSettle, do: with(func(w *world, h handle) { w.park(u.settler, h, "") })},
		{name: "settle for a retry", verb: verbSettle, do: with(func(w *world, h handle) {
			w.retry(u.settler, h, retrying{delay: delayUnits})
		})},
		{name: "settle for an unspent retry", verb: verbSettle, unspent: true, do: with(func(w *world, h handle) {
			w.retry(u.settler, h, retrying{delay: delayUnits, unspent: true, unsure: w.row(message).unsure})
		})},
	}
	for i := range all {
		all[i].name, all[i].worker, all[i].message = fmt.Sprint(who, ": ", all[i].name, " message ", message+1), worker, message
	}
	return all
}

// leasing is the lease of one message by one worker.
func (w *world) leasing(worker, message int) leasing {
	return leasing{
		consumer: "c", target: "t", lanes: []lane{w.envelopes[message].lane}, scope: w.settler.scope, rule: w.settler.rule,
		length: leaseUnits, quota: 1, limit: 1, worker: int64(worker + 1), token: w.row(message).epoch + 1,
	}
}

func (w *world) leaseOne(worker, message int) bool {
	picks := w.lease(w.leasing(worker, message))
	if len(picks) == 0 {
		return false
	}
	if picks[0].fate == granted {
		w.hands[worker][message] = w.row(message).epoch
	}
	return true
}

func (w *world) leaseSuccessors(worker int) bool {
	head := w.head(w.envelopes[1].orderKey())
	if head == 0 {
		return false
	}
	message := int(head - 1)
	for range w.successors(w.leasing(worker, message), w.kinds, []orderKey{w.envelopes[1].orderKey()}) {
		w.hands[worker][message] = w.row(message).epoch
		return true
	}
	return false
}
