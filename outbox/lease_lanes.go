package outbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/content"
)

// A LeasePlan says which lanes to lease from, in which order, and how much.
type LeasePlan struct {
	Consumer *Consumer
	// Worker is the id that RegisterWorker gave; 0 for a worker without a record.
	Worker int64
	// As is who leases, verified by Identify; nil where the box requires no credential.
	As    *Identity
	Scope Scope
	// For is the length of the leases. Less than a millisecond is a millisecond; more than db.LongestLease is refused.
	For time.Duration
	// Lanes are served in this order, at most 1,000, none twice. None leases nothing and sends no query.
	Lanes []PlannedLane
	// Quota bounds what one lane gets, Limit what all get. More than 1,000 is 1,000; zero or less leases nothing and sends no query.
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
	// Now is the database's clock as this pass took it; zero when no query was sent.
	Now time.Time
}

// A Burial is a message that died. One buried at a lease was not leased again: its Attempt and Epoch are those of its last lease.
type Burial struct {
	Message Message
	Cause   Cause
	Reason  string
}

// LeaseLanes leases due messages, each lane from its mark on, in one statement; what may not run again is settled as dead by it. An error
// leaves it unknown whether messages were leased: those are leased again when their leases are over. Retryable.
func (b *Box) LeaseLanes(ctx context.Context, plan LeasePlan) (Pass, error) {
	var found problems
	length := plan.check(&found)
	if err := found.refused(ctx); err != nil {
		return Pass{}, failed("lease", err)
	}
	if err := b.admits(plan.As, plan.Consumer, plan.Scope); err != nil {
		return Pass{}, failed("lease", err)
	}
	quota, limit := min(plan.Quota, maxBatch), min(plan.Limit, maxBatch)
	if quota <= 0 || limit <= 0 || len(plan.Lanes) == 0 {
		return Pass{Lanes: laneProgress(plan.Lanes, nil, 0, 0)}, nil
	}
	token := newToken()
	params := db.LeaseDueParams{
		AllTenants:   plan.Scope.all,
		Scope:        plan.Scope.Names(),
		Consumer:     plan.Consumer.name,
		Target:       plan.Consumer.target,
		Lease:        length,
		Examine:      int32(examined(quota)),
		LongestLease: micros(db.LongestLease),
		Quota:        int32(quota),
		MaxRows:      int32(limit),
		BlockOnDead:  plan.Consumer.policy.BlockOnDead,
		Token:        token[:],
		Worker:       plan.Worker,
	}
	for _, lane := range plan.Lanes {
		params.Kinds = append(params.Kinds, lane.Kind)
		params.Tenants = append(params.Tenants, lane.Tenant)
		params.Priorities = append(params.Priorities, lane.Priority)
		params.AfterDues = append(params.AfterDues, stored(lane.After.Due))
		params.AfterIds = append(params.AfterIds, lane.After.ID)
		params.AttemptLimits = append(params.AttemptLimits, int32(plan.Consumer.policy.MaxAttempts))
		params.MaxAges = append(params.MaxAges, plan.Consumer.maxAge(lane.Kind))
	}
	rows, err := b.store.LeaseDue(ctx, params)
	if err != nil {
		return Pass{}, failed("lease", err)
	}
	pass := b.newPass(plan, rows, token)
	pass.Lanes = laneProgress(plan.Lanes, rows, quota, limit)
	b.observer.Leased(ctx, pass.Messages)
	for _, burial := range pass.Buried {
		b.reportDead(ctx, burial)
	}
	return pass, nil
}

func (b *Box) newPass(plan LeasePlan, rows []db.LeaseDueRow, token [16]byte) Pass {
	slices.SortFunc(rows, func(a, b db.LeaseDueRow) int {
		return cmp.Or(cmp.Compare(a.LaneNo, b.LaneNo), a.DueAt.Compare(b.DueAt), cmp.Compare(a.ID, b.ID))
	})
	pass := Pass{Messages: make([]Message, 0, len(rows))}
	for _, row := range rows {
		switch row.Fate {
		case db.FateGranted:
			pass.Messages = append(pass.Messages, b.newMessage(plan.Consumer, leasedRow(row), token))
		case db.FateBuried:
			message := b.newMessage(plan.Consumer, leasedRow(row), [16]byte(db.FreeToken))
			message.LeasedUntil = time.Time{}
			pass.Buried = append(pass.Buried, Burial{Message: message, Cause: Cause(row.Cause), Reason: row.Reason})
		case db.FateClosing:
			pass.Now = row.DueAt.UTC()
		}
	}
	return pass
}

// check refuses a bad plan and gives the length of its leases in microseconds.
func (plan LeasePlan) check(found *problems) int64 {
	found.consumer(plan.Consumer)
	plan.Scope.check(found)
	if len(plan.Lanes) > maxBatch {
		found.addf("Lanes", "has %d entries, at most %d are allowed", len(plan.Lanes), maxBatch)
	}
	seen := make(map[Lane]bool, len(plan.Lanes))
	for _, lane := range plan.Lanes {
		found.name("Kind", lane.Kind, maxName)
		found.optionalName("Tenant", lane.Tenant, maxName)
		if seen[lane.Lane] {
			found.addf("Lanes", "has kind %q, tenant %q, priority %d twice", lane.Kind, lane.Tenant, lane.Priority)
		}
		seen[lane.Lane] = true
	}
	return found.lease("For", plan.For)
}

// newToken is fresh for each lease call. It is random rather than counted, so that a standby promoted late cannot repeat one.
func newToken() (token [16]byte) {
	_, _ = rand.Read(token[:]) // never fails: it ends the program instead
	return token
}

// newMessage turns a leased row into what a worker sees.
func (b *Box) newMessage(c *Consumer, row db.LeaseSuccessorsRow, token [16]byte) Message {
	return Message{
		ID:             row.ID,
		Tenant:         row.Tenant,
		Consumer:       c.name,
		Target:         c.target,
		Kind:           row.Kind,
		Key:            row.Key,
		OrderKey:       row.OrderKey,
		Priority:       int16(row.Priority),
		Payload:        content.Bytes(row.Payload),
		Metadata:       b.metadataOf(row.ID, row.Metadata),
		SourcePosition: row.SourcePosition,
		SourceEventID:  row.SourceEventID,
		CreatedAt:      row.CreatedAt.UTC(),
		DueAt:          row.DueAt.UTC(),
		Attempt:        int(row.Attempt),
		Epoch:          row.Epoch,
		Replays:        int(row.Replays),
		Unsure:         row.Unsure,
		LeasedUntil:    row.LeasedUntil.UTC(),
		token:          token,
	}
}

// leasedRow is the part that both leasing statements return.
func leasedRow(row db.LeaseDueRow) db.LeaseSuccessorsRow {
	return db.LeaseSuccessorsRow{
		DueAt:          row.DueAt,
		ID:             row.ID,
		Tenant:         row.Tenant,
		Kind:           row.Kind,
		Key:            row.Key,
		OrderKey:       row.OrderKey,
		Priority:       row.Priority,
		SourcePosition: row.SourcePosition,
		SourceEventID:  row.SourceEventID,
		CreatedAt:      row.CreatedAt,
		Metadata:       row.Metadata,
		Payload:        row.Payload,
		Attempt:        row.Attempt,
		Epoch:          row.Epoch,
		Replays:        row.Replays,
		Unsure:         row.Unsure,
		LeasedUntil:    row.LeasedUntil,
	}
}
