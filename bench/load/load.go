// Package load is fencepost as the workloads need it that no other product takes part in: a database of its own, filled in any shape, and senders on it.
package load

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/bench/floor"
	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/schema"
	"github.com/fencepost-go/fencepost/sender"
)

// What a sender has where a workload does not say otherwise: as in W1.
const (
	Slots       = 1_000
	Batch       = 500
	Connections = 4
	Payload     = 200 // bytes
)

// A Rig is a database with fencepost's tables.
type Rig struct {
	DSN   string
	DB    *sql.DB // one session, for what is not measured
	Pool  *pgxpool.Pool
	Store db.Store
	trips atomic.Int64
}

// Open makes the tables in an empty database.
func Open(ctx context.Context, dsn string) (*Rig, error) {
	r := &Rig{DSN: dsn}
	var err error
	if r.DB, err = sql.Open("pgx", dsn); err != nil {
		return nil, err
	}
	r.DB.SetMaxOpenConns(2) // schema.Up takes two
	if err := schema.Up(ctx, r.DB, schema.Config{}); err != nil {
		return nil, err
	}
	r.DB.SetMaxOpenConns(1)
	config, err := pgxpool.ParseConfig(fmt.Sprintf("%s&pool_max_conns=%d", dsn, Connections))
	if err != nil {
		return nil, err
	}
	config.ConnConfig.Tracer = &counter{&r.trips}
	if r.Pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, err
	}
	r.Store, err = pgxdb.New(r.Pool, pgxdb.Config{})
	return r, err
}

// Close gives the connections back.
func (r *Rig) Close() error {
	r.Pool.Close()
	return r.DB.Close()
}

// Trips are the round trips through the pool so far: statements and pipelined batches of them.
func (r *Rig) Trips() int64 { return r.trips.Load() }

type counter struct{ trips *atomic.Int64 }

func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.trips.Add(1)
	return ctx
}
func (*counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (c *counter) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	c.trips.Add(1)
	return ctx
}
func (*counter) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (*counter) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// A Filling is messages to put in, of one consumer and kind.
type Filling struct {
	Messages int
	Consumer string        // "" means the floor's
	Payload  int           // bytes; 0 means 200
	Tenants  int           // in turn; 0 means the tenant "" alone
	Keys     int           // order keys, in turn; 0 means none
	KeysFrom int           // the first one's number
	Due      time.Duration // from now
	Settled  time.Duration // ago, as delivered; 0 means that they are open
}

// chunk is how many rows one statement of a fill makes: a transaction of a whole fill would keep vacuum from the tables beside it.
const chunk = 100_000

//go:embed fill.sql
var fill string

// Empty removes all messages.
func (r *Rig) Empty(ctx context.Context) error {
	_, err := r.DB.ExecContext(ctx, "TRUNCATE outbox.message, outbox.queue, outbox.order_lease, outbox.settlement")
	return err
}

// Fill puts messages in, in an order of tables that senders never use: it is what comes after that is measured.
func (r *Rig) Fill(ctx context.Context, f Filling) error {
	if f.Consumer == "" {
		f.Consumer = floor.Consumer
	}
	if f.Payload == 0 {
		f.Payload = Payload
	}
	payload := make([]byte, f.Payload)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(payload) // never fails; compressed it would be shorter
	for from := 0; from < f.Messages; from += chunk {
		_, err := r.DB.ExecContext(ctx, fill, from, min(from+chunk, f.Messages)-1, f.Consumer, floor.Target, floor.Kind, payload,
			f.Tenants, f.Keys, f.Due.Microseconds(), f.Settled.Microseconds(), floor.MaxAge, f.KeysFrom)
		if err != nil {
			return fmt.Errorf("fill: %w", err)
		}
		if (from/chunk)%10 == 9 { // or the log of a large fill would be kept as a whole
			if _, err := r.DB.ExecContext(ctx, "CHECKPOINT"); err != nil {
				return err
			}
		}
	}
	return nil
}

// Analyze brings the statistics up to date, so that autovacuum has no reason to in the middle of a measurement, and what was filled looks as it
// would have after a while.
func (r *Rig) Analyze(ctx context.Context) error {
	_, err := r.DB.ExecContext(ctx, "VACUUM (ANALYZE) outbox.message, outbox.queue, outbox.settlement")
	return err
}

// A Sending is a sender at work.
type Sending struct {
	Store    db.Store
	Within   *outbox.Box // instead of one of its own on the store
	Consumer string      // "" means the floor's
	Config   sender.Config
	Settled  func(outbox.Message) // for each one, from many goroutines
}

// Box makes the box and the consumer of a sending.
func (s Sending) Box() (*outbox.Box, *outbox.Consumer, error) {
	observer := &outbox.Observer{}
	if s.Settled != nil {
		observer.Settled = func(_ context.Context, m outbox.Message, _ outbox.Outcome, _ outbox.Result) { s.Settled(m) }
	}
	box := s.Within
	if box == nil {
		var err error
		if box, err = outbox.New(s.Store, outbox.Config{Logger: slog.New(slog.DiscardHandler), Observer: observer}); err != nil {
			return nil, nil, err
		}
	}
	if s.Consumer == "" {
		s.Consumer = floor.Consumer
	}
	consumer, err := box.Consumer(s.Consumer, floor.Target, outbox.Policy{})
	return box, consumer, err
}

// Sender makes the sender, with a handler that does nothing.
func (s Sending) Sender() (*sender.Sender, error) {
	box, consumer, err := s.Box()
	if err != nil {
		return nil, err
	}
	if s.Config.Slots == 0 {
		s.Config.Slots = Slots
	}
	if s.Config.Batch == 0 {
		s.Config.Batch = Batch
	}
	s.Config.Handlers = sender.Handlers{floor.Kind: {Do: func(context.Context, outbox.Message) error { return nil }}}
	return sender.New(box, consumer, s.Config)
}

// While runs the sender while something is done. A sender that cannot go on ends the context of that.
func (s Sending) While(ctx context.Context, do func(context.Context) error) error {
	made, err := s.Sender()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ran := make(chan error, 1)
	go func() {
		err := made.Run(ctx)
		stop(err)
		ran <- err
	}()
	if err := do(ctx); err != nil {
		return err
	}
	stop(nil)
	return <-ran
}

// Drain runs the sender until so many messages were settled.
func (s Sending) Drain(ctx context.Context, messages int) error {
	left := NewCountdown(messages)
	also := s.Settled
	s.Settled = func(m outbox.Message) {
		if also != nil {
			also(m)
		}
		left.Tick(1)
	}
	return s.While(ctx, left.Wait)
}
