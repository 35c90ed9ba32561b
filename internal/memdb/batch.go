package memdb

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

type rowKey struct {
	batch  int64
	number int32
}

// rowMessage is the lock of a message's row, whatever batch it is in.
type rowMessage int64

func keyOfRow(r tables.BatchRow) rowKey { return rowKey{r.BatchID, r.Number} }

// An extent is what the index over the fates tells of a batch.
type extent struct {
	open int
	last int32
}

// setRow writes a row of a batch.
func (st *statement) setRow(row tables.BatchRow) {
	old, had := st.batchRows.rows[keyOfRow(row)]
	st.batchRows.put(st, row)
	before, after := st.extents[row.BatchID], st.extents[row.BatchID]
	if had && old.Fate == db.RowOpen {
		after.open--
	}
	if row.Fate == db.RowOpen {
		after.open++
	}
	after.last = max(after.last, row.Number)
	st.extents[row.BatchID] = after
	if row.MessageID != 0 {
		st.rowOf[row.MessageID] = keyOfRow(row)
	}
	st.undo = append(st.undo, func() {
		st.extents[row.BatchID] = before
		if !had {
			delete(st.rowOf, row.MessageID)
		}
	})
}

// fateOf is the fate of a row by what stands of its message; one of which nothing does was dropped when it was delivered.
func (st *statement) fateOf(id int64) int16 {
	if _, open := st.queue.rows[id]; open {
		return db.RowOpen
	}
	switch st.settlements.rows[id].Outcome {
	case "dead":
		return db.RowDead
	case "cancelled":
		return db.RowCancelled
	case "expired":
		return db.RowExpired
	}
	return db.RowDelivered
}

// ended gives the row of a message that left the queue its fate, and completes its batch.
func (st *statement) ended(id int64) {
	key, found := st.rowOf[id]
	if row := st.batchRows.rows[key]; found && row.Fate == db.RowOpen {
		row.Fate = st.fateOf(id)
		st.setRow(row)
		st.complete(row.BatchID)
	}
}

// reopened opens the row of a message that was brought back, and its batch.
func (st *statement) reopened(id int64) {
	key, found := st.rowOf[id]
	if !found {
		return
	}
	row := st.batchRows.rows[key]
	row.Fate = db.RowOpen
	st.setRow(row)
	if b, found := st.batches.rows[row.BatchID]; found && !b.CompletedAt.Equal(tables.Forever) {
		b.Run++
		b.CompletedAt = tables.Forever
		st.batches.put(st, b)
	}
}

// complete completes a batch that is sealed and has no open row, and records its message unless the key is taken.
func (st *statement) complete(id int64) {
	b, found := st.batches.rows[id]
	if !found || b.SealedAt.Equal(tables.Forever) || !b.CompletedAt.Equal(tables.Forever) || st.extents[id].open > 0 {
		return
	}
	b.CompletedAt = st.now
	st.batches.put(st, b)
	if b.CompleteConsumer == "" {
		return
	}
	m := tables.Message{
		CreatedAt: st.now, Priority: b.CompletePriority, Tenant: b.Tenant, Consumer: b.CompleteConsumer, Target: b.CompleteTarget, Kind: b.CompleteKind,
		Key: b.CompleteKey, Digest: exact(b.CompleteDigest), Metadata: b.CompleteMetadata, Payload: exact(b.CompletePayload),
	}
	if b.Run > 1 {
		m.Key += "/run-" + strconv.Itoa(int(b.Run))
	}
	switch holder, taken := st.keys[identityOf(m)]; {
	case taken && holder.tx != nil:
		st.fail(db.ErrRetry) // a database would wait for the end of that transaction
		return
	case taken:
		return
	}
	st.lastMessage++
	m.ID = st.lastMessage
	q := queueRow(m)
	q.DueAt, q.BornAt, q.ExpiresAt = st.now, st.now, tables.Forever
	st.messages.put(st, m)
	st.queue.put(st, q)
	st.keys[identityOf(m)] = claim{id: m.ID}
	st.undo = append(st.undo, func() { delete(st.keys, identityOf(m)) })
}

