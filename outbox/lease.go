package outbox

import (
	"context"
	"time"
)

// A LeasePlan says which lanes to lease from, in which order, and how much.
type LeasePlan struct {
	Consumer *Consumer
	// Worker is the id that RegisterWorker gave; 0 for a worker without a record.
	Worker int64
	Scope  Scope
	// For is the length of the leases. Less than a millisecond is a millisecond; more than db.LongestLease is refused.
	For time.Duration
	// Lanes are served in this order, at most 1,000, none twice. None leases nothing and sends no query.
	Lanes []PlannedLane
	// Quota bounds what one lane gets, Limit what all get. At most 1,000; zero or less leases nothing and sends no query.
	Quota, Limit int
}

// A PlannedLane is a lane with the mark up to which it need not be examined.
type PlannedLane struct {
	Lane
	After Mark
}

// A Pass is what one LeaseLanes did.
type Pass struct {
	// Messages are leased now, in the order of the planned lanes and within a lane in the order of due time and id.
	Messages []Message
	// Buried were settled as dead instead of being leased.
	Buried []Burial
	// Lanes has one entry for each planned lane, in order.
	Lanes []LaneProgress
	// Now is the database's clock as this pass took it.
	Now time.Time
}

// A Burial is a message that died. Of one buried at a lease, Attempt and Epoch are those of its last lease, and it has no lease itself.
type Burial struct {
	Message Message
	Cause   Cause
	Reason  string
}

// LaneProgress says how far a pass examined one lane.
type LaneProgress struct {
	// Examined is the mark to hand to the next pass.
	Examined Mark
	// Picked counts messages leased, buried or refused by their order key.
	Picked int
	// Drained: everything that was due is examined; only a rescan from the front finds more before something new comes due.
	Drained bool
	// Reached: the pass came to this lane before it had its limit.
	Reached bool
	// Bound: the pass stopped after the entries it may examine of one lane without filling the quota. Go on there at once.
	Bound bool
}

// LeaseLanes leases due messages, each lane from its mark on. One statement; what may not run again is settled as dead by it. An error
// leaves it unknown whether messages were leased: those are leased again when their leases are over. Retryable.
func (b *Box) LeaseLanes(ctx context.Context, plan LeasePlan) (Pass, error) {
	return Pass{}, nil
}

// A SuccessorPlan asks for the next messages of order keys that were just settled.
type SuccessorPlan struct {
	Consumer *Consumer
	// Worker, Scope and For are as in LeasePlan.
	Worker int64
	Scope  Scope
	For    time.Duration
	// Kinds the worker handles; none leases nothing and sends no query.
	Kinds []string
	// Settled are the messages just settled; those without an order key do not count.
	Settled []Message
}

// LeaseSuccessors leases the next message of each order key in Settled, if it is due and free. One statement for each 1,000 keys. An error
// leaves it unknown whether messages were leased, as with LeaseLanes. Retryable.
func (b *Box) LeaseSuccessors(ctx context.Context, plan SuccessorPlan) ([]Message, error) {
	return nil, nil
}
