package sender

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

// A worker is one run of a sender. One goroutine, the loop, owns all of it. Handlers and database calls run beside the loop, at most one
// call of each operation at a time, and end with an event: a function that the loop calls. So nothing here is locked, no call to the database
// holds up another or a handler, and every goroutine ends with the event it sends.
type worker struct {
	*Sender
	team     *team
	once     bool
	id       int64 // in the leases it takes
	schedule *schedule
	most     int // that a pass may lease now, at most a batch
	asked    int // of the pass under way
	passes   rest
	counts   Counts

	events      chan func()
	alarm       time.Time // when the loop looks again at the latest
	woken       <-chan struct{}
	hinted      chan struct{} // by the database
	hinters     sync.WaitGroup
	handOff     *outbox.HandOff // nil without one
	unconfirmed int             // messages that a confirmation is under way for
	confirms    rest

	calls    context.Context // of database calls: detached from Run's, it ends when a stop can wait no longer
	endCalls context.CancelFunc
	busy     [operations]bool
	inFlight int
	outage   outage

	handlers  context.Context // of handlers: detached too
	pace      pace
	waiting   []*held           // for a slot, in the order to start them
	running   running           // their handlers
	starts    chan *held        // to goroutines that have performed a message
	idle      int               // of these goroutines
	finished  []*held           // to be settled
	settlings []outbox.Settling // of the settle under way
	unwanted  []*held           // to be released
	suspects  int               // of those that wait or run
	following int               // ordered messages that finished and hold their slot for a successor
	pressing  bool              // some of the finished have to be recorded before more is leased

	identity     *outbox.Identity // nil without a credential
	trustedUntil time.Time
	revoked      bool

	renewAt, touchAt time.Time
	stop             stop
}

// held is a message with its lease.
type held struct {
	outbox.Message
	handler Handler
	since   time.Time     // before the lease was asked for
	lease   time.Duration // its usable length
	ends    time.Time     // the lease, before it does by the database's clock
	handed  bool          // born leased, and not started: nobody was woken for it
	gone    error         // what a renewal said: the lease is lost, or the message cancelled

	context context.Context
	cancel  context.CancelCauseFunc
	started time.Time

	outcome     outbox.Outcome // from the start that of a handler which neither returns nor panics
	done        time.Time
	reconciling bool // so far nothing was performed, and failing says nothing about earlier attempts
	late        bool // Do ended after its Timeout
	interrupted bool // it failed because its context ended for a reason that is not the message's

	failures   int  // of its lane's target, in a row
	unanswered bool // a settle was sent
}

// pressing says whether the outcome must not wait: nobody knows whether it is recorded, or the lease is over already.
func (h *held) pressing() bool { return h.unanswered || !h.done.Before(h.ends) }

// An operation is a kind of database call.
type operation int

const (
	settling operation = iota
	renewing
	confirming // what it gives back goes out at once
	releasing
	leasing // scans too
	touching
	starting   // what comes before all others
	operations // their number
)

func (o operation) String() string {
	return [...]string{"settle", "renew", "confirm", "release", "lease", "touch", "start"}[o]
}

func (s *Sender) newWorker(ctx context.Context, team *team) *worker {
	w := &worker{
		Sender:   s,
		team:     team,
		schedule: newSchedule(s.config.Poll, s.leases),
		most:     s.config.Batch,
		events:   make(chan func(), s.config.Slots+int(operations)), // each sender of an event has room for its one
		hinted:   make(chan struct{}, 1),
		handlers: context.WithoutCancel(ctx),
		running:  running{all: map[*held]struct{}{}},
		starts:   make(chan *held, s.config.Slots),
		pace:     pace{lease: s.shortest},
		outage:   newOutage(s.log, s.shortest),
	}
	w.calls, w.endCalls = context.WithCancel(w.handlers)
	return w
}

// run is the loop.
func (w *worker) run(ctx context.Context) error {
	defer w.endCalls()
	defer close(w.starts)
	defer w.running.end()
	w.team.touches.willing(w, w.id)
	defer w.team.touches.leave(w)
	defer w.team.scans.leave(w)
	var silence func()
	w.woken, silence = w.box.Woken()
	defer silence()
	hinting, hush := context.WithCancel(ctx)
	defer w.hinters.Wait()
	defer hush()
	w.listen(hinting)
	handed, endHandOff := w.beginHandOff()
	defer endHandOff()
	timer := time.NewTimer(0)
	defer timer.Stop()
	ended := ctx.Done()
	for {
		now := time.Now()
		w.alarm = now.Add(time.Hour)
		w.advance(now)
		if w.over() {
			return w.result()
		}
		timer.Reset(w.alarm.Sub(now))
		select {
		case event := <-w.events:
			event()
			w.drainEvents()
		case <-w.woken:
			w.schedule.wake()
		case <-w.hinted:
			w.schedule.wake()
		case <-handed:
		case <-timer.C:
		case <-ended:
			ended = nil
			w.beginStop(nil)
		}
	}
}

// drainEvents handles what is there already, so that one look around serves all of it.
func (w *worker) drainEvents() {
	for range len(w.events) {
		(<-w.events)()
	}
}

// advance starts everything that can start now. Where a resource is short, the earlier step gets it: what was performed is recorded before
// more is taken on.
func (w *worker) advance(now time.Time) {
	w.endStop(now)
	w.startWaiting(now)
	steps := [starting]func(time.Time){settling: w.settle, renewing: w.renew, confirming: w.confirm, releasing: w.release, leasing: w.lease, touching: w.touch}
	for op, step := range steps {
		if operation(op) != w.outage.last {
			step(now)
		}
	}
	// While the database is down there is one call at a time. The operation that failed last waits for the others, lest they never have a turn.
	if w.outage.down {
		steps[w.outage.last](now)
	}
	w.offer(now)
}

// look makes the loop look again at the given time at the latest.
func (w *worker) look(at time.Time) {
	if at.Before(w.alarm) {
		w.alarm = at
	}
}

// may says whether a database call of the operation can start now.
func (w *worker) may(op operation, now time.Time) bool {
	if w.busy[op] || w.calls.Err() != nil {
		return false
	}
	if !w.outage.down {
		return true
	}
	if now.Before(w.outage.next) {
		w.look(w.outage.next)
		return false
	}
	return w.inFlight == 0
}

// errCallGoexit is the error of a call in which an observer ended the goroutine; what it did is not known.
var errCallGoexit = errors.New("an observer ended the goroutine of the call (runtime.Goexit)")

// call makes a database call beside the loop, which then calls answer. A call that is not answered within that time has failed.
func (w *worker) call(op operation, within time.Duration, do func(context.Context) error, answer func(error)) {
	w.busy[op] = true
	w.inFlight++
	go func() {
		ctx, cancel := context.WithTimeout(w.calls, within)
		defer cancel()
		err := errCallGoexit
		defer func() {
			w.events <- func() {
				w.busy[op] = false
				w.inFlight--
				if err != nil {
					w.failed(op, err)
				}
				answer(err)
			}
		}()
		err = do(ctx)
	}()
}

// failed takes in why a call failed.
func (w *worker) failed(op operation, err error) {
	if shutOut(err) {
		w.revoke(err)
	} else if w.calls.Err() == nil {
		w.outage.failed(op, err, time.Now())
	}
}
