package pgxdb_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/pgxdb"
)

// Names of the width that real ones have: they decide how many rows a page holds.
const (
	consumer = "notification-sender"
	target   = "smtp.eu-central-1"
	kind     = "email.order-confirmation"
)

var tenants = []string{"customer-0001", "customer-0002", "customer-0003"}

// enqueueDue stores n messages of the consumer that are due at once, in turn for each tenant.
func enqueueDue(t *testing.T, pool *pgxpool.Pool, store *pgxdb.Store, n int) {
	t.Helper()
	for left := n; left > 0; left -= 1000 {
		p := enqueueParams(min(left, 1000), "")
		for i := range p.Keys {
			p.Consumers[i], p.Targets[i], p.Kinds[i], p.Tenants[i] = consumer, target, kind, tenants[i%len(tenants)]
		}
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			_, err := store.Enqueue(t.Context(), pgxdb.Tx(tx), p)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A held batch are messages under one lease.
type heldBatch struct {
	ids    []int64
	tokens []byte
}

// leaseBatch leases at most n messages of the consumer; of none it says so with no ids.
func leaseBatch(ctx context.Context, store *pgxdb.Store, worker int64, n int) (heldBatch, error) {
	token := make([]byte, 16)
	rand.Read(token)
	lanes := len(tenants)
	rows, err := store.LeaseDue(ctx, db.LeaseDueParams{
		Consumer:      consumer,
		Target:        target,
		Kinds:         slices.Repeat([]string{kind}, lanes),
		Tenants:       tenants,
		Priorities:    make([]int16, lanes),
		AfterDues:     slices.Repeat([]time.Time{db.Never}, lanes),
		AfterIds:      make([]int64, lanes),
		AttemptLimits: slices.Repeat([]int32{12}, lanes),
		MaxAges:       make([]int64, lanes),
		AllTenants:    true,
		Lease:         time.Minute.Microseconds(),
		LongestLease:  db.LongestLease.Microseconds(),
		Examine:       1000,
		Quota:         int32(n),
		MaxRows:       int32(n),
		Token:         token,
		Worker:        worker,
	})
	var held heldBatch
	for _, row := range rows {
		if row.Fate == db.FateGranted {
			held.ids = append(held.ids, row.ID)
			held.tokens = append(held.tokens, token...)
		}
	}
	slices.Sort(held.ids)
	return held, err
}

// renew extends the leases of the whole batch.
func (h heldBatch) renew(ctx context.Context, store *pgxdb.Store) error {
	renewed, err := store.Renew(ctx, db.RenewParams{Ids: h.ids, Tokens: h.tokens, Lease: time.Minute.Microseconds(), LongestLease: db.LongestLease.Microseconds()})
	if err == nil && len(renewed) != len(h.ids) {
		err = fmt.Errorf("renewed %d of %d", len(renewed), len(h.ids))
	}
	return err
}

// settle records the whole batch as delivered.
func (h heldBatch) settle(ctx context.Context, store *pgxdb.Store) error {
	settled, err := store.SettleDelivered(ctx, db.SettleDeliveredParams{
		Ids: h.ids, Tokens: h.tokens, Results: make([]string, len(h.ids)), Consumer: consumer, Target: target, AllTenants: true,
	})
	if err == nil && len(settled) != len(h.ids) {
		err = fmt.Errorf("settled %d of %d", len(settled), len(h.ids))
	}
	return err
}
