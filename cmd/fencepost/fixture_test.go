package main

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/outbox"
)

// hostile is text that would clear a terminal, recolour it and reverse the line.
const hostile = "\x1b[2J\x1b[31mred\u202e\u009b2J\x00"

// fixture is a database with one message of most states.
type fixture struct {
	dsn string
	box *outbox.Box
}

var operator = outbox.By{Actor: "ann", Reason: "a test"}

// newFixture fills a database: 1 and 2 pending, 3 deferred, 4 delivered, 5 dead, 6 parked, 7 cancelled, 8 leased, 9 dead; the kind mail
// is paused.
func newFixture(t *testing.T) fixture {
	t.Helper()
	f := openFixture(t, pgtest.New(t))
	f.enqueue(t,
		outbox.Effect{Kind: "charge", Key: "order-1"},
		outbox.Effect{Kind: "mail", Key: "order-2", Tenant: "acme"},
		outbox.Effect{Kind: "charge", Key: "order-3", Delay: time.Hour},
		outbox.Effect{Kind: "ship", Key: "order-4", Payload: []byte("{\"sku\": 7}\n" + hostile[:12]), Metadata: map[string]string{"trace": "t\t1"}},
		outbox.Effect{Kind: "ship", Key: "order-5\n\u202e", Payload: []byte{0xff, 0, 1}},
		outbox.Effect{Kind: "ship", Key: "order-6"},
		outbox.Effect{Kind: "gift", Key: "order-7"},
		outbox.Effect{Kind: "pack", Key: "order-8"},
		outbox.Effect{Kind: "wrap", Key: "order-9", OrderKey: "customer-1", MaxAge: time.Hour, SourcePosition: 3, SourceEventID: "e-3"},
	)
	shop := f.consumer(t)
	outcomes := []outbox.Outcome{
		outbox.DeliveredWith("receipt 77"),
		outbox.Failed(outbox.Permanent(errors.New("refused:\x1b[31m no such address"))),
		outbox.Failed(outbox.Unknown(errors.New("timed out"))),
	}
	for i, m := range f.lease(t, shop, "ship") {
		if _, err := f.box.Settle(t.Context(), shop, outbox.AllTenants, m, outcomes[i]); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range f.lease(t, shop, "wrap") {
		if _, err := f.box.Settle(t.Context(), shop, outbox.AllTenants, m, outbox.Failed(outbox.Moot(errors.New("order was cancelled")))); err != nil {
			t.Fatal(err)
		}
	}
	f.lease(t, shop, "pack")
	if _, err := f.box.Cancel(t.Context(), outbox.AllTenants, []int64{7}, operator); err != nil {
		t.Fatal(err)
	}
	mail := outbox.LanePattern{Consumer: outbox.Any, Target: outbox.Any, Kind: "mail", Tenant: outbox.Any}
	if _, err := f.box.Pause(t.Context(), outbox.AllTenants, mail, outbox.PauseCancel, operator); err != nil {
		t.Fatal(err)
	}
	return f
}

func openFixture(t *testing.T, dsn string) fixture {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	store, err := pgxdb.New(pool, pgxdb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	box, err := outbox.New(store, outbox.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return fixture{dsn: dsn, box: box}
}

func (f fixture) enqueue(t *testing.T, effects ...outbox.Effect) {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), f.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for i := range effects {
		effects[i].Consumer, effects[i].Target = "shop", "warehouse"
	}
	err = pgxdb.InTx(t.Context(), pool, f.box, func(tx *pgxdb.BoxTx) error {
		_, err := f.box.EnqueueMany(t.Context(), tx, effects)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (f fixture) consumer(t *testing.T) *outbox.Consumer {
	t.Helper()
	consumer, err := f.box.Consumer("shop", "warehouse", outbox.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	return consumer
}

// lease leases all due messages of a kind, in order of id.
func (f fixture) lease(t *testing.T, consumer *outbox.Consumer, kind string) []outbox.Message {
	t.Helper()
	worker, err := f.box.RegisterWorker(t.Context(), "worker-1", "host")
	if err != nil {
		t.Fatal(err)
	}
	pass, err := f.box.LeaseLanes(t.Context(), outbox.LeasePlan{
		Consumer: consumer, Worker: worker, Scope: outbox.AllTenants, For: 10 * time.Minute,
		Lanes: []outbox.PlannedLane{{Lane: outbox.Lane{Kind: kind}}}, Quota: 100, Limit: 100,
	})
	if err != nil {
		t.Fatal(err)
	}
	return pass.Messages
}
