package sqlitedb

import (
	"context"
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
	var number int64
	var schema, path string
	if err := s.reader.pool.QueryRowContext(ctx, "PRAGMA database_list").Scan(&number, &schema, &path); err != nil {
		return "", translate(err)
	}
	s.path.Store(&path)
	return path, nil
}
