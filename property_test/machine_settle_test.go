package property_test

import (
	"slices"
	"strings"

	"github.com/fencepost-go/fencepost/outbox"
)

// drawHands draws some messages that workers have or had, no message twice: leases that run, that are over, that another took, and forged
// ones.
func (m *machine) drawHands() []hand {
	if len(m.hands) == 0 {
		return nil
	}
	var hands []hand
	for range number(m.rt, "hands", 1, 2) {
		var pool []hand
		switch number(m.rt, "which", 0, 11) {
		case 0:
			pool = m.handsThat(func(_ *row, h hand) bool { return m.model.current(h.handle()) == nil })
		case 1, 2, 3:
			pool = m.handsThat(func(r *row, h hand) bool { return m.model.current(h.handle()) != nil && r.until <= m.model.now })
		case 4, 5, 6, 7:
			pool = m.handsThat(func(r *row, h hand) bool { return m.runs(r, h) && r.expires <= m.model.now })
		case 8:
			pool = m.handsThat(func(r *row, _ hand) bool { return r != nil && r.state == cancelled })
		}
		if len(pool) == 0 {
			pool = m.handsThat(m.runs)
		}
		if len(pool) == 0 {
			continue
		}
		h := one(m.rt, "hand", pool)
		switch number(m.rt, "forged", 0, 19) {
		case 0, 1:
			// Between two leases of one message the token would not be foreign, only the envelope a mixture that nobody can hold.
			if other := one(m.rt, "other", m.hands); other.ID != h.ID {
				h = foreign(h, other)
			}
		case 2: // as if it were another consumer's
			p := one(m.rt, "place", places)
			h.Consumer, h.Target = p.consumer, p.target
		}
		if !slices.ContainsFunc(hands, func(o hand) bool { return o.ID == h.ID }) {
			hands = append(hands, h)
		}
	}
	return hands
}

// handsThat are the hands that are as wanted; the row is that of the message, nil when it is gone.
func (m *machine) handsThat(wanted func(*row, hand) bool) []hand {
	var hands []hand
	for _, h := range m.hands {
		if wanted(m.model.find(h.ID), h) {
			hands = append(hands, h)
		}
	}
	return hands
}

// runs says whether a hand is a lease that is not over.
func (m *machine) runs(_ *row, h hand) bool {
	r := m.model.current(h.handle())
	return r != nil && r.until > m.model.now
}

// foreign is a message with the token of another.
func foreign(h, other hand) hand {
	h.ID, h.Tenant, h.Consumer, h.Target, h.Kind, h.Key = other.ID, other.Tenant, other.Consumer, other.Target, other.Kind, other.Key
	h.OrderKey, h.Attempt, h.Epoch = other.OrderKey, other.Attempt, other.Epoch
	return h
}

func messagesOf(hands []hand) []outbox.Message {
	messages := make([]outbox.Message, len(hands))
	for i, h := range hands {
		messages[i] = h.Message
	}
	return messages
}

// said is one settle as it was sent.
type said struct {
	hand
	saying
	client
	theirs outbox.Scope
	ours   scope
}

// settle says of some messages what came of them.
func (m *machine) settle() {
	hands, c := m.drawHands(), m.drawClient()
	if len(hands) == 0 {
		return
	}
	if number(m.rt, "own", 0, 7) > 0 { // mostly the consumer that the first belongs to
		for _, o := range m.clients {
			if o.consumer == hands[0].Consumer && o.target == hands[0].Target {
				c = o
			}
		}
	}
	theirs, ours := m.drawScope()
	var all []said
	for _, h := range hands {
		say := m.drawSaying()
		if r := m.model.current(h.handle()); r != nil && number(m.rt, "telling", 0, 3) > 0 {
			switch {
			case r.until <= m.model.now:
				say.word = "delivered" // which may count (Policy.AcceptLate)
			case r.expires <= m.model.now:
				say.word = one(m.rt, "outcome", []string{"failed", "unknown", "unavailable", "snoozed"}) // too old to be tried again
				say.reconciles = say.reconciles || say.word == "unknown"                                 // which is parked otherwise
			}
		}
		all = append(all, said{h, say, c, theirs, ours})
	}
	m.settleMany(all)
	m.said = append(m.said, all...)
	m.said = m.said[max(0, len(m.said)-8):]
}

// settleAgain sends a settle once more, as after an answer that was lost.
func (m *machine) settleAgain() {
	if len(m.said) > 0 {
		m.settleMany([]said{one(m.rt, "said", m.said)})
	}
}

// settleMany settles all in one call.
func (m *machine) settleMany(all []said) {
	settlings := make([]outbox.Settling, len(all))
	for i := range all {
		s := &all[i]
		settlings[i] = outbox.Settling{Message: s.Message, Outcome: s.outcome(), Reconciles: s.reconciles, Failures: s.failures}
		if s.word == "snoozed" {
			s.text = plain(settlings[i].Outcome.Reason())
		}
	}
	results, err := m.box.SettleMany(m.ctx, all[0].Consumer, all[0].theirs, settlings)
	m.must(err)
	equal(m, "number of results", len(results), len(all))
	for i, s := range all {
		late := !m.runs(nil, s.hand)
		want := m.settled(s.client, s.ours, s.hand, s.saying)
		if want.Cause == outbox.CauseAge {
			// The words are the library's, but the last error is in them; sync finds them in the row.
			if !strings.Contains(results[i].Reason, s.text.short) {
				m.rt.Fatalf("reason %q does not tell the last error", results[i].Reason)
			}
			want.Reason = results[i].Reason
			m.model.find(s.ID).reason = want.Reason
		}
		equal(m, "result", results[i], want)
		word := string(want.Status)
		switch {
		case want.Recorded:
			word = "recorded before"
		case want.Status == outbox.DeadLettered:
			word = "dead: " + string(want.Cause)
		case want.Status == outbox.Acknowledged && s.rule.drop:
			word = "dropped"
		case want.Status == outbox.Acknowledged && late:
			word = "acknowledged late"
		}
		m.count("settle "+s.word, word)
	}
}

func plain(s string) text { return text{s, s, s} }
