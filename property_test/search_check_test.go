package property_test

import "fmt"

// check looks at one state.
func (w *world) check(scratch *world) string {
	for i := range w.rows {
		r := &w.rows[i]
		switch {
		case r.held() && r.state != pending:
			return fmt.Sprintf("I6, I16: message %d is %v and leased", r.id, r.state)
		case r.state.open() && r.attempt > max(maxAttempts, r.limit):
			return fmt.Sprintf("I11: message %d had %d attempts", r.id, r.attempt)
		case r.attempt < 0 || r.epoch == 0 && r.attempt > 0:
			return fmt.Sprintf("I11: message %d counts %d attempts", r.id, r.attempt)
		case r.until > w.now+leaseUnits:
			return fmt.Sprintf("I15: the lease of message %d is longer than any", r.id)
		}
		a, b := w.hands[0][r.id-1], w.hands[1][r.id-1]
		if a == b && a == r.epoch && r.held() {
			return fmt.Sprintf("I2, I4: both workers hold message %d", r.id)
		}
	}
	if w.live("o") > 1 {
		return "I21: two messages of one order key are performed at once"
	}
	if problem := w.checkHolds(); problem != "" {
		return problem
	}
	return w.checkProgress(scratch)
}

// checkHolds: what holds an order key is a message that is leased, or was and crashed, or is dead and blocks it.
func (w *world) checkHolds() string {
	for _, h := range w.holds {
		switch r := w.find(h.id); {
		case r == nil:
			return fmt.Sprintf("I21: message %d is gone and holds its order key", h.id)
		case h.blocked && r.state != dead:
			return fmt.Sprintf("I21: message %d is %v and blocks its order key", h.id, r.state)
		case !h.blocked && (!r.held() || max(r.until, w.now) != max(h.until, w.now)):
			return fmt.Sprintf("I21: message %d holds its order key longer or shorter than its lease", h.id)
		}
	}
	for i := range w.rows {
		if r := &w.rows[i]; r.order != "" && r.held() && r.until > w.now {
			if h := w.holdOf(r.orderKey()); h == nil || h.id != r.id || h.blocked {
				return fmt.Sprintf("I21: message %d is leased without its order key", r.id)
			}
		}
	}
	return ""
}

// checkProgress: once every lease is over and every delay past, no head of a key that is not blocked waits for anything but a lease.
func (w *world) checkProgress(later *world) string {
	later.copy(w)
	later.now += leaseUnits + delayUnits
	later.resume(everything)
	for i := range later.rows {
		r := later.rows[i]
		if r.state != pending || r.order != "" && later.head(r.orderKey()) != r.id {
			continue
		}
		if h := later.holdOf(r.orderKey()); r.order != "" && h != nil && h.blocked {
			continue
		}
		if picks := later.lease(later.leasing(0, int(r.id-1))); len(picks) == 0 || picks[0].fate == refused {
			return fmt.Sprintf("I8: message %d can never be leased again", r.id)
		}
	}
	return ""
}

// check looks at one step: what it did to each message, and whether it was the move's to do.
func (mv *move) check(before, after *world) string {
	for i := range before.envelopes {
		a, b := before.row(i), after.row(i)
		if a == b {
			continue
		}
		if problem := mv.checkMessage(before, after, a, b, i); problem != "" {
			return problem
		}
	}
	return mv.checkHandle(before, after)
}

// checkHandle: a handle that is out of date changes nothing (I3). Whether it is, is told here by epochs alone.
func (mv *move) checkHandle(before, after *world) string {
	r := before.row(mv.message)
	if stale := !r.held() || r.epoch != before.hands[mv.worker][mv.message]; mv.verb.byHandle() && stale && !before.same(after) {
		return "I3: a handle that is out of date changed something"
	}
	return ""
}

func (mv *move) checkMessage(before, after *world, a, b row, i int) string {
	switch {
	case a.envelope == nil:
		return "" // committed
	case b.envelope == nil:
		if mv.verb != verbPurge || a.state.open() || a.settled >= before.now-keepUnits {
			return fmt.Sprintf("I19: message %d is gone, which was %v", i+1, a.state)
		}
		return ""
	case !a.state.open():
		return mv.checkTerminal(a, b)
	case b.epoch != a.epoch:
		return mv.checkGrant(before, a, b)
	case !b.state.open():
		return mv.checkEnd(before, after, a, b)
	default:
		return mv.checkOpen(before, a, b)
	}
}

// checkTerminal: only a replay leaves a terminal state, and only that of the dead (I6). The epoch goes on (I4, I17).
func (mv *move) checkTerminal(a, b row) string {
	switch {
	case mv.verb != verbReplay || a.state != dead:
		return fmt.Sprintf("I6: message %d was %v and changed", a.id, a.state)
	case b.state != pending || b.held() || b.epoch != a.epoch || b.replays != a.replays+1 || b.spent(maxAttempts):
		return fmt.Sprintf("I17: message %d came back otherwise than a replay may bring it", a.id)
	}
	return ""
}

