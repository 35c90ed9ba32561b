package sender

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

// A message that kills its process does so as often as the policy allows, and then dies of lost leases without its handler being called;
// the others are performed.
// Shows: S2.9
func TestC07PoisonMessage(t *testing.T) {
	onPgxAndFile(t, func(r *rig, use driver) {
		producer := r.process(use, setup{})
		poison := producer.enqueue(effect("poison"))[0]
		producer.enqueue(prefixed("good", 20)...)
		var deaths atomic.Int32
		var performed sync.Map
		var supervisors sync.WaitGroup
		for range 2 {
			supervisors.Go(func() {
				for {
					child := r.child("")
					started := lines(r, child)
					if err := child.Start(); err != nil {
						r.Error(err)
						return
					}
					for line := range started {
						performed.Store(line, true)
					}
					var exit *exec.ExitError
					if err := child.Wait(); err == nil {
						return
					} else if !errors.As(err, &exit) || exit.ExitCode() != exitOfPoison {
						r.Error(err)
						return
					}
					if deaths.Add(1) > 10 {
						r.Error("the message goes on killing")
						return
					}
				}
			})
		}
		supervisors.Wait()
		if n := deaths.Load(); n != 3 {
			r.Errorf("%d processes died, want 3", n)
		}
		if got := r.outcomes(); got["delivered"] != 20 || got["dead"] != 1 {
			r.Errorf("settled %v", got)
		}
		for _, s := range r.beside.Dump(r).Settlements {
			if s.MessageID == poison && (s.Cause != "exhausted" || !strings.Contains(s.Reason, "leases lost") || s.Attempt != 3) {
				r.Errorf("the message died of %s after %d attempts: %s", s.Cause, s.Attempt, s.Reason)
			}
		}
	})
}

// What a killed process held is taken over one lease and one poll later.
// Shows: S3.4 S4.4
func TestC09KilledProcess(t *testing.T) {
	onPgxAndFile(t, func(r *rig, use driver) {
		producer := r.process(use, setup{})
		child := r.child("hang")
		started := lines(r, child)
		if err := child.Start(); err != nil {
			r.Fatal(err)
		}
		producer.enqueue(effect("a"))
		receive(r, "the handler of the child", started)

		taken := make(chan time.Time, 1)
		const poll = 100 * time.Millisecond
		second := r.process(use, setup{})
		stop := second.run(second.sender(Config{Poll: poll, Handlers: doing(func(_ context.Context, m outbox.Message) error {
			taken <- time.Now()
			if m.Attempt != 2 || !m.Unsure {
				r.Errorf("taken over as %v, unsure %v", m, m.Unsure)
			}
			return nil
		})}))
		if err := child.Process.Kill(); err != nil {
			r.Fatal(err)
		}
		killed := time.Now()
		_ = child.Wait()
		stalled := r.stalls()
		took := receive(r, "the takeover", taken).Sub(killed)
		if most := childLease + poll + time.Second + stalled(); took > most {
			r.Errorf("taken over after %v, not within %v", took, most)
		}
		r.eventually("the delivery", func() bool { return r.outcomes()["delivered"] == 1 })
		if err := stop(); err != nil {
			r.Error(err)
		}
	})
}

// An operator frees the messages of a named worker at once. Is the worker alive after all, it finds its lease lost.
// Shows: S4.25
func TestC09OperatorFreesAWorker(t *testing.T) {
	onPgxAndFile(t, func(r *rig, use driver) {
		started, resume := make(chan struct{}, 1), make(chan struct{})
		first := r.process(use, setup{})
		// With its one slot taken it does not lease the message itself once more.
		stopFirst := first.run(first.sender(Config{Name: "pod-7", Slots: 1, Lease: time.Hour, Handlers: doing(func(context.Context, outbox.Message) error {
			started <- struct{}{}
			<-resume
			return nil
		})}))
		id := first.enqueue(effect("a"))[0]
		receive(r, "the first handler", started)

		taken, finish := make(chan struct{}, 1), make(chan struct{})
		second := r.process(use, setup{})
		stopSecond := second.run(second.sender(Config{Name: "pod-8", Handlers: doing(func(context.Context, outbox.Message) error {
			taken <- struct{}{}
			<-finish
			return nil
		})}))
		if n, err := second.box.ReleaseWorker(r.Context(), outbox.AllTenants, "pod-7", outbox.By{Actor: "op", Reason: "gone"}); n != 1 || err != nil {
			r.Fatal(n, err)
		}
		receive(r, "the takeover", taken)
		before := r.version(id)
		close(resume)
		r.eventually("the settle of the first worker", func() bool { return first.settledLate() == 1 })
		if after := r.version(id); after != before {
			r.Errorf("the row's version became %s, was %s", after, before)
		}
		close(finish)
		r.eventually("the delivery", func() bool { return r.outcomes()["delivered"] == 1 })
		if err := errors.Join(stopFirst(), stopSecond()); err != nil {
			r.Error(err)
		}
	})
}

// Ten senders that start at once call one handler for each due message, and none for what is leased or not due.
// Shows: S3.24 S4.1
func TestC10TenSendersStartAtOnce(t *testing.T) {
	onStores(t, func(r *rig, use driver) {
		var performed calls
		producer := r.process(use, setup{policy: outbox.Policy{InitialDelay: time.Hour}})
		// Lanes of their own, so that each group can be leased apart.
		live := prefixed("live lease", 20, func(e *outbox.Effect) { e.Priority = 1 })
		lost := prefixed("lost lease", 20, func(e *outbox.Effect) { e.Priority = 2 })
		failed, due := prefixed("failed", 20), prefixed("due", 100)
		producer.enqueue(failed...)
		broken := producer.sender(Config{Handlers: doing(func(context.Context, outbox.Message) error { return errors.New("refused") })})
		if counts := producer.runOnce(broken); counts.Retried != len(failed) {
			r.Fatalf("%+v", counts)
		}
		producer.enqueue(append(live, lost...)...)
		producer.leaseAll(1, len(live), time.Hour)
		producer.leaseAll(2, len(lost), time.Millisecond)
		producer.enqueue(due...)
		var running sync.WaitGroup
		begin := make(chan struct{})
		for range 10 {
			p := r.process(use, setup{conns: 2})
			s := p.sender(Config{Handlers: doing(func(_ context.Context, m outbox.Message) error {
				performed.add(m)
				return nil
			})})
			running.Go(func() {
				<-begin
				if _, err := s.RunOnce(r.Context()); err != nil {
					r.Error(err)
				}
			})
		}
		close(begin)
		running.Wait()
		performed.once(r, append(due, lost...))
	})
}

// leaseAll leases the messages of one priority without anybody to perform them, as a process that died.
func (p *process) leaseAll(priority int16, n int, length time.Duration) {
	p.Helper()
	lanes := []outbox.PlannedLane{{Lane: outbox.Lane{Kind: "charge", Priority: priority}}}
	pass, err := p.box.LeaseLanes(p.Context(), outbox.LeasePlan{Consumer: p.consumer, For: length, Lanes: lanes, Quota: n, Limit: n})
	if err != nil || len(pass.Messages) != n {
		p.Fatalf("leased %d of %d: %v", len(pass.Messages), n, err)
	}
}
