package webhook_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/pgxdb"
	"github.com/fencepost-go/fencepost/db/sqlitedb"
	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/ledger"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/schema"
	"github.com/fencepost-go/fencepost/webhook"
)

// A rig is a receiver that records each webhook as an event without an id, from which an effect is derived: two records would be two of both.
type rig struct {
	*testing.T
	ledger   *ledger.Ledger
	events   *events.Log
	secret   webhook.Secret
	receiver *webhook.Receiver
	logged   *bytes.Buffer
	calls    atomic.Int64 // of the record
	commits  atomic.Int64
}

func newRig(t *testing.T, store db.Store, config webhook.ReceiverConfig, record webhook.Record) *rig {
	t.Helper()
	r := &rig{T: t, secret: webhook.NewSecret(), logged: &bytes.Buffer{}}
	box, err := outbox.New(store, outbox.Config{
		Logger: slog.New(slog.NewTextHandler(r.logged, nil)),
		Redact: func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") },
	})
	if err != nil {
		t.Fatal(err)
	}
	r.events, err = events.New(box, events.Config{Subscriptions: []events.Subscription{{
		Name: "mails", Consumer: "shop", Target: "mail",
		Derive: func(e events.Event) ([]outbox.Effect, error) {
			return []outbox.Effect{{Kind: "mail", Payload: e.Payload}}, nil
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if r.ledger, err = ledger.New(box, ledger.Config{}); err != nil {
		t.Fatal(err)
	}
	from := func(request *http.Request) (webhook.Origin, error) {
		switch request.URL.Path {
		case "/hooks/bank":
			return webhook.Origin{Source: "bank", Secrets: []webhook.Secret{r.secret}}, nil
		case "/hooks/other":
			return webhook.Origin{Tenant: "acme", Source: "bank", Secrets: []webhook.Secret{r.secret}}, nil
		case "/hooks/broken":
			return webhook.Origin{}, errors.New("no connection for hunter2")
		case "/hooks/misnamed":
			return webhook.Origin{Tenant: "a\x00b", Source: "bank", Secrets: []webhook.Secret{r.secret}}, nil
		case "/hooks/unset":
			return webhook.Origin{Source: "bank"}, nil
		}
		return webhook.Origin{}, fmt.Errorf("no such path: %w", webhook.ErrUnknownOrigin)
	}
	r.receiver, err = webhook.NewReceiver(r.ledger, from, func(ctx context.Context, tx db.Tx, d *webhook.Delivery) error {
		r.calls.Add(1)
		receipts, err := r.events.Append(ctx, tx, events.Event{Tenant: d.Tenant, Stream: d.Source, Type: "bank.paid", Payload: d.Body})
		if err != nil {
			return err
		}
		d.OnCommit(receipts[0].Effects.Committed)
		d.OnCommit(func() { r.commits.Add(1) })
		if record != nil {
			return record(ctx, tx, d)
		}
		return nil
	}, config)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// hook is a webhook, signed now.
func (r *rig) hook(path, id, body string) *http.Request {
	r.Helper()
	header, err := webhook.Sign(id, time.Now(), []byte(body), r.secret)
	if err != nil {
		r.Fatal(err)
	}
	request := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	request.Header = header
	return request
}

// want sends a request and checks the status of its answer.
func (r *rig) want(request *http.Request, status int) *httptest.ResponseRecorder {
	r.Helper()
	w := httptest.NewRecorder()
	r.receiver.ServeHTTP(w, request)
	if w.Code != status {
		r.Errorf("%s: %d, want %d: %s\n%s", request.URL, w.Code, status, w.Body, r.logged)
	}
	return w
}

// recorded counts effects, one for each event.
func (r *rig) recorded() int {
	r.Helper()
	page, err := r.ledger.Box().List(r.Context(), outbox.AllTenants, outbox.ListQuery{Limit: 1000})
	if err != nil {
		r.Fatal(err)
	}
	return len(page.Messages)
}

func onStores(t *testing.T, test func(*testing.T, db.Store)) {
	t.Helper()
	for name, open := range map[string]func(*testing.T) db.Store{
		"memory": func(*testing.T) db.Store { return memdb.New(memdb.Config{}) },
		"pgx":    func(t *testing.T) db.Store { store, _ := openPgx(t); return store },
		"sqlite": func(t *testing.T) db.Store { return openSQLite(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func openPgx(t *testing.T) (db.Store, *pgxpool.Pool) {
	t.Helper()
	pool, err := pgxpool.New(context.WithoutCancel(t.Context()), pgtest.New(t)+"&pool_max_conns=8")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	store, err := pgxdb.New(pool, pgxdb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return store, pool
}

func openSQLite(t *testing.T) *sqlitedb.Store {
	t.Helper()
	store, err := sqlitedb.Open(filepath.Join(t.TempDir(), "shop.db"), sqlitedb.Config{Synchronous: sqlitedb.Normal})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	if err := schema.Up(t.Context(), store.DB(), schema.Config{Dialect: schema.SQLite}); err != nil {
		t.Fatal(err)
	}
	return store
}
