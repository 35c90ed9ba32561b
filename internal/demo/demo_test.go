package demo

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/outbox"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestShopWritesBothOrNeither(t *testing.T) {
	t.Parallel()
	t.Run("server", func(t *testing.T) { testShopWritesBothOrNeither(t, pgtest.Empty(t)) })
	t.Run("file", func(t *testing.T) { testShopWritesBothOrNeither(t, "") })
}

func testShopWritesBothOrNeither(t *testing.T, dsn string) {
	t.Parallel()
	shop, box := newShop(t, dsn)
	good := order{ID: 1, Customer: "ann", Cents: 1}
	if err := shop.place(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	if err := shop.place(t.Context(), order{ID: 2, Customer: "bob", Cents: creditLimit + 1}); err != errDeclined {
		t.Errorf("an order above the limit: %v", err)
	}
	if err := shop.place(t.Context(), good); err == nil {
		t.Error("an order was placed twice")
	}
	page, err := box.List(t.Context(), outbox.AllTenants, outbox.ListQuery{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, m := range page.Messages {
		keys = append(keys, m.Key)
	}
	if got := strings.Join(keys, " "); got != "order-1/charge order-1/mail books:order-1:0" {
		t.Errorf("messages %s", got)
	}
}

// The report must be able to fail: it finds what is lost and what nobody ordered.
func TestReport(t *testing.T) {
	t.Parallel()
	t.Run("server", func(t *testing.T) { testReport(t, pgtest.Empty(t)) })
	t.Run("file", func(t *testing.T) { testReport(t, "") })
}

func testReport(t *testing.T, dsn string) {
	t.Parallel()
	shop, _ := newShop(t, dsn)
	for id := 1; id <= 3; id++ {
		if err := shop.place(t.Context(), order{ID: id, Customer: "ann", Cents: 1}); err != nil {
			t.Fatal(err)
		}
	}
	receiver := &receiver{performed: map[string]int{}, ledger: map[string]bool{}, ambush: make(chan struct{})}
	books, err := openBooks(t.Context(), shop.on, shop.log)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := books.bus.Sender().RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := &story{shop: shop, log: shop.log, receiver: receiver, held: 1}
	for _, performed := range []string{"order-1/charge", "order-1/mail", "order-2/charge", "order-2/charge", "order-3/mail", "order-4/charge"} {
		receiver.perform(kindOf(performed), performed)
	}
	r, err := s.report(t.Context(), 7, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	want := Report{Seed: 7, Orders: 3, Enqueued: 6, Delivered: 4, Duplicates: 1, Held: 1, Lost: 2, Unexpected: 1, Events: 3, Booked: 3, Seconds: 1}
	if r != want {
		t.Errorf("got %+v\nwant %+v", r, want)
	}
}

func TestReportIsOK(t *testing.T) {
	t.Parallel()
	for r, want := range map[Report]bool{
		{}:                                true,
		{Duplicates: 3, Held: 3}:          true,
		{Duplicates: 4, Held: 3}:          false,
		{Lost: 1}:                         false,
		{Unexpected: 1}:                   false,
		{Orders: 2, Events: 2, Booked: 2}: true,
		{Orders: 2, Events: 1, Booked: 2}: false,
		{Orders: 2, Events: 2, Booked: 3}: false,
	} {
		if r.OK() != want {
			t.Errorf("%+v is OK: %v", r, r.OK())
		}
	}
}

func TestReceiver(t *testing.T) {
	t.Parallel()
	r := &receiver{performed: map[string]int{}, ledger: map[string]bool{}, ambush: make(chan struct{}), faults: faults{
		refused: "a", busy: map[string]int{"b": 2}, slow: map[string]int{"c": 1}, fatal: 3,
	}}
	for i, call := range []struct {
		key  string
		want int
	}{
		{"a", http.StatusUnprocessableEntity},
		{"b", http.StatusServiceUnavailable}, {"b", http.StatusServiceUnavailable}, {"b", http.StatusOK}, {"b", http.StatusOK},
		{"c", noAnswer}, {"c", http.StatusOK},
		{"d", noAnswer}, {"d", http.StatusOK}, // performed, but its caller is struck
		{"a", http.StatusUnprocessableEntity},
	} {
		if got := r.perform(kindMail, call.key); got != call.want {
			t.Errorf("call %d, of %s, is answered with %d, want %d", i, call.key, got, call.want)
		}
	}
	r.repair()
	if got := r.perform(kindMail, "a"); got != http.StatusOK {
		t.Errorf("repaired: %d", got)
	}
	if r.count(kindMail) != 4 || r.duplicates != 2 || r.failures != 3 {
		t.Errorf("%d performed, %d duplicates, %d failures", r.count(kindMail), r.duplicates, r.failures)
	}
}

// The same seed gives the same faults, another one others; each kind of fault occurs, for few and for many orders.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, orders := range []int{MinEffects / 2, 10_000} {
		for seed := range uint64(100) {
			f := newFaults(seed, orders)
			if again := newFaults(seed, orders); fmt.Sprint(f) != fmt.Sprint(again) {
				t.Fatalf("seed %d gave %v and %v", seed, f, again)
			}
			if fmt.Sprint(f) == fmt.Sprint(newFaults(seed+1, orders)) {
				t.Errorf("seeds %d and %d give the same faults", seed, seed+1)
			}
			if f.refused == "" || len(f.busy) == 0 || len(f.slow) == 0 || f.fatal < 10 || f.fatal > orders/2 {
				t.Errorf("seed %d: %+v", seed, f)
			}
		}
	}
}

func newShop(t *testing.T, dsn string) (*shop, *outbox.Box) {
	t.Helper()
	database, err := createDatabase(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := database.drop(); err != nil {
			t.Error(err)
		}
	})
	on, err := database.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(on.close)
	box, err := newBox(on)
	if err != nil {
		t.Fatal(err)
	}
	log, err := newLog(box)
	if err != nil {
		t.Fatal(err)
	}
	shop, err := startShop(t.Context(), on, box, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(shop.stop)
	return shop, box
}

// A demo that ends while its database is being made drops it, also when the server does not hear that nobody waits any more.
func TestInterruptedCreateDatabase(t *testing.T) {
	t.Parallel()
	server, err := url.Parse(pgtest.Empty(t))
	if err != nil {
		t.Fatal(err)
	}
	beside, err := pgx.Connect(t.Context(), server.String())
	if err != nil {
		t.Fatal(err)
	}
	defer beside.Close(t.Context())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	made := make(chan string, 1)
	backend := server.Host
	server.Host = listener.Addr().String()
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go forward(client, backend, func(database string) {
				made <- database
				cancel()
			})
		}
	}()
	if _, err := createDatabase(ctx, server.String()); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted demo: %v", err)
	}
	name := <-made
	for left := true; left; {
		err := beside.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE state = 'active' AND query = 'CREATE DATABASE ' || $1)", name).Scan(&left)
		if err != nil {
			t.Fatal(err)
		}
	}
	var left bool
	err = beside.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&left)
	if err != nil || left {
		t.Errorf("%s is left: %t, %v", name, left, err)
	}
}

var creation = regexp.MustCompile("CREATE DATABASE ([a-z0-9_]+)")

// forward forwards a session to the server, but for a request to cancel another one, and tells of a database that is about to be made.
func forward(client net.Conn, backend string, creating func(name string)) {
	defer client.Close()
	start := make([]byte, 8)
	if _, err := io.ReadFull(client, start); err != nil || binary.BigEndian.Uint32(start[4:]) == 80877102 {
		return
	}
	server, err := net.Dial("tcp", backend)
	if err != nil {
		return
	}
	defer server.Close()
	go io.Copy(client, server)
	buffer := make([]byte, 1<<16)
	for sent := start; err == nil; {
		if _, err := server.Write(sent); err != nil {
			return
		}
		var n int
		n, err = client.Read(buffer)
		sent = buffer[:n]
		if name := creation.FindSubmatch(sent); name != nil {
			creating(string(name[1]))
		}
	}
}

// kindOf is the kind of a key.
func kindOf(key string) string { return key[strings.LastIndex(key, "/")+1:] }
