package outbox_test

import (
	"fmt"
	"testing"

	"github.com/fencepost-go/fencepost/outbox"
)

// awaitWaiting returns once n sessions of the database wait for a lock.
func (d *database) awaitWaiting(n int) {
	d.Helper()
	d.exec(fmt.Sprintf(`DO $$ BEGIN
		FOR i IN 1..3000 LOOP
			PERFORM pg_stat_clear_snapshot();
			IF (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock') = %d THEN RETURN; END IF;
			PERFORM pg_sleep(0.01);
		END LOOP;
		RAISE 'nobody waits';
	END $$`, n))
}

// leasedMeanwhile runs act while a lease of a message is not yet committed, so that act waits for it with a snapshot that is older. A file has one
// writer at a time, and who waits for it has no snapshot yet: there this cannot happen.
func (d *database) leasedMeanwhile(act func()) outbox.Message {
	d.Helper()
	tx := d.begin("read committed")
	if err := tx.exec("INSERT INTO outbox.order_lease VALUES (999, now() + interval '1 minute', false, 'wallets', 'ledger', '', 'o')"); err != nil {
		d.Fatal(err)
	}
	leased, acted := make(chan []outbox.Message, 1), make(chan struct{})
	go func() {
		defer close(leased)
		messages, err := d.box.Lease(d.Context(), d.consumer, outbox.LeaseRequest{Worker: 1, Kinds: []string{"charge"}, Limit: 1, For: minute})
		if err != nil {
			d.Error(err)
		}
		leased <- messages
	}()
	d.awaitWaiting(1)
	go func() {
		defer close(acted)
		act()
	}()
	d.awaitWaiting(2)
	if err := tx.rollback(); err != nil {
		d.Fatal(err)
	}
	messages := <-leased
	<-acted
	if len(messages) != 1 {
		d.Fatalf("leased %d messages, want 1", len(messages))
	}
	return messages[0]
}

// The order lease of a lease that is granted while a cancellation waits for it is younger than what the cancellation sees.
func TestCancelWaitsForALease(t *testing.T) {
	t.Parallel()
	onDrivers(t, func(d *database) {
		first, next := charge("first"), charge("next")
		first.OrderKey, next.OrderKey = "o", "o"
		receipts := d.enqueue(first, next)
		var answers []outbox.Acted
		m := d.leasedMeanwhile(func() {
			var err error
			answers, err = d.box.Cancel(d.Context(), outbox.Scope{}, []int64{receipts[0].ID}, outbox.By{Actor: "ann", Reason: "by hand"})
			if err != nil {
				d.Error(err)
			}
		})
		if len(answers) != 1 || answers[0].Status != outbox.Done || m.ID != receipts[0].ID {
			d.Fatalf("leased %d, cancelled %+v", m.ID, answers)
		}
		if got := d.lease(); len(got) != 1 || got[0].ID != receipts[1].ID {
			d.Errorf("leased %v after the cancellation, want the next message of the key", got)
		}
	})
}

// A worker's lease that is granted while the taking away of its leases waits for it is not taken away, or its order lease would stay. That the
// statement sees no order lease, though the worker held the message before, is what a smaller id leaves that committed late and was settled.
func TestReleaseWorkerWaitsForALease(t *testing.T) {
	t.Parallel()
	onDrivers(t, func(d *database) {
		effect := charge("first")
		effect.OrderKey = "o"
		d.enqueue(effect)
		d.exec("INSERT INTO outbox.worker (name, host) VALUES ('w', 'h')")
		release := func() int {
			n, err := d.box.ReleaseWorker(d.Context(), outbox.Scope{}, "w", outbox.By{Actor: "ann", Reason: "gone"})
			if err != nil {
				d.Error(err)
			}
			return n
		}
		d.exec("UPDATE outbox.queue SET leased_by = 1, token = decode(repeat('07', 16), 'hex'), leased_until = now(), epoch = 1, attempt = 1")
		m := d.leasedMeanwhile(func() { release() })
		if n := release(); n != 1 {
			d.Errorf("released %d leases, want the one that was granted meanwhile", n)
		}
		if got := d.lease(); len(got) != 1 || got[0].ID != m.ID {
			d.Errorf("leased %v after the release, want message %d", got, m.ID)
		}
	})
}
