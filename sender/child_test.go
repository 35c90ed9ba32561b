package sender

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/db/sqlitedb"
	"github.com/fencepost-go/fencepost/outbox"
)

// The test binary runs itself once more where a test needs a process that dies.
const (
	childVariable = "FENCEPOST_SENDER_CHILD" // the rig's DSN
	roleVariable  = "FENCEPOST_SENDER_ROLE"
	exitOfPoison  = 3
	childLease    = 3 * time.Second
)

// childMain is the main function of such a process: a worker of the message's consumer until nothing is open.
func childMain(dsn string) int {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	store, closeStore, err := childStore(ctx, dsn)
	if err != nil {
		return childFailed(err)
	}
	defer closeStore()
	if role := os.Getenv(roleVariable); strings.HasPrefix(role, handsOffAndDies) {
		return childHandsOff(ctx, store, role)
	}
	box, err := outbox.New(store, outbox.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return childFailed(err)
	}
	consumer, err := box.Consumer("wallets", "ledger", outbox.Policy{MaxAttempts: 3})
	if err != nil {
		return childFailed(err)
	}
	s, err := New(box, consumer, Config{Lease: childLease, Poll: 100 * time.Millisecond, Handlers: doing(childHandler)})
	if err != nil {
		return childFailed(err)
	}
	if os.Getenv(roleVariable) == "hang" {
		_ = s.Run(ctx)
		return 0
	}
	for ctx.Err() == nil {
		if _, err := s.RunOnce(ctx); err != nil {
			continue // the machine is busy
		}
		if stats, err := box.Stats(ctx, outbox.AllTenants); err == nil && len(stats.Lanes) == 0 {
			return 0
		}
		time.Sleep(100 * time.Millisecond)
	}
	return childFailed(ctx.Err())
}

// childStore opens the rig's database, through pgx unless it is a file.
func childStore(ctx context.Context, dsn string) (store db.Store, closeStore func(), err error) {
	if filepath.IsAbs(dsn) {
		file, err := sqlitedb.Open(dsn, sqlitedb.Config{Synchronous: sqlitedb.Normal, MustExist: true})
		return file, func() { file.Close() }, err
	}
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return nil, nil, err
	}
	store, err = pgxdb.New(pool, pgxdb.Config{})
	return store, pool.Close, err
}

func childHandler(ctx context.Context, m outbox.Message) error {
	fmt.Printf("start %s\n", m.Key) // one write, so that it survives the end of the process
	if os.Getenv(roleVariable) == "hang" {
		<-ctx.Done()
		return ctx.Err()
	}
	if strings.HasPrefix(m.Key, "poison") {
		os.Exit(exitOfPoison)
	}
	return nil
}

func childFailed(err error) int {
	fmt.Fprintln(os.Stderr, "child:", err)
	return 1
}

// child prepares such a process in a role. Its standard output has a line for each handler call.
func (r *rig) child(role string) *exec.Cmd {
	r.Helper()
	self, err := os.Executable()
	if err != nil {
		r.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childVariable+"="+r.dsn, roleVariable+"="+role)
	cmd.Stderr = os.Stderr
	return cmd
}

// lines gives the lines of a process's output as they come. The channel closes with the output.
func lines(t testing.TB, cmd *exec.Cmd) <-chan string {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	found := make(chan string, 1000)
	go func() {
		defer close(found)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			found <- scanner.Text()
		}
	}()
	return found
}