// AddBatch implements db.Batcher.
func (s *Store) AddBatch(ctx context.Context, arg db.AddBatchParams) ([]db.AddBatchRow, error) {
	return run(ctx, s, "AddBatch", arg, func(st *statement) []db.AddBatchRow {
		if b, taken := st.batchOf(arg.Tenant, arg.Consumer, arg.Key); taken {
			return []db.AddBatchRow{{ID: b.ID, SameDigest: bytes.Equal(b.Digest, arg.Digest)}}
		}
		st.lastBatch++
		st.batches.put(st, tables.Batch{
			ID: st.lastBatch, CreatedAt: st.now, SealedAt: tables.Forever, CompletedAt: tables.Forever, Run: 1,
			Tenant: arg.Tenant, Consumer: arg.Consumer, Target: arg.Target, Kind: arg.Kind, Key: arg.Key, Digest: exact(arg.Digest),
			CompleteConsumer: arg.CompleteConsumer, CompleteTarget: arg.CompleteTarget, CompleteKind: arg.CompleteKind, CompleteKey: arg.CompleteKey,
			CompletePriority: arg.CompletePriority, CompleteDigest: exact(arg.CompleteDigest), CompleteMetadata: arg.CompleteMetadata,
			CompletePayload: exact(arg.CompletePayload),
		})
		return []db.AddBatchRow{{ID: st.lastBatch, Added: true, SameDigest: true}}
	})
}

// FindBatch implements db.Batcher.
func (s *Store) FindBatch(ctx context.Context, arg db.FindBatchParams) ([]int64, error) {
	return run(ctx, s, "FindBatch", arg, func(st *statement) []int64 {
		if b, found := st.batchOf(arg.Tenant, arg.Consumer, arg.Key); found && inScope(arg.AllTenants, arg.Scope, b.Tenant) {
			return []int64{b.ID}
		}
		return []int64{}
	})
}

// batchOf finds the batch of a key.
func (st *statement) batchOf(tenant, consumer, key string) (tables.Batch, bool) {
	for _, b := range st.batches.rows {
		if b.Tenant == tenant && b.Consumer == consumer && b.Key == key {
			return b, true
		}
	}
	return tables.Batch{}, false
}

// batchIn returns a batch in scope.
func (st *statement) batchIn(id int64, allTenants bool, scope []string) (tables.Batch, bool) {
	b, found := st.batches.rows[id]
	return b, found && inScope(allTenants, scope, b.Tenant)
}

// AddBatchRows implements db.Batcher.
func (s *Store) AddBatchRows(ctx context.Context, tx db.Tx, arg db.AddBatchRowsParams) ([]int32, error) {
	return in(ctx, s, "AddBatchRows", tx, arg, func(tx *Tx) ([]int32, error) {
		st := &statement{Store: s, now: clock()}
		if !st.parallel(len(arg.Numbers), len(arg.MessageIds), len(arg.Reasons)) {
			return nil, st.err
		}
		numbers := []int32{}
		b, found := st.batchIn(arg.BatchID, arg.AllTenants, arg.Scope)
		if !found || !b.SealedAt.Equal(tables.Forever) {
			return numbers, nil
		}
		tx.fills[b.ID] = struct{}{}
		for i, number := range arg.Numbers {
			row := tables.BatchRow{BatchID: b.ID, MessageID: arg.MessageIds[i], Number: number, Reason: arg.Reasons[i]}
			if row.MessageID == 0 {
				row.Fate = db.RowRejected
			}
			if err := verify("batch_row", batchRowChecks, row); err != nil {
				return nil, err
			}
			free, err := tx.free(ctx, row)
			if err != nil {
				return nil, err
			}
			if free {
				tx.batchRows = append(tx.batchRows, row)
				numbers = append(numbers, number)
			}
		}
		return numbers, nil
	})
}

// free says whether nobody has the number and the message of a row, and takes them for the transaction.
func (tx *Tx) free(ctx context.Context, row tables.BatchRow) (bool, error) {
	if err := tx.await(ctx, keyOfRow(row)); err != nil {
		return false, err
	}
	if err := tx.await(ctx, rowMessage(row.MessageID)); err != nil {
		return false, err
	}
	_, numbered := tx.store.batchRows.rows[keyOfRow(row)]
	_, known := tx.store.rowOf[row.MessageID]
	if numbered || known || tx.store.locks[keyOfRow(row)] == tx || tx.store.locks[rowMessage(row.MessageID)] == tx {
		return false, nil
	}
	tx.store.locks[keyOfRow(row)] = tx
	if row.MessageID != 0 {
		tx.store.locks[rowMessage(row.MessageID)] = tx
	}
	return true, nil
}

