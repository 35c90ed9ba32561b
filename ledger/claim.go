package ledger

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/bounds"
	"github.com/fencepost-go/fencepost/internal/content"
	"github.com/fencepost-go/fencepost/internal/refusal"
)

// claimTries bounds how often a claim is tried whose key is taken at one moment and free at the next (a purge, or another that took it and failed).
const claimTries = 3

// A Request is a key to claim, and what it stands for.
type Request struct {
	// Tenant may be empty. The same key of another tenant is another key. At most 128 bytes.
	Tenant string
	// Scope says whose keys these are: the endpoint, the handler, the foreign system. At most 128 bytes.
	Scope string
	// Key is made by who wants the work done, once for each intent, and stays the same when he asks again. At most 255 bytes.
	Key string
	// Digest is that of all that the key stands for: see DigestOf. The zero Digest is refused.
	Digest [sha256.Size]byte
}

// DigestOf is the digest of content that consists of parts. Other parts, or the same bytes cut elsewhere, have another digest. Without parts
// it is that of nothing: for keys which alone say what is to be done.
func DigestOf(parts ...[]byte) (digest [sha256.Size]byte) {
	h := content.NewDigest()
	content.Write(h, parts...)
	h.Sum(digest[:0])
	return digest
}

func (r Request) check(found *refusal.Problems) {
	checkKey(found, r.Tenant, r.Scope, r.Key)
	if r.Digest == [sha256.Size]byte{} {
		found.Add("Digest", "is zero; use DigestOf")
	}
}

func checkKey(found *refusal.Problems, tenant, scope, key string) {
	bounds.CheckOptionalName(tenant, bounds.Name, found.On("Tenant"))
	bounds.CheckRequired(scope, bounds.Name, found.On("Scope"))
	bounds.CheckRequired(key, bounds.Key, found.On("Key"))
}

// A Status is what a call did about one key.
type Status string

const (
	// Claimed: the key is the caller's, if his transaction commits. He does the work and ends the claim.
	Claimed Status = "claimed"
	// Duplicate: the same content was completed or rejected before; the Standing has what came of it.
	Duplicate Status = "duplicate"
	// InProgress: somebody holds the key for the same content, and his time is not out or, at a Claim, nobody has taken it over yet (Standing.Over).
	InProgress Status = "in_progress"
	// Conflicted: the key is claimed for other content.
	Conflicted Status = "conflicted"
)

// A Result is what became of one request.
type Result struct {
	Status Status
	// Claim is the caller's own where Status is Claimed.
	Claim Claim
	// Standing is how the key stands where Status is Duplicate or InProgress; of a conflict it has State and Epoch.
	Standing
}

// A Claim is a key that somebody holds. Only Claim and Take make one.
type Claim struct {
	Tenant, Scope, Key string
	// Epoch rises by one each time the key is claimed: see Take.
	Epoch int64
	// Until is when the holder's time is out, by the database's clock, in UTC.
	Until time.Time

	token [16]byte
}

// String identifies the claim without its token, so that it reaches no log by accident.
func (c Claim) String() string {
	return fmt.Sprintf("claim %q in %q epoch %d", c.Key, c.Scope, c.Epoch)
}

// GoString is String.
func (c Claim) GoString() string { return c.String() }

// LogValue is what slog prints: as String, in fields.
func (c Claim) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("tenant", c.Tenant), slog.String("scope", c.Scope), slog.String("key", c.Key), slog.Int64("epoch", c.Epoch),
	)
}

// Claim claims a key in the caller's transaction: a key that nobody has, or whose last claim failed for the same content. Otherwise it says how
// the key stands; for other content the error is a *ConflictError beside a Result of Status Conflicted. In each of these cases the transaction can go on.
//
// When another open transaction has just claimed the key, Claim waits for its end. An invalid request is refused before any statement. Any
// other error comes from the database and is that of the caller's transaction: roll back; retry the whole transaction if it is db.ErrRetry. It
// fails closed: only Status Claimed, committed, is leave to do the work. It takes one statement for a new key, two or three for another.
func (l *Ledger) Claim(ctx context.Context, tx db.Tx, request Request) (Result, error) {
	result, err := l.claim(ctx, tx, request, false)
	return result, failed("claim", err)
}

