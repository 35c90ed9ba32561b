package sse_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/events/sse"
	"github.com/fencepost-go/fencepost/internal/memdb"
)

// Not parallel: it measures the process.
func TestThousandIdleClients(t *testing.T) {
	r, _ := onMemory(t)
	h := r.handler(sse.Config{})
	server := r.serve(h)
	before, goroutines := inUse(), runtime.NumGoroutine()
	conns := make([]net.Conn, 1000)
	for i := range conns {
		conns[i] = r.dial(server, "/", 0)
		answer, err := http.ReadResponse(bufio.NewReaderSize(conns[i], 16), nil)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("client %d: %v", i, err)
		}
	}
	if held := inUse() - before; held > 100<<20 {
		t.Errorf("1,000 clients hold %d MB", held>>20)
	} else {
		t.Logf("1,000 clients hold %d MB", held>>20)
	}
	r.append(events.Event{ID: "for-all", Type: "t"})
	for i, conn := range conns {
		if err := expect(conn, "for-all"); err != nil {
			t.Fatalf("client %d: %v", i, err)
		}
	}
	h.Close()
	for _, conn := range conns {
		if err := expect(conn, "0\r\n\r\n"); err != nil { // the last chunk
			t.Fatalf("after Close: %v", err)
		}
		conn.Close()
	}
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > goroutines+5; {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, before there were %d", runtime.NumGoroutine(), goroutines)
		}
		runtime.Gosched()
	}
}

// inUse is the memory of the heap and the stacks.
func inUse() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc + stats.StackInuse)
}

// expect reads on until the text comes.
func expect(conn net.Conn, text string) error {
	conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	for seen, part := "", make([]byte, 512); ; {
		n, err := conn.Read(part)
		if seen += string(part[:n]); strings.Contains(seen, text) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// A client that takes nothing is cut off, and others go on meanwhile.
func TestSlowClientIsCutOff(t *testing.T) {
	t.Parallel()
	r, _ := onMemory(t)
	h := r.handler(sse.Config{WriteTimeout: 200 * time.Millisecond})
	ended := make(chan struct{}, 1)
	server := r.serve(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		h.ServeHTTP(w, q)
		if q.URL.Path == "/slow" {
			ended <- struct{}{}
		}
	}))
	r.dial(server, "/slow?after=oldest", 4<<10)
	stream := parse(r.get(server.URL+"?after=oldest", "all", "").Body)
	payload := make([]byte, 512<<10)
	cut := false
	for n := 0; !cut || n < 20; n++ {
		if n == 200 {
			t.Fatal("the slow client is still there")
		}
		id := fmt.Sprint(n)
		r.append(events.Event{ID: id, Type: "t", Payload: payload})
		if e, _ := r.mustEvent(stream); e.ID != id {
			t.Fatalf("the other client got %q, want %q", e.ID, id)
		}
		select {
		case <-ended:
			cut = true
		default:
		}
	}
}

// The time-outs of a server are for requests; a stream outlives them, and ends with its own lifetime.
func TestServerTimeouts(t *testing.T) {
	t.Parallel()
	r, _ := onMemory(t)
	server := httptest.NewUnstartedServer(r.handler(sse.Config{Heartbeat: 100 * time.Millisecond, Lifetime: time.Second}))
	server.Config.ReadTimeout, server.Config.WriteTimeout = 200*time.Millisecond, 200*time.Millisecond
	server.Start()
	r.Cleanup(server.Close)
	began := time.Now()
	stream := parse(r.get(server.URL, "all", "").Body)
	beats := 0
	for {
		m, err := stream.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if m.comment {
			beats++
		}
	}
	if lasted := time.Since(began); lasted < time.Second || beats < 3 {
		t.Errorf("ended after %v and %d heartbeats", lasted, beats)
	}
}

// The end of the server's base context ends streams, as Close does.
func TestBaseContext(t *testing.T) {
	t.Parallel()
	r, _ := onMemory(t)
	ctx, stop := context.WithCancel(r.Context())
	server := httptest.NewUnstartedServer(r.handler(sse.Config{}))
	server.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	server.Start()
	r.Cleanup(server.Close)
	stream := parse(r.get(server.URL, "all", "").Body)
	if _, err := stream.next(); err != nil {
		t.Fatal(err)
	}
	stop()
	if m, err := stream.next(); err != io.EOF {
		t.Errorf("%+v, %v", m, err)
	}
}

// A client whose stream has begun does not notice that the database is away for a moment, even when it has to read from it.
func TestOutageWhileStreaming(t *testing.T) {
	t.Parallel()
	r, store := onMemory(t)
	for n := range 3 {
		r.append(events.Event{ID: fmt.Sprint(n), Type: "t", Payload: make([]byte, 512<<10)}) // a page each
	}
	server := r.serve(r.handler(sse.Config{}))
	var failures atomic.Int64
	store.Hook(memdb.Hook{Before: func(_ context.Context, call memdb.Call) error {
		if p, ok := call.Params.(db.ReadEventsParams); ok && p.AfterPosition == 1 && failures.Add(1) == 1 {
			return errors.New("down")
		}
		return nil
	}})
	stream := parse(r.get(server.URL+"?after=oldest", "all", "").Body)
	for n := range 3 {
		if e, _ := r.mustEvent(stream); e.ID != fmt.Sprint(n) {
			t.Errorf("event %d is %q", n, e.ID)
		}
	}
	if failures.Load() == 0 {
		t.Error("nothing failed")
	}
}
