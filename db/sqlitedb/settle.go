package sqlitedb

import (
	"context"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/sqlitedb/internal/gen"
)

// A fence is what a settle must match to change a message.
type fence struct {
	ids              []int64
	tokens           []byte // one after the other
	consumer, target string
	allTenants       bool
	scope            []string
	acceptLate       bool
}

// A holding is one message of a list and the token its caller has.
type holding struct {
	ID    int64  `json:"id"`
	Token string `json:"token"`
	Place int    `json:"place"`
}

func holdings(ids []int64, tokens []byte) string {
	if len(tokens) != db.TokenSize*len(ids) {
		return list([]holding{})
	}
	given := make([]holding, len(ids))
	for i, id := range ids {
		given[i] = holding{id, hexed(tokens[db.TokenSize*i:][:db.TokenSize]), i}
	}
	return list(given)
}

// fenced returns the messages that the caller may settle, in the order of their ids.
func fenced(ctx context.Context, q *gen.Queries, now int64, f fence) ([]gen.SettleFenceRow, error) {
	return q.SettleFence(ctx, gen.SettleFenceParams{
		Given: holdings(f.ids, f.tokens), Consumer: f.consumer, Target: f.target, AllTenants: f.allTenants, Scope: list(f.scope),
		AcceptLate: f.acceptLate, Now: now,
	})
}

// A verdict is what a settlement says of one message.
type verdict struct {
	ID     int64  `json:"id"`
	Cause  string `json:"cause"`
	Reason string `json:"reason"`
	Result string `json:"result"`

	ordered bool // it may have an order lease
}

