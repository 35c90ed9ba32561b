package sender

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/outbox"
)

var operator = outbox.By{Actor: "ann", Reason: "test"}

func (b *bench) credential(name, consumer, tenant string) outbox.Credential {
	b.Helper()
	credential, added, err := b.box.AddCredential(b.Context(), name, []outbox.Permit{{Consumer: consumer, Tenant: tenant}}, operator)
	if err != nil || !added {
		b.Fatal(added, err)
	}
	return credential
}

func (b *bench) revoke(name string) {
	b.Helper()
	if revoked, err := b.box.RevokeCredential(b.Context(), name, operator); err != nil || !revoked {
		b.Fatal(revoked, err)
	}
}

// named is a sender under a credential, with the name that it has of it.
func (b *bench) named(config Config) *Sender {
	b.Helper()
	s, err := New(b.box, b.consumer, config)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// started runs a sender in the bubble; what Run returns comes out of the channel.
func (b *bench) started(s *Sender) <-chan error {
	done := make(chan error, 1)
	go func() { done <- s.Run(b.Context()) }()
	wait(time.Second)
	return done
}

// shutOut fails the test unless the run has ended with ErrRevoked and nothing is held.
func (b *bench) shutOut(done <-chan error) {
	b.Helper()
	select {
	case err := <-done:
		if !errors.Is(err, outbox.ErrRevoked) || errors.Is(err, ErrLeasesLeft) || strings.Contains(err.Error(), "fpw_") {
			b.Errorf("run: %v", err)
		}
	default:
		b.Fatal("it still runs")
	}
	if b.leased() > 0 {
		b.Error("leases are left")
	}
	if n := len(b.log.lines("the worker is shut out")); n != 1 || len(b.log.lines("database calls")) > 0 {
		b.Errorf("logged %q", b.log.lines(""))
	}
}

// Nothing starts without the credential that the box requires, with another's, or beyond what it is for; none of that is tried twice.
// Shows: S4.21
func TestStartNeedsTheCredential(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		b.open(outbox.Config{Logger: b.log.logger(), RequireCredential: true})
		if _, err := New(b.box, b.consumer, Config{Handlers: doing(succeed)}); !errors.Is(err, outbox.ErrUnidentified) {
			b.Errorf("without one: %v", err)
		}
		good := b.credential("good", "wallets", "")
		if _, err := New(b.box, b.consumer, Config{Handlers: doing(succeed), Credential: good, Name: "pod"}); !errors.Is(err, outbox.ErrInvalid) {
			b.Errorf("under another name: %v", err)
		}
		forged, err := outbox.ParseCredential("good:" + strings.SplitAfter(b.credential("other", outbox.Any, outbox.Any).Reveal(), ":")[1])
		if err != nil {
			b.Fatal(err)
		}
		revoked := b.credential("gone", "wallets", outbox.Any)
		b.revoke("gone")
		b.enqueue(effect("a"))
		b.took()
		for what, c := range map[string]struct {
			credential outbox.Credential
			scope      outbox.Scope
			want       error
			words      []string
		}{
			"wrong secret":     {forged, outbox.Scope{}, outbox.ErrUnidentified, nil},
			"revoked":          {revoked, outbox.Scope{}, outbox.ErrRevoked, []string{"gone"}},
			"all tenants":      {good, outbox.AllTenants, outbox.ErrNotPermitted, []string{`"wallets"`, "all tenants"}},
			"another tenant":   {good, outbox.Tenants("", "acme"), outbox.ErrNotPermitted, []string{`"wallets"`, `"acme"`}},
			"another consumer": {b.credential("elsewhere", "mails", ""), outbox.Scope{}, outbox.ErrNotPermitted, []string{`"wallets"`}},
		} {
			s := b.named(Config{Handlers: doing(succeed), Credential: c.credential, Scope: c.scope})
			_, onceErr := s.RunOnce(b.Context())
			for _, err := range []error{s.Run(b.Context()), onceErr} {
				if !errors.Is(err, c.want) || !strings.Contains(err.Error(), ": outbox: ") || strings.Contains(err.Error(), "fpw_") {
					b.Errorf("%s: %v", what, err)
				}
				for _, word := range c.words {
					if !strings.Contains(err.Error(), word) {
						b.Errorf("%s: %v lacks %s", what, err, word)
					}
				}
			}
		}
		if b.called("RegisterWorker")+b.called("DueLanes")+b.called("LeaseDue") > 0 {
			b.Errorf("sent %v", b.took())
		}
		if counts := b.runOnce(b.named(Config{Handlers: doing(succeed), Credential: good})); counts.Delivered != 1 {
			b.Errorf("counted %+v", counts)
		}
		if w := b.store.Dump().Workers; len(w) != 1 || w[0].Name != "good" {
			b.Errorf("registered %+v", w)
		}
		for _, line := range b.log.lines("") {
			if strings.Contains(line, "fpw_") {
				b.Error(line)
			}
		}
	})
}

