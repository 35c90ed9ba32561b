package outbox_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/outbox"
)

const minute = time.Minute

var by = outbox.By{Actor: "operator", Reason: "because"}

// C25: a reused key with other content was dropped with a success answer. The scope of a key is (tenant, consumer).
// Shows: S4.3
func TestC25SameKeyOtherContentThroughDrivers(t *testing.T) {
	t.Parallel()
	onStores(t, func(d *database) {
		first := d.enqueue(charge("k"))[0]
		for name, change := range map[string]func(*outbox.Effect){
			"payload": func(e *outbox.Effect) { e.Payload = []byte("other") },
			"kind":    func(e *outbox.Effect) { e.Kind = "refund" },
			"target":  func(e *outbox.Effect) { e.Target = "bank" },
		} {
			other := charge("k")
			change(&other)
			tx := d.begin("read committed")
			receipt, err := d.box.Enqueue(d.Context(), tx.tx, other)
			var conflict *outbox.KeyConflictError
			if !errors.Is(err, outbox.ErrKeyConflict) || !errors.As(err, &conflict) || conflict.Conflicts[0].ID != first.ID {
				d.Errorf("%s: %+v, %v", name, receipt, err)
			} else if strings.Contains(err.Error(), "payload of") {
				d.Errorf("%s: the error tells the stored content: %v", name, err)
			}
			if err := errors.Join(tx.exec("INSERT INTO business VALUES (1)"), tx.commit()); err != nil {
				d.Errorf("%s: the caller's transaction is unusable: %v", name, err)
			}
		}
		elsewhere, tenant := charge("k"), charge("k")
		elsewhere.Consumer, tenant.Tenant = "mails", "acme"
		for _, receipt := range d.enqueue(elsewhere, tenant) {
			if receipt.Status != outbox.Recorded {
				d.Errorf("another scope: %+v", receipt)
			}
		}
	})
}

// C28: a duplicate surfaced as "no rows", or as a silent success.
// Shows: S3.2
func TestC28DuplicateIsReportedThroughDrivers(t *testing.T) {
	t.Parallel()
	onStores(t, func(d *database) {
		first := d.enqueue(charge("k"))[0]
		again := func(want outbox.State) {
			d.Helper()
			if got := d.enqueue(charge("k"))[0]; got.Status != outbox.Duplicate || got.ID != first.ID || got.State != want {
				d.Errorf("%+v, want a duplicate of %d, %s", got, first.ID, want)
			}
		}
		again(outbox.StatePending)
		message := d.lease()[0]
		again(outbox.StateLeased)
		if _, err := d.box.Settle(d.Context(), d.consumer, outbox.Scope{}, message, outbox.Failed(outbox.Permanent(errors.New("no")))); err != nil {
			d.Fatal(err)
		}
		again(outbox.StateDead)
		d.beside.Age(d, 31*24*time.Hour)
		if swept, err := d.box.PurgeUndelivered(d.Context(), outbox.AllTenants, outbox.StateDead, outbox.Cursor{}, 30*24*time.Hour, 10); swept.Count != 1 || err != nil {
			d.Fatal(swept, err)
		}
		if got := d.enqueue(charge("k"))[0]; got.Status != outbox.Recorded {
			d.Errorf("after the purge: %+v", got)
		}
	})
}

