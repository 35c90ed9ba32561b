package peers

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// River is github.com/riverqueue/river.
type River struct{ pool *pgxpool.Pool }

func (*River) Name() string { return "river" }
func (*River) Settings() string {
	return "riverpgxv5, MaxWorkers 1,000, FetchCooldown and FetchPollInterval 1 ms, filled by InsertManyFast (COPY), a pool of 10"
}

// A riverJob is one message.
type riverJob struct {
	Text string `json:"text"`
}

func (riverJob) Kind() string { return "charge" }

func (r *River) Open(ctx context.Context, dsn string) (err error) {
	if r.pool, err = pgxpool.New(ctx, dsn+"&pool_max_conns=10"); err != nil {
		return err
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(r.pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

// client performs messages with the worker.
func (r *River) client(work func(context.Context, *river.Job[riverJob]) error) (*river.Client[pgx.Tx], error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(work))
	return river.NewClient(riverpgxv5.New(r.pool), &river.Config{
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 1_000}},
		Workers:           workers,
		FetchCooldown:     time.Millisecond,
		FetchPollInterval: time.Millisecond,
		Logger:            slog.New(slog.DiscardHandler),
	})
}

func (r *River) Fill(ctx context.Context, messages int) error {
	if _, err := r.pool.Exec(ctx, "TRUNCATE river_job"); err != nil {
		return err
	}
	client, err := r.client(func(context.Context, *river.Job[riverJob]) error { return nil })
	if err != nil {
		return err
	}
	args := make([]river.InsertManyParams, chunk)
	for i := range args {
		args[i].Args = riverJob{strings.Repeat("x", payload-len(`{"text":""}`))}
	}
	for left := messages; left > 0; left -= chunk {
		if _, err := client.InsertManyFast(ctx, args[:min(left, chunk)]); err != nil {
			return err
		}
	}
	return nil
}

// Drain counts the events that follow the completion of a job, which River records in batches.
func (r *River) Drain(ctx context.Context, messages int) error {
	client, err := r.client(func(context.Context, *river.Job[riverJob]) error { return nil })
	if err != nil {
		return err
	}
	completed, unsubscribe := client.SubscribeConfig(&river.SubscribeConfig{ChanSize: messages, Kinds: []river.EventKind{river.EventKindJobCompleted}})
	defer unsubscribe()
	left := newCountdown(messages)
	if err := client.Start(ctx); err != nil {
		return err
	}
	go func() {
		for range completed {
			left.tick()
		}
	}()
	if err := left.wait(ctx); err != nil {
		return err
	}
	return client.Stop(ctx)
}

func (r *River) Close(context.Context) error {
	r.pool.Close()
	return nil
}