// Shows: S4.21
func TestRevokedWhileIdle(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		done := b.started(b.named(Config{Handlers: doing(succeed), Credential: b.credential("w", "wallets", "")}))
		b.revoke("w")
		wait(10 * time.Second)
		b.shutOut(done)
		b.enqueue(effect("a"))
		wait(time.Minute)
		if len(b.outcomes()) > 0 {
			b.Error("it was performed")
		}
	})
}

// A handler is told at the next renewal, its message goes back unspent and unsure, and what waits for a slot goes back too.
// Shows: S4.21
func TestRevokedWhileAHandlerRuns(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		var ended ending
		done := b.started(b.named(Config{Handlers: Handlers{"charge": {Do: ended.do, Lease: 6 * time.Second}}, Slots: 1, Credential: b.credential("w", "wallets", "")}))
		ids := b.enqueue(effect("a"), effect("b"), effect("c"))
		wait(time.Second)
		at := time.Now()
		b.revoke("w")
		wait(2 * time.Second) // a third of the lease
		if told, cause := ended.get(); cause != outbox.ErrRevoked || told.Sub(at) > 2*time.Second {
			b.Errorf("ended by %v after %v", cause, told.Sub(at))
		}
		b.shutOut(done)
		for i, id := range ids {
			if q := b.row(id); q.Attempt != 0 || q.Unsure != (i == 0) {
				b.Errorf("row %+v", q)
			}
		}
	})
}

// A revocation that comes while a renewal is under way is found by it.
// Shows: S4.21
func TestRevokedWhileARenewalIsUnderWay(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		var ended ending
		done := b.started(b.named(Config{Handlers: Handlers{"charge": {Do: ended.do, Lease: 6 * time.Second}}, Credential: b.credential("w", "wallets", "")}))
		b.enqueue(effect("a"))
		b.store.Hook(memdb.Hook{After: func(_ context.Context, call memdb.Call, err error) error {
			if call.Operation == "Renew" {
				b.store.Hook(memdb.Hook{})
				b.revoke("w")
			}
			return err
		}})
		wait(4 * time.Second)
		if _, cause := ended.get(); cause != outbox.ErrRevoked {
			b.Errorf("ended by %v", cause)
		}
		b.shutOut(done)
	})
}

// What was performed in spite of the revocation is recorded: the lease still fences, and an effect without a record would be performed again.
// Shows: S4.21
func TestRevokedWorkerRecordsWhatItDid(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		done := b.started(b.named(Config{Credential: b.credential("w", "wallets", ""), Handlers: doing(func(ctx context.Context, _ outbox.Message) error {
			<-ctx.Done()
			return nil // it was too late to stop
		})}))
		id := b.enqueue(effect("a"))[0]
		wait(time.Second)
		b.revoke("w")
		wait(10 * time.Second)
		b.shutOut(done)
		if b.outcomes()[id] != "delivered" {
			b.Errorf("outcomes %v", b.outcomes())
		}
	})
}

// A credential that was removed, replaced or narrowed by hand is as good as revoked.
func TestCredentialThatIsNotAsItWas(t *testing.T) {
	for name, change := range map[string]func(*db.FindCredentialRow) bool{
		"removed":  func(*db.FindCredentialRow) bool { return false },
		"replaced": func(row *db.FindCredentialRow) bool { row.Hash = make([]byte, 32); return true },
		"salted":   func(row *db.FindCredentialRow) bool { row.Salt = make([]byte, 16); return true },
		"narrowed": func(row *db.FindCredentialRow) bool { row.Tenant = "acme"; return true },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, outbox.Policy{}, func(b *bench) {
				altered := &alteredCredential{Store: b.store}
				box, err := outbox.New(altered, outbox.Config{Logger: b.log.logger()})
				if err != nil {
					b.Fatal(err)
				}
				b.box = box
				done := b.started(b.named(Config{Handlers: doing(succeed), Credential: b.credential("w", "wallets", "")}))
				altered.change.Store(&change)
				wait(10 * time.Second)
				err = <-done
				if want := map[bool]error{true: outbox.ErrNotPermitted, false: outbox.ErrRevoked}[name == "narrowed"]; !errors.Is(err, want) {
					b.Errorf("run: %v", err)
				}
			})
		})
	}
}

