package peers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/fencepost-go/fencepost/bench/floor"
	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/sender"
)

// Fencepost is the sender on pgx.
type Fencepost struct {
	Producers int  // in the same process, each with a connection of its own
	Listen    bool // messages are heard of through PostgreSQL, as from another process
	HandOff   bool // messages are born leased to the sender of the process

	db              *sql.DB
	pool, producing *pgxpool.Pool
}

func (*Fencepost) Name() string { return "fencepost" }
func (f *Fencepost) Settings() string {
	settings := fmt.Sprintf("pgx, one sender, Slots %d, Batch %d, a pool of %d%s", slots, batch, connections, producersPool(f.Producers))
	if f.Listen {
		settings += ", Listen, producers with a box of their own that runs RunNotifier"
	}
	if f.HandOff {
		settings += ", HandOff"
	}
	return settings
}

// Variant tells apart those that take part in one workload.
func (f *Fencepost) Variant() string {
	switch {
	case f.Listen:
		return "listen"
	case f.HandOff:
		return "hand-off"
	default:
		return ""
	}
}

const (
	slots       = 1_000
	batch       = 500
	connections = 4
)

func (f *Fencepost) Open(ctx context.Context, dsn string) (err error) {
	if f.db, err = openSchema(ctx, dsn); err != nil {
		return err
	}
	if err := floor.Create(ctx, f.db, payload); err != nil {
		return err
	}
	f.pool, f.producing, err = pools(ctx, dsn, connections, f.Producers)
	return err
}

// Fill puts the messages in as the floor does: it is the drain that is compared.
func (f *Fencepost) Fill(ctx context.Context, messages int) error { return fill(ctx, f.db, messages) }

func (f *Fencepost) Drain(ctx context.Context, messages int) error {
	left := newCountdown(messages)
	return f.perform(ctx, ignore, left.tick, func(ctx context.Context, _ *outbox.Box) error { return left.wait(ctx) })
}

func (f *Fencepost) Stream(ctx context.Context, producers int, span time.Duration) (messages int, err error) {
	left := newCountdown(1)
	err = f.perform(ctx, ignore, left.tick, func(ctx context.Context, box *outbox.Box) error {
		text := strings.Repeat("x", payload)
		messages, err = stream(ctx, producers, span, left, func(ctx context.Context, number int64) error {
			return enqueue(ctx, f.producing, box, int(number), text)
		})
		return err
	})
	return messages, err
}

func (f *Fencepost) Pace(ctx context.Context, times []time.Duration) (latencies []time.Duration, err error) {
	p := newPace(times)
	begin := func(_ context.Context, m outbox.Message) error { return p.begin(string(m.Payload)) }
	err = f.perform(ctx, begin, func() {}, func(ctx context.Context, box *outbox.Box) error {
		latencies, err = p.run(ctx, f.producing, func(ctx context.Context, pool stamped, number int) error {
			return enqueue(ctx, pool, box, number, numbered(number, payload))
		})
		return err
	})
	return latencies, err
}

// enqueue is a transaction that puts in one message.
func enqueue(ctx context.Context, pool pgxdb.Beginner, box *outbox.Box, number int, text string) error {
	return pgxdb.InTx(ctx, pool, box, func(tx *pgxdb.BoxTx) error {
		_, err := box.Enqueue(ctx, tx, outbox.Effect{
			Consumer: floor.Consumer, Target: floor.Target, Kind: floor.Kind, Key: strconv.Itoa(number), Payload: []byte(text),
		})
		return err
	})
}

func ignore(context.Context, outbox.Message) error { return nil }

// perform runs a sender while something is done with a box, and calls settled for each message that is recorded as done.
func (f *Fencepost) perform(ctx context.Context, do func(context.Context, outbox.Message) error, settled func(), during func(context.Context, *outbox.Box) error) error {
	box, err := f.box(&outbox.Observer{Settled: func(context.Context, outbox.Message, outbox.Outcome, outbox.Result) { settled() }})
	if err != nil {
		return err
	}
	consumer, err := box.Consumer(floor.Consumer, floor.Target, outbox.Policy{})
	if err != nil {
		return err
	}
	s, err := sender.New(box, consumer, sender.Config{
		Slots: slots, Batch: batch, Handlers: sender.Handlers{floor.Kind: {Do: do}}, Listen: f.Listen, HandOff: f.HandOff,
	})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	group, ctx := errgroup.WithContext(running)
	group.Go(func() error { return s.Run(running) })
	if f.Listen { // producers have a box of their own, as in another process
		if box, err = f.box(nil); err != nil {
			return err
		}
		group.Go(func() error { return box.RunNotifier(running) })
	}
	err = during(ctx, box) // which ends too when the sender fails
	stop()
	return errors.Join(err, group.Wait())
}

func (f *Fencepost) box(observer *outbox.Observer) (*outbox.Box, error) {
	store, err := pgxdb.New(f.pool, pgxdb.Config{Listen: f.pool.Config().ConnConfig})
	if err != nil {
		return nil, err
	}
	return outbox.New(store, outbox.Config{Logger: slog.New(slog.DiscardHandler), Observer: observer})
}

func (f *Fencepost) Close(context.Context) error {
	f.pool.Close()
	f.producing.Close()
	return f.db.Close()
}
