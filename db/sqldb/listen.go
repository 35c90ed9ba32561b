package sqldb

import (
	"context"
	"time"

	"github.com/lib/pq"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/sqldb/internal/gen"
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
	if s.listenDSN == "" {
		return db.ErrNoListener
	}
	broken := make(chan error, 1)
	listener := pq.NewListener(s.listenDSN, time.Second, time.Second, func(event pq.ListenerEventType, err error) {
		// The caller decides when to connect again, so the first loss ends this listening.
		if event == pq.ListenerEventDisconnected || event == pq.ListenerEventConnectionAttemptFailed {
			select {
			case broken <- err:
			default:
			}
		}
	})
	defer listener.Close()
	listening := make(chan error, 1)
	go func() { listening <- listener.Listen(db.Channel(s.Schema())) }()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-broken:
		return err
	case err := <-listening:
		if err != nil {
			return err
		}
	}
	if err := s.Wake(ctx); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-broken:
		return err
	case <-time.After(selfTest):
		return db.ErrDeafListener
	case <-listener.Notify:
	}
	woken()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-broken:
			return err
		case <-listener.Notify:
			woken()
		case <-time.After(keepAlive):
			if err := s.probe(ctx, listener); err != nil {
				return err
			}
		}
	}
}

// probe asks the server for a sign of life; the listener's own Ping has no deadline.
func (s *Store) probe(ctx context.Context, listener *pq.Listener) error {
	answer := make(chan error, 1)
	go func() { answer <- listener.Ping() }()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-answer:
		return err
	case <-time.After(keepAlive):
		return context.DeadlineExceeded
	}
}