// C30: a duplicate aborted the caller's transaction.
// Shows: S4.28
func TestC30DuplicateLeavesTheTransactionUsable(t *testing.T) {
	t.Parallel()
	onStores(t, func(d *database) {
		d.enqueue(charge("k"))
		for _, isolation := range []string{"read committed", "repeatable read", "serializable"} {
			tx := d.begin(isolation)
			if err := tx.exec("INSERT INTO business VALUES (1)"); err != nil {
				d.Fatal(err)
			}
			receipt, err := d.box.Enqueue(d.Context(), tx.tx, charge("k"))
			if err != nil || receipt.Status != outbox.Duplicate {
				d.Fatalf("%s: %+v, %v", isolation, receipt, err)
			}
			if err := errors.Join(tx.exec("INSERT INTO business VALUES (2)"), tx.commit()); err != nil {
				d.Errorf("%s: %v", isolation, err)
			}
		}
		// A winner that commits after the snapshot was taken: READ COMMITTED sees a duplicate, the stricter levels, as is every one of SQLite, may
		// answer 40001.
		for _, isolation := range []string{"read committed", "repeatable read", "serializable"} {
			key := "late " + isolation
			tx := d.begin(isolation)
			if err := tx.exec("SELECT count(*) FROM business"); err != nil {
				d.Fatal(err)
			}
			d.enqueue(charge(key))
			receipt, err := d.box.Enqueue(d.Context(), tx.tx, charge(key))
			switch {
			case (isolation != "read committed" || d.beside.SQLite) && errors.Is(err, db.ErrRetry):
			case err != nil || receipt.Status != outbox.Duplicate:
				d.Errorf("%s: %+v, %v", isolation, receipt, err)
			}
			_ = tx.rollback()
		}
		// No savepoints pile up.
		tx := d.begin("read committed")
		for i := range 1000 {
			if _, err := d.box.Enqueue(d.Context(), tx.tx, charge(fmt.Sprint("many ", i%500))); err != nil {
				d.Fatal(err)
			}
		}
		if err := tx.commit(); err != nil {
			d.Error(err)
		}
	})
}

// C44: a NUL, escaped or raw, broke the business transaction from inside.
func TestC44NULsAndBadText(t *testing.T) {
	t.Parallel()
	texts := map[string]string{"raw NUL": "a\x00b", "lone surrogate": "a\xed\xa0\x80b", "invalid UTF-8": "a\xffb", "escaped NUL": `a\u0000b`}
	fields := map[string]func(*outbox.Effect, string){
		"Key":      func(e *outbox.Effect, s string) { e.Key = s },
		"Kind":     func(e *outbox.Effect, s string) { e.Kind = s },
		"Target":   func(e *outbox.Effect, s string) { e.Target = s },
		"Tenant":   func(e *outbox.Effect, s string) { e.Tenant = s },
		"Metadata": func(e *outbox.Effect, s string) { e.Metadata = map[string]string{"m": s} },
		"Payload":  func(e *outbox.Effect, s string) { e.Payload = []byte(`{"text":"` + s + `"}`) },
	}
	onStores(t, func(d *database) {
		for textName, text := range texts {
			for field, set := range fields {
				effect := charge("key of " + textName + " in " + field)
				set(&effect, text)
				tx := d.begin("read committed")
				receipt, err := d.box.Enqueue(d.Context(), tx.tx, effect)
				if field == "Payload" || textName == "escaped NUL" {
					if err != nil {
						d.Errorf("%s in %s: %v", textName, field, err)
					}
				} else {
					var invalid *outbox.InvalidError
					if !errors.As(err, &invalid) || !strings.HasPrefix(invalid.Field, field) {
						d.Errorf("%s in %s: %v", textName, field, err)
					}
				}
				if err := errors.Join(tx.exec("INSERT INTO business VALUES (1)"), tx.commit()); err != nil {
					d.Errorf("%s in %s: the caller's transaction is unusable: %v", textName, field, err)
				}
				if receipt.ID == 0 {
					continue
				}
				got, err := d.box.Show(d.Context(), outbox.AllTenants, receipt.ID)
				if err != nil || !bytes.Equal(got.Payload, effect.Payload) || got.Metadata["m"] != effect.Metadata["m"] || got.Key != effect.Key {
					d.Errorf("%s in %s came back as %+v, %v", textName, field, got, err)
				}
			}
		}
	})
}

// C46: binary values worked with one driver and raised invalid UTF-8 with the other.
func TestC46BinaryValues(t *testing.T) {
	t.Parallel()
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	random := make([]byte, 60_000)
	_, _ = rand.Read(random)
	onStores(t, func(d *database) {
		for name, payload := range map[string][]byte{"every byte": all, "random": random, "empty": {}, "nil": nil} {
			effect := charge(name)
			effect.Payload = payload
			d.enqueue(effect)
		}
		for _, message := range d.lease() {
			want := map[string][]byte{"every byte": all, "random": random}[message.Key]
			if message.Payload == nil || !bytes.Equal(message.Payload, want) {
				d.Errorf("%s came back as %d bytes, nil %t", message.Key, len(message.Payload), message.Payload == nil)
			}
			// The token is random bytes too: a settle finds the message only if it went there and back unchanged.
			if result, err := d.box.Settle(d.Context(), d.consumer, outbox.Scope{}, message, outbox.Delivered()); err != nil || result.Status != outbox.Acknowledged {
				d.Errorf("%s: %+v, %v", message.Key, result, err)
			}
		}
	})
}