// conclude moves messages from the queue to their settlements. Their order leases go with them, or stay and block their keys.
func conclude(ctx context.Context, q *gen.Queries, now int64, outcome string, verdicts []verdict, block bool) ([]int64, error) {
	ids := make([]int64, len(verdicts))
	for i, v := range verdicts {
		ids[i] = v.ID
	}
	if len(ids) == 0 {
		return ids, nil
	}
	if err := q.SettleRecord(ctx, gen.SettleRecordParams{Outcome: outcome, Given: list(verdicts), Now: now}); err != nil {
		return nil, err
	}
	if err := q.SettleDequeue(ctx, gen.SettleDequeueParams{Ids: list(ids)}); err != nil {
		return nil, err
	}
	for _, v := range verdicts {
		var err error
		switch {
		case v.ordered && block:
			err = q.SettleBlock(ctx, gen.SettleBlockParams{MessageID: v.ID})
		case v.ordered:
			err = q.SettleUnorder(ctx, gen.SettleUnorderParams{MessageID: v.ID})
		}
		if err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// unorder ends the order leases of messages.
func unorder(ctx context.Context, q *gen.Queries, ids []int64) error {
	for _, id := range ids {
		if err := q.SettleUnorder(ctx, gen.SettleUnorderParams{MessageID: id}); err != nil {
			return err
		}
	}
	return nil
}

// orderedOf returns the messages that have an order key.
func orderedOf(rows []gen.SettleFenceRow) []int64 {
	var ids []int64
	for _, row := range rows {
		if row.OrderKey != "" {
			ids = append(ids, row.MessageID)
		}
	}
	return ids
}

// SettleDelivered implements db.Settler.
func (s *Store) SettleDelivered(ctx context.Context, arg db.SettleDeliveredParams) ([]int64, error) {
	return write(ctx, s, func(q *gen.Queries, now int64) ([]int64, error) {
		mine, err := fenced(ctx, q, now, fence{arg.Ids, arg.Tokens, arg.Consumer, arg.Target, arg.AllTenants, arg.Scope, arg.AcceptLate})
		if err != nil {
			return nil, err
		}
		verdicts := make([]verdict, len(mine))
		for i, m := range mine {
			verdicts[i] = verdict{ID: m.MessageID, ordered: m.OrderKey != ""}
			if len(arg.Results) > 0 {
				verdicts[i].Result = arg.Results[m.Place]
			}
		}
		return conclude(ctx, q, now, "delivered", verdicts, false)
	})
}

// SettleDropped implements db.Settler.
func (s *Store) SettleDropped(ctx context.Context, arg db.SettleDroppedParams) ([]int64, error) {
	return write(ctx, s, func(q *gen.Queries, now int64) ([]int64, error) {
		mine, err := fenced(ctx, q, now, fence{arg.Ids, arg.Tokens, arg.Consumer, arg.Target, arg.AllTenants, arg.Scope, arg.AcceptLate})
		if err != nil {
			return nil, err
		}
		ids := idsOf(mine)
		if err := q.SettleDequeue(ctx, gen.SettleDequeueParams{Ids: list(ids)}); err != nil {
			return nil, err
		}
		if err := unorder(ctx, q, orderedOf(mine)); err != nil {
			return nil, err
		}
		return ids, q.SettleErase(ctx, gen.SettleEraseParams{Ids: list(ids)})
	})
}

func idsOf(rows []gen.SettleFenceRow) []int64 {
	ids := make([]int64, len(rows))
	for i, row := range rows {
		ids[i] = row.MessageID
	}
	return ids
}

// SettleRetry implements db.Settler.
func (s *Store) SettleRetry(ctx context.Context, arg db.SettleRetryParams) ([]db.SettleRetryRow, error) {
	return write(ctx, s, func(q *gen.Queries, now int64) ([]db.SettleRetryRow, error) {
		mine, err := fenced(ctx, q, now, fence{arg.Ids, arg.Tokens, arg.Consumer, arg.Target, arg.AllTenants, arg.Scope, false})
		if err != nil {
			return nil, err
		}
		rows, again, aged := make([]db.SettleRetryRow, len(mine)), []gen.SettleFenceRow{}, []verdict{}
		for i, m := range mine {
			rows[i] = db.SettleRetryRow{ID: m.MessageID, Attempt: m.Attempt, Aged: tooOld(m.ExpiresAt, m.BornAt, arg.MaxAges[m.Place], now)}
			if rows[i].Aged {
				aged = append(aged, verdict{ID: m.MessageID, Cause: "age", Reason: arg.Reasons[m.Place], ordered: m.OrderKey != ""})
				continue
			}
			if arg.Unspent {
				rows[i].Attempt--
			}
			again = append(again, m)
			err := q.SettleAgain(ctx, gen.SettleAgainParams{
				MessageID: m.MessageID, DueAt: min(after(now, arg.Delays[m.Place]), forever), Attempt: int64(rows[i].Attempt),
				Unsure: arg.Unsures[m.Place], LastError: arg.LastErrors[m.Place],
			})
			if err != nil {
				return nil, err
			}
		}
		if err := unorder(ctx, q, orderedOf(again)); err != nil {
			return nil, err
		}
		_, err = conclude(ctx, q, now, "dead", aged, arg.BlockOnDead)
		return rows, err
	})
}

// tooOld says whether the age of a message is over, a maxAge of 0 adding no limit to its own.
func tooOld(expiresAt, bornAt, maxAge, now int64) bool {
	return min(expiresAt, expiry(bornAt, maxAge)) <= now
}

// SettleDead implements db.Settler.
func (s *Store) SettleDead(ctx context.Context, arg db.SettleDeadParams) ([]int64, error) {
	return write(ctx, s, func(q *gen.Queries, now int64) ([]int64, error) {
		mine, err := fenced(ctx, q, now, fence{arg.Ids, arg.Tokens, arg.Consumer, arg.Target, arg.AllTenants, arg.Scope, false})
		if err != nil {
			return nil, err
		}
		verdicts := make([]verdict, len(mine))
		for i, m := range mine {
			verdicts[i] = verdict{ID: m.MessageID, Cause: arg.Causes[m.Place], Reason: arg.Reasons[m.Place], ordered: m.OrderKey != ""}
		}
		return conclude(ctx, q, now, "dead", verdicts, arg.BlockOnDead)
	})
}

// SettleParked implements db.Settler.
func (s *Store) SettleParked(ctx context.Context, arg db.SettleParkedParams) ([]int64, error) {
	return write(ctx, s, func(q *gen.Queries, now int64) ([]int64, error) {
		mine, err := fenced(ctx, q, now, fence{arg.Ids, arg.Tokens, arg.Consumer, arg.Target, arg.AllTenants, arg.Scope, false})
		if err != nil {
			return nil, err
		}
		for _, m := range mine {
			if err := q.SettlePark(ctx, gen.SettleParkParams{MessageID: m.MessageID, LastError: arg.LastErrors[m.Place]}); err != nil {
				return nil, err
			}
		}
		return idsOf(mine), unorder(ctx, q, orderedOf(mine))
	})
}

// FindFates implements db.Settler.
func (s *Store) FindFates(ctx context.Context, arg db.FindFatesParams) ([]db.FindFatesRow, error) {
	return read(ctx, s, func(q *gen.Queries, now int64) ([]db.FindFatesRow, error) {
		rows, err := q.FindFates(ctx, gen.FindFatesParams{Ids: list(arg.Ids), AllTenants: arg.AllTenants, Scope: list(arg.Scope), Now: now})
		return convert(rows, err, func(row gen.FindFatesRow) db.FindFatesRow { return db.FindFatesRow(row) })
	})
}
