package sqlitedb

import (
	"cmp"
	"context"
	"database/sql"
	"sync"

	"github.com/fencepost-go/fencepost/db"
)

var _ db.Store = (*Store)(nil)

// listeners are those of this process, by file. SQLite tells no other process of a commit: there the poll finds it.
var listeners = struct {
	sync.Mutex
	of map[string]map[chan struct{}]struct{}
}{of: map[string]map[chan struct{}]struct{}{}}

// Wake implements db.Notifier.
func (s *Store) Wake(ctx context.Context) error {
	file, err := s.file(ctx)
	if err != nil {
		return err
	}
	listeners.Lock()
	defer listeners.Unlock()
	for hint := range listeners.of[file] {
		select {
		case hint <- struct{}{}:
		default: // one hint says as much as many
		}
	}
	return nil
}

// Listen implements db.Notifier for the stores of this process on the same file.
func (s *Store) Listen(ctx context.Context, woken func()) error {
	file, err := s.file(ctx)
	if err != nil {
		return err
	}
	hint := make(chan struct{}, 1)
	listeners.Lock()
	if listeners.of[file] == nil {
		listeners.of[file] = map[chan struct{}]struct{}{}
	}
	listeners.of[file][hint] = struct{}{}
	listeners.Unlock()
	defer func() {
		listeners.Lock()
		defer listeners.Unlock()
		delete(listeners.of[file], hint)
		if len(listeners.of[file]) == 0 {
			delete(listeners.of, file)
		}
	}()
	for woken(); ; woken() {
		select {
		case <-hint:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// file is the path of the file as SQLite resolved it.
func (s *Store) file(ctx context.Context) (string, error) {
	if known := s.path.Load(); known != nil {
		return *known, ctx.Err()
	}
	path, err := mainFile(ctx, s.reader.pool)
	if err != nil {
		return "", translate(err)
	}
	s.path.Store(&path)
	return path, nil
}

// where is the path of the file as far as it is known without asking.
func (s *Store) where() string {
	if known := s.path.Load(); known != nil {
		return *known
	}
	return s.opened
}

// DSN names the file as the command's --dsn takes it. A store that New made knows its file after its first operation.
func (s *Store) DSN() string { return "sqlite:" + cmp.Or(s.where(), "PATH") }

// mainFile is the path of the file that a connection or a transaction is on, as SQLite resolved it.
func mainFile(ctx context.Context, on interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}) (path string, err error) {
	var number int64
	var schema string
	err = on.QueryRowContext(ctx, "PRAGMA database_list").Scan(&number, &schema, &path) // main is the first
	return path, err
}
