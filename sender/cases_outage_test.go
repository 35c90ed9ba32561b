package sender

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/pgserver"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/schema"
)

// attempts counts the calls that a sender makes.
type attempts struct {
	db.Store
	n atomic.Int32
}

func (a *attempts) DueLanes(ctx context.Context, arg db.DueLanesParams) ([]db.DueLanesRow, error) {
	a.n.Add(1)
	return a.Store.DueLanes(ctx, arg)
}

func (a *attempts) LeaseDue(ctx context.Context, arg db.LeaseDueParams) ([]db.LeaseDueRow, error) {
	a.n.Add(1)
	return a.Store.LeaseDue(ctx, arg)
}

func (a *attempts) Renew(ctx context.Context, arg db.RenewParams) ([]db.RenewRow, error) {
	a.n.Add(1)
	return a.Store.Renew(ctx, arg)
}

func (a *attempts) SettleDelivered(ctx context.Context, arg db.SettleDeliveredParams) ([]int64, error) {
	a.n.Add(1)
	return a.Store.SettleDelivered(ctx, arg)
}

func (a *attempts) TouchWorkers(ctx context.Context, arg db.TouchWorkersParams) ([]int64, error) {
	a.n.Add(1)
	return a.Store.TouchWorkers(ctx, arg)
}

// A party is a process whose sender performs one kind. Its handlers wait for the test.
type party struct {
	*process
	kind      string
	calls     *attempts
	performed calls
	started   chan struct{}
	proceed   atomic.Pointer[chan struct{}]
}

func (r *rig) party(use driver, kind string) *party {
	p := &party{kind: kind, calls: &attempts{}, started: make(chan struct{}, 1000)}
	p.process = r.process(use, setup{wrap: func(store db.Store) db.Store {
		p.calls.Store = store
		return p.calls
	}})
	return p
}

func (p *party) do(_ context.Context, m outbox.Message) error {
	p.performed.add(m)
	proceed := *p.proceed.Load()
	p.started <- struct{}{}
	<-proceed
	return nil
}

// begin has handlers of fresh messages in flight, and gives what lets them go on.
func (p *party) beginHandlers(round string) (effects []outbox.Effect, proceed func()) {
	p.Helper()
	gate := make(chan struct{})
	p.proceed.Store(&gate)
	effects = prefixed(p.kind+" "+round, 5, func(e *outbox.Effect) { e.Kind = p.kind })
	p.eventually("an enqueue", func() bool {
		_, err := p.tryEnqueue(effects)
		return err == nil
	}) // its pool has broken connections too
	for range effects {
		receive(p, "a handler", p.started)
	}
	return effects, sync.OnceFunc(func() { close(gate) })
}

// However a server fails, senders on it stay, make less than two attempts a second meanwhile, say so in a line, are back within ten seconds,
// and settle what was performed meanwhile. No attempt is lost to it.
func TestC60Failover(t *testing.T) {
	t.Parallel()
	server, err := pgserver.Start(t.Context(), pgserver.Options{Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	r := rigOn(t, server.DSN())
	if err := schema.Up(t.Context(), r.beside.DB, schema.Config{}); err != nil {
		t.Fatal(err)
	}
	readOnly, stopped := 3*time.Second, 4*time.Second
	if full {
		readOnly, stopped = 30*time.Second, time.Minute
	}
	parties := []*party{r.party(usePgx, "charge"), r.party(usePq, "email")}
	var stops []func() error
	for _, p := range parties {
		stops = append(stops, p.run(p.sender(Config{Name: p.kind, Lease: 3 * time.Minute, Handlers: Handlers{p.kind: {Do: p.do}}})))
	}
	for _, fault := range []struct {
		name       string
		begin, end func() error
		lasts      time.Duration
		spares     string
	}{
		{"terminated", r.terminate, func() error { return nil }, 0, ""},
		{"read-only", func() error { return r.setReadOnly("on") }, func() error { return r.setReadOnly("off") }, readOnly, "email"}, // lib/pq asks for read-write transactions by itself, which only a standby refuses
		{"stopped", func() error { return server.Halt("immediate") }, server.Resume, stopped, ""},
	} {
		var all []outbox.Effect
		var proceed []func()
		for _, p := range parties {
			effects, goOn := p.beginHandlers(fault.name)
			all, proceed = append(all, effects...), append(proceed, goOn)
		}
		delivered := r.outcomes()["delivered"]
		logged := map[*party]int{}
		for _, p := range parties {
			logged[p] = len(p.log.lines("level="))
		}
		if err := fault.begin(); err != nil {
			t.Fatal(fault.name, err)
		}
		before := []int32{parties[0].calls.n.Load(), parties[1].calls.n.Load()}
		for _, goOn := range proceed {
			goOn() // handlers finish while nothing can be recorded
		}
		began := time.Now()
		<-time.After(fault.lasts)
		for i, p := range parties {
			if fault.spares == p.kind {
				continue
			}
			made := p.calls.n.Load() - before[i]
			if most := 2*int32(time.Since(began)/time.Second) + 1; fault.lasts > 0 && made > most {
				t.Errorf("%s, %s: %d attempts in %v", fault.name, p.kind, made, time.Since(began))
			}
			if lines := p.log.lines("level=")[logged[p]:]; len(lines) > 1+int(fault.lasts/remindEvery) {
				t.Errorf("%s, %s: logged %v", fault.name, p.kind, lines)
			}
		}
		if err := fault.end(); err != nil {
			t.Fatal(fault.name, err)
		}
		ended, stalled := time.Now(), r.stalls()
		r.eventually("the settles after "+fault.name, func() bool { return r.outcomes()["delivered"] == delivered+len(all) })
		for _, p := range parties {
			effects, goOn := p.beginHandlers("after " + fault.name)
			goOn()
			all = append(all, effects...)
		}
		r.eventually("new messages after "+fault.name, func() bool { return r.outcomes()["delivered"] == delivered+len(all) })
		if took := time.Since(ended); took > 10*time.Second+stalled() {
			t.Errorf("%s: back after %v", fault.name, took)
		}
	}
	for _, s := range r.beside.Dump(t).Settlements {
		if s.Attempt != 1 || s.Epoch != 1 {
			t.Errorf("message %d took %d attempts, %d leases", s.MessageID, s.Attempt, s.Epoch)
		}
	}
	for i, p := range parties {
		for key, n := range p.performed.n {
			if n != 1 {
				t.Errorf("%s was performed %d times", key, n)
			}
		}
		if err := stops[i](); err != nil {
			t.Error(err)
		}
	}
}

// setReadOnly switches the server, and returns when new sessions have noticed.
func (r *rig) setReadOnly(value string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, r.dsn)
		if err != nil {
			return err
		}
		var now string
		err = conn.QueryRow(ctx, "SHOW default_transaction_read_only").Scan(&now)
		if err == nil && now != value {
			_, err = conn.Exec(ctx, "ALTER SYSTEM SET default_transaction_read_only = "+value)
		}
		if err == nil && now != value {
			_, err = conn.Exec(ctx, "SELECT pg_reload_conf()")
		}
		if err := errors.Join(err, conn.Close(ctx)); err != nil || now == value {
			return err
		}
	}
}

// terminate ends all sessions but the one it runs in.
func (r *rig) terminate() error {
	_, err := r.beside.DB.ExecContext(context.Background(),
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()")
	return err
}
