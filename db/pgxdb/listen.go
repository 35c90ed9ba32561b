package pgxdb

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/pgxdb/internal/gen"
)

const (
	// selfTest bounds the wait for the hint that Listen sends to itself.
	selfTest = 5 * time.Second
	// keepAlive is how long the channel may be silent before the connection is probed: a half-open one is noticed within twice that.
	keepAlive = 5 * time.Second
)

// Wake implements db.Notifier.
func (s *Store) Wake(ctx context.Context) error {
	return db.Translate(s.queries.Notify(ctx, s.pool, gen.NotifyParams{Channel: db.Channel(s.Schema())}))
}

// Listen implements db.Notifier.
func (s *Store) Listen(ctx context.Context, woken func()) error {
	if s.listen == nil {
		return db.ErrNoListener
	}
	conn, err := pgx.ConnectConfig(ctx, s.listen.Copy())
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
		defer cancel()
		conn.Close(ctx)
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{db.Channel(s.Schema())}.Sanitize()); err != nil {
		return err
	}
	if err := s.hearItself(ctx, conn); err != nil {
		return err
	}
	woken()
	for {
		err := waitFor(ctx, conn, keepAlive)
		switch {
		case err == nil:
			woken()
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, context.DeadlineExceeded):
			if err := probe(ctx, conn); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// hearItself sends a hint through the pool and waits for it on the listening connection.
func (s *Store) hearItself(ctx context.Context, conn *pgx.Conn) error {
	if err := s.Wake(ctx); err != nil {
		return err
	}
	err := waitFor(ctx, conn, selfTest)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return db.ErrDeafListener
	}
	return err
}

func waitFor(ctx context.Context, conn *pgx.Conn, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err := conn.WaitForNotification(ctx)
	return err
}

func probe(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, keepAlive)
	defer cancel()
	return conn.Ping(ctx)
}
