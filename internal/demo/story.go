package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/outbox"
)

// A story is one run of the demo.
type story struct {
	box      *outbox.Box
	log      *events.Log
	shop     *shop
	books    *books
	receiver *receiver
	crew     *crew
	orders   int
	tell     *narrator

	fail   context.CancelCauseFunc // ends the story
	placed chan struct{}           // closed when all orders are placed
	held   int                     // leases of the worker that was killed
	dead   int                     // messages that died
	back   int                     // of these, replayed
}

var (
	operator = outbox.By{Actor: "demo", Reason: "part of the demo"}
	mailLane = outbox.LanePattern{Consumer: consumer, Target: target, Kind: kindMail, Tenant: outbox.Any}
)

func (s *story) play(ctx context.Context) error {
	ctx, s.fail = context.WithCancelCause(ctx)
	defer s.tell.clear()
	s.books.run(ctx)
	defer s.books.wait()
	defer s.fail(nil)
	for _, chapter := range []func(context.Context) error{
		s.pauseMail, s.openShop, s.killWorker, s.replaceWorker, s.closeShop, s.finishCharges, s.resumeMail, s.replayDead, s.finish,
	} {
		if err := chapter(ctx); err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
	}
	return nil
}

// told tells what a chapter did, unless it failed.
func (s *story) told(err error, format string, args ...any) error {
	if err == nil {
		s.tell.sayf(format, args...)
	}
	return err
}

func (s *story) pauseMail(ctx context.Context) error {
	_, err := s.box.Pause(ctx, outbox.AllTenants, mailLane, outbox.PauseLeasing, operator)
	return s.told(err, "the lane %s is paused", kindMail)
}

func (s *story) openShop(ctx context.Context) error {
	s.tell.sayf("%d orders come in, and one more that the shop rolls back", s.orders)
	s.placed = make(chan struct{})
	go func() {
		if err := buy(ctx, s.shop.url, s.orders); err != nil {
			s.fail(err)
			return
		}
		close(s.placed)
	}()
	return s.crew.start("worker-1")
}

// killWorker strikes while a call is under way: its effect is performed, and nobody records that.
func (s *story) killWorker(ctx context.Context) error {
	if err := s.await(ctx, "worker-1 at work", closed(s.receiver.ambush)); err != nil {
		return err
	}
	if err := s.crew.killOne("worker-1"); err != nil {
		return err
	}
	stats, err := s.box.Stats(ctx, outbox.AllTenants)
	for _, lane := range stats.Lanes {
		if lane.Consumer == consumer {
			s.held += int(lane.Leased) // there was no other worker
		}
	}
	return s.told(err, "worker-1 is killed (SIGKILL) while it holds %d leases", s.held)
}

func (s *story) replaceWorker(context.Context) error {
	err := errors.Join(s.crew.start("worker-2"), s.crew.start("worker-3"))
	return s.told(err, "worker-2 and worker-3 take over; what worker-1 held waits for the end of its leases")
}

func (s *story) closeShop(ctx context.Context) error {
	err := s.await(ctx, "orders", closed(s.placed))
	return s.told(err, "all orders are placed")
}

func (s *story) finishCharges(ctx context.Context) error {
	err := s.await(ctx, "charges", func(context.Context) (bool, error) {
		return s.receiver.count(kindCharge) == s.orders-1, nil // one is refused
	})
	if mails := s.receiver.count(kindMail); err == nil && mails > 0 {
		err = fmt.Errorf("%d mails were sent although their lane is paused", mails)
	}
	return err
}

func (s *story) resumeMail(ctx context.Context) error {
	_, err := s.box.Resume(ctx, outbox.AllTenants, mailLane, operator)
	return s.told(err, "all charges but one are made and no mail is sent; the lane %s is resumed", kindMail)
}

func (s *story) replayDead(ctx context.Context) error {
	var ids []int64
	err := s.await(ctx, "a dead letter", func(ctx context.Context) (bool, error) {
		page, err := s.box.List(ctx, outbox.AllTenants, outbox.ListQuery{State: outbox.StateDead, Limit: 100})
		for _, m := range page.Messages {
			ids = append(ids, m.ID)
			s.tell.sayf("message %d (%s) is dead: %s", m.ID, m.Key, m.Reason)
		}
		return len(ids) > 0, err
	})
	if err != nil {
		return err
	}
	s.dead = len(ids)
	s.receiver.repair()
	answers, err := s.box.Replay(ctx, outbox.AllTenants, ids, outbox.ResetAttempts, operator)
	for _, answer := range answers {
		if answer.Status == outbox.Done {
			s.back++
		}
	}
	return s.told(err, "the receiver is repaired; messages replayed: %d", s.back)
}

func (s *story) finish(ctx context.Context) error {
	err := s.await(ctx, "open messages", func(ctx context.Context) (bool, error) {
		stats, err := s.box.Stats(ctx, outbox.AllTenants)
		return len(stats.Lanes) == 0 && len(stats.Parked) == 0, err
	})
	if err != nil {
		return err
	}
	return s.told(s.crew.dismiss(), "nothing is open any more")
}

// patience is how long the demo waits while nothing is performed.
const patience = time.Minute

// await looks every now and then whether something is done, and tells how far the work is.
func (s *story) await(ctx context.Context, what string, done func(context.Context) (bool, error)) error {
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	performed, since := 0, time.Now()
	for {
		if ok, err := done(ctx); ok || err != nil {
			return err
		}
		if err := s.crew.failure(); err != nil {
			return err
		}
		if now := s.receiver.count(kindCharge) + s.receiver.count(kindMail); now > performed {
			performed, since = now, time.Now()
		} else if time.Since(since) > patience {
			return fmt.Errorf("nothing happened for %v while waiting for %s", patience, what)
		}
		s.tell.count(performed, 2*s.orders)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
	}
}

// closed waits for the end of a channel.
func closed(end <-chan struct{}) func(context.Context) (bool, error) {
	return func(context.Context) (bool, error) {
		select {
		case <-end:
			return true, nil
		default:
			return false, nil
		}
	}
}
