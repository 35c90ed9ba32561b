package sender

import (
	"log/slog"
	"math/rand/v2"
	"time"
)

const (
	firstBackoff = 500 * time.Millisecond
	lastBackoff  = 4 * time.Second
	remindEvery  = time.Minute
	reportEvery  = time.Second      // at most, however often the database comes and goes
	relapse      = 10 * time.Second // an outage so soon after another goes on with its backoff
)

// An outage is whether the database answers. While it does not, calls are made one at a time and ever less often: less than two a second
// from the start, and soon one in four to six seconds, which bounds how long a recovery goes unnoticed.
type outage struct {
	log     *slog.Logger
	slowest time.Duration // of the backoff

	down     bool
	last     operation // that failed, none (operations) unless down
	failing  [operations]bool
	failures int
	next     time.Time // no call before
	since    time.Time
	until    time.Time // the last outage
	logged   time.Time
	told     bool // of an outage whose end was not
}

// newOutage makes one whose backoff lets a lease be renewed in time after a short outage.
func newOutage(log *slog.Logger, lease time.Duration) outage {
	return outage{log: log, slowest: min(max(lease/6, firstBackoff), lastBackoff), last: operations}
}

// failed takes in that a call was not answered well.
func (o *outage) failed(op operation, err error, now time.Time) {
	if !o.down {
		o.down, o.since = true, now
		if now.Sub(o.until) > relapse {
			o.failures = 0
		}
	}
	if quiet := now.Sub(o.logged); !o.told && quiet >= reportEvery {
		o.report(now, "database calls fail; backing off", op, err)
	} else if quiet >= remindEvery {
		o.report(now, "database calls still fail", op, err)
	}
	o.last, o.failing[op] = op, true
	backoff := min(firstBackoff<<min(o.failures, 10), o.slowest)
	o.failures++
	o.next = now.Add(backoff + rand.N(backoff/2))
}

func (o *outage) report(now time.Time, text string, op operation, err error) {
	o.logged, o.told = now, true
	o.log.Error(text, "operation", op.String(), "for", now.Sub(o.since), "error", err)
}

// worked takes in that an operation succeeded. The outage is over when no other has failed since it last did: a server that has become
// read-only goes on answering some of them.
func (o *outage) worked(op operation, now time.Time) {
	o.failing[op] = false
	if o.down && o.failing == [operations]bool{} {
		o.down, o.last, o.until = false, operations, now
	}
	if !o.down && o.told && now.Sub(o.logged) >= reportEvery {
		o.logged, o.told = now, false
		o.log.Info("database calls succeed again", "after", o.until.Sub(o.since))
	}
}

// forget says that an operation has nothing left to do, so that its failure holds up nobody. It says nothing about the database.
func (o *outage) forget(op operation) { o.failing[op] = false }
