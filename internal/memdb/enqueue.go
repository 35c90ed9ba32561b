package memdb

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

// Enqueue implements db.Enqueuer.
func (s *Store) Enqueue(ctx context.Context, tx db.Tx, arg db.EnqueueParams) ([]db.EnqueueRow, error) {
	return in(ctx, s, "Enqueue", tx, arg, func(tx *Tx) ([]db.EnqueueRow, error) {
		none := make([]int64, len(arg.Keys))
		leased, err := tx.enqueue(ctx, db.EnqueueLeasedParams{
			Tenants: arg.Tenants, Consumers: arg.Consumers, Targets: arg.Targets, Kinds: arg.Kinds, Keys: arg.Keys, OrderKeys: arg.OrderKeys,
			Priorities: arg.Priorities, Digests: arg.Digests, Metadatas: arg.Metadatas, Payloads: arg.Payloads, SourcePositions: arg.SourcePositions,
			SourceEventIds: arg.SourceEventIds, MaxAges: arg.MaxAges, DueAts: arg.DueAts, Delays: arg.Delays, Leases: none, Workers: none,
		})
		var rows []db.EnqueueRow
		for _, row := range leased {
			rows = append(rows, db.EnqueueRow{ID: row.ID, Stored: row.Stored})
		}
		return rows, err
	})
}

// EnqueueLeased implements db.Enqueuer.
func (s *Store) EnqueueLeased(ctx context.Context, tx db.Tx, arg db.EnqueueLeasedParams) ([]db.EnqueueLeasedRow, error) {
	return in(ctx, s, "EnqueueLeased", tx, arg, func(tx *Tx) ([]db.EnqueueLeasedRow, error) { return tx.enqueue(ctx, arg) })
}

func (tx *Tx) enqueue(ctx context.Context, arg db.EnqueueLeasedParams) ([]db.EnqueueLeasedRow, error) {
	messages, queue, err := tx.store.compose(arg)
	if err != nil {
		return nil, err
	}
	// In the order of their identity, so that two overlapping batches cannot wait for each other.
	order := make([]int, len(messages))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return compareIdentity(messages[a], messages[b]) })

	rows := make([]db.EnqueueLeasedRow, len(messages))
	for _, i := range order {
		rows[i].ID = messages[i].ID
		if rows[i].Stored, err = tx.claim(ctx, messages[i]); err != nil {
			return nil, err
		}
		if rows[i].Stored {
			tx.messages = append(tx.messages, messages[i])
			tx.queue = append(tx.queue, queue[i])
			if queue[i].Attempt == 1 {
				rows[i].LeasedAt = queue[i].DueAt.UnixMicro()
			}
		}
	}
	return rows, nil
}

// compose draws the ids and builds the rows of an enqueue.
func (s *Store) compose(arg db.EnqueueLeasedParams) ([]tables.Message, []tables.Queue, error) {
	st := &statement{Store: s, now: clock()}
	if !st.parallel(len(arg.Tenants), len(arg.Consumers), len(arg.Targets), len(arg.Kinds), len(arg.Keys), len(arg.OrderKeys),
		len(arg.Priorities), len(arg.Digests), len(arg.Metadatas), len(arg.Payloads), len(arg.SourcePositions), len(arg.SourceEventIds),
		len(arg.MaxAges), len(arg.DueAts), len(arg.Delays), len(arg.Leases), len(arg.Workers)) {
		return nil, nil, st.err
	}
	messages := make([]tables.Message, len(arg.Keys))
	queue := make([]tables.Queue, len(arg.Keys))
	for i := range arg.Keys {
		s.lastMessage++
		messages[i] = tables.Message{
			ID: s.lastMessage, SourcePosition: arg.SourcePositions[i], MaxAge: arg.MaxAges[i], CreatedAt: st.now, Priority: arg.Priorities[i],
			Tenant: arg.Tenants[i], Consumer: arg.Consumers[i], Target: arg.Targets[i], Kind: arg.Kinds[i], Key: arg.Keys[i],
			OrderKey: arg.OrderKeys[i], SourceEventID: arg.SourceEventIds[i],
			Digest: exact(arg.Digests[i]), Metadata: arg.Metadatas[i], Payload: exact(arg.Payloads[i]),
		}
		due := later(arg.DueAts[i].UTC().Truncate(time.Microsecond), after(st.now, arg.Delays[i])) // a due time in the past means now
		queue[i] = queueRow(messages[i])
		queue[i].DueAt, queue[i].BornAt, queue[i].ExpiresAt = due, due, expires(due, arg.MaxAges[i])
		if arg.Leases[i] > 0 && arg.OrderKeys[i] == "" && due.Equal(st.now) && st.pauseMode(laneOf(queue[i])) < 0 {
			queue[i].Attempt, queue[i].Epoch, queue[i].Token, queue[i].LeasedBy = 1, 1, exact(arg.Token), arg.Workers[i]
			queue[i].LeasedUntil = after(st.now, arg.Leases[i])
		}
		if arg.Payloads[i] == nil { // which a driver sends as NULL
			st.fail(&CheckError{"message", "payload not null"})
		}
		st.fail(verify("message", messageChecks, messages[i]))
		st.fail(verify("queue", queueChecks, queue[i]))
	}
	return messages, queue, st.err
}

