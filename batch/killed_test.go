package batch_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/batch"
	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/db/sqlitedb"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/sender"
)

const (
	// childVariable holds the DSN for a process that is to work until it is killed, and workVariable its work: create, or a sender's name.
	childVariable = "FENCEPOST_BATCH_CHILD"
	workVariable  = "FENCEPOST_BATCH_WORK"
	rowsVariable  = "FENCEPOST_BATCH_ROWS"

	// told is how many rows a child handles between two lines of its output.
	told = 50
)

// usualRows is a tenth of the full size, and less under the race detector.
var usualRows = 10_000

func childMain(dsn string) int {
	if err := childRun(context.Background(), dsn, os.Getenv(workVariable)); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		return 1
	}
	return 0
}

func childRun(ctx context.Context, dsn, work string) error {
	store, err := childStore(ctx, dsn)
	if err != nil {
		return err
	}
	b, err := newBatches(store, batch.Config{})
	if err != nil {
		return err
	}
	if work != "create" {
		return send(ctx, b, work, os.Stdout)
	}
	rows, err := batch.NewRows(batch.RowsConfig[map[string]any]{})
	if err != nil {
		return err
	}
	n := 0
	fmt.Sscan(os.Getenv(rowsVariable), &n)
	s := spec()
	s.Report = func(batch.Receipt) { fmt.Println("stored") }
	_, err = b.Create(ctx, s, rows.Reader(strings.NewReader(text(n))))
	return err
}

func childStore(ctx context.Context, dsn string) (db.Store, error) {
	if filepath.IsAbs(dsn) {
		return sqlitedb.Open(dsn, sqlitedb.Config{Synchronous: sqlitedb.Normal, MustExist: true})
	}
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return nil, err
	}
	return pgxdb.New(pool, pgxdb.Config{})
}

// fails says which rows cannot be performed in the first run: one in twenty.
func fails(number int) bool { return number%20 == 0 }

// send performs rows until ctx ends, as a worker of that name; one whose name begins with second performs all of them.
func send(ctx context.Context, b *batch.Batches, name string, out *os.File) error {
	rows, err := batch.NewRows(batch.RowsConfig[map[string]any]{})
	if err != nil {
		return err
	}
	var handled atomic.Int64
	handler := batch.Handler(rows, func(_ context.Context, row batch.Row[map[string]any]) (string, error) {
		if handled.Add(1)%told == 0 && out != nil {
			fmt.Fprintln(out, "handled")
		}
		if fails(row.Number) && !strings.HasPrefix(name, "second") {
			return "", outbox.Permanent(errors.New("no such address"))
		}
		return fmt.Sprintf("mail-%d", row.Number), nil
	})
	consumer, err := b.Box().Consumer("invites", "mail", outbox.Policy{MaxAttempts: 10_000}) // a kill spends an attempt
	if err != nil {
		return err
	}
	s, err := sender.New(b.Box(), consumer, sender.Config{
		Name: name, Scope: outbox.AllTenants, Handlers: sender.Handlers{"invite": handler}, Poll: 100 * time.Millisecond,
		Lease: 2 * time.Second, // a server may grant the last lease of a process that is dead already
	})
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

// A job of many rows of which one in twenty fails, created and performed by processes that are killed over and over: each row has one fate, what is told is what
// is there, the end is recorded once, and a second run touches the failed rows alone.
// Shows: S4.14 S4.17 S4.18 I25
func TestKilled(t *testing.T) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, memdb.New(memdb.Config{}))
		j := job{rig: r, rows: 2_000} // without kills
		j.id = r.mustCreate(spec(), text(j.rows), batch.Receipt{Rows: j.rows})
		j.run("first")
		j.rerun()
	})
	onDrivers(t, []string{"pgx", "sqlite"}, func(r *rig) {
		j := job{rig: r, rows: usualRows, limit: 8}
		if os.Getenv("FENCEPOST_FULL") != "" {
			j.rows, j.limit = 100_000, 200
		}
		j.run("first")
		j.limit += j.limit / 3
		j.rerun()
		r.Logf("%d kills", j.kills.Load())
	})
}

// A job is the batch of that test.
type job struct {
	*rig
	rows  int
	id    int64
	kills atomic.Int64
	limit int64 // of kills, after which processes run to the end
}

// run has the batch performed to its end by two senders, and watches.
func (j *job) run(name string) {
	j.Helper()
	ctx, stop := context.WithTimeout(j.Context(), 10*time.Minute)
	defer stop()
	var all sync.WaitGroup
	defer all.Wait()
	if j.id == 0 {
		all.Go(func() { j.created(ctx) })
	}
	for n := range 2 {
		all.Go(func() { j.sent(ctx, fmt.Sprint(name, n)) })
	}
	defer stop()
	for j.id == 0 {
		id, err := j.Find(ctx, "acme", "invites", "may")
		if err != nil && !errors.Is(err, batch.ErrNotFound) {
			j.Fatal(err)
		}
		j.id = id
	}
	least, looks := j.settled(), 0
	for p, err := range j.Watch(ctx, outbox.AllTenants, j.id, 100*time.Millisecond) {
		if err != nil {
			j.Fatal(err)
		}
		most := j.settled()
		if p.Total != p.Open+p.Delivered+p.Dead || p.Delivered < least["delivered"] || p.Delivered > most["delivered"] || name == "first" && (p.Dead < least["dead"] || p.Dead > most["dead"]) {
			j.Errorf("told %s, between %v and %v", standing(p), least, most)
		}
		least = most
		looks++
	}
	if looks < 2 && j.dsn != "" {
		j.Errorf("%d looks", looks)
	}
}

