package peers

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/fencepost-go/fencepost/bench/floor"
	"github.com/fencepost-go/fencepost/schema"
)

// Floor is the library's own statements in a loop inside the server.
type Floor struct{ db *sql.DB }

func (*Floor) Name() string { return "floor" }
func (*Floor) Settings() string {
	return fmt.Sprintf("fencepost's statements in a loop inside the server, %d a statement, one session", floorBatch)
}

const floorBatch = 500

func (f *Floor) Open(ctx context.Context, dsn string) (err error) {
	if f.db, err = openSchema(ctx, dsn); err != nil {
		return err
	}
	return floor.Create(ctx, f.db, payload)
}

// openSchema makes fencepost's tables, and gives one session.
func openSchema(ctx context.Context, dsn string) (*sql.DB, error) {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return nil, err
	}
	if err := schema.Up(ctx, db, schema.Config{}); err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

func (f *Floor) Fill(ctx context.Context, messages int) error { return fill(ctx, f.db, messages) }

func fill(ctx context.Context, db *sql.DB, messages int) error {
	if err := empty(ctx, db); err != nil {
		return err
	}
	return floor.Enqueue(ctx, db, messages, chunk)
}

func empty(ctx context.Context, db *sql.DB) error {
	_, err := db.ExecContext(ctx, "TRUNCATE outbox.message, outbox.queue, outbox.order_lease, outbox.settlement")
	return err
}

func (f *Floor) Drain(ctx context.Context, messages int) error {
	drained, err := floor.Drain(ctx, f.db, floorBatch)
	if err == nil && drained != messages {
		err = fmt.Errorf("drained %d of %d messages", drained, messages)
	}
	return err
}

func (f *Floor) Close(context.Context) error { return f.db.Close() }
