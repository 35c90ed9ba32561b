// Package dbtest is the conformance suite of db.Store: what every driver must do, as tests that read like the specification. A driver is done
// when Run passes. Only tests import this package.
//
// Time passes by ageing: a test moves the stored instants back instead of waiting, so nothing here sleeps and no statement needs a clock of
// its own. At the end of each test Problems looks over all tables.
package dbtest

import (
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

// Dump is all that a store holds; see package tables for its rows.
type Dump = tables.Dump

// A Harness is a store over a schema of its own, and what a test does beside the store.
type Harness struct {
	Store db.Store
	// Second is another handle on the same database, with connections of its own where there are any.
	Second db.Store
	// Begin opens a caller's transaction, which the test ends with one of the functions.
	Begin func(t testing.TB) (tx db.Tx, commit, rollback func() error)
	// BeginBoth is Begin with the rights of a producer and of a sender, where that makes a difference; nil: Begin.
	BeginBoth func(t testing.TB) (tx db.Tx, commit, rollback func() error)
	// Age moves every stored instant back by d, but for never and forever.
	Age func(t testing.TB, d time.Duration)
	// Dump reads all that is committed, instants in UTC.
	Dump func(t testing.TB) Dump
	// Reset empties all tables, since one harness serves many tests, one after the other.
	Reset func(t testing.TB)
	// OneWriter says that one transaction writes at a time, whoever began it, and that a rollback takes its ids back. Tests of transactions
	// that write side by side are left out then.
	OneWriter bool
}

// Run runs the suite. open makes a harness and registers its end with t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) Harness) { RunPart(t, 0, 1, open) }

// RunPart runs every parts-th test of the suite, from the one of that index on: for the ways to use a driver beside the usual one, which share
// the suite. FENCEPOST_FULL=1 makes it Run.
func RunPart(t *testing.T, part, parts int, open func(t *testing.T) Harness) {
	if os.Getenv("FENCEPOST_FULL") != "" {
		part, parts = 0, 1
	}
	harnesses := make(chan Harness, runtime.GOMAXPROCS(0)) // as many as tests run at once
	oneWriter := false
	for range cap(harnesses) {
		h := open(t)
		oneWriter = h.OneWriter
		harnesses <- h
	}
	index := 0
	for _, verb := range suite {
		first := index
		index += len(verb.tests)
		t.Run(verb.name, func(t *testing.T) {
			t.Parallel()
			for i, test := range verb.tests {
				if (first+i)%parts != part || test.sideBySide && oneWriter {
					continue
				}
				t.Run(test.name, func(t *testing.T) {
					t.Parallel()
					h := <-harnesses
					defer func() { harnesses <- h }()
					h.Reset(t)
					test.run(&fixture{T: t, Harness: h})
					if !t.Failed() {
						Audit(t, h.Dump(t))
					}
				})
			}
		})
	}
}

type test struct {
	name       string
	run        func(*fixture)
	sideBySide bool // it has two transactions that write, or one beside an operation that does
}

var suite = []struct {
	name  string
	tests []test
}{
	{"Enqueue", enqueueTests},
	{"EnqueueLeased", bornTests},
	{"FindKeys", findKeysTests},
	{"DueLanes", dueLanesTests},
	{"LeaseDue", leaseTests},
	{"LeaseDue/Bury", buryTests},
	{"LeaseDue/Order", orderTests},
	{"LeaseSuccessors", successorTests},
	{"Renew", renewTests},
	{"Release", releaseTests},
	{"Settle", settleTests},
	{"Settle/Guards", guardTests},
	{"SettleRetry", retryTests},
	{"Cancel", cancelTests},
	{"Replay", replayTests},
	{"Resolve", resolveTests},
	{"Pause", pauseTests},
	{"Unblock", unblockTests},
	{"Workers", workerTests},
	{"Credentials", credentialTests},
	{"Purge", purgeTests},
	{"Expire", expireTests},
	{"List", listTests},
	{"Show", showTests},
	{"Count", countTests},
	{"Doctor", doctorTests},
	{"Schema", schemaTests},
	{"Wake", wakeTests},
	{"Append", appendTests},
	{"Stream", streamTests},
	{"Retain", retainTests},
	{"Claim", claimTests},
	{"Batch", batchTests},
	{"Batch/Together", batchTogetherTests},
	{"Transact", transactTests},
	{"Bytes", bytesTests},
	{"Checks", checkTests},
	{"Context", contextTests},
	{"Together", togetherTests},
}
