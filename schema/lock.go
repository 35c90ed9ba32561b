package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pressly/goose/v3/database"
)

// step is what a change does beside the migrations.
type step func(context.Context, database.DBTxConn) error

// errNothingToDo ends a change before it begins.
var errNothingToDo = errors.New("nothing to do")

// change runs migrations between two steps while no other process changes the schema. On SQLite all is one transaction, and what
// after does is removeUnused's.
func (in *installation) change(ctx context.Context, before step, run migrations, after step) error {
	var err error
	if in.dialect == SQLite {
		err = in.migrate(ctx, run, &writing{in: in, before: before})
	} else {
		err = in.alone(ctx, func(ctx context.Context) error {
			if err := in.inTx(ctx, before); err != nil {
				return err
			}
			if err := in.migrate(ctx, run, nil); err != nil {
				return err
			}
			return in.inTx(ctx, after)
		})
	}
	if errors.Is(err, errNothingToDo) {
		return nil
	}
	return err
}

// alone calls change while no other process changes the schema. The lock is held by a transaction on a connection of its
// own, so that change can commit step by step.
func (in *installation) alone(ctx context.Context, change func(context.Context) error) error {
	conn, err := in.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	// A cancelled context must not end the transaction, and with it the lock, while the last statement of change still runs.
	// At a stricter level, which may be the role's default, it would hold a snapshot against vacuum as long as it idles.
	tx, err := conn.BeginTx(context.WithoutCancel(ctx), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	defer tx.Rollback() // nothing to commit; if the connection broke, the server has ended the transaction
	if _, err := tx.ExecContext(ctx, in.statement("LiftWaitLimits")); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, in.statement("Lock"), in.name); err != nil {
		return fmt.Errorf("wait for another migrator: %w", err)
	}
	if _, err := tx.ExecContext(ctx, in.statement("LiftIdleLimit")); err != nil {
		return err
	}
	return change(ctx)
}

// checkPool refuses a pool in which alone would wait for ever.
func (in *installation) checkPool() error {
	if in.dialect == Postgres && in.db.Stats().MaxOpenConnections == 1 {
		return errors.New("needs two connections at once, and the pool has MaxOpenConns 1")
	}
	return nil
}

// inTx runs a step in a transaction that bounds its waits as the migrations do.
func (in *installation) inTx(ctx context.Context, run step) error {
	conn, err := in.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // of no effect after the commit
	if _, err := tx.ExecContext(ctx, in.statement("LimitLockWaits")); err != nil {
		return err
	}
	if err := run(ctx, tx); err != nil {
		return err
	}
	return tx.Commit()
}

// connect takes a connection. Calls that share a small pool could each hold one for the lock and wait for another for ever;
// that the pool is a pooler's shows only when something is sent.
func (in *installation) connect(ctx context.Context) (*sql.Conn, error) {
	bounded, cancel := context.WithTimeout(ctx, in.connectTimeout)
	defer cancel()
	conn, err := in.db.Conn(bounded)
	if err == nil {
		if err = conn.PingContext(bounded); err == nil {
			return conn, nil
		}
		conn.Close()
	}
	if bounded.Err() != nil && ctx.Err() == nil {
		stats := in.db.Stats()
		err = fmt.Errorf("got no connection within %v, with %d in use and MaxOpenConns %d: %w",
			in.connectTimeout, stats.InUse, stats.MaxOpenConnections, err)
	}
	return nil, err
}

// keep is the step that does nothing.
func keep(context.Context, database.DBTxConn) error { return nil }