// checkGrant: a lease starts only what may run.
func (mv *move) checkGrant(before *world, a, b row) string {
	switch {
	case mv.verb != verbLease || b.epoch != a.epoch+1 || b.attempt != a.attempt+1:
		return fmt.Sprintf("I4, I11: message %d was leased, and not by one", a.id)
	case a.state != pending:
		return fmt.Sprintf("I16: message %d was %v and leased", a.id, a.state)
	case a.held() && a.until > before.now:
		return fmt.Sprintf("I2: message %d was leased over a live lease", a.id)
	case a.due > before.now:
		return fmt.Sprintf("I13: message %d was leased before it was due", a.id)
	case a.expires <= before.now:
		return fmt.Sprintf("I14: message %d was too old and leased", a.id)
	case a.spent(maxAttempts):
		return fmt.Sprintf("I12: message %d was spent and leased", a.id)
	case len(before.pauses) > 0:
		return fmt.Sprintf("message %d was leased under a pause", a.id)
	case a.held() && !b.unsure:
		return fmt.Sprintf("I16: message %d lost a lease and is not unsure", a.id)
	case a.order != "":
		return before.checkTurn(a)
	}
	return ""
}

// checkTurn: of an order key the first committed message that is open runs, alone, and never past a dead one that blocks (I21).
func (w *world) checkTurn(r row) string {
	for i := range w.rows {
		o := &w.rows[i]
		if o.order != r.order || o.id == r.id {
			continue
		}
		if o.id < r.id && o.state.open() || o.held() && o.until > w.now {
			return fmt.Sprintf("I21: message %d was leased before or beside message %d", r.id, o.id)
		}
	}
	if h := w.holdOf(r.orderKey()); h != nil && h.blocked {
		return fmt.Sprintf("I21: message %d was leased past message %d, which blocks", r.id, h.id)
	}
	return ""
}

// checkEnd: who may end a message, and how it ends.
func (mv *move) checkEnd(before, after *world, a, b row) string {
	known := a.held() && before.hands[mv.worker][a.id-1] == a.epoch
	live := a.until > before.now
	late := before.late && b.state == delivered
	switch mv.verb {
	case verbSettle:
		if !known || !live && !late {
			return fmt.Sprintf("I3, I5: message %d was settled by who does not hold it", a.id)
		}
	case verbLease:
		if b.state != dead || live || !a.spent(maxAttempts) && a.expires > before.now {
			return fmt.Sprintf("I12, I14: message %d was buried without need", a.id)
		}
	case verbCancel:
		if b.state != cancelled {
			return fmt.Sprintf("I18: message %d was cancelled and is %v", a.id, b.state)
		}
	case verbResolve:
		if a.state != parked {
			return fmt.Sprintf("I16: message %d was %v and resolved", a.id, a.state)
		}
	case verbExpire:
		if b.state != expired || a.epoch > 0 || a.expires > before.now-graceUnits {
			return fmt.Sprintf("I14: message %d expired without need", a.id)
		}
	default:
		return fmt.Sprintf("message %d ended by no move that may", a.id)
	}
	return mv.checkBlock(after, b)
}

// checkBlock: under the policy a dead message leaves its key blocked. One that a lease buries waits until it can; another that dies while
// the key is somebody's leaves it there.
func (mv *move) checkBlock(after *world, r row) string {
	if r.state != dead || r.order == "" || !after.block {
		return ""
	}
	h := after.holdOf(r.orderKey())
	blocks := h != nil && h.blocked && h.id == r.id
	others := h != nil && h.id != r.id && (h.blocked || h.until > after.now)
	if blocks || others && mv.verb != verbLease {
		return ""
	}
	return fmt.Sprintf("I21: message %d is dead and does not block its order key", r.id)
}

// checkOpen: a message that stays open, and was not leased.
func (mv *move) checkOpen(before *world, a, b row) string {
	known := a.held() && before.hands[mv.worker][a.id-1] == a.epoch
	switch mv.verb {
	case verbRenew:
		if !known || a.until <= before.now || b.until < a.until || b.attempt != a.attempt {
			return fmt.Sprintf("I3, I15: message %d was renewed otherwise than a lease may be", a.id)
		}
	case verbSettle, verbRelease, verbTakeAway:
		if b.held() || b.attempt != a.attempt-int(bit(mv.unspent)) {
			return fmt.Sprintf("I11: message %d was let go and is not free, or counts wrong", a.id)
		}
		if a.unsure && !b.unsure && mv.verb != verbSettle {
			return fmt.Sprintf("I16: message %d was unsure, and nobody said what became of it", a.id)
		}
	case verbResolve:
		if a.state != parked || b.state != pending || b.spent(maxAttempts) {
			return fmt.Sprintf("I16: message %d was resolved otherwise than for a retry", a.id)
		}
	default:
		return fmt.Sprintf("message %d changed by no move that may", a.id)
	}
	return ""
}
