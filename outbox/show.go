package outbox

import (
	"context"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/content"
)

// Details are all that is known of a message, its content included: think before showing that to somebody.
type Details struct {
	Summary
	Priority int16
	// MaxAge is NoMaxAge when there is none.
	MaxAge time.Duration
	// BornAt, of an open message, is what its age counts from: the later of its creation and its first due time, or its last replay. ExpiresAt
	// is zero when there is no age limit.
	BornAt, ExpiresAt time.Time
	// AttemptLimit, of an open message, is how many attempts it gets if its consumer's policy allows fewer, so that a replay always leads to
	// one; 0 is the policy's.
	AttemptLimit   int
	SourcePosition int64
	SourceEventID  string
	Digest         []byte
	Metadata       map[string]string
	Payload        []byte
	// Result is what a handler recorded with a delivery.
	Result string
	// Worker is the name of who holds the message or settled it; empty for operators, the janitor and workers without a record.
	Worker string
}

// Show reads one message. ErrNotFound when it is not in the scope. Retryable.
func (b *Box) Show(ctx context.Context, scope Scope, id int64) (Details, error) {
	var found problems
	scope.check(&found)
	if err := found.refused(ctx); err != nil {
		return Details{}, failed("show", err)
	}
	rows, err := b.store.ShowMessage(ctx, db.ShowMessageParams{ID: id, AllTenants: scope.all, Scope: scope.Names()})
	if err != nil {
		return Details{}, failed("show", err)
	}
	if len(rows) == 0 {
		return Details{}, failed("show", ErrNotFound)
	}
	return b.newDetails(rows[0]), nil
}

func (b *Box) newDetails(row db.ShowMessageRow) Details {
	details := Details{
		Summary: Summary{
			ID: row.ID, Tenant: row.Tenant, Consumer: row.Consumer, Target: row.Target, Kind: row.Kind, Key: row.Key, OrderKey: row.OrderKey,
			State: State(row.State), Attempt: int(row.Attempt), Epoch: row.Epoch, Replays: int(row.Replays), ReplayedAt: row.ReplayedAt.UTC(),
			Cause: Cause(row.Cause), Reason: row.Reason, CreatedAt: row.CreatedAt.UTC(), DueAt: row.DueAt.UTC(),
			LeasedUntil: row.LeasedUntil.UTC(), SettledAt: row.SettledAt.UTC(),
		},
		Priority:       int16(row.Priority),
		MaxAge:         time.Duration(row.MaxAge) * time.Microsecond,
		BornAt:         row.BornAt.UTC(),
		ExpiresAt:      row.ExpiresAt.UTC(),
		AttemptLimit:   int(row.AttemptLimit),
		SourcePosition: row.SourcePosition,
		SourceEventID:  row.SourceEventID,
		Digest:         row.Digest,
		Metadata:       b.metadataOf(row.ID, row.Metadata),
		Payload:        content.Bytes(row.Payload),
		Result:         row.Result,
		Worker:         row.Worker,
	}
	if row.MaxAge == 0 {
		details.MaxAge = NoMaxAge
	}
	if !details.ExpiresAt.Before(forever) {
		details.ExpiresAt = time.Time{}
	}
	return details
}
