package bench

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/lib/pq"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/db/sqldb"
)

// client is a store of the library on a single session.
type client struct {
	store db.Store
	inTx  func(ctx context.Context, fn func(db.Tx) error) error
}

func openPgx(b *testing.B) client {
	pool, err := pgxpool.New(b.Context(), dsn+"&pool_max_conns=1")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	store, err := pgxdb.New(pool, pgxdb.Config{})
	if err != nil {
		b.Fatal(err)
	}
	return client{store, func(ctx context.Context, fn func(db.Tx) error) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return fn(pgxdb.Tx(tx)) })
	}}
}

func openPq(b *testing.B) client {
	pool, err := sql.Open("postgres", dsn)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { pool.Close() })
	pool.SetMaxOpenConns(1)
	store, err := sqldb.New(pool, sqldb.Config{})
	if err != nil {
		b.Fatal(err)
	}
	return client{store, func(ctx context.Context, fn func(db.Tx) error) error {
		tx, err := pool.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if err := fn(sqldb.Tx(tx)); err != nil {
			_ = tx.Rollback()
			return err
		}
		return tx.Commit()
	}}
}

func (c client) enqueue(ctx context.Context, total, size int) error {
	params := db.EnqueueParams{
		Tenants:         make([]string, size),
		Consumers:       slices.Repeat([]string{consumer}, size),
		Targets:         slices.Repeat([]string{target}, size),
		Kinds:           slices.Repeat([]string{kind}, size),
		Keys:            make([]string, size),
		OrderKeys:       make([]string, size),
		Priorities:      make([]int16, size),
		Digests:         slices.Repeat([][]byte{bytes.Repeat([]byte{0xd1}, 32)}, size),
		Metadatas:       make([]string, size),
		Payloads:        slices.Repeat([][]byte{bytes.Repeat([]byte{0xa7}, payloadSize)}, size),
		SourcePositions: make([]int64, size),
		SourceEventIds:  make([]string, size),
		MaxAges:         slices.Repeat([]int64{maxAge}, size),
		DueAts:          slices.Repeat([]time.Time{db.Never}, size),
		Delays:          make([]int64, size),
	}
	for start := 1; start <= total; start += size {
		for i := range params.Keys {
			params.Keys[i] = fmt.Sprintf("order-%010d", start+i)
		}
		err := c.inTx(ctx, func(tx db.Tx) error {
			_, err := c.store.Enqueue(ctx, tx, params)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (c client) drain(ctx context.Context, size int) (drained int, err error) {
	lease := db.LeaseDueParams{
		Kinds:         []string{kind},
		Tenants:       []string{""},
		Priorities:    []int16{0},
		AfterDues:     []time.Time{db.Never},
		AfterIds:      []int64{0},
		AttemptLimits: []int32{12},
		MaxAges:       []int64{maxAge},
		AllTenants:    true,
		Consumer:      consumer,
		Target:        target,
		Lease:         leaseFor,
		LongestLease:  longestLease,
		Examine:       int32(10 * size),
		Quota:         int32(size),
		MaxRows:       int32(size),
		Token:         make([]byte, 16),
		Worker:        1,
	}
	for {
		rand.Read(lease.Token)
		rows, err := c.store.LeaseDue(ctx, lease)
		if err != nil {
			return drained, err
		}
		var ids []int64
		for _, row := range rows {
			if row.Fate != db.FateGranted {
				continue
			}
			ids = append(ids, row.ID)
			if after := lease.AfterDues[0]; row.DueAt.After(after) || row.DueAt.Equal(after) && row.ID > lease.AfterIds[0] {
				lease.AfterDues[0], lease.AfterIds[0] = row.DueAt, row.ID
			}
		}
		if len(ids) == 0 {
			return drained, nil
		}
		slices.Sort(ids)
		settled, err := c.store.SettleDelivered(ctx, db.SettleDeliveredParams{
			Ids:        ids,
			Tokens:     slices.Repeat(lease.Token, len(ids)),
			Consumer:   consumer,
			Target:     target,
			AllTenants: true,
		})
		if err != nil {
			return drained, err
		}
		drained += len(settled)
	}
}
