package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/refusal"
)

// A State is where a claim stands.
type State string

const (
	// StateHeld: somebody is at it, or was until he died.
	StateHeld State = "held"
	// StateCompleted: the work is done.
	StateCompleted State = "completed"
	// StateFailed: the work was not done; the key is free to be claimed again for the same content.
	StateFailed State = "failed"
	// StateRejected: the work is refused for good.
	StateRejected State = "rejected"
)

var states = [...]State{db.ClaimHeld: StateHeld, db.ClaimCompleted: StateCompleted, db.ClaimFailed: StateFailed, db.ClaimRejected: StateRejected}

// A Standing is how a key stands. All instants are the database's, in UTC; one that has not come is zero.
type Standing struct {
	State State
	// Epoch counts how often the key was claimed.
	Epoch int64
	// Digest is that of the content the key stands for.
	Digest    [sha256.Size]byte
	ClaimedAt time.Time
	// Until, of one that is held, is when its holder's time is out; Over says that it is, so that the key can be taken over.
	Until time.Time
	Over  bool
	// EndedAt is when it was completed, failed or rejected.
	EndedAt time.Time
	// Result is what was stored with a completion, byte for byte; nil and empty both come back empty.
	Result []byte
	// Reason of a failure or rejection, as it was stored.
	Reason string
}

// Rejected says that the work was refused for good.
func (s Standing) Rejected() bool { return s.State == StateRejected }

// Find says how a key stands, in a transaction of its own; ErrNotFound when nobody has claimed it or its claim was purged. It waits for nobody: a
// claim that is not committed is not seen. Retryable.
func (l *Ledger) Find(ctx context.Context, tenant, scope, key string) (Standing, error) {
	var found refusal.Problems
	checkKey(&found, tenant, scope, key)
	if err := found.Refused(ctx); err != nil {
		return Standing{}, failed("find", err)
	}
	var standing *Standing
	err := l.store.Transact(ctx, func(tx db.Tx) (err error) {
		standing, err = l.find(ctx, tx, tenant, scope, key)
		return err
	})
	if err == nil && standing == nil {
		err = ErrNotFound
	}
	if err != nil {
		return Standing{}, failed("find", err)
	}
	return *standing, nil
}

// find gives nil when there is none.
func (l *Ledger) find(ctx context.Context, tx db.Tx, tenant, scope, key string) (*Standing, error) {
	rows, err := l.store.FindClaims(ctx, tx, db.FindClaimsParams{
		Tenants: []string{tenant}, Scopes: []string{scope}, Keys: []string{key}, Digests: [][]byte{make([]byte, sha256.Size)},
	})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	row := rows[0]
	s := &Standing{State: states[row.State], Epoch: row.Epoch, ClaimedAt: instant(row.ClaimedAt), Over: row.Over, Reason: row.Reason}
	if row.State == db.ClaimHeld {
		s.Until = instant(row.HeldUntil)
	} else {
		s.EndedAt = instant(row.EndedAt)
	}
	if s.Result, err = hex.DecodeString(row.Result); err != nil {
		return nil, err
	}
	_, err = hex.Decode(s.Digest[:], []byte(row.Digest))
	return s, err
}