// exact copies the bytes; none become empty ones, as in a bytea.
func exact(b []byte) []byte { return append([]byte{}, b...) }

// queueRow is the row of a message that never ran, without its times.
func queueRow(m tables.Message) tables.Queue {
	return tables.Queue{
		MessageID: m.ID, Consumer: m.Consumer, Target: m.Target, Kind: m.Kind, Tenant: m.Tenant, OrderKey: m.OrderKey, Priority: m.Priority,
		Token: db.FreeToken, LeasedUntil: db.Never, ReplayedAt: db.Never,
	}
}

// claim takes the message's key unless somebody has it.
func (tx *Tx) claim(ctx context.Context, m tables.Message) (bool, error) {
	for {
		holder, taken := tx.store.keys[identityOf(m)]
		switch {
		case !taken:
			tx.store.keys[identityOf(m)] = claim{m.ID, tx}
			return true, nil
		case holder.tx == nil || holder.tx == tx:
			return false, nil
		}
		if err := tx.wait(ctx, holder.tx); err != nil {
			return false, err
		}
	}
}

func compareIdentity(a, b tables.Message) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Consumer, b.Consumer), cmp.Compare(a.Key, b.Key), cmp.Compare(a.ID, b.ID))
}

// FindKeys implements db.Enqueuer.
func (s *Store) FindKeys(ctx context.Context, tx db.Tx, arg db.FindKeysParams) ([]db.FindKeysRow, error) {
	return in(ctx, s, "FindKeys", tx, arg, func(tx *Tx) ([]db.FindKeysRow, error) {
		st := &statement{Store: s, now: clock()}
		if !st.parallel(len(arg.Tenants), len(arg.Consumers), len(arg.Keys), len(arg.Digests)) {
			return nil, st.err
		}
		rows := []db.FindKeysRow{}
		for i := range arg.Keys {
			holder, taken := s.keys[identity{arg.Tenants[i], arg.Consumers[i], arg.Keys[i]}]
			if !taken || holder.tx != nil && holder.tx != tx {
				continue
			}
			message, state := s.messages.rows[holder.id], ""
			if holder.tx == tx {
				own := slices.IndexFunc(tx.messages, func(m tables.Message) bool { return m.ID == holder.id })
				message, state = tx.messages[own], st.stateOf(tx.queue[own])
			} else {
				state = st.state(holder.id)
			}
			same := bytes.Equal(message.Digest, arg.Digests[i])
			rows = append(rows, db.FindKeysRow{Ordinal: int32(i + 1), ID: holder.id, SameDigest: same, State: state})
		}
		return rows, nil
	})
}

// state is the word for the state of a committed message.
func (st *statement) state(id int64) string {
	if settlement, ok := st.settlements.rows[id]; ok {
		return settlement.Outcome
	}
	return st.stateOf(st.queue.rows[id])
}