// C48: a long key fitted the column but not the index. The limit is 255 bytes.
func TestC48LongKeys(t *testing.T) {
	t.Parallel()
	onStores(t, func(d *database) {
		random := make([]byte, 10_000)
		_, _ = rand.Read(random)
		for i := range random {
			random[i] = '!' + random[i]%94
		}
		for _, test := range []struct {
			key string
			ok  bool
		}{
			{string(random[:255]), true}, {strings.Repeat("𝄞", 63) + "abc", true},
			{string(random[:256]), false}, {strings.Repeat("𝄞", 64), false}, {string(random[:1024]), false}, {string(random[:2700]), false},
			{string(random[:3000]), false}, {string(random), false},
		} {
			tx := d.begin("read committed")
			_, err := d.box.Enqueue(d.Context(), tx.tx, charge(test.key))
			var invalid *outbox.InvalidError
			if test.ok && err != nil || !test.ok && (!errors.As(err, &invalid) || invalid.Field != "Key") {
				d.Errorf("%d bytes: %v", len(test.key), err)
			}
			if err := errors.Join(tx.exec("INSERT INTO business VALUES (1)"), tx.commit()); err != nil {
				d.Errorf("%d bytes: the caller's transaction is unusable: %v", len(test.key), err)
			}
		}
	})
}

// C72: a replayed message kept its spent count, its old age or its state, and died again untouched.
func TestC72ReplayedMessagesRun(t *testing.T) {
	t.Parallel()
	onStores(t, func(d *database) {
		once, err := d.box.Consumer("wallets", "ledger", outbox.Policy{MaxAttempts: 1})
		if err != nil {
			d.Fatal(err)
		}
		d.consumer = once
		settle := func(message outbox.Message, outcome outbox.Outcome) {
			d.Helper()
			if _, err := d.box.Settle(d.Context(), once, outbox.Scope{}, message, outcome); err != nil {
				d.Fatal(err)
			}
		}
		deaths := map[string]func(){
			"permanent": func() { settle(d.lease()[0], outbox.Failed(outbox.Permanent(errors.New("no")))) },
			"attempts":  func() { settle(d.lease()[0], outbox.Failed(errors.New("no"))) },
			"age": func() {
				d.beside.Age(d, 25*time.Hour)
				d.lease()
			},
			"exhausted": func() {
				d.lease()
				d.beside.Age(d, time.Hour)
				d.lease()
			},
		}
		for cause, die := range deaths {
			for _, attempts := range []outbox.Attempts{outbox.PreserveAttempts, outbox.ResetAttempts} {
				receipt := d.enqueue(charge(fmt.Sprint(cause, attempts)))[0]
				die()
				before := d.show(receipt.ID)
				if before.State != outbox.StateDead || string(before.Cause) != cause {
					d.Fatalf("%s: %s, %s", cause, before.State, before.Cause)
				}
				// Two operators at once: one wins.
				answers := make(chan outbox.Status, 2)
				for range 2 {
					go func() {
						acted, err := d.box.Replay(d.Context(), outbox.Scope{}, []int64{receipt.ID}, attempts, by)
						if err != nil {
							d.Error(err)
							answers <- ""
							return
						}
						answers <- acted[0].Status
					}()
				}
				if a, b := <-answers, <-answers; a == b || a != outbox.Done && b != outbox.Done || a != outbox.NotDead && b != outbox.NotDead {
					d.Errorf("%s: two replays answer %s and %s", cause, a, b)
				}
				leased := d.lease()
				if len(leased) != 1 || leased[0].ID != receipt.ID {
					d.Fatalf("%s: the replayed message was not leased", cause)
				}
				after := d.show(receipt.ID)
				if !bytes.Equal(after.Payload, before.Payload) || after.Key != before.Key || !after.CreatedAt.Equal(before.CreatedAt) || after.Replays != 1 || leased[0].Epoch <= before.Epoch {
					d.Errorf("%s: before %+v, after %+v", cause, before, after)
				}
				settle(leased[0], outbox.Delivered())
				if got := d.show(receipt.ID).State; got != outbox.StateDelivered {
					d.Errorf("%s: %s at the end", cause, got)
				}
			}
		}
	})
}
