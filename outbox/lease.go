package outbox

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// A LeaseRequest asks for messages of one consumer.
type LeaseRequest struct {
	// Worker is the id that RegisterWorker gave; 0 for a worker without a record.
	Worker int64
	// As is who leases, verified by Identify; nil where the box requires no credential.
	As *Identity
	// Kinds the worker handles; none leases nothing and sends no query.
	Kinds []string
	Scope Scope
	// Limit is the number of messages at most. More than 1,000 is 1,000; zero or less leases nothing and sends no query.
	Limit int
	// For is the length of the leases. Less than a millisecond is a millisecond; more than db.LongestLease is refused.
	For time.Duration
}

const mostLanes = 100_000 // that one Lease looks at

// Lease leases due messages for people who run their own loop: DueLanes and then LeaseLanes from the front of each lane, the highest
// priority and then the longest waiting first among 100,000 lanes. It keeps no marks and no turns between lanes; a sender does. After an
// error the messages returned are leased nevertheless.
func (b *Box) Lease(ctx context.Context, consumer *Consumer, request LeaseRequest) ([]Message, error) {
	plan := LeasePlan{
		Consumer: consumer, Worker: request.Worker, As: request.As, Scope: request.Scope, For: request.For,
		Quota: request.Limit, Limit: min(request.Limit, maxBatch),
	}
	var found problems
	plan.check(&found)
	found.kinds(request.Kinds)
	if err := found.refused(ctx); err != nil {
		return nil, failed("lease", err)
	}
	if err := b.admits(request.As, consumer, request.Scope); err != nil || request.Limit <= 0 {
		return nil, failed("lease", err)
	}
	lanes, err := b.DueLanes(ctx, LaneQuery{Consumer: consumer, Kinds: request.Kinds, Scope: request.Scope, Limit: mostLanes})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(lanes, func(a, b DueLane) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Since.Compare(b.Since))
	})
	var messages []Message
	for chunk := range slices.Chunk(lanes, maxBatch) {
		plan.Lanes = nil
		for _, lane := range chunk {
			plan.Lanes = append(plan.Lanes, PlannedLane{Lane: lane.Lane})
		}
		for len(plan.Lanes) > 0 && plan.Limit > 0 {
			pass, err := b.LeaseLanes(ctx, plan)
			if err != nil {
				return messages, err
			}
			messages = append(messages, pass.Messages...)
			plan.Limit -= len(pass.Messages)
			plan.Lanes = onward(plan.Lanes, pass.Lanes)
		}
	}
	return messages, nil
}

// onward are the lanes of a pass that may hold more, from where it stopped: what was buried or refused takes room but is no message.
func onward(lanes []PlannedLane, progress []LaneProgress) []PlannedLane {
	var on []PlannedLane
	for i, p := range progress {
		if !p.Drained {
			on = append(on, PlannedLane{Lane: lanes[i].Lane, After: p.Examined})
		}
	}
	return on
}
