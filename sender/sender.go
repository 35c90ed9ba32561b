package sender

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

// ErrTimeout is the cause of a handler's context whose Timeout is over.
var ErrTimeout = errors.New("handler timeout")

// A Sender performs the messages of one consumer. Make one with New; it may be run again after it stopped, and several times at once, each
// run being a worker of its own.
type Sender struct {
	box      *outbox.Box
	consumer *outbox.Consumer
	config   Config // with its defaults
	kinds    []string
	leases   map[string]time.Duration // by kind
	shortest time.Duration            // of the leases
	log      *slog.Logger
	observer *outbox.Observer
}

// New makes a sender of a box's consumer. It reports every problem of the Config at once, as outbox.ErrInvalid, and sends no query.
func New(box *outbox.Box, consumer *outbox.Consumer, config Config) (*Sender, error) {
	if box == nil {
		return nil, failed("new", &outbox.InvalidError{Field: "box", Problem: "is nil"})
	}
	config = config.withDefaults()
	kinds := config.kinds()
	leases, ages := map[string]time.Duration{}, map[string]time.Duration{}
	for kind, handler := range config.Handlers {
		leases[kind], ages[kind] = handler.Lease, handler.MaxAge
	}
	// A query for no lanes at all checks what belongs to outbox, without being sent.
	_, err := box.DueLanes(context.Background(), outbox.LaneQuery{Consumer: consumer, Kinds: kinds, Scope: config.Scope})
	err = errors.Join(config.check(), err)
	if box.RequiresCredential() && config.Credential.IsZero() {
		err = errors.Join(err, fmt.Errorf("%w: the box requires a Credential", outbox.ErrUnidentified))
	}
	if consumer != nil && config.HandOff && consumer.Policy().MaxAttempts < 2 {
		err = errors.Join(err, &outbox.InvalidError{Field: "HandOff", Problem: "needs a policy of 2 attempts or more: a commit that takes long spends one"})
	}
	if consumer != nil {
		limited, agesErr := consumer.WithMaxAges(ages)
		consumer, err = limited, errors.Join(err, agesErr)
	}
	if err != nil {
		return nil, failed("new", err)
	}
	return &Sender{
		box:      box,
		consumer: consumer,
		config:   config,
		kinds:    kinds,
		leases:   leases,
		shortest: config.shortestLease(),
		log:      box.Logger().With("consumer", consumer.Name(), "target", consumer.Target(), "worker", config.Name),
		observer: box.Observer(),
	}, nil
}

// Run leases, performs and settles messages until ctx ends, and then stops: it leases no more, gives back what has not started, waits
// Config.Drain for running handlers, ends the contexts of the others with outbox.ErrStopping and gives their messages back. What handlers
// finish until then is settled although ctx is over. Nil means a clean stop: nothing runs, nothing is leased, and the pool may be closed. A
// *StillRunningError lists what would not end, at most 250 ms after Drain and Grace.
//
// Before the first lease it checks the schema and the role, runs Config.Verify and verifies Config.Credential (outbox.ErrUnidentified,
// ErrNotPermitted, ErrRevoked); what they refuse ends Run, and so does a database that denies access then (db.ErrDenied). While the database
// cannot be reached Run waits for it, at the start too: at growing intervals, with one log record when that begins and one when it is over.
func (s *Sender) Run(ctx context.Context) error {
	return s.run(ctx, newTeam(s.box))
}

func (s *Sender) run(ctx context.Context, team *team) error {
	if len(s.kinds) == 0 {
		<-ctx.Done()
		return nil
	}
	w := s.newWorker(ctx, team)
	err := w.begin(ctx)
	if ctx.Err() != nil {
		return nil
	}
	if err == nil {
		err = w.run(ctx)
	}
	return failed("run", err)
}

// onceAtMost bounds one RunOnce, lest it never end beside a busy producer.
const onceAtMost = 10_000

// Counts is what came of the messages of one RunOnce.
type Counts struct {
	Leased    int // Released ones included
	Delivered int
	Retried   int // failed, and due again later
	Dead      int // at a settle or at a lease
	Parked    int
	Released  int // given back, not performed or interrupted, or lost until then
	Lost      int // the lease was lost or the message cancelled: nothing was recorded by this sender
}

// RunOnce leases what is due, performs and settles it, until nothing is due any more, ctx ends or 10,000 messages have been leased; for
// tests and for cron. Messages held back because their target is unavailable do not count as due. Unlike Run it does not wait for a database:
// the first error of a lease stops it as the end of ctx stops Run, and is returned.
func (s *Sender) RunOnce(ctx context.Context) (Counts, error) {
	if len(s.kinds) == 0 || ctx.Err() != nil {
		return Counts{}, ctx.Err()
	}
	w := s.newWorker(ctx, newTeam(s.box))
	w.once = true
	if err := w.begin(ctx); err != nil {
		return Counts{}, failed("run once", err)
	}
	err := w.run(ctx)
	return w.counts, failed("run once", err)
}

// RunAll runs several senders until ctx ends or one of them fails; then it stops the others and returns what they returned. Those of one box look for
// due messages together while they have nothing to do, with one query in a poll interval for all, and are recorded as alive by one.
func RunAll(ctx context.Context, senders ...*Sender) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(senders))
	teams := map[*outbox.Box]*team{}
	var running sync.WaitGroup
	for i, s := range senders {
		if teams[s.box] == nil {
			teams[s.box] = newTeam(s.box)
		}
		team := teams[s.box]
		running.Go(func() {
			if errs[i] = s.run(ctx, team); errs[i] != nil {
				cancel()
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// failed puts the package's name and the verb before an error that leaves the package.
func failed(verb string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("sender: %s: %w", verb, err)
}
