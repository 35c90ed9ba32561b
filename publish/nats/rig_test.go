package natspub_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/publish/nats"
)

// patience is how long a test waits for what must come.
const patience = time.Minute

// TestMain looks for goroutines that outlive their publishers, senders, connections and servers.
func TestMain(m *testing.M) {
	before := runtime.NumGoroutine()
	code := m.Run()
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before && code == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			fmt.Fprintf(os.Stderr, "%d goroutines, before there were %d\n", runtime.NumGoroutine(), before)
			_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
			code = 1
		}
	}
	os.Exit(code)
}

// options are those of a real server in this process, with JetStream in the folder.
func options(dir string) *server.Options {
	return &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true}
}

func start(t testing.TB, options *server.Options) *server.Server {
	t.Helper()
	s, err := server.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { stop(s) })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server does not start")
	}
	return s
}

func stop(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

func connect(t testing.TB, s *server.Server, options ...nats.Option) jetstream.JetStream {
	t.Helper()
	conn, err := nats.Connect(s.ClientURL(), append(options, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// stream makes one for the subjects, and Duplicates as by default.
func stream(t testing.TB, js jetstream.JetStream, config jetstream.StreamConfig) jetstream.Stream {
	t.Helper()
	s, err := js.CreateStream(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// stored are the messages of a stream, in order.
func stored(t testing.TB, s jetstream.Stream) []*jetstream.RawStreamMsg {
	t.Helper()
	info, err := s.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all []*jetstream.RawStreamMsg
	for sequence := uint64(1); sequence <= info.State.LastSeq; sequence++ {
		m, err := s.GetMsg(t.Context(), sequence)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

func publisher(t testing.TB, js jetstream.JetStream, config natspub.Config) *natspub.Publisher {
	t.Helper()
	p, err := natspub.New(js, config)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// message is one by hand, for the subject that is its target.
func message(target, key string) outbox.Message {
	return outbox.Message{ID: 1, Consumer: "shop", Target: target, Kind: "order.paid", Key: key, Payload: []byte(key), Attempt: 1, Epoch: 1}
}

func perform(ctx context.Context, p *natspub.Publisher, m outbox.Message) (string, outbox.Verdict, error) {
	result, err := p.Handler().DoResult(ctx, m)
	return result, outbox.OutcomeOf(err).Verdict(), err
}
