package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/pressly/goose/v3/database"
)

// writing makes one transaction of all that goose does on a file of SQLite. Goose locks the very connection that it then works on, so
// the lock is the file's own, taken by BEGIN IMMEDIATE: it needs no second connection and ends with the process. The migrations
// are marked NO TRANSACTION, since there is one already.
type writing struct {
	in     *installation
	before step
	begun  bool
	calm   func(context.Context) error // gives the connection its own busy timeout back
	err    error                       // nothing was changed, for this reason
}

// complete is the savepoint after the last complete version.
const complete = "fencepost_complete"

// SessionLock begins the transaction with what comes before the first migration.
func (w *writing) SessionLock(ctx context.Context, conn *sql.Conn) error {
	if w.calm, w.err = w.in.patient(ctx, conn); w.err != nil {
		return w.err
	}
	if _, w.err = conn.ExecContext(ctx, "BEGIN IMMEDIATE"); w.err == nil {
		if w.err = w.before(ctx, conn); w.err == nil {
			_, w.err = conn.ExecContext(ctx, "SAVEPOINT "+complete)
		}
	}
	w.begun = w.err == nil
	if !w.begun {
		w.undo(ctx, conn)
	}
	return w.err
}

// SessionUnlock keeps the versions that are complete: a migration that failed half-way is undone, and the last one to go takes the
// version table with it.
func (w *writing) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	_, w.err = conn.ExecContext(ctx, "ROLLBACK TO "+complete)
	if w.err == nil {
		if w.err = w.in.removeUnused(ctx, conn); w.err == nil {
			_, w.err = conn.ExecContext(ctx, "COMMIT")
		}
	}
	if w.err != nil {
		w.undo(ctx, conn)
		return w.err
	}
	return w.calm(ctx)
}

// undo leaves the connection as it was. Its own errors say only that SQLite was faster: a full disk, a failed one and an interrupt end the
// transaction.
func (w *writing) undo(ctx context.Context, conn *sql.Conn) {
	ctx = context.WithoutCancel(ctx)
	_, _ = conn.ExecContext(ctx, "ROLLBACK")
	_ = w.calm(ctx)
}

// patient makes the connection wait for the file as long as the config says, until calm.
func (in *installation) patient(ctx context.Context, conn *sql.Conn) (calm func(context.Context) error, err error) {
	var own int64
	if err := conn.QueryRowContext(ctx, "PRAGMA busy_timeout").Scan(&own); err != nil {
		return nil, err
	}
	set := func(ctx context.Context, milliseconds int64) error {
		_, err := conn.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", milliseconds))
		return err
	}
	return func(ctx context.Context) error { return set(ctx, own) }, set(ctx, in.lockTimeout.Milliseconds())
}

// look runs reads on a file, beside any writer. On a handle with _txlock=immediate a transaction would be one.
func (in *installation) look(ctx context.Context, run step) error {
	conn, err := in.openFile(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	calm, err := in.patient(ctx, conn)
	if err != nil {
		return err
	}
	return errors.Join(run(ctx, conn), calm(context.WithoutCancel(ctx)))
}

// openFile takes a connection. A new one that changes the journal's mode, as the store's do, may find the file busy at once, whatever its
// timeout: SQLite does not let two that both read it wait for each other.
func (in *installation) openFile(ctx context.Context) (*sql.Conn, error) {
	for giveUp := time.Now().Add(in.lockTimeout); ; {
		conn, err := in.db.Conn(ctx)
		if !isBusy(err) || time.Now().After(giveUp) {
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(min(10*time.Millisecond, in.lockTimeout)):
		}
	}
}

// removeUnused drops the version table when it has no version.
func (in *installation) removeUnused(ctx context.Context, db database.DBTxConn) error {
	var newest int64
	err := db.QueryRowContext(ctx, in.statement("NewestVersion")).Scan(&newest)
	if err == nil && newest == 0 {
		_, err = db.ExecContext(ctx, in.statement("DropVersionTable"))
	}
	return err
}

// marking is the version table within a writing.
type marking struct {
	store
	within *writing
}

// ListMigrations makes goose begin: it looks for something to do before it locks, when the table need not exist.
func (m marking) ListMigrations(ctx context.Context, db database.DBTxConn) ([]*database.ListMigrationsResult, error) {
	if !m.within.begun {
		return []*database.ListMigrationsResult{{Version: 0, IsApplied: true}}, nil
	}
	return m.store.ListMigrations(ctx, db)
}

func (m marking) Insert(ctx context.Context, db database.DBTxConn, request database.InsertRequest) error {
	return m.mark(ctx, db, m.store.Insert(ctx, db, request))
}

func (m marking) Delete(ctx context.Context, db database.DBTxConn, version int64) error {
	return m.mark(ctx, db, m.store.Delete(ctx, db, version))
}

// mark moves the savepoint behind a version that is complete.
func (m marking) mark(ctx context.Context, db database.DBTxConn, err error) error {
	if err == nil {
		_, err = db.ExecContext(ctx, "RELEASE "+complete+"; SAVEPOINT "+complete)
	}
	return err
}

// isBusy reports whether a statement ended because another process or connection held the file. The driver's error has this method;
// its code is SQLITE_BUSY, whatever the extension.
func isBusy(err error) bool {
	const busy = 5
	var coded interface{ Code() int }
	return errors.As(err, &coded) && coded.Code()&0xff == busy
}
