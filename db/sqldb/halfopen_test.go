package sqldb_test

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/sqldb"
	"github.com/fencepost-go/fencepost/internal/pgtest"
)

// A connection that went dead without a word: lib/pq would wait for it until TCP gives up, and a sender with it.
func TestCallsReturnFromAHalfOpenConnection(t *testing.T) {
	t.Parallel()
	for _, statements := range []sqldb.Statements{sqldb.Prepared, sqldb.Unnamed} {
		hole := newBlackHole(t, pgtest.New(t))
		pool, err := sql.Open("postgres", hole.dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { pool.Close() })
		store, err := sqldb.New(pool, sqldb.Config{Statements: statements})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.TouchWorkers(t.Context(), db.TouchWorkersParams{Ids: []int64{1}}); err != nil {
			t.Fatal(err)
		}
		hole.swallow()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, err := store.TouchWorkers(ctx, db.TouchWorkersParams{Ids: []int64{1}}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v: %v", statements, err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%v: the call came back after %v", statements, took)
		}
	}
}

// A blackHole forwards to a server until it swallows all that comes, new connections included, and answers nothing.
type blackHole struct {
	dsn  string
	mu   sync.Mutex
	dark bool
}

func newBlackHole(t *testing.T, dsn string) *blackHole {
	t.Helper()
	server, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &blackHole{}
	backend := server.Host
	server.Host = listener.Addr().String()
	h.dsn = server.String()
	var copying sync.WaitGroup
	var opened []net.Conn
	copying.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				break
			}
			opened = append(opened, client)
			if h.swallows() {
				continue
			}
			upstream, err := net.Dial("tcp", backend)
			if err != nil {
				client.Close()
				continue
			}
			opened = append(opened, upstream)
			copying.Go(func() { h.forward(upstream, client) })
			copying.Go(func() { h.forward(client, upstream) })
		}
		for _, conn := range opened {
			conn.Close()
		}
	})
	t.Cleanup(func() {
		listener.Close()
		copying.Wait()
	})
	return h
}

func (h *blackHole) swallow() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dark = true
}

func (h *blackHole) swallows() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dark
}

func (h *blackHole) forward(to io.WriteCloser, from io.Reader) {
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			to.Close()
			return
		}
		if h.swallows() {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}
