package memdb

import (
	"context"
	"errors"
)

// errDisconnected is what Disconnect does to a listener.
var errDisconnected = errors.New("memdb: the listening connection broke")

// A listener holds at most one hint: more of them say no more.
type listener struct {
	hints  chan struct{}
	broken chan struct{}
}

// Wake implements db.Notifier.
func (s *Store) Wake(ctx context.Context) error {
	_, err := run(ctx, s, "Wake", nil, func(st *statement) []struct{} {
		for l := range st.listeners {
			select {
			case l.hints <- struct{}{}:
			default:
			}
		}
		return nil
	})
	return err
}

// Listen implements db.Notifier. To have no connection to listen on, or a deaf one, let the hook return db.ErrNoListener or db.ErrDeafListener.
func (s *Store) Listen(ctx context.Context, woken func()) error {
	_, err := hooked(ctx, s, Call{Operation: "Listen"}, func() ([]struct{}, error) { return nil, s.listen(ctx, woken) })
	return err
}

func (s *Store) listen(ctx context.Context, woken func()) error {
	l := &listener{hints: make(chan struct{}, 1), broken: make(chan struct{})}
	s.mu.Lock()
	s.listeners[l] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.listeners, l)
	}()
	woken()
	for {
		select {
		case <-l.hints:
			woken()
		case <-l.broken:
			return errDisconnected
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Disconnect breaks every listening connection, as a restart of a server does.
func (s *Store) Disconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.listeners {
		close(l.broken)
		delete(s.listeners, l)
	}
}
