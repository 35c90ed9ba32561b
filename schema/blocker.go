package schema

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrBlocked says that a table, or a file of SQLite, was in use for longer than Config.LockTimeout. The error that wraps it names
// the sessions where the server knows them.
// The step that waited is undone; calling again is safe and goes on with it.
var ErrBlocked = errors.New("gave up waiting for a lock")

// isLockTimeout reports whether a statement ended because of lock_timeout. Every PostgreSQL driver's error has this method.
func isLockTimeout(err error) bool {
	var state interface{ SQLState() string }
	return errors.As(err, &state) && state.SQLState() == "55P03"
}

// report returns an error as it leaves the package.
func (in *installation) report(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	switch {
	case isLockTimeout(err):
		err = in.blocked(ctx, err)
	case isBusy(err):
		err = fmt.Errorf("%w after %v: another process or connection writes to the file; end its transaction, then call again: %w",
			ErrBlocked, in.lockTimeout, err)
	}
	return fmt.Errorf("schema %s: %w", in.name, err)
}

// blocked returns ErrBlocked with the sessions that were in the way. They are looked for after the fact, since the session
// that waited does not know.
func (in *installation) blocked(ctx context.Context, cause error) error {
	blockers, err := in.listBlockers(ctx)
	if err != nil {
		return errors.Join(fmt.Errorf("%w after %v: %w", ErrBlocked, in.lockTimeout, cause), err)
	}
	by := "whoever held it is gone by now"
	if len(blockers) > 0 {
		by = "held by " + strings.Join(blockers, "; ")
	}
	return fmt.Errorf("%w after %v, %s: %w", ErrBlocked, in.lockTimeout, by, cause)
}

func (in *installation) listBlockers(ctx context.Context) ([]string, error) {
	rows, err := in.db.QueryContext(ctx, in.statement("ListBlockers"), in.name, in.lockTimeout.Microseconds())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var blockers []string
	for rows.Next() {
		var pid, transaction, query int64
		var role, application, state string
		if err := rows.Scan(&pid, &role, &application, &state, &transaction, &query); err != nil {
			return nil, err
		}
		if pid == 0 {
			blockers = append(blockers, "a prepared transaction (see pg_prepared_xacts)")
			continue
		}
		blocker := fmt.Sprintf("pid %d (user %s, application %q", pid, role, application)
		if state != "" {
			blocker += fmt.Sprintf(", %s, transaction open for %v, last query began %v ago", state, age(transaction), age(query))
		}
		blockers = append(blockers, blocker+")")
	}
	return blockers, rows.Err()
}

func age(microseconds int64) time.Duration {
	return (time.Duration(microseconds) * time.Microsecond).Round(time.Millisecond)
}
