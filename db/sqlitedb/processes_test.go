package sqlitedb_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db/dbtest"
	"github.com/fencepost-go/fencepost/db/sqlitedb"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/schema"
)

// shop makes a file with the tables of the outbox and of a business.
func shop(t *testing.T) (string, *sqlitedb.Store) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shop.db")
	store := openFull(t, path)
	if err := schema.Up(t.Context(), store.DB(), schema.Config{Dialect: schema.SQLite}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.DB().Exec("CREATE TABLE business (key TEXT NOT NULL PRIMARY KEY) STRICT"); err != nil {
		t.Fatal(err)
	}
	return path, store
}

func openFull(t *testing.T, path string) *sqlitedb.Store {
	t.Helper()
	store, err := sqlitedb.Open(path, sqlitedb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// tally counts, by key, the lines that begin with the word.
func tally(into map[string]int, word string, lines []string) {
	for _, line := range lines {
		if key, ok := strings.CutPrefix(line, word+" "); ok {
			into[key]++
		}
	}
}

// complain fails for each line that tells of trouble.
func complain(t *testing.T, who string, lines []string) {
	t.Helper()
	for _, line := range lines {
		if strings.HasPrefix(line, "error:") || strings.Contains(line, "level=") {
			t.Errorf("%s: %s", who, line)
		}
	}
}

// A producer, two senders and a janitor in four processes work on one file for a while, beside a reader that holds a snapshot all the time. None
// hears of a busy file, and each message is handled once.
func TestC62EmbeddedFileIsBusy(t *testing.T) {
	t.Parallel()
	path, store := shop(t)
	reader, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	snapshot, err := reader.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = snapshot.Rollback() }()
	var seen int
	if err := snapshot.QueryRow("SELECT count(*) FROM outbox_message").Scan(&seen); err != nil {
		t.Fatal(err)
	}

	roles := []string{"produce", "send", "send", "keep"}
	children := make([]*child, len(roles))
	for i, role := range roles {
		children[i] = start(t, path, role)
	}
	<-time.After(5 * time.Second) // what the case asks for: so long do they overlap
	stored, handled := map[string]int{}, map[string]int{}
	for i, c := range children { // the producer first
		lines := c.end(t, false)
		complain(t, roles[i], lines)
		tally(stored, "stored", lines)
		tally(handled, "handled", lines)
		if i == 0 {
			waitUntilEmpty(t, store)
		}
	}
	if len(stored) == 0 {
		t.Fatal("nothing was stored")
	}
	for key := range stored {
		if handled[key] != 1 {
			t.Errorf("message %s was handled %d times", key, handled[key])
		}
	}
	t.Logf("%d messages", len(stored))
}

// waitUntilEmpty waits until nothing is open any more.
func waitUntilEmpty(t *testing.T, store *sqlitedb.Store) {
	t.Helper()
	box, err := outbox.New(store, outbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; <-time.After(20 * time.Millisecond) {
		stats, err := box.Stats(t.Context(), outbox.AllTenants)
		switch {
		case err != nil:
			t.Fatal(err)
		case len(stats.Lanes) == 0:
			return
		case time.Now().After(deadline):
			t.Errorf("still open after a minute: %+v", stats.Lanes)
			return // what the children say comes next
		}
	}
}

// A process that stores, leases and settles is killed at any moment, over and over. The file stays whole, what was acknowledged is there, and a
// business row is never without its effect.
func TestF37SigkillInTheMiddleOfCommits(t *testing.T) {
	t.Parallel()
	kills := 20
	if os.Getenv("FENCEPOST_FULL") != "" {
		kills = 200
	}
	path, made := shop(t)
	made.Close() // so that whoever opens the file after a kill is the first, and recovers it
	random := rand.New(rand.NewPCG(41, 62))
	stored, delivered := map[string]int{}, map[string]int{}
	for n := range kills {
		c := start(t, path, "churn")
		first, ok := <-c.lines
		if !ok {
			t.Fatal("the child ended before it did anything")
		}
		<-time.After(time.Duration(random.IntN(30_000)) * time.Microsecond)
		lines := append([]string{first}, c.end(t, true)...)
		complain(t, "churn", lines)
		tally(stored, "stored", lines)
		tally(delivered, "delivered", lines)
		store := openFull(t, path)
		checkFile(t, store)
		dbtest.Audit(t, dbtest.SQL{DB: store.DB(), SQLite: true}.Dump(t))
		store.Close()
		if t.Failed() {
			t.Fatalf("after kill %d", n+1)
		}
	}
	store := openFull(t, path)
	beside := dbtest.SQL{DB: store.DB(), SQLite: true}
	dump := beside.Dump(t)
	keys, outcomes := map[string]int64{}, map[int64]string{}
	for _, m := range dump.Messages {
		keys[m.Key] = m.ID
	}
	for _, s := range dump.Settlements {
		outcomes[s.MessageID] = s.Outcome
	}
	for key := range stored {
		if keys[key] == 0 {
			t.Errorf("message %s was acknowledged and is lost", key)
		}
	}
	for key := range delivered {
		if outcomes[keys[key]] != "delivered" {
			t.Errorf("message %s was settled and is %q", key, outcomes[keys[key]])
		}
	}
	if len(dump.Messages) != len(dump.Queue)+len(dump.Settlements) {
		t.Errorf("%d messages, %d open and %d settled", len(dump.Messages), len(dump.Queue), len(dump.Settlements))
	}
	t.Logf("%d kills, %d stored, %d delivered", kills, len(stored), len(delivered))

	// What the dead held runs out; then everything can be performed.
	beside.Age(t, time.Hour)
	c := start(t, path, "send")
	waitUntilEmpty(t, store)
	complain(t, "send", c.end(t, false))
	if n := len(beside.Dump(t).Settlements); n != len(dump.Messages) {
		t.Errorf("%d of %d messages were settled in the end", n, len(dump.Messages))
	}
}

// checkFile looks at the file as the next process finds it.
func checkFile(t *testing.T, store *sqlitedb.Store) {
	t.Helper()
	var integrity string
	if err := store.DB().QueryRow("PRAGMA integrity_check").Scan(&integrity); err != nil || integrity != "ok" {
		t.Errorf("integrity_check: %s, %v", integrity, err)
	}
	var torn int
	err := store.DB().QueryRow(`SELECT (SELECT count(*) FROM business WHERE key NOT IN (SELECT key FROM outbox_message))
		+ (SELECT count(*) FROM outbox_message WHERE key NOT IN (SELECT key FROM business))`).Scan(&torn)
	if err != nil || torn != 0 {
		t.Errorf("%d business rows or effects are without the other, %v", torn, err)
	}
}

// Two senders in two processes share a file: each message is handled once.
func TestTwoProcessesHandleEachMessageOnce(t *testing.T) {
	t.Parallel()
	path, store := shop(t)
	box, err := outbox.New(store, outbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	const messages = 2_000
	for batch := range messages / 500 {
		effects := make([]outbox.Effect, 500)
		for i := range effects {
			effects[i] = outbox.Effect{Consumer: "c", Target: "t", Kind: "k", Key: fmt.Sprintf("message-%d", batch*500+i)}
		}
		err := sqlitedb.InTx(t.Context(), store, box, func(tx *sqlitedb.BoxTx) error {
			_, err := box.EnqueueMany(t.Context(), tx, effects)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	children := []*child{start(t, path, "send"), start(t, path, "send")}
	waitUntilEmpty(t, store)
	handled := map[string]int{}
	for _, c := range children {
		lines := c.end(t, false)
		complain(t, "send", lines)
		tally(handled, "handled", lines)
	}
	for key, n := range handled {
		if n != 1 {
			t.Errorf("message %s was handled %d times", key, n)
		}
	}
	if len(handled) != messages {
		t.Errorf("%d of %d messages were handled", len(handled), messages)
	}
}
