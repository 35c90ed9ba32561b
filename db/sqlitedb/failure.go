package sqlitedb

import (
	"errors"
	"fmt"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/fencepost-go/fencepost/db"
)

// translate puts the sentinel before an error of SQLite that has one.
func translate(err error) error {
	var failure *sqlite.Error
	if !errors.As(err, &failure) {
		return err
	}
	switch failure.Code() & 0xff { // the rest of an extended code says more than is needed
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fmt.Errorf("%w: %w", db.ErrRetry, err)
	case sqlite3.SQLITE_INTERRUPT:
		return fmt.Errorf("%w: %w", db.ErrTimeout, err)
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_CANTOPEN:
		return fmt.Errorf("%w: %w", db.ErrDenied, err)
	case sqlite3.SQLITE_ERROR:
		if strings.Contains(failure.Error(), "no such table: outbox_") {
			return fmt.Errorf("%w: %w", db.ErrNoSchema, err)
		}
	}
	return err
}

// translateCaller is translate for the error of a caller's function, which may come from statements of its own: of those only the retryable
// is named.
func translateCaller(err error) error {
	if translated := translate(err); errors.Is(translated, db.ErrRetry) && !errors.Is(err, db.ErrRetry) {
		return translated
	}
	return err
}