// FindBatchRows implements db.Batcher.
func (s *Store) FindBatchRows(ctx context.Context, tx db.Tx, arg db.FindBatchRowsParams) ([]db.FindBatchRowsRow, error) {
	return in(ctx, s, "FindBatchRows", tx, arg, func(tx *Tx) ([]db.FindBatchRowsRow, error) {
		st := &statement{Store: s, now: clock()}
		rows := []db.FindBatchRowsRow{}
		if _, found := st.batchIn(arg.BatchID, arg.AllTenants, arg.Scope); !found {
			return rows, nil
		}
		for _, number := range arg.Numbers {
			row, found := s.batchRows.rows[rowKey{arg.BatchID, number}]
			if own := slices.IndexFunc(tx.batchRows, func(r tables.BatchRow) bool { return keyOfRow(r) == rowKey{arg.BatchID, number} }); own >= 0 {
				row, found = tx.batchRows[own], true
			}
			if found {
				rows = append(rows, db.FindBatchRowsRow{Number: number, MessageID: row.MessageID, Fate: row.Fate, Reason: row.Reason})
			}
		}
		return rows, nil
	})
}

// SealBatch implements db.Batcher.
func (s *Store) SealBatch(ctx context.Context, arg db.SealBatchParams) ([]int64, error) {
	for {
		var filler *Tx
		rows, err := run(ctx, s, "SealBatch", arg, func(st *statement) []int64 {
			if filler = st.filler(arg.ID); filler != nil {
				return nil
			}
			b, found := st.batchIn(arg.ID, arg.AllTenants, arg.Scope)
			if !found || !b.SealedAt.Equal(tables.Forever) {
				return []int64{}
			}
			b.SealedAt = st.now
			st.batches.put(st, b)
			st.complete(b.ID)
			return []int64{b.ID}
		})
		if filler == nil {
			return rows, err
		}
		select {
		case <-filler.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// filler is an open transaction that adds rows to a batch.
func (st *statement) filler(id int64) *Tx {
	for tx := range st.open {
		if _, fills := tx.fills[id]; fills {
			return tx
		}
	}
	return nil
}

// CountBatch implements db.Batcher.
func (s *Store) CountBatch(ctx context.Context, arg db.CountBatchParams) ([]db.CountBatchRow, error) {
	return run(ctx, s, "CountBatch", arg, func(st *statement) []db.CountBatchRow {
		b, found := st.batchIn(arg.ID, arg.AllTenants, arg.Scope)
		if !found {
			return []db.CountBatchRow{}
		}
		row := db.CountBatchRow{
			ID: b.ID, Tenant: b.Tenant, Consumer: b.Consumer, Target: b.Target, Kind: b.Kind, Key: b.Key, CreatedAt: b.CreatedAt, SealedAt: b.SealedAt,
			CompletedAt: b.CompletedAt, Run: b.Run, CompleteConsumer: b.CompleteConsumer, CompleteTarget: b.CompleteTarget,
			CompleteKind: b.CompleteKind, CompleteKey: b.CompleteKey,
		}
		for r := range st.rowsAbove(b.ID, 0) {
			row.Total++
			*[]*int64{&row.Open, &row.Delivered, &row.Dead, &row.Cancelled, &row.Expired, &row.Rejected}[r.Fate]++
			if r.Fate == db.RowOpen && arg.Detail {
				switch st.stateOf(st.queue.rows[r.MessageID]) {
				case "leased":
					row.Leased++
				case "parked":
					row.Parked++
				}
			}
		}
		return []db.CountBatchRow{row}
	})
}

// rowsAbove yields the rows of a batch above a number, in order.
func (st *statement) rowsAbove(batch int64, number int32) func(func(tables.BatchRow) bool) {
	return func(yield func(tables.BatchRow) bool) {
		for n := number + 1; n <= st.extents[batch].last; n++ {
			if row, found := st.batchRows.rows[rowKey{batch, n}]; found && !yield(row) {
				return
			}
		}
	}
}

// ListBatches implements db.Batcher.
func (s *Store) ListBatches(ctx context.Context, arg db.ListBatchesParams) ([]db.ListBatchesRow, error) {
	return run(ctx, s, "ListBatches", arg, func(st *statement) []db.ListBatchesRow {
		newest := func(a, b tables.Batch) int { return cmp.Compare(b.ID, a.ID) }
		seen := first(slices.DeleteFunc(st.batches.sorted(newest), func(b tables.Batch) bool { return b.ID >= arg.BeforeID }), arg.Examine)
		rows := []db.ListBatchesRow{}
		for _, b := range seen {
			if !inScope(arg.AllTenants, arg.Scope, b.Tenant) || !matches(arg.Consumer, b.Consumer) ||
				arg.Unfinished && !b.CompletedAt.Equal(tables.Forever) {
				continue
			}
			if len(rows) == int(arg.MaxRows) {
				return rows
			}
			rows = append(rows, db.ListBatchesRow{
				ID: b.ID, Tenant: b.Tenant, Consumer: b.Consumer, Target: b.Target, Kind: b.Kind, Key: b.Key, CreatedAt: b.CreatedAt,
				SealedAt: b.SealedAt, CompletedAt: b.CompletedAt, Run: b.Run, Matched: true,
			})
		}
		if n := len(seen); n > 0 && n == int(arg.Examine) && len(rows) < int(arg.MaxRows) {
			rows = append(rows, db.ListBatchesRow{ID: seen[n-1].ID})
		}
		return rows
	})
}

// ListBatchRows implements db.Batcher.
func (s *Store) ListBatchRows(ctx context.Context, arg db.ListBatchRowsParams) ([]db.ListBatchRowsRow, error) {
	return run(ctx, s, "ListBatchRows", arg, func(st *statement) []db.ListBatchRowsRow {
		rows := []db.ListBatchRowsRow{}
		if _, found := st.batchIn(arg.BatchID, arg.AllTenants, arg.Scope); !found {
			return rows
		}
		for r := range st.rowsAbove(arg.BatchID, arg.AfterNumber) {
			if len(rows) == int(arg.MaxRows) {
				break
			}
			if arg.Fate >= 0 && r.Fate != arg.Fate {
				continue
			}
			settled, q := st.settlements.rows[r.MessageID], st.queue.rows[r.MessageID]
			row := db.ListBatchRowsRow{
				Number: r.Number, MessageID: r.MessageID, Fate: r.Fate, Key: st.messages.rows[r.MessageID].Key,
				State:   []string{"", "delivered", "dead", "cancelled", "expired", "rejected"}[r.Fate],
				Attempt: cmp.Or(settled.Attempt, q.Attempt), Cause: settled.Cause, Reason: cmp.Or(r.Reason, settled.Reason, q.LastError),
				Result: settled.Result, SettledAt: settled.SettledAt,
			}
			if r.Fate == db.RowOpen {
				row.State = st.stateOf(q)
			}
			rows = append(rows, row)
		}
		return rows
	})
}

// PurgeBatches implements db.Purger.
func (s *Store) PurgeBatches(ctx context.Context, arg db.PurgeBatchesParams) ([]db.PurgeBatchesRow, error) {
	return run(ctx, s, "PurgeBatches", arg, func(st *statement) []db.PurgeBatchesRow {
		var row db.PurgeBatchesRow
		cutoff := after(st.now, -arg.Keep)
		byEnd := func(a, b tables.Batch) int {
			return cmp.Or(a.CompletedAt.Compare(b.CompletedAt), cmp.Compare(a.ID, b.ID))
		}
		for _, b := range st.batches.sorted(byEnd) {
			if !b.CompletedAt.Before(cutoff) || b.CompletedAt.Equal(tables.Forever) || !inScope(arg.AllTenants, arg.Scope, b.Tenant) {
				continue
			}
			for r := range st.rowsAbove(b.ID, 0) {
				if row.RowsRemoved == int64(arg.MaxRows) {
					break
				}
				st.batchRows.remove(st, keyOfRow(r))
				delete(st.rowOf, r.MessageID) // nothing after it fails
				row.RowsRemoved++
			}
			if row.RowsRemoved < int64(arg.MaxRows) {
				st.batches.remove(st, b.ID)
				delete(st.extents, b.ID)
				row.Batches++
			}
			break
		}
		return []db.PurgeBatchesRow{row}
	})
}
