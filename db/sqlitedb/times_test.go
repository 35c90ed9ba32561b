package sqlitedb_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
	_ "time/tzdata" // where the machine has no zones

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/sqlitedb"
)

// Instants are given in zones west and east of here, and differ by as little as a microsecond, some by .7 and .735 of a second, whose texts sort
// the wrong way. Claims and their order, the ends of leases and the purge follow true time for 10,000 random pairs; all are stored as integers.
func TestC41EmbeddedTimes(t *testing.T) {
	t.Parallel()
	t.Log("the process's own zone is", time.Now().Format("-0700"))
	store := openStore(t, filepath.Join(t.TempDir(), "shop.db"))
	c := &clockwork{T: t, store: store, random: rand.New(rand.NewPCG(41, 41))}
	pairs := 1_000
	if testing.Short() {
		pairs = 100
	}
	if os.Getenv("FENCEPOST_FULL") != "" {
		pairs = 10_000
	}
	c.enqueue(pairs)
	c.claims()
	c.leaseEnds()
	c.purges()
	c.storage()
}

// The same in processes whose own zone, in which times come out of a database, lies west and east of here.
func TestC41ZoneOfTheProcess(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, offset := range map[string]string{"Etc/GMT+5": "-0500", "Etc/GMT-1": "+0100"} {
		cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestC41EmbeddedTimes$", "-test.v", "-test.short")
		cmd.Env = append(os.Environ(), "TZ="+name)
		out, err := cmd.CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("the process's own zone is "+offset+"\n")) {
			t.Errorf("in a process at %s: %v\n%s", offset, err, out)
		}
	}
}

type clockwork struct {
	*testing.T
	store  *sqlitedb.Store
	random *rand.Rand
	dues   []time.Time // of the messages from id 1 on
}

const manyRows = 1_000

// enqueue stores pairs of messages due within a second of each other, in the past.
func (c *clockwork) enqueue(pairs int) {
	zones := []*time.Location{time.UTC, time.FixedZone("west", -5*3600), time.FixedZone("east", 3600)}
	base := time.Date(2024, 2, 29, 23, 59, 58, 0, time.UTC)
	for range pairs {
		second := base.Add(time.Duration(c.random.IntN(3_600)) * time.Second)
		pair := []time.Duration{700 * time.Millisecond, 735 * time.Millisecond}
		if c.random.IntN(2) == 0 {
			pair = []time.Duration{c.upTo(time.Second), c.upTo(time.Second)}
		}
		for _, d := range pair {
			c.dues = append(c.dues, second.Add(d).In(zones[c.random.IntN(len(zones))]))
		}
	}
	for batch := range slices.Chunk(c.dues, manyRows) {
		n := len(batch)
		p := db.EnqueueParams{
			Tenants: make([]string, n), Consumers: slices.Repeat([]string{"c"}, n), Targets: slices.Repeat([]string{"t"}, n),
			Kinds: slices.Repeat([]string{"k"}, n), Keys: make([]string, n), OrderKeys: make([]string, n), Priorities: make([]int16, n),
			Digests: slices.Repeat([][]byte{bytes.Repeat([]byte{1}, 32)}, n), Metadatas: make([]string, n), Payloads: slices.Repeat([][]byte{{}}, n),
			SourcePositions: make([]int64, n), SourceEventIds: make([]string, n), MaxAges: make([]int64, n), DueAts: make([]time.Time, n), Delays: make([]int64, n),
		}
		for i, due := range batch {
			p.Keys[i] = fmt.Sprintf("%d-%d", c.random.Int64(), i)
			p.DueAts[i] = due.AddDate(100, 0, 0) // a due time in the past would mean now
		}
		err := sqlitedb.InTx(c.Context(), c.store, nil, func(tx *sqlitedb.BoxTx) error {
			_, err := c.store.Enqueue(c.Context(), tx, p)
			return err
		})
		if err != nil {
			c.Fatal(err)
		}
	}
	// The century is over.
	c.update("UPDATE outbox_queue SET due_at = due_at - ?1, born_at = born_at - ?1 WHERE message_id = ?2", func(id int64) any {
		due := c.dues[id-1]
		return due.AddDate(100, 0, 0).UnixMicro() - due.UnixMicro()
	})
}

// upTo is a random duration in microseconds.
func (c *clockwork) upTo(d time.Duration) time.Duration {
	return time.Duration(c.random.Int64N(d.Microseconds())) * time.Microsecond
}