// created creates the batch, killed a few times on the way.
func (j *job) created(ctx context.Context) {
	for kill := 0; ctx.Err() == nil; kill++ {
		if j.child(ctx, "create", 1+kill+rand.IntN(3)) { // so that it comes to its end at last
			return
		}
	}
}

// sent performs rows by processes that are killed, one after the other; in memory by a sender of this process.
func (j *job) sent(ctx context.Context, name string) {
	if j.dsn == "" {
		if err := send(ctx, j.Batches, name, nil); err != nil {
			j.Error(err)
		}
		return
	}
	for n := 0; ctx.Err() == nil; n++ {
		worker := fmt.Sprintf("%s-%d", name, n)
		j.child(ctx, worker, 1+rand.IntN(20))
		if _, err := j.Box().ReleaseWorker(context.WithoutCancel(ctx), outbox.AllTenants, worker, by); err != nil {
			j.Error(err)
		}
	}
}

// child runs a process that does the work, and kills it at the line of its output, or when ctx ends. It says whether the process came to its own end.
func (j *job) child(ctx context.Context, work string, line int) (ended bool) {
	executable, err := os.Executable()
	if err != nil {
		j.Error(err)
		return false
	}
	cmd := exec.CommandContext(ctx, executable) // whose end is by SIGKILL
	cmd.Env = append(os.Environ(), childVariable+"="+j.dsn, workVariable+"="+work, fmt.Sprint(rowsVariable, "=", j.rows))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		if ctx.Err() == nil {
			j.Error(err)
		}
		return false
	}
	lines := bufio.NewScanner(out)
	for n := 1; lines.Scan(); n++ {
		if n == line && j.kills.Add(1) <= j.limit {
			_ = cmd.Process.Kill()
		}
	}
	return cmd.Wait() == nil
}

// rerun brings the failed rows back, has them performed, and looks at the others.
func (j *job) rerun() {
	j.Helper()
	failed := j.rows / 20
	j.stands(j.id, fmt.Sprintf("run 1: %d = 0 open + %d delivered + %d dead + 0 cancelled + 0 expired + 0 rejected, sealed, completed", j.rows, j.rows-failed, failed))
	before := j.fates()
	if got, want := j.settled(), map[string]int{"delivered": j.rows - failed, "dead": failed}; !maps.Equal(got, want) {
		j.Errorf("%v, want %v", got, want)
	}
	j.rig.rerun(j.id, failed)
	j.stands(j.id, fmt.Sprintf("run 2: %d = %d open + %d delivered + 0 dead + 0 cancelled + 0 expired + 0 rejected, sealed", j.rows, failed, j.rows-failed))
	j.run("second")
	j.stands(j.id, fmt.Sprintf("run 2: %d = 0 open + %d delivered + 0 dead + 0 cancelled + 0 expired + 0 rejected, sealed, completed", j.rows, j.rows))
	for number, row := range j.fates() {
		was := before[number]
		if row.Fate != batch.FateDelivered || row.Result != fmt.Sprintf("mail-%d", number) || (was.Fate == batch.FateDead) != fails(number) || !fails(number) && row != was {
			j.Errorf("row %d was %+v, and is %+v", number, was, row)
		}
	}
	if ends := j.ends(); !slices.Equal(ends, []string{"close-may", "close-may/run-2"}) {
		j.Errorf("%q", ends)
	}
}

// fates gives every row by its number.
func (j *job) fates() map[int]batch.RowSummary {
	j.Helper()
	all := make(map[int]batch.RowSummary, j.rows)
	for query := (batch.RowsQuery{Limit: 1000}); ; {
		page, err := j.ListRows(j.Context(), outbox.AllTenants, j.id, query)
		if err != nil {
			j.Fatal(err)
		}
		for _, row := range page {
			all[row.Number] = row
			query.After = row.Number
		}
		if len(page) < query.Limit {
			break
		}
	}
	if len(all) != j.rows {
		j.Errorf("%d rows, want %d", len(all), j.rows)
	}
	return all
}

// settled counts the settlements of the rows' messages, which know nothing of the batch.
func (j *job) settled() map[string]int {
	j.Helper()
	counts := map[string]int{}
	if j.beside == nil {
		for _, state := range []outbox.State{outbox.StateDelivered, outbox.StateDead} {
			for query := (outbox.ListQuery{State: state, Filter: outbox.Filter{Consumer: "invites"}, Limit: 1000}); ; {
				page, err := j.Box().List(j.Context(), outbox.AllTenants, query)
				if err != nil {
					j.Fatal(err)
				}
				if counts[string(state)] += len(page.Messages); !page.More {
					break
				}
				query.From = page.Next
			}
		}
		return counts
	}
	query := "SELECT s.outcome, count(*) FROM outbox.settlement AS s JOIN outbox.message AS m ON m.id = s.message_id WHERE m.consumer = 'invites' GROUP BY s.outcome"
	if filepath.IsAbs(j.dsn) {
		query = strings.ReplaceAll(query, "outbox.", "outbox_")
	}
	rows, err := j.beside.QueryContext(j.Context(), query)
	if err != nil {
		j.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var outcome string
		var n int
		if err := rows.Scan(&outcome, &n); err != nil {
			j.Fatal(err)
		}
		counts[outcome] = n
	}
	if err := rows.Err(); err != nil {
		j.Fatal(err)
	}
	return counts
}
