package events_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/db/sqlitedb"
	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/outbox"
)

// childVariable holds the DSN of a bus that is to run until it is killed.
const childVariable = "FENCEPOST_EVENTS_CHILD"

var threeHandlers = []string{"stock", "mail", "print"}

// childMain delivers events until nothing is open. It says on its standard output when a handler begins and when it has written.
func childMain(dsn string) int {
	if err := childRun(context.Background(), dsn); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func childRun(ctx context.Context, dsn string) error {
	store, handler, err := childStore(ctx, dsn)
	if err != nil {
		return err
	}
	box, err := outbox.New(store, outbox.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	l, err := events.New(box, events.Config{Subscriptions: []events.Subscription{events.ToBus("shop")}})
	if err != nil {
		return err
	}
	bus, err := events.NewBus(l, "shop", events.BusConfig{Slots: 2, Batch: 5, Name: "child", Retries: 9_999})
	if err != nil {
		return err
	}
	for _, name := range threeHandlers {
		write := handler(name)
		err := bus.Subscribe(name, func(ctx context.Context, tx db.Tx, e events.Event) error {
			fmt.Println("begin", name, e.ID)
			err := write(ctx, tx, e)
			fmt.Println("wrote", name, e.ID)
			return err
		})
		if err != nil {
			return err
		}
	}
	for {
		report, err := bus.Sender().RunOnce(ctx)
		if err != nil {
			return err
		}
		if report.Leased == 0 {
			return nil
		}
	}
}

func childStore(ctx context.Context, dsn string) (db.Store, func(string) events.HandlerFunc, error) {
	if filepath.IsAbs(dsn) {
		store, err := sqlitedb.Open(dsn, sqlitedb.Config{Synchronous: sqlitedb.Normal, MustExist: true})
		return store, sqliteHandler, err
	}
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return nil, nil, err
	}
	store, err := pgxdb.New(pool, pgxdb.Config{})
	return store, pgxHandler, err
}

// However often the bus is killed in the middle of a delivery, what each handler committed, its receipt and the event are one.
// Shows: S2.4 S2.5 S2.9 S2.10
func TestBusKilled(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) *rig{"pgx": openPgx, "sqlite": openSQLite} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := open(t)
			r.exec("CREATE TABLE handled (handler text NOT NULL, event text NOT NULL)")
			killBuses(r)
		})
	}
}

func killBuses(r *rig) {
	kills := 20
	if os.Getenv("FENCEPOST_FULL") != "" {
		kills = 200
	}
	l := r.log(events.Config{Subscriptions: []events.Subscription{events.ToBus("shop")}})
	appended := 0
	for kill := range kills {
		given := make([]events.Event, 4)
		for i := range given {
			given[i] = events.Event{ID: fmt.Sprintf("e-%d", appended+i), Type: "order.placed"}
		}
		r.append(l, given...)
		appended += len(given)
		r.killChild(rand.IntN(6*len(given)-1) + 1)
		r.release(fmt.Sprint("kill ", kill))
	}
	// A server may grant the last lease of a client that is dead already.
	for deadline := time.Now().Add(time.Minute); r.open() > 0; r.release("the end") {
		if time.Now().After(deadline) {
			r.Fatalf("%d events are still open", r.open())
		}
		r.child().finish()
	}
	handled := r.handled()
	for n := range appended {
		id := fmt.Sprintf("e-%d", n)
		for _, handler := range threeHandlers {
			if count := handled[[2]string{handler, id}]; count != 1 {
				r.Errorf("%s committed %d writes for %s", handler, count, id)
			}
		}
	}
	if len(handled) != 3*appended {
		r.Errorf("%d handlers wrote, want %d", len(handled), 3*appended)
	}
	var receipts, delivered int
	claims, settlements := "outbox.claim", "outbox.settlement"
	if filepath.IsAbs(r.dsn) {
		claims, settlements = "outbox_claim", "outbox_settlement"
	}
	for query, into := range map[string]*int{
		"SELECT count(*) FROM " + claims + " WHERE state = 1": &receipts, "SELECT count(*) FROM " + settlements + " WHERE outcome = 'delivered'": &delivered,
	} {
		if err := r.beside.QueryRowContext(r.Context(), query).Scan(into); err != nil {
			r.Fatal(err)
		}
	}
	if receipts != 3*appended || delivered != appended {
		r.Errorf("%d receipts and %d delivered for %d events", receipts, delivered, appended)
	}
}

// release gives free what dead buses hold, so that nothing waits for the end of their leases.
func (r *rig) release(reason string) {
	r.Helper()
	if _, err := r.box.ReleaseWorker(r.Context(), outbox.AllTenants, "child", outbox.By{Actor: "test", Reason: reason}); err != nil {
		r.Fatal(err)
	}
}

// open counts the events that are not delivered yet.
func (r *rig) open() (n int) {
	r.Helper()
	queue := "outbox.queue"
	if filepath.IsAbs(r.dsn) {
		queue = "outbox_queue"
	}
	if err := r.beside.QueryRowContext(r.Context(), "SELECT count(*) FROM "+queue).Scan(&n); err != nil {
		r.Fatal(err)
	}
	return n
}

// A child is a process that runs the bus.
type child struct {
	*rig
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

func (r *rig) child() child {
	r.Helper()
	executable, err := os.Executable()
	if err != nil {
		r.Fatal(err)
	}
	cmd := exec.Command(executable)
	cmd.Env = append(os.Environ(), childVariable+"="+r.dsn)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		r.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	return child{r, cmd, bufio.NewScanner(out)}
}

// killChild runs a bus and kills it at the line.
func (r *rig) killChild(line int) {
	r.Helper()
	c := r.child()
	for n := 1; c.lines.Scan(); n++ {
		if n == line {
			if err := c.cmd.Process.Kill(); err != nil {
				r.Fatal(err)
			}
		}
	}
	_ = c.cmd.Wait() // killed, unless it had done
}

// finish waits until all is delivered.
func (c child) finish() {
	c.Helper()
	deadline := time.AfterFunc(time.Minute, func() { c.cmd.Process.Kill() })
	defer deadline.Stop()
	for c.lines.Scan() {
	}
	if err := c.cmd.Wait(); err != nil {
		c.Fatalf("the last bus: %v", err)
	}
}
