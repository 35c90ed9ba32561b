package sender

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/outbox"
)

func TestSchemaThatDoesNotFit(t *testing.T) {
	inBubbleOver(t, memdb.Config{Version: db.RefusedSchema}, outbox.Policy{}, func(b *bench) {
		if err := b.sender(Config{Handlers: doing(succeed)}).Run(b.Context()); !errors.Is(err, outbox.ErrSchemaTooNew) {
			b.Errorf("got %v", err)
		}
	})
}

func TestRoleThatMayTooMuch(t *testing.T) {
	config := memdb.Config{Role: &db.CheckRoleRow{MayLease: true, MaySettle: true, Superuser: true}}
	inBubbleOver(t, config, outbox.Policy{}, func(b *bench) {
		b.enqueue(effect("a"))
		if counts := b.runOnce(b.sender(Config{Handlers: doing(succeed)})); counts.Delivered != 1 || len(b.log.lines(`problem="is a superuser"`)) != 1 {
			b.Errorf("counted %+v, logged %v", counts, b.log.lines(""))
		}
		err := b.sender(Config{Handlers: doing(succeed), RequireRole: true}).Run(b.Context())
		if err == nil || !strings.Contains(err.Error(), "is a superuser") {
			b.Errorf("got %v", err)
		}
	})
}

func TestVerifyComesBeforeTheFirstLease(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		b.enqueue(effect("a"))
		wrong := errors.New("not this cluster")
		err := b.sender(Config{Handlers: doing(succeed), Verify: func(context.Context) error { return wrong }}).Run(b.Context())
		if !errors.Is(err, wrong) || b.called("DueLanes") > 0 {
			b.Errorf("got %v", err)
		}
	})
}

func TestRunWaitsForADatabase(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		b.failing("*", errDown)
		stop := b.run(b.sender(Config{Handlers: doing(succeed)}))
		wait(time.Minute)
		if calls := b.took(); len(calls) < 10 || len(calls) > 30 {
			b.Errorf("%d attempts in a minute", len(calls))
		}
		if got := b.log.lines("operation=start"); len(got) == 0 || len(got) != len(b.log.lines("calls")) {
			b.Errorf("logged %v", b.log.lines(""))
		}
		b.enqueue(effect("a"))
		b.failing("*", nil)
		wait(10 * time.Second)
		if len(b.outcomes()) != 1 {
			b.Error("not performed")
		}
		if err := stop(); err != nil {
			b.Error(err)
		}
		b.failing("*", errDown)
		stop = b.run(b.sender(Config{Handlers: doing(succeed)}))
		wait(time.Second)
		if err := stop(); err != nil {
			b.Error(err)
		}
	})
}

// A worker whose record was purged registers anew, and leases under its new id.
func TestTouchRegistersAnew(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		stop := b.run(b.sender(Config{Handlers: doing(func(context.Context, outbox.Message) error {
			time.Sleep(time.Minute)
			return nil
		})}))
		wait(time.Second)
		wait(8 * time.Second)
		if n, err := b.box.PurgeWorkers(b.Context(), 5*time.Second, 10); n != 1 || err != nil {
			b.Fatal(n, err)
		}
		wait(2 * time.Second)
		workers := b.store.Dump().Workers
		if len(workers) != 1 || workers[0].Name != "bench" || workers[0].Host == "" {
			b.Fatalf("registered %+v", workers)
		}
		id := b.enqueue(effect("a"))[0]
		wait(time.Second)
		if by := b.row(id).LeasedBy; by != workers[0].ID {
			b.Errorf("leased by %d, registered as %d", by, workers[0].ID)
		}
		wait(time.Minute)
		if err := stop(); err != nil {
			b.Error(err)
		}
	})
}