// update runs a statement for each message, with its value and its id.
func (c *clockwork) update(query string, value func(id int64) any) {
	c.Helper()
	tx, err := c.store.DB().BeginTx(c.Context(), nil)
	if err != nil {
		c.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	for id := range int64(len(c.dues)) {
		if _, err := tx.Exec(query, value(id+1), id+1); err != nil {
			c.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		c.Fatal(err)
	}
}

// pass leases from the lane's front to its end, in steps, and hands each step's rows and instant to see.
func (c *clockwork) pass(token string, see func(rows []db.LeaseDueRow, now time.Time)) {
	c.Helper()
	p := db.LeaseDueParams{
		Kinds: []string{"k"}, Tenants: []string{""}, Priorities: []int16{0}, AfterDues: []time.Time{db.Never}, AfterIds: []int64{0}, AttemptLimits: []int32{12},
		MaxAges: []int64{0}, AllTenants: true, Consumer: "c", Target: "t", Lease: time.Minute.Microseconds(), LongestLease: time.Hour.Microseconds(),
		Examine: manyRows, Quota: manyRows, MaxRows: manyRows, Token: []byte(token),
	}
	for {
		rows, err := c.store.LeaseDue(c.Context(), p)
		if err != nil {
			c.Fatal(err)
		}
		closing := rows[len(rows)-1]
		granted := slices.DeleteFunc(slices.Clone(rows), func(row db.LeaseDueRow) bool { return row.Fate != db.FateGranted })
		see(granted, closing.DueAt)
		if len(rows) == 1 {
			return
		}
		last := rows[len(rows)-2] // a lane that is not exhausted says how far it was examined
		p.AfterDues[0], p.AfterIds[0] = last.DueAt, last.ID
		if last.Fate != db.FateBound && len(granted) < manyRows {
			return
		}
	}
}

func (c *clockwork) claims() {
	c.Helper()
	order := make([]int, len(c.dues))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return c.dues[a].Compare(c.dues[b]) })
	place := 0
	c.pass("0123456789abcdef", func(rows []db.LeaseDueRow, _ time.Time) {
		for _, row := range rows {
			if i := order[place]; row.ID != int64(i+1) || !row.DueAt.Equal(c.dues[i]) {
				c.Fatalf("place %d: message %d, due %v; want %d, due %v", place, row.ID, row.DueAt, i+1, c.dues[i])
			}
			place++
		}
	})
	if place != len(order) {
		c.Errorf("%d of %d messages were leased", place, len(order))
	}
}

// leaseEnds moves the ends of all leases around the present: those before it are leased again, those after it are not.
func (c *clockwork) leaseEnds() {
	c.Helper()
	ends, before := make([]time.Time, len(c.dues)), time.Now()
	c.update("UPDATE outbox_queue SET leased_until = ?1 WHERE message_id = ?2", func(id int64) any {
		ends[id-1] = before.Add(c.upTo(time.Minute) - 30*time.Second).Truncate(time.Microsecond)
		return ends[id-1].UnixMicro()
	})
	var first time.Time
	again := map[int64]bool{}
	c.pass("fedcba9876543210", func(rows []db.LeaseDueRow, now time.Time) {
		if first.IsZero() {
			first = now
		}
		for _, row := range rows {
			again[row.ID] = true
			if end := ends[row.ID-1]; end.After(now) {
				c.Errorf("message %d, leased until %v, was leased again at %v", row.ID, end, now)
			}
		}
	})
	for i, end := range ends {
		if !end.After(first) && !again[int64(i+1)] {
			c.Errorf("message %d, leased until %v, was not leased again at %v", i+1, end, first)
		}
	}
}

// purges settles everything around a day ago: what is older is purged, what is younger stays.
func (c *clockwork) purges() {
	c.Helper()
	const keep = 24 * time.Hour
	settled, before := make([]time.Time, len(c.dues)), time.Now()
	c.update("INSERT INTO outbox_settlement (settled_at, message_id, epoch, attempt, replays, outcome) VALUES (?1, ?2, 1, 1, 0, 'delivered')", func(id int64) any {
		settled[id-1] = before.Add(c.upTo(time.Minute) - 30*time.Second - keep).Truncate(time.Microsecond)
		return settled[id-1].UnixMicro()
	})
	if _, err := c.store.DB().Exec("DELETE FROM outbox_queue"); err != nil {
		c.Fatal(err)
	}
	gone, first := map[int64]bool{}, time.Now().Truncate(time.Millisecond)
	for after := int64(0); ; {
		rows, err := c.store.PurgeDelivered(c.Context(), db.PurgeDeliveredParams{AfterID: after, MaxRows: manyRows, Keep: keep.Microseconds(), AllTenants: true})
		if err != nil {
			c.Fatal(err)
		}
		if len(rows) == 0 {
			break
		}
		for _, row := range rows {
			if !row.Removed {
				after = row.ID
				continue
			}
			gone[row.ID] = true
			if at := settled[row.ID-1]; time.Since(at) < keep-time.Millisecond { // the store's clock is rounded
				c.Errorf("message %d, settled at %v, was purged too early", row.ID, at)
			}
		}
	}
	for i, at := range settled {
		if first.Sub(at) > keep && !gone[int64(i+1)] {
			c.Errorf("message %d, settled at %v, was not purged at %v", i+1, at, first)
		}
	}
}

// storage looks at every column of an instant, whoever wrote it.
func (c *clockwork) storage() {
	c.Helper()
	for table, columns := range instantColumns(c.T, c.store.DB()) {
		for _, column := range columns {
			var other int
			query := fmt.Sprintf("SELECT count(*) FROM %s WHERE typeof(%s) <> 'integer'", table, column)
			if err := c.store.DB().QueryRow(query).Scan(&other); err != nil || other != 0 {
				c.Errorf("%s.%s holds %d instants that are no integers, %v", table, column, other, err)
			}
		}
	}
}

func instantColumns(t *testing.T, pool *sql.DB) map[string][]string {
	t.Helper()
	rows, err := pool.Query(`SELECT t.name, c.name, c.type FROM sqlite_schema AS t, pragma_table_info(t.name) AS c
		WHERE t.name GLOB 'outbox_*' AND t.type = 'table' AND (c.name GLOB '*_at' OR c.name IN ('at', 'leased_until', 'held_until', 'tstamp'))`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, n := map[string][]string{}, 0
	for rows.Next() {
		var table, column, kind string
		if err := rows.Scan(&table, &column, &kind); err != nil {
			t.Fatal(err)
		}
		if kind != "INTEGER" {
			t.Errorf("%s.%s is %s", table, column, kind)
		}
		columns[table] = append(columns[table], column)
		n++
	}
	if err := rows.Err(); err != nil || n < 19 {
		t.Fatalf("%d columns, %v", n, err)
	}
	return columns
}