// Take is Claim that also takes a key over whose holder's time is out (Standing.Over). Of many at once one gets it. The epoch rises by one, and from then on whatever
// the old holder reports is ErrStale. The old holder may have done the work, in whole or in part, and may be at it still: with Claim.Epoch
// above 1 expect that, and hand the key, or (key, Epoch), downstream.
func (l *Ledger) Take(ctx context.Context, tx db.Tx, request Request) (Result, error) {
	result, err := l.claim(ctx, tx, request, true)
	return result, failed("take", err)
}

func (l *Ledger) claim(ctx context.Context, tx db.Tx, request Request, over bool) (Result, error) {
	var found refusal.Problems
	request.check(&found)
	if err := found.Refused(ctx); err != nil {
		return Result{}, err
	}
	if tx == nil {
		return Result{}, db.ErrForeignTx
	}
	run := claimRun{ledger: l, tx: tx, request: request, claim: Claim{Tenant: request.Tenant, Scope: request.Scope, Key: request.Key}}
	_, _ = rand.Read(run.claim.token[:]) // it never fails
	for range claimTries {
		if claimed, err := run.insert(ctx); claimed || err != nil {
			return run.claimed(err)
		}
		standing, err := l.find(ctx, tx, request.Tenant, request.Scope, request.Key)
		switch {
		case err != nil:
			return Result{}, err
		case standing == nil: // purged
		case standing.Digest != request.Digest:
			result := Result{Status: Conflicted, Standing: Standing{State: standing.State, Epoch: standing.Epoch}}
			return result, &ConflictError{request.Tenant, request.Scope, request.Key, standing.State, standing.Epoch}
		case standing.State == StateFailed || standing.Over && over:
			if claimed, err := run.take(ctx); claimed || err != nil {
				return run.claimed(err)
			}
		case standing.State == StateHeld:
			return Result{Status: InProgress, Standing: *standing}, nil
		default:
			return Result{Status: Duplicate, Standing: *standing}, nil
		}
	}
	return Result{}, fmt.Errorf("key %q was neither free nor taken in %d tries: %w", request.Key, claimTries, db.ErrRetry)
}

// A claimRun is one Claim or Take under way.
type claimRun struct {
	ledger  *Ledger
	tx      db.Tx
	request Request
	claim   Claim
}

func (r *claimRun) claimed(err error) (Result, error) {
	if err != nil {
		return Result{}, err
	}
	return Result{Status: Claimed, Claim: r.claim}, nil
}

// insert claims a key that nobody has.
func (r *claimRun) insert(ctx context.Context) (claimed bool, err error) {
	rows, err := r.ledger.store.Claim(ctx, r.tx, db.ClaimParams{
		Tenant: r.claim.Tenant, Scope: r.claim.Scope, Key: r.claim.Key, Digest: r.request.Digest[:], Token: r.claim.token[:],
		Hold: r.ledger.config.Hold.Microseconds(),
	})
	if err != nil || len(rows) == 0 {
		return false, err
	}
	r.claim.Epoch, r.claim.Until = rows[0].Epoch, instant(rows[0].HeldUntil)
	return true, nil
}

// take claims a key that failed or is over, unless another was first.
func (r *claimRun) take(ctx context.Context) (claimed bool, err error) {
	rows, err := r.ledger.store.TakeClaim(ctx, r.tx, db.TakeClaimParams{
		Tenant: r.claim.Tenant, Scope: r.claim.Scope, Key: r.claim.Key, Digest: r.request.Digest[:], Token: r.claim.token[:],
		Hold: r.ledger.config.Hold.Microseconds(),
	})
	if err != nil || len(rows) == 0 {
		return false, err
	}
	r.claim.Epoch, r.claim.Until = rows[0].Epoch, instant(rows[0].HeldUntil)
	return true, nil
}

// instant reads a column of microseconds.
func instant(micros int64) time.Time { return time.UnixMicro(micros).UTC() }
