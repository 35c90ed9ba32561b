package peers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
type River struct {
	Producers      int           // in the same process, each with a connection of its own
	Cooldown, Poll time.Duration // between fetches while there is work, and while there is none; the least, 1 ms, where nothing is said

	pool, producing *pgxpool.Pool
}

func (*River) Name() string { return "river" }
func (r *River) Settings() string {
	cooldown, poll := r.fetches()
	return fmt.Sprintf("riverpgxv5, MaxWorkers 1,000, FetchCooldown %v, FetchPollInterval %v, filled by InsertManyFast (COPY), a pool of 10%s",
		cooldown, poll, producersPool(r.Producers))
}

func (r *River) fetches() (cooldown, poll time.Duration) {
	return cmp.Or(r.Cooldown, time.Millisecond), cmp.Or(r.Poll, time.Millisecond)
}

// A riverJob is one message.
type riverJob struct {
	Text string `json:"text"`
}

func (riverJob) Kind() string { return "charge" }

func (r *River) Open(ctx context.Context, dsn string) (err error) {
	if r.pool, r.producing, err = pools(ctx, dsn, 10, r.Producers); err != nil {
		return err
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(r.pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

// riverText makes the arguments of a job, which are JSON, as long as others' payloads.
var riverText = strings.Repeat("x", payload-len(`{"text":""}`))

type riverWork = func(context.Context, *river.Job[riverJob]) error

func nothing(context.Context, *river.Job[riverJob]) error { return nil }

// client performs messages with the worker.
func (r *River) client(work riverWork) (*river.Client[pgx.Tx], error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(work))
	cooldown, poll := r.fetches()
	return river.NewClient(riverpgxv5.New(r.pool), &river.Config{
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 1_000}},
		Workers:           workers,
		FetchCooldown:     cooldown,
		FetchPollInterval: poll,
		Logger:            slog.New(slog.DiscardHandler),
	})
}

func (r *River) Fill(ctx context.Context, messages int) error {
	if _, err := r.pool.Exec(ctx, "TRUNCATE river_job"); err != nil {
		return err
	}
	client, err := r.client(nothing)
	if err != nil {
		return err
	}
	args := make([]river.InsertManyParams, chunk)
	for i := range args {
		args[i].Args = riverJob{riverText}
	}
	for left := messages; left > 0; left -= chunk {
		if _, err := client.InsertManyFast(ctx, args[:min(left, chunk)]); err != nil {
			return err
		}
	}
	return nil
}

func (r *River) Drain(ctx context.Context, messages int) error {
	left := newCountdown(messages)
	return r.perform(ctx, nothing, left.tick, func(*river.Client[pgx.Tx]) error { return left.wait(ctx) })
}

func (r *River) Stream(ctx context.Context, producers int, span time.Duration) (messages int, err error) {
	left := newCountdown(1)
	err = r.perform(ctx, nothing, left.tick, func(client *river.Client[pgx.Tx]) error {
		job := riverJob{riverText}
		messages, err = stream(ctx, producers, span, left, func(ctx context.Context, _ int64) error {
			return pgx.BeginFunc(ctx, r.producing, func(tx pgx.Tx) error {
				_, err := client.InsertTx(ctx, tx, job, nil)
				return err
			})
		})
		return err
	})
	return messages, err
}

func (r *River) Pace(ctx context.Context, times []time.Duration) (latencies []time.Duration, err error) {
	p := newPace(times)
	begin := func(_ context.Context, job *river.Job[riverJob]) error { return p.begin(job.Args.Text) }
	err = r.perform(ctx, begin, func() {}, func(client *river.Client[pgx.Tx]) error {
		latencies, err = p.run(ctx, r.producing, func(ctx context.Context, pool stamped, number int) error {
			return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				_, err := client.InsertTx(ctx, tx, riverJob{numbered(number, len(riverText))}, nil)
				return err
			})
		})
		return err
	})
	return latencies, err
}

// perform performs messages with the worker while something is done. It counts the events that follow the completion of a job, which River records in
// batches.
func (r *River) perform(ctx context.Context, work riverWork, completed func(), during func(*river.Client[pgx.Tx]) error) error {
	client, err := r.client(work)
	if err != nil {
		return err
	}
	events, unsubscribe := client.SubscribeConfig(&river.SubscribeConfig{ChanSize: 1 << 18, Kinds: []river.EventKind{river.EventKindJobCompleted}})
	defer unsubscribe()
	if err := client.Start(ctx); err != nil {
		return err
	}
	go func() {
		for range events {
			completed()
		}
	}()
	return errors.Join(during(client), client.Stop(context.WithoutCancel(ctx)))
}

func (r *River) Close(context.Context) error {
	r.pool.Close()
	r.producing.Close()
	return nil
}
