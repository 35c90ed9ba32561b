package peers

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/bench/floor"
	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/sender"
)

// Fencepost is the sender on pgx.
type Fencepost struct {
	db     *sql.DB
	pool   *pgxpool.Pool
	config sender.Config
}

func (*Fencepost) Name() string { return "fencepost" }
func (*Fencepost) Settings() string {
	return fmt.Sprintf("pgx, one sender, Slots %d, Batch %d, a pool of %d", slots, batch, connections)
}

const (
	slots       = 1_000
	batch       = 500
	connections = 4
)

func (f *Fencepost) Open(ctx context.Context, dsn string) (err error) {
	if f.db, err = openSchema(ctx, dsn); err != nil {
		return err
	}
	if err := floor.Create(ctx, f.db, payload); err != nil {
		return err
	}
	f.pool, err = pgxpool.New(ctx, fmt.Sprintf("%s&pool_max_conns=%d", dsn, connections))
	return err
}

// Fill puts the messages in as the floor does: it is the drain that is compared.
func (f *Fencepost) Fill(ctx context.Context, messages int) error { return fill(ctx, f.db, messages) }

func (f *Fencepost) Drain(ctx context.Context, messages int) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	left := newCountdown(messages)
	store, err := pgxdb.New(f.pool, pgxdb.Config{})
	if err != nil {
		return err
	}
	box, err := outbox.New(store, outbox.Config{Logger: slog.New(slog.DiscardHandler), Observer: &outbox.Observer{
		Settled: func(context.Context, outbox.Message, outbox.Outcome, outbox.Result) { left.tick() },
	}})
	if err != nil {
		return err
	}
	consumer, err := box.Consumer(floor.Consumer, floor.Target, outbox.Policy{})
	if err != nil {
		return err
	}
	s, err := sender.New(box, consumer, sender.Config{
		Slots: slots, Batch: batch,
		Handlers: sender.Handlers{floor.Kind: {Do: func(context.Context, outbox.Message) error { return nil }}},
	})
	if err != nil {
		return err
	}
	ran := make(chan error, 1)
	go func() {
		err := s.Run(ctx)
		stop(err) // which ends the wait for one that could not go on
		ran <- err
	}()
	if err := left.wait(ctx); err != nil {
		return err
	}
	stop(nil)
	return <-ran
}

func (f *Fencepost) Close(context.Context) error {
	f.pool.Close()
	return f.db.Close()
}
