package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"

	_ "github.com/lib/pq" // beside pgx's, which package contest has

	"github.com/fencepost-go/fencepost/bench/floor"
	"github.com/fencepost-go/fencepost/bench/load"
	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/sqldb"
	"github.com/fencepost-go/fencepost/db/sqlitedb"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/schema"
)

// drivers is W13: the drain of W1 through each driver, and on a file of SQLite. What matters is the ratio to pgx.
func drivers(ctx context.Context, s *sitting) error {
	messages := s.size(200_000)
	s.report.about = count(messages) + " messages"
	rig, err := s.rig(ctx, "drivers")
	if err != nil {
		return err
	}
	fill := func(ctx context.Context) error {
		if err := rig.Empty(ctx); err != nil {
			return err
		}
		return rig.Fill(ctx, load.Filling{Messages: messages})
	}
	turns := []turn{{plain, "pgx", s.through(messages, rig.Store, fill)}}
	for _, d := range []struct{ variant, driver string }{{"lib/pq", "postgres"}, {"pgx-stdlib", "pgx"}} {
		pool, err := sql.Open(d.driver, rig.DSN)
		if err != nil {
			return err
		}
		s.close = append(s.close, pool.Close)
		pool.SetMaxOpenConns(load.Connections)
		pool.SetMaxIdleConns(load.Connections)
		store, err := sqldb.New(pool, sqldb.Config{})
		if err != nil {
			return err
		}
		settings := fmt.Sprintf("database/sql, one sender, Slots %d, Batch %d, a pool of %d", load.Slots, load.Batch, load.Connections)
		turns = append(turns, turn{ours(settings), d.variant, s.through(messages, store, fill)})
	}
	file, err := s.sqlite(ctx)
	if err != nil {
		return err
	}
	settings := fmt.Sprintf("modernc.org/sqlite, Synchronous Normal, one sender, Slots %d, Batch %d; its server is this process", load.Slots, load.Batch)
	turns = append(turns, turn{ours(settings), "sqlite", s.through(messages, file, func(ctx context.Context) error { return fillFile(ctx, file, messages) })})
	return s.rounds(ctx, turns)
}

func (s *sitting) through(messages int, store db.Store, fill func(context.Context) error) func(context.Context) ([]figure, error) {
	return func(ctx context.Context) ([]figure, error) {
		if err := fill(ctx); err != nil {
			return nil, err
		}
		return s.drained(ctx, messages, func() error { return load.Sending{Store: store}.Drain(ctx, messages) })
	}
}

// sqlite is a store on a file that is removed in the end.
func (s *sitting) sqlite(ctx context.Context) (*sqlitedb.Store, error) {
	folder, err := os.MkdirTemp("", "fencepost-bench-")
	if err != nil {
		return nil, err
	}
	s.close = append(s.close, func() error { return os.RemoveAll(folder) })
	store, err := sqlitedb.Open(filepath.Join(folder, "box.db"), sqlitedb.Config{Synchronous: sqlitedb.Normal})
	if err != nil {
		return nil, err
	}
	s.close = append(s.close, store.Close)
	return store, schema.Up(ctx, store.DB(), schema.Config{Dialect: schema.SQLite})
}

// fillFile empties the tables, and enqueues a thousand messages in a transaction.
func fillFile(ctx context.Context, store *sqlitedb.Store, messages int) error {
	box, _, err := load.Sending{Store: store}.Box()
	if err != nil {
		return err
	}
	for _, table := range []string{"outbox_queue", "outbox_order_lease", "outbox_settlement", "outbox_message"} {
		if _, err := store.DB().ExecContext(ctx, "DELETE FROM "+table); err != nil {
			return err
		}
	}
	const chunk = 1_000
	effects := make([]outbox.Effect, chunk)
	for from := 0; from < messages; from += chunk {
		for i := range effects {
			effects[i] = outbox.Effect{
				Consumer: floor.Consumer, Target: floor.Target, Kind: floor.Kind, Key: fmt.Sprintf("order-%010d", from+i), Payload: make([]byte, load.Payload),
			}
		}
		err := sqlitedb.InTx(ctx, store, box, func(tx *sqlitedb.BoxTx) error {
			_, err := box.EnqueueMany(ctx, tx, effects[:min(chunk, messages-from)])
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
