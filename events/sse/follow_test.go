package sse_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/db/sqlitedb"
	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/events/sse"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/schema"
)

func openPgx(t *testing.T) db.Store {
	pool, err := pgxpool.New(context.WithoutCancel(t.Context()), pgtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	store, err := pgxdb.New(pool, pgxdb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func openSQLite(t *testing.T) db.Store {
	store, err := sqlitedb.Open(filepath.Join(t.TempDir(), "shop.db"), sqlitedb.Config{Synchronous: sqlitedb.Normal})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	if err := schema.Up(t.Context(), store.DB(), schema.Config{Dialect: schema.SQLite}); err != nil {
		t.Fatal(err)
	}
	return store
}

// A client follows, with its last id, while writers append and the server is stopped and started: nothing is missed and nothing comes twice.
// Shows: S4.19
func TestFollowsAcrossRestarts(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) db.Store{
		"memory": func(*testing.T) db.Store { return memdb.New(memdb.Config{}) }, "pgx": openPgx, "sqlite": openSQLite,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			follows(newRig(t, open(t)))
		})
	}
}

func follows(r *rig) {
	const writers, each, restarts = 4, 50, 5
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.Fatal(err)
	}
	address := listener.Addr().String()
	ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
	defer cancel()
	got := make(chan []envelope, 1)
	restart := make(chan struct{}, writers*each)
	go func() { got <- client(ctx, "http://"+address+"?after=oldest", writers*each, restart) }()
	ended := make(chan struct{})
	go func() { // the server, each time with a feed of its own, as in a new process
		defer close(ended)
		for n := 0; ctx.Err() == nil && listener != nil; n++ {
			feed, stop := r.run()
			h, err := sse.New(feed, byTenant, sse.Config{})
			if err != nil {
				r.Error(err)
				return
			}
			server := &http.Server{Handler: h}
			server.RegisterOnShutdown(h.Close)
			serving := make(chan struct{})
			go func() {
				defer close(serving)
				server.Serve(listener)
			}()
			for range writers * each / (restarts + 1) {
				select {
				case <-restart:
				case <-ctx.Done():
				}
			}
			if n < restarts && n%2 == 0 {
				server.Close() // cuts the connection anywhere
			} else if err := server.Shutdown(ctx); err != nil && ctx.Err() == nil {
				r.Errorf("shutdown: %v", err)
			}
			<-serving
			stop()
			listener, _ = net.Listen("tcp", address)
		}
	}()
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for n := range each {
				r.append(events.Event{ID: fmt.Sprintf("%d/%d", w, n), Type: "t", Payload: []byte(fmt.Sprint(n))})
			}
		})
	}
	group.Wait()
	seen := <-got
	cancel()
	<-ended
	if listener != nil {
		listener.Close()
	}
	var want, ids []string
	for after := (events.Cursor{}); len(want) < writers*each; {
		page, err := r.log.Read(r.Context(), after, 1000, events.Filter{})
		if err != nil || page.Next == after {
			r.Fatalf("read %d, %v", len(want), err)
		}
		for _, e := range page.Events {
			want = append(want, e.ID)
		}
		after = page.Next
	}
	for _, e := range seen {
		ids = append(ids, e.ID)
	}
	if !slices.Equal(ids, want) {
		r.Errorf("saw %d events, want %d in the same order\n%q\n%q", len(ids), len(want), ids, want)
	}
}

// client reads so many events, coming back with its last id whenever the stream ends; it reports each on the channel.
func client(ctx context.Context, url string, count int, report chan<- struct{}) (seen []envelope) {
	lastID := ""
	for ctx.Err() == nil && len(seen) < count {
		answer, err := get(ctx, url, "", lastID)
		if err != nil {
			time.Sleep(time.Millisecond) // until the server is back, at most as long as ctx
			continue
		}
		stream := parse(answer.Body)
		for len(seen) < count {
			e, id, err := stream.event()
			if err != nil || id == "" || e.ID == "" {
				break
			}
			seen, lastID = append(seen, e), id
			report <- struct{}{}
		}
		answer.Body.Close()
	}
	return seen
}
