package sqlitedb

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/fencepost-go/fencepost/db"
)

// A refusal is a sentinel in words of its own: what is wrong with the file or the handle, and what to do.
type refusal struct {
	as error // the sentinel
	error
}

func refuse(as error, format string, args ...any) refusal {
	return refusal{as, fmt.Errorf("sqlitedb: "+format, args...)}
}

func (r refusal) Is(target error) bool { return target == r.as }

func (r refusal) Unwrap() error { return r.error }

// translate puts the sentinel before an error of SQLite that has one.
func translate(err error) error {
	if refused := (refusal{}); errors.As(err, &refused) {
		return refused // of which statement was the first does not matter
	}
	var failure *sqlite.Error
	if !errors.As(err, &failure) {
		return err
	}
	switch failure.Code() & 0xff { // the rest of an extended code says more than is needed
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fmt.Errorf("%w: %w", db.ErrRetry, err)
	case sqlite3.SQLITE_INTERRUPT:
		return fmt.Errorf("%w: %w", db.ErrTimeout, err)
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return fmt.Errorf("%w: may this user write the file and its folder? %w", db.ErrDenied, err)
	case sqlite3.SQLITE_CANTOPEN:
		return refuse(db.ErrDenied, "the file cannot be opened: is its path right, does its folder exist, may this user read and write both? %w", err)
	case sqlite3.SQLITE_NOTADB:
		return refuse(db.ErrDenied, "the file is no database of SQLite: correct its path, or move it away: %w", err)
	}
	return err
}

// translate is translate, and says what to do about tables that are missing.
func (s *Store) translate(err error) error {
	err = translate(err)
	if err == nil || errors.As(err, new(refusal)) {
		return err
	}
	if _, table, missing := strings.Cut(err.Error(), "no such table: outbox_"); missing {
		table, _, _ = strings.Cut(table, " ")
		return refuse(db.ErrNoSchema, "%s is not migrated, it lacks the table outbox_%s: run `fencepost migrate --dsn %s`, or schema.Up with Dialect: schema.SQLite, or correct its path",
			cmp.Or(s.where(), "the file"), table, s.DSN())
	}
	return err
}

// An opener opens the connections of Open, and says why it cannot.
type opener struct {
	driver.Connector
	path string
}

func (o opener) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := o.Connector.Connect(ctx)
	if errors.As(translate(err), new(refusal)) {
		return nil, refuse(db.ErrDenied, "%s %s: %w", o.path, trouble(o.path), err)
	}
	return conn, err
}

// trouble is what is wrong with a file that SQLite refuses. It opens none: to close it would end the locks of this process.
func trouble(path string) string {
	folder, err := os.Stat(filepath.Dir(path))
	if err != nil || !folder.IsDir() {
		return "is in a folder that does not exist or may not be entered: make it, or correct the path"
	}
	switch file, err := os.Stat(path); {
	case err != nil:
		return "does not exist and may not be made: correct the path (Config.MustExist), or let this user write the folder"
	case file.IsDir():
		return "is a folder: give the path of a file"
	default:
		return "is no database of SQLite, or this user may not read and write it: correct the path, or the rights of the file and its folder"
	}
}

// translateCaller is translate for the error of a caller's function, which may come from statements of its own: of those only the retryable
// is named.
func translateCaller(err error) error {
	if translated := translate(err); errors.Is(translated, db.ErrRetry) && !errors.Is(err, db.ErrRetry) {
		return translated
	}
	return err
}
