package pgxdb_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/internal/pgtest"
)

// endByHand is how somebody in psql ends a message.
const endByHand = `
WITH gone AS (DELETE FROM outbox.queue WHERE message_id = $1 RETURNING message_id, epoch, attempt, replays)
INSERT INTO outbox.settlement (message_id, epoch, attempt, replays, outcome) SELECT message_id, epoch, attempt, replays, 'cancelled' FROM gone`

// A transaction whose snapshot is old, somebody's in psql, either knows all that decides whether a batch is complete or is refused: it never
// leaves a batch open that has no open row, nor completes one that has.
// Shows: I25
func TestBatchesAtOtherLevels(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), pgtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	store, err := pgxdb.New(pool, pgxdb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		for name, c := range map[string]struct {
			unsealed bool
			before   func(b *byHand)                 // after the snapshot was taken, before the last message ends in it
			beside   func(b *byHand) <-chan struct{} // after it ended, before the commit
			refused  bool
		}{
			"nothing beside":      {before: func(b *byHand) { b.end(b.old, 0) }},
			"another ends before": {before: func(b *byHand) { b.end(b.pool, 0) }, refused: true},
			"sealed before":       {unsealed: true, before: func(b *byHand) { b.end(b.pool, 0); b.seal() }, refused: true},
			"a replay before":     {before: func(b *byHand) { b.replay(2); b.end(b.pool, 0); b.end(b.pool, 2) }, refused: true},
			"another ends beside": {beside: func(b *byHand) <-chan struct{} { return b.background(func() { b.end(b.pool, 0) }) }},
		} {
			t.Run(string(level)+"/"+name, func(t *testing.T) {
				b := begin(t, pool, store, level, c.unsealed)
				if c.before != nil {
					c.before(b)
				}
				_, err := b.old.Exec(t.Context(), endByHand, b.ids[1])
				var done <-chan struct{}
				if err == nil && c.beside != nil {
					done = c.beside(b)
				}
				if err == nil {
					err = b.old.Commit(t.Context())
				}
				var refusal *pgconn.PgError
				if refused := errors.As(err, &refusal) && refusal.Code == "40001"; refused != c.refused {
					t.Fatalf("got %v", err)
				}
				_ = b.old.Rollback(t.Context())
				if done != nil {
					<-done
				}
				b.finish()
			})
		}
	}
}

// byHand is a batch of three messages, the last of them dead, and a transaction with a snapshot of it.
type byHand struct {
	*testing.T
	pool  *pgxpool.Pool
	store *pgxdb.Store
	old   pgx.Tx
	batch int64
	ids   []int64
}

func begin(t *testing.T, pool *pgxpool.Pool, store *pgxdb.Store, level pgx.TxIsoLevel, unsealed bool) *byHand {
	t.Helper()
	b := &byHand{T: t, pool: pool, store: store}
	rows, err := store.AddBatch(t.Context(), db.AddBatchParams{
		Consumer: consumer, Target: target, Kind: kind, Key: t.Name(), Digest: make([]byte, 32), CompleteDigest: []byte{}, CompletePayload: []byte{},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.batch = rows[0].ID
	err = store.Transact(t.Context(), func(tx db.Tx) error {
		p := enqueueParams(3, t.Name())
		stored, err := store.Enqueue(t.Context(), tx, p)
		for _, row := range stored {
			b.ids = append(b.ids, row.ID)
		}
		if err == nil {
			_, err = store.AddBatchRows(t.Context(), tx, db.AddBatchRowsParams{
				BatchID: b.batch, AllTenants: true, Numbers: []int32{1, 2, 3}, MessageIds: b.ids, Reasons: make([]string, 3),
			})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	b.exec(`WITH gone AS (DELETE FROM outbox.queue WHERE message_id = $1 RETURNING message_id)
		INSERT INTO outbox.settlement (message_id, epoch, attempt, replays, outcome, cause, reason) SELECT message_id, 1, 1, 0, 'dead', 'moot', 'r' FROM gone`, b.ids[2])
	if !unsealed {
		b.seal()
	}
	if b.old, err = pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.old.Rollback(context.Background()) })
	var n int
	if err := b.old.QueryRow(t.Context(), "SELECT count(*) FROM outbox.batch_row").Scan(&n); err != nil { // takes the snapshot
		t.Fatal(err)
	}
	return b
}

func (b *byHand) exec(sql string, args ...any) {
	b.Helper()
	if _, err := b.pool.Exec(b.Context(), sql, args...); err != nil {
		b.Error(err)
	}
}

func (b *byHand) end(on interface {
	Exec(context.Context, string, ...any) (pgconn.CommandTag, error)
}, i int) {
	b.Helper()
	if _, err := on.Exec(b.Context(), endByHand, b.ids[i]); err != nil {
		b.Error(err)
	}
}

func (b *byHand) replay(i int) {
	b.Helper()
	rows, err := b.store.ReplayDead(b.Context(), db.ReplayDeadParams{Ids: b.ids[i : i+1], AllTenants: true, Reset: true, Actor: "ann", Reason: "again"})
	if err != nil || len(rows) != 1 {
		b.Errorf("replayed %d: %v", rows, err)
	}
}

func (b *byHand) seal() {
	b.Helper()
	if rows, err := b.store.SealBatch(b.Context(), db.SealBatchParams{ID: b.batch, AllTenants: true}); err != nil || len(rows) != 1 {
		b.Errorf("sealed %d: %v", rows, err)
	}
}

// background runs do, which waits for the old transaction or does not.
func (b *byHand) background(do func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	return done
}

// finish checks that the batch is completed exactly when nothing is open, now and when all that is open has ended.
func (b *byHand) finish() {
	b.Helper()
	check := func(what string) db.CountBatchRow {
		b.Helper()
		rows, err := b.store.CountBatch(b.Context(), db.CountBatchParams{ID: b.batch, AllTenants: true})
		if err != nil {
			b.Fatal(err)
		}
		if completed := rows[0].CompletedAt.Year() < 9999; completed != (rows[0].Open == 0 && rows[0].SealedAt.Year() < 9999) {
			b.Errorf("%s: completed %t with %d open", what, completed, rows[0].Open)
		}
		return rows[0]
	}
	if c := check("then"); c.SealedAt.Year() == 9999 {
		b.seal()
	}
	for i := range b.ids {
		b.end(b.pool, i) // those that are open
	}
	if c := check("in the end"); c.Open != 0 || c.Run != 1 {
		b.Errorf("in the end %d are open in run %d", c.Open, c.Run)
	}
}
