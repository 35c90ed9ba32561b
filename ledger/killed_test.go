package ledger_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
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
	"github.com/fencepost-go/fencepost/ledger"
)

const (
	// childVariable holds the DSN of a process that is to claim keys until it is killed.
	childVariable = "FENCEPOST_LEDGER_CHILD"
	oneThousand   = 1_000
)

// childMain claims the keys that it reads, and completes the claim of one that comes again.
func childMain(dsn string) int {
	if err := childRun(context.Background(), dsn); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		return 1
	}
	return 0
}

func childRun(ctx context.Context, dsn string) error {
	store, err := childStore(ctx, dsn)
	if err != nil {
		return err
	}
	l, err := newLedger(store, ledger.Config{Hold: time.Second})
	if err != nil {
		return err
	}
	claims := map[string]ledger.Claim{}
	for keys := bufio.NewScanner(os.Stdin); keys.Scan(); {
		k := request(keys.Text())
		err := l.InTx(ctx, func(tx db.Tx) error {
			if claim, again := claims[k.Key]; again {
				return l.Complete(ctx, tx, claim, []byte("late"))
			}
			result, err := l.Claim(ctx, tx, k)
			claims[k.Key] = result.Claim
			return err
		})
		fmt.Println("answer", err)
	}
	return nil
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

// A child is such a process.
type child struct {
	*rig
	cmd     *exec.Cmd
	keys    *bufio.Writer
	answers *bufio.Scanner
}

func (r *rig) child() *child {
	r.Helper()
	executable, err := os.Executable()
	if err != nil {
		r.Fatal(err)
	}
	cmd := exec.Command(executable)
	cmd.Env = append(os.Environ(), childVariable+"="+r.dsn)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		r.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		r.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	return &child{r, cmd, bufio.NewWriter(in), bufio.NewScanner(out)}
}

// tell hands the child a key and gives its answer.
func (c *child) tell(key string) string {
	c.Helper()
	fmt.Fprintln(c.keys, key)
	if err := c.keys.Flush(); err != nil {
		c.Fatal(err)
	}
	if !c.answers.Scan() {
		c.Fatalf("the child says nothing: %v", c.answers.Err())
	}
	return strings.TrimPrefix(c.answers.Text(), "answer ")
}

// kill ends the child as a crash does.
func (c *child) kill() {
	c.Helper()
	if err := c.cmd.Process.Kill(); err != nil {
		c.Fatal(err)
	}
	_ = c.cmd.Wait()
}

// Of a thousand that claim one key at once one gets it; of many that take it over after its holder's time one does, and the old holder is stale.
// Shows: S4.1 S4.13
func TestThousandClaims(t *testing.T) {
	t.Parallel()
	onStores(t, func(r *rig) {
		// Nobody's time is out before the last has asked, however slow the machine is.
		slow, err := ledger.New(r.Box(), ledger.Config{Hold: time.Hour})
		if err != nil {
			r.Fatal(err)
		}
		won, others := r.many(oneThousand, slow.Claim, request("k"))
		if len(won) != 1 || others[ledger.InProgress] != oneThousand-1 {
			r.Fatalf("%d claimed it; the others: %v", len(won), others)
		}
		if err := r.in(func(tx db.Tx) error { return r.Complete(r.Context(), tx, won[0], []byte("done")) }); err != nil {
			r.Error(err)
		}
		if _, others = r.many(100, r.Take, request("k")); others[ledger.Duplicate] != 100 {
			r.Errorf("after its end: %v", others)
		}
	})
}

// Shows: S4.4 S4.28
func TestTakeFromASlowHolder(t *testing.T) {
	t.Parallel()
	onStores(t, func(r *rig) {
		k := request("k")
		old := r.must(r.Claim, k, ledger.Claimed).Claim
		r.over(k)
		if waiting := r.must(r.Claim, k, ledger.InProgress); !waiting.Over {
			r.Errorf("%+v", waiting)
		}
		r.must(r.Take, changed(k), ledger.Conflicted)
		slow, err := ledger.New(r.Box(), ledger.Config{Hold: time.Hour})
		if err != nil {
			r.Fatal(err)
		}
		won, others := r.many(100, slow.Take, k)
		if len(won) != 1 || won[0].Epoch != 2 || others[ledger.InProgress] != 99 {
			r.Fatalf("%d took it; the others: %v", len(won), others)
		}
		before := r.standing(k)
		if err := r.in(func(tx db.Tx) error { return r.Complete(r.Context(), tx, old, []byte("late")) }); !errors.Is(err, ledger.ErrStale) {
			r.Errorf("the old holder: %v", err)
		}
		if after := r.standing(k); fmt.Sprint(after) != fmt.Sprint(before) {
			r.Errorf("the old holder changed %+v to %+v", before, after)
		}
		if err := r.in(func(tx db.Tx) error { return r.Complete(r.Context(), tx, won[0], []byte("done")) }); err != nil {
			r.Error(err)
		}
		if done := r.must(r.Claim, k, ledger.Duplicate); string(done.Result) != "done" || done.Epoch != 2 {
			r.Errorf("%+v", done)
		}
	})
}

// A claim whose time is out is its holder's until somebody takes it.
func TestLateIsNotStale(t *testing.T) {
	t.Parallel()
	onStores(t, func(r *rig) {
		claim := r.must(r.Claim, request("k"), ledger.Claimed).Claim
		r.over(request("k"))
		if err := r.in(func(tx db.Tx) error { return r.Complete(r.Context(), tx, claim, nil) }); err != nil {
			r.Error(err)
		}
	})
}

// Shows: S4.4
func TestHolderKilled(t *testing.T) {
	t.Parallel()
	onDrivers(t, func(r *rig) {
		late, dead := r.child(), r.child()
		for _, c := range []struct {
			*child
			key string
		}{{late, "late"}, {dead, "dead"}} {
			if answer := c.tell(c.key); answer != "<nil>" {
				r.Fatal(answer)
			}
		}
		dead.kill()
		slow, err := ledger.New(r.Box(), ledger.Config{Hold: time.Hour})
		if err != nil {
			r.Fatal(err)
		}
		for _, key := range []string{"late", "dead"} {
			r.over(request(key))
			won, others := r.many(50, slow.Take, request(key))
			if len(won) != 1 || won[0].Epoch != 2 || others[ledger.InProgress] != 49 {
				r.Fatalf("%s: %d took it; the others: %v", key, len(won), others)
			}
		}
		if answer := late.tell("late"); !strings.Contains(answer, ledger.ErrStale.Error()) {
			r.Errorf("the old holder: %s", answer)
		}
		late.kill()
	})
}
