package batch

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/outbox"
)

// errMissed: the database did not add some rows of a chunk, and the transaction was rolled back.
var errMissed = errors.New("rows were not added")

// An obstacle is a row that the database does not add, although nothing stands there.
type obstacle struct{ number int }

func (e *obstacle) Error() string { return fmt.Sprintf("row %d cannot be added", e.number) }

// storeChunk stores the chunk, but for what stands there, and gives how many rows that are. Another Create of the same batch may be at it too.
func (c *creation) storeChunk(ctx context.Context) (standing int, err error) {
	var missed map[int]bool
	for range createTries {
		var receipts outbox.Receipts
		err = c.store.Transact(ctx, func(tx db.Tx) error {
			fresh, err := c.fresh(ctx, tx)
			standing = len(c.chunk) - len(fresh)
			if err != nil || len(fresh) == 0 {
				return err
			}
			for _, row := range fresh {
				if missed[row.number] { // and nothing stands there: it is not another Create that came first
					return &obstacle{row.number}
				}
			}
			if receipts, missed, err = c.insert(ctx, tx, fresh); err == nil && len(missed) > 0 {
				return errMissed
			}
			return err
		})
		switch {
		case err == nil:
			receipts.Committed()
			return standing, nil
		case errors.Is(err, errMissed):
			c.resumed = true
		case errors.As(err, new(*obstacle)):
			return 0, c.explain(ctx, err)
		case !errors.Is(err, db.ErrRetry):
			return 0, err
		}
	}
	return 0, fmt.Errorf("%w: %w", db.ErrRetry, err)
}

// fresh gives the rows of the chunk that do not stand there. One that does must be the same.
func (c *creation) fresh(ctx context.Context, tx db.Tx) (fresh []inputRow, err error) {
	if !c.resumed {
		return c.chunk, nil
	}
	params := db.FindBatchRowsParams{BatchID: c.receipt.ID, AllTenants: true, Scope: []string{}}
	for _, row := range c.chunk {
		params.Numbers = append(params.Numbers, int32(row.number))
	}
	rows, err := c.store.FindBatchRows(ctx, tx, params)
	if err != nil {
		return nil, err
	}
	accepted := make(map[int]bool, len(rows))
	for _, row := range rows {
		accepted[int(row.Number)] = row.MessageID != 0
	}
	var effects []outbox.Effect
	var numbers []int
	for _, row := range c.chunk {
		was, stands := accepted[row.number]
		switch {
		case !stands:
			fresh = append(fresh, row)
		case was && row.problem != nil:
			return nil, &RowConflictError{row.number, "stands as a good one, and is rejected now"}
		case !was && row.problem == nil:
			return nil, &RowConflictError{row.number, "stands as rejected, and is a good one now"}
		case was:
			effects, numbers = append(effects, c.spec.effect(row.number, row.payload)), append(numbers, row.number)
		}
	}
	if len(effects) == 0 {
		return fresh, nil
	}
	found, err := c.box.Find(ctx, tx, effects)
	for i, receipt := range found {
		if receipt.Status == outbox.Conflicted { // one that is not found was performed and purged
			return nil, &RowConflictError{numbers[i], "stands with other content"}
		}
	}
	return fresh, err
}

// insert records rows, and gives the numbers of those that the database did not add.
func (c *creation) insert(ctx context.Context, tx db.Tx, rows []inputRow) (receipts outbox.Receipts, missed map[int]bool, err error) {
	params := db.AddBatchRowsParams{BatchID: c.receipt.ID, AllTenants: true, Scope: []string{}}
	var effects []outbox.Effect
	var numbers []int
	for _, row := range rows {
		if row.problem == nil {
			effects, numbers = append(effects, c.spec.effect(row.number, row.payload)), append(numbers, row.number)
		}
	}
	receipts, err = c.box.EnqueueMany(ctx, tx, effects)
	var taken *outbox.KeyConflictError
	if errors.As(err, &taken) {
		conflict := taken.Conflicts[0]
		return nil, nil, &RowConflictError{numbers[conflict.Index], fmt.Sprintf("has a key that message %d has with other content", conflict.ID)}
	}
	if err != nil {
		return nil, nil, err
	}
	missed = make(map[int]bool, len(rows))
	next := 0
	for _, row := range rows {
		missed[row.number] = true
		id, reason := int64(0), ""
		if row.problem == nil {
			id = receipts[next].ID
			next++
		} else {
			reason = row.problem.Error()
		}
		params.Numbers = append(params.Numbers, int32(row.number))
		params.MessageIds = append(params.MessageIds, id)
		params.Reasons = append(params.Reasons, reason)
	}
	added, err := c.store.AddBatchRows(ctx, tx, params)
	if err != nil {
		return nil, nil, err
	}
	for _, number := range added {
		delete(missed, int(number))
	}
	return receipts, missed, nil
}

// reason is why a row was rejected, as it is stored. The chunk keeps no more than that: a row may break a rule in each of its many elements.
func (c *creation) reason(problem error) error {
	reason := c.box.Redacted(problem.(rejected).reason())
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "")
	}
	return errors.New(strings.Clone(reason))
}

// explain says why a row cannot be added.
func (c *creation) explain(ctx context.Context, obstacle error) error {
	progress, err := c.Progress(ctx, outbox.AllTenants, c.receipt.ID)
	if err == nil && progress.Sealed() {
		err = ErrSealed
	}
	if err != nil {
		return fmt.Errorf("%w: %w", obstacle, err)
	}
	return obstacle
}

// seal says that the batch has all its rows.
func (c *creation) seal(ctx context.Context) error {
	if c.suppressed {
		return nil
	}
	if c.resumed {
		next := db.FindBatchRowsParams{BatchID: c.receipt.ID, AllTenants: true, Scope: []string{}, Numbers: []int32{int32(c.receipt.Rows + 1)}}
		var beyond []db.FindBatchRowsRow
		err := c.store.Transact(ctx, func(tx db.Tx) (err error) {
			beyond, err = c.store.FindBatchRows(ctx, tx, next)
			return err
		})
		if err != nil {
			return err
		}
		if len(beyond) > 0 {
			return &RowConflictError{c.receipt.Rows + 1, "stands in the batch, and the input ends before it"}
		}
	}
	_, err := c.store.SealBatch(ctx, db.SealBatchParams{ID: c.receipt.ID, AllTenants: true, Scope: []string{}})
	return err
}
