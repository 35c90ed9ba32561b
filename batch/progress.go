package batch

import (
	"context"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/bounds"
	"github.com/fencepost-go/fencepost/internal/refusal"
	"github.com/fencepost-go/fencepost/outbox"
)

// A Batch is one job. All instants are the database's, in UTC; one that has not come is zero.
type Batch struct {
	ID       int64  `json:"id,string"`
	Tenant   string `json:"tenant"`
	Consumer string `json:"consumer"`
	Target   string `json:"target"`
	Kind     string `json:"kind"`
	Key      string `json:"key"`
	// Run rises by one each time a completed batch is opened again, by Rerun or by a replay of one of its messages.
	Run       int       `json:"run"`
	CreatedAt time.Time `json:"created_at"`
	// SealedAt is when it had all its rows, or was cancelled.
	SealedAt time.Time `json:"sealed_at,omitzero"`
	// CompletedAt is when it was sealed and its last row had its end.
	CompletedAt time.Time `json:"completed_at,omitzero"`
}

// Sealed says whether the batch has all its rows.
func (b Batch) Sealed() bool { return !b.SealedAt.IsZero() }

// Completed says whether it is sealed and every row has its end.
func (b Batch) Completed() bool { return !b.CompletedAt.IsZero() }

// Progress is how a batch stands: one aggregate over its rows. Total is the sum of all others but Leased and Parked.
type Progress struct {
	Batch
	Total int `json:"total"`
	// Rejected rows never became messages.
	Rejected int `json:"rejected"`
	// Open rows have no end yet.
	Open      int `json:"open"`
	Delivered int `json:"delivered"`
	Dead      int `json:"dead"`
	Cancelled int `json:"cancelled"`
	Expired   int `json:"expired"`
	// Leased and Parked are some of the open ones. Only Show counts them.
	Leased int `json:"leased,omitempty"`
	Parked int `json:"parked,omitempty"`
}

// Progress counts the rows of a batch by fate, in one statement; ErrNotFound when there is no such batch in the scope. Retryable.
func (b *Batches) Progress(ctx context.Context, scope outbox.Scope, id int64) (Progress, error) {
	p, err := b.count(ctx, scope, id, false)
	return p, failed("progress", err)
}

// Show is Progress with Leased and Parked, for which it looks at the message of each open row.
func (b *Batches) Show(ctx context.Context, scope outbox.Scope, id int64) (Progress, error) {
	p, err := b.count(ctx, scope, id, true)
	return p, failed("show", err)
}

func (b *Batches) count(ctx context.Context, scope outbox.Scope, id int64, detail bool) (Progress, error) {
	var found refusal.Problems
	found.Scope(scope)
	if err := found.Refused(ctx); err != nil {
		return Progress{}, err
	}
	rows, err := b.store.CountBatch(ctx, db.CountBatchParams{ID: id, AllTenants: scope.All(), Scope: scope.Names(), Detail: detail})
	if err != nil {
		return Progress{}, err
	}
	if len(rows) == 0 {
		return Progress{}, ErrNotFound
	}
	r := rows[0]
	return Progress{
		Batch: Batch{
			ID: r.ID, Tenant: r.Tenant, Consumer: r.Consumer, Target: r.Target, Kind: r.Kind, Key: r.Key, Run: int(r.Run),
			CreatedAt: r.CreatedAt.UTC(), SealedAt: come(r.SealedAt), CompletedAt: come(r.CompletedAt),
		},
		Total: int(r.Total), Rejected: int(r.Rejected), Open: int(r.Open), Delivered: int(r.Delivered), Dead: int(r.Dead),
		Cancelled: int(r.Cancelled), Expired: int(r.Expired), Leased: int(r.Leased), Parked: int(r.Parked),
	}, nil
}

// come is an instant of the tables, zero if it has not come.
func come(at time.Time) time.Time {
	if at.Year() == 9999 {
		return time.Time{}
	}
	return at.UTC()
}

// Find gives the id of the batch that has a key; ErrNotFound when there is none. Retryable.
func (b *Batches) Find(ctx context.Context, tenant, consumer, key string) (id int64, err error) {
	var found refusal.Problems
	bounds.CheckOptionalName(tenant, bounds.Name, found.On("Tenant"))
	bounds.CheckName(consumer, bounds.Name, found.On("Consumer"))
	bounds.CheckRequired(key, MaxKey, found.On("Key"))
	if err := found.Refused(ctx); err != nil {
		return 0, failed("find", err)
	}
	ids, err := b.store.FindBatch(ctx, db.FindBatchParams{Tenant: tenant, Consumer: consumer, Key: key, AllTenants: true, Scope: []string{}})
	if err == nil && len(ids) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return 0, failed("find", err)
	}
	return ids[0], nil
}
