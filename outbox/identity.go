package outbox

import (
	"context"
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"

	"github.com/fencepost-go/fencepost/db"
)

// An Identity is a named worker that a box has verified. It may be used from several goroutines at once.
type Identity struct {
	box   *Box
	name  string
	still func(db.FindCredentialRow) bool // whether the secret that was verified is stored; a func, which no printer looks into

	mu      sync.Mutex
	permits []Permit
	revoked bool // as the last Check found
}

// Identify verifies a credential: ErrUnidentified for a name that nobody has and for another secret, which take the same time; ErrRevoked for one
// that was revoked. One statement. Retryable after other errors.
func (b *Box) Identify(ctx context.Context, credential Credential) (*Identity, error) {
	var found problems
	if credential.IsZero() {
		found.add("Credential", "is none")
	}
	if err := found.refused(ctx); err != nil {
		return nil, failed("identify", err)
	}
	rows, err := b.store.FindCredential(ctx, db.FindCredentialParams{Name: credential.name})
	if err != nil {
		return nil, failed("identify", err)
	}
	stored := db.FindCredentialRow{Salt: make([]byte, saltBytes), Hash: make([]byte, hashBytes), Iterations: iterations} // costs as much as one that is there
	if len(rows) > 0 {
		stored = rows[0]
	}
	hash, err := credential.hash(stored.Salt, int(stored.Iterations))
	if err != nil {
		return nil, failed("identify", err)
	}
	switch same := subtle.ConstantTimeCompare(hash, stored.Hash) == 1; {
	case !same || len(rows) == 0:
		return nil, failed("identify", fmt.Errorf("%w: no worker has this name and secret", ErrUnidentified))
	case stored.Revoked:
		return nil, failed("identify", fmt.Errorf("%w: %q", ErrRevoked, credential.name))
	}
	return &Identity{box: b, name: credential.name, permits: permitsOf(rows), still: func(row db.FindCredentialRow) bool {
		return subtle.ConstantTimeCompare(hash, row.Hash)&subtle.ConstantTimeCompare(stored.Salt, row.Salt) == 1 && stored.Iterations == row.Iterations
	}}, nil
}

func permitsOf(rows []db.FindCredentialRow) []Permit {
	permits := make([]Permit, len(rows))
	for i, row := range rows {
		permits[i] = Permit{row.Consumer, row.Tenant}
	}
	return permits
}

// Name is the worker's.
func (i *Identity) Name() string { return i.name }

// Check looks whether the credential still stands as it was verified, and for what: ErrRevoked when it was revoked, removed or replaced; from then on
// nothing is leased under it. One statement. Retryable after other errors.
func (i *Identity) Check(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return failed("check credential", err)
	}
	rows, err := i.box.store.FindCredential(ctx, db.FindCredentialParams{Name: i.name})
	if err != nil {
		return failed("check credential", err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.permits = permitsOf(rows)
	if len(rows) == 0 || rows[0].Revoked || !i.still(rows[0]) {
		i.revoked = true
		return failed("check credential", fmt.Errorf("%w: %q", ErrRevoked, i.name))
	}
	return nil
}

// Permits is nil when the worker may lease for the whole of a scope of a consumer, as the credential stood when it was last looked up;
// ErrNotPermitted names what it may not.
func (i *Identity) Permits(consumer string, scope Scope) error {
	return failed("permits", i.refusal(consumer, scope))
}

func (i *Identity) refusal(consumer string, scope Scope) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.revoked {
		return fmt.Errorf("%w: %q", ErrRevoked, i.name)
	}
	if scope.all {
		if !i.permitsTenant(consumer, Any) {
			return fmt.Errorf("%w: worker %q, consumer %q, all tenants", ErrNotPermitted, i.name, consumer)
		}
		return nil
	}
	for _, tenant := range scope.Names() {
		if !i.permitsTenant(consumer, tenant) {
			return fmt.Errorf("%w: worker %q, consumer %q, tenant %q", ErrNotPermitted, i.name, consumer, tenant)
		}
	}
	return nil
}

func (i *Identity) permitsTenant(consumer, tenant string) bool {
	return slices.ContainsFunc(i.permits, func(p Permit) bool {
		return (p.Consumer == consumer || p.Consumer == Any) && (p.Tenant == tenant || p.Tenant == Any)
	})
}

// String is the worker's name.
func (i *Identity) String() string { return i.name }

// Format implements fmt.Formatter: the worker's name, whatever the verb.
func (i *Identity) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, i.name) }

// LogValue implements slog.LogValuer: the worker's name.
func (i *Identity) LogValue() slog.Value { return slog.StringValue(i.name) }

// RequiresCredential says whether nothing is leased from the box without an Identity.
func (b *Box) RequiresCredential() bool { return b.requireCredential }

// admits says why a worker may not lease, before any statement is sent.
func (b *Box) admits(as *Identity, consumer *Consumer, scope Scope) error {
	switch {
	case as == nil && b.requireCredential:
		return fmt.Errorf("%w: Config.RequireCredential is set and no Identity was given", ErrUnidentified)
	case as == nil:
		return nil
	case as.box != b:
		return fmt.Errorf("%w: the Identity is of another box", ErrUnidentified)
	default:
		return as.refusal(consumer.name, scope)
	}
}