// An alteredCredential is a store that finds credentials other than they are.
type alteredCredential struct {
	*memdb.Store
	change atomic.Pointer[func(*db.FindCredentialRow) bool]
}

func (s *alteredCredential) FindCredential(ctx context.Context, arg db.FindCredentialParams) ([]db.FindCredentialRow, error) {
	rows, err := s.Store.FindCredential(ctx, arg)
	if change := s.change.Load(); change != nil && len(rows) > 0 && !(*change)(&rows[0]) {
		rows = nil
	}
	return rows, err
}

// While nobody can look the credential up, handlers go on under their leases, and from 30 s on nothing more is leased.
// Shows: S4.21
func TestCredentialThatCannotBeLookedUp(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		stop := b.run(b.named(Config{Handlers: doing(succeed), Credential: b.credential("w", "wallets", "")}))
		wait(time.Second)
		b.failing("FindCredential", errDown)
		b.enqueue(effect("a"))
		wait(20 * time.Second)
		if len(b.outcomes()) != 1 {
			b.Errorf("outcomes %v", b.outcomes())
		}
		wait(20 * time.Second)
		b.enqueue(effect("b"))
		wait(time.Minute)
		if len(b.outcomes()) != 1 || b.leased() > 0 {
			b.Error("leased without a look at the credential")
		}
		b.failing("FindCredential", nil)
		wait(10 * time.Second)
		if len(b.outcomes()) != 2 {
			b.Error("leases nothing although the credential stands")
		}
		if err := stop(); err != nil {
			b.Error(err)
		}
	})
}

// A worker that is stopping already says that it was revoked.
func TestRevokedDuringAStop(t *testing.T) {
	inBubble(t, outbox.Policy{}, func(b *bench) {
		var ended ending
		credential := b.credential("w", "wallets", "")
		stop := b.run(b.named(Config{Credential: credential, Lease: 12 * time.Second, Drain: 10 * time.Second, Handlers: doing(ended.do)}))
		b.enqueue(effect("a"))
		wait(time.Second)
		b.revoke("w")
		if err := stop(); !errors.Is(err, outbox.ErrRevoked) {
			b.Errorf("run: %v", err)
		}
		if _, cause := ended.get(); cause != outbox.ErrRevoked {
			b.Errorf("ended by %v", cause)
		}
	})
}

// The whole way on every kind of database.
// Shows: S4.21
func TestWorkerIsRevoked(t *testing.T) {
	onStores(t, func(r *rig, use driver) {
		p := r.process(use, setup{})
		credential, _, err := p.box.AddCredential(r.Context(), "mailer", []outbox.Permit{{Consumer: "wallets", Tenant: ""}}, operator)
		if err != nil {
			r.Fatal(err)
		}
		var ended ending
		p.enqueue(effect("a"))
		runs, done := make(chan struct{}), make(chan error, 1)
		s := p.sender(Config{Lease: 6 * time.Second, Credential: credential, Handlers: doing(func(ctx context.Context, m outbox.Message) error {
			close(runs)
			return ended.do(ctx, m)
		})})
		go func() { done <- s.Run(r.Context()) }()
		receive(r, "a handler that runs", runs)
		if revoked, err := p.box.RevokeCredential(r.Context(), "mailer", operator); err != nil || !revoked {
			r.Fatal(revoked, err)
		}
		if err := receive(r, "the end", done); !errors.Is(err, outbox.ErrRevoked) {
			r.Errorf("run: %v", err)
		}
		if _, cause := ended.get(); cause != outbox.ErrRevoked || r.leases() != 0 {
			r.Errorf("ended by %v, %d leases are left", cause, r.leases())
		}
	})
}
