// Package badinput is the table of bad input: what a box must refuse, with which error, and that nothing else comes of it. It runs over any
// store, so that no driver answers differently. Rows carry the ids of the table in docs/invariants.md.
package badinput

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/outbox"
)

// An Env is an empty store, seen as a producer, a worker and an operator see it.
type Env struct {
	Store db.Store
	// Begin opens a caller's transaction.
	Begin func() Tx
	// Age lets time pass for all that is stored.
	Age func(time.Duration)
	// Sent counts the statements sent so far. Nil where they cannot be counted.
	Sent func() int
	// Broken gives transactions in which no statement can succeed, by what is wrong with them: closed, aborted, read-only, of another
	// database. They are used once.
	Broken map[string]func() db.Tx
	// Foreign are transactions that are none of the driver's: nothing is sent for them.
	Foreign map[string]db.Tx
}

// A Tx is a caller's transaction.
type Tx struct {
	Handle           db.Tx
	Commit, Rollback func() error
}

// Run runs every row of the table. open is called for each group of rows.
func Run(t *testing.T, open func(t *testing.T) Env) {
	for name, rows := range map[string]func(*fixture){
		"effects":      refuseEffects,
		"storable":     storeOddEffects,
		"keys":         answerTakenKeys,
		"transactions": passBrokenTransactions,
		"leases":       boundLeases,
		"settles":      answerBadSettles,
		"texts":        recordAnyText,
		"operators":    answerOperators,
		"names":        refuseNames,
		"contexts":     refuseEndedContexts,
		"construction": refuseConstruction,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rows(newFixture(t, open(t)))
		})
	}
}

type fixture struct {
	*testing.T
	Env
	box      *outbox.Box
	consumer *outbox.Consumer
}

func newFixture(t *testing.T, env Env) *fixture {
	if env.Sent == nil {
		env.Sent = func() int { return 0 }
	}
	f := &fixture{T: t, Env: env}
	var err error
	if f.box, err = outbox.New(env.Store, outbox.Config{Kinds: []string{"charge", "refund"}, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	if f.consumer, err = f.box.Consumer("wallets", "ledger", outbox.Policy{}); err != nil {
		t.Fatal(err)
	}
	return f
}

// valid is an effect that every row is a variation of.
func valid(key string) outbox.Effect {
	return outbox.Effect{Consumer: "wallets", Target: "ledger", Kind: "charge", Key: key, Payload: []byte("{}")}
}

// refused says that err is an InvalidError of the field.
func (f *fixture) refused(row string, err error, field string) {
	f.Helper()
	var invalid *outbox.InvalidError
	if !errors.Is(err, outbox.ErrInvalid) || !errors.As(err, &invalid) || invalid.Field != field {
		f.Errorf("%s: %v, want a problem of %s", row, err, field)
	}
}

// silently runs a call that must not send a statement.
func (f *fixture) silently(row string, call func()) {
	f.Helper()
	before := f.Sent()
	call()
	if sent := f.Sent() - before; sent != 0 {
		f.Errorf("%s: sent %d statements", row, sent)
	}
}

// enqueue stores effects in a transaction of their own.
func (f *fixture) enqueue(effects ...outbox.Effect) outbox.Receipts {
	f.Helper()
	tx := f.Begin()
	receipts, err := f.box.EnqueueMany(f.Context(), tx.Handle, effects)
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		f.Fatal(err)
	}
	return receipts
}

// lease leases everything that is due.
func (f *fixture) lease() []outbox.Message {
	f.Helper()
	request := outbox.LeaseRequest{Kinds: []string{"charge"}, Scope: outbox.AllTenants, Limit: 1000, For: time.Minute}
	messages, err := f.box.Lease(f.Context(), f.consumer, request)
	if err != nil {
		f.Fatal(err)
	}
	return messages
}

// leaseOne enqueues an effect and leases it.
func (f *fixture) leaseOne(key string) outbox.Message {
	f.Helper()
	f.enqueue(valid(key))
	messages := f.lease()
	if len(messages) != 1 {
		f.Fatalf("leased %v", messages)
	}
	return messages[0]
}

func (f *fixture) show(id int64) outbox.Details {
	f.Helper()
	details, err := f.box.Show(f.Context(), outbox.AllTenants, id)
	if err != nil {
		f.Fatal(err)
	}
	return details
}
