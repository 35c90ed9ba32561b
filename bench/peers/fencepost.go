package peers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/bench/floor"
	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/sender"
)

// Fencepost is the sender on pgx.
type Fencepost struct {
	Producers int // in the same process, each with a connection of its own

	db   *sql.DB
	pool *pgxpool.Pool
}

func (*Fencepost) Name() string { return "fencepost" }
func (f *Fencepost) Settings() string {
	return fmt.Sprintf("pgx, one sender, Slots %d, Batch %d, a pool of %d", slots, batch, connections+f.Producers)
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
	f.pool, err = pgxpool.New(ctx, fmt.Sprintf("%s&pool_max_conns=%d", dsn, connections+f.Producers))
	return err
}

// Fill puts the messages in as the floor does: it is the drain that is compared.
func (f *Fencepost) Fill(ctx context.Context, messages int) error { return fill(ctx, f.db, messages) }

func (f *Fencepost) Drain(ctx context.Context, messages int) error {
	left := newCountdown(messages)
	return f.perform(ctx, ignore, left.tick, func(ctx context.Context, _ *outbox.Box) error { return left.wait(ctx) })
}

func (f *Fencepost) Stream(ctx context.Context, producers int, span time.Duration) (messages int, err error) {
	left := newCountdown(1)
	err = f.perform(ctx, ignore, left.tick, func(ctx context.Context, box *outbox.Box) error {
		text := []byte(strings.Repeat("x", payload))
		messages, err = stream(ctx, producers, span, left, func(ctx context.Context, number int64) error {
			return pgxdb.InTx(ctx, f.pool, box, func(tx *pgxdb.BoxTx) error {
				_, err := box.Enqueue(ctx, tx, outbox.Effect{
					Consumer: floor.Consumer, Target: floor.Target, Kind: floor.Kind, Key: strconv.FormatInt(number, 10), Payload: text,
				})
				return err
			})
		})
		return err
	})
	return messages, err
}

func ignore(context.Context, outbox.Message) error { return nil }

// perform runs a sender while something is done, and calls settled for each message that is recorded as done.
func (f *Fencepost) perform(ctx context.Context, do func(context.Context, outbox.Message) error, settled func(), during func(context.Context, *outbox.Box) error) error {
	store, err := pgxdb.New(f.pool, pgxdb.Config{})
	if err != nil {
		return err
	}
	box, err := outbox.New(store, outbox.Config{Logger: slog.New(slog.DiscardHandler), Observer: &outbox.Observer{
		Settled: func(context.Context, outbox.Message, outbox.Outcome, outbox.Result) { settled() },
	}})
	if err != nil {
		return err
	}
	consumer, err := box.Consumer(floor.Consumer, floor.Target, outbox.Policy{})
	if err != nil {
		return err
	}
	s, err := sender.New(box, consumer, sender.Config{Slots: slots, Batch: batch, Handlers: sender.Handlers{floor.Kind: {Do: do}}})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	ran := make(chan error, 1)
	go func() {
		err := s.Run(ctx)
		stop(err) // which ends what waits for one that could not go on
		ran <- err
	}()
	err = during(ctx, box)
	stop(nil)
	return errors.Join(err, <-ran)
}

func (f *Fencepost) Close(context.Context) error {
	f.pool.Close()
	return f.db.Close()
}
