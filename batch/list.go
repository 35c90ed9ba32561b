package batch

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/bounds"
	"github.com/fencepost-go/fencepost/internal/refusal"
	"github.com/fencepost-go/fencepost/outbox"
)

const longestPage = 1_000

// A ListQuery asks for one page of batches.
type ListQuery struct {
	// Consumer, if not empty, is the only one.
	Consumer string
	// Unfinished leaves out what is completed.
	Unfinished bool
	// Limit of the page. More than 1,000 is 1,000; zero or less finds nothing and sends no query.
	Limit int
	// Before is where the page before ended (Page.Next); zero for the first.
	Before int64
}

// A Page is part of the list of batches, the newest first.
type Page struct {
	Batches []Batch
	// Next goes on from here, while More says that there may be further ones. A page may be short, even empty, and still have More: what one
	// statement looks at is bounded.
	Next int64
	More bool
}

// List pages through the batches. One statement. Retryable.
func (b *Batches) List(ctx context.Context, scope outbox.Scope, query ListQuery) (Page, error) {
	var found refusal.Problems
	found.Scope(scope)
	bounds.CheckText(query.Consumer, bounds.Name, found.On("Consumer"))
	if err := found.Refused(ctx); err != nil {
		return Page{}, failed("list", err)
	}
	limit := min(query.Limit, longestPage)
	if limit <= 0 {
		return Page{}, nil
	}
	rows, err := b.store.ListBatches(ctx, db.ListBatchesParams{
		AllTenants: scope.All(), Scope: scope.Names(), Consumer: query.Consumer, Unfinished: query.Unfinished,
		BeforeID: cmp.Or(query.Before, math.MaxInt64), Examine: int32(max(longestPage, 10*limit)), MaxRows: int32(limit),
	})
	var page Page
	for _, r := range rows {
		page.Next = r.ID
		if r.Matched {
			page.Batches = append(page.Batches, Batch{
				ID: r.ID, Tenant: r.Tenant, Consumer: r.Consumer, Target: r.Target, Kind: r.Kind, Key: r.Key, Run: int(r.Run),
				CreatedAt: r.CreatedAt.UTC(), SealedAt: come(r.SealedAt), CompletedAt: come(r.CompletedAt),
			})
		}
	}
	page.More = len(page.Batches) < len(rows) || len(page.Batches) == limit
	return page, failed("list", err)
}

// A Fate is what became of a row.
type Fate string

const (
	FateOpen      Fate = "open"
	FateDelivered Fate = "delivered"
	FateDead      Fate = "dead"
	FateCancelled Fate = "cancelled"
	FateExpired   Fate = "expired"
	// FateRejected: it was not good, and never became a message.
	FateRejected Fate = "rejected"
)

// Fates are those there are, as the database numbers them.
var Fates = []Fate{FateOpen, FateDelivered, FateDead, FateCancelled, FateExpired, FateRejected}

// A RowsQuery asks for one page of a batch's rows.
type RowsQuery struct {
	// Fate, if not empty, is the only one.
	Fate Fate
	// Limit of the page. More than 1,000 is 1,000; zero or less finds nothing and sends no query.
	Limit int
	// After is the number of the last row of the page before.
	After int
}

// A RowSummary is how a row stands, without its content. Of a message that was purged only the fate is known.
type RowSummary struct {
	Number int
	Fate   Fate
	// MessageID is 0 for a rejected row.
	MessageID int64
	Key       string
	// State of an open row's message: pending, leased or parked.
	State   outbox.State
	Attempt int
	// Cause of a dead row, and Reason of an end, of a rejection, or of the last failure.
	Cause  outbox.Cause
	Reason string
	// Result is the identifier of a delivered row.
	Result    string
	SettledAt time.Time
}

// ListRows pages through the rows of a batch, by number; a page shorter than its limit is the last. One statement. Retryable.
func (b *Batches) ListRows(ctx context.Context, scope outbox.Scope, id int64, query RowsQuery) ([]RowSummary, error) {
	var found refusal.Problems
	found.Scope(scope)
	fate := int16(-1)
	for i, known := range Fates {
		if query.Fate == known {
			fate = int16(i)
		}
	}
	if query.Fate != "" && fate < 0 {
		found.Add("Fate", "is none")
	}
	found.Between("After", query.After, 0, MaxRows)
	if err := found.Refused(ctx); err != nil {
		return nil, failed("list rows", err)
	}
	limit := min(query.Limit, longestPage)
	if limit <= 0 {
		return nil, nil
	}
	rows, err := b.store.ListBatchRows(ctx, db.ListBatchRowsParams{
		BatchID: id, AllTenants: scope.All(), Scope: scope.Names(), Fate: fate, AfterNumber: int32(query.After), MaxRows: int32(limit),
	})
	all := make([]RowSummary, len(rows))
	for i, r := range rows {
		all[i] = RowSummary{
			Number: int(r.Number), Fate: Fates[r.Fate], MessageID: r.MessageID, Key: r.Key, Attempt: int(r.Attempt),
			Cause: outbox.Cause(r.Cause), Reason: r.Reason, Result: r.Result, SettledAt: r.SettledAt.UTC(),
		}
		if all[i].Fate == FateOpen {
			all[i].State = outbox.State(r.State)
		}
	}
	return all, failed("list rows", err)
}
