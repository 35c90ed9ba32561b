package ledger

import (
	"context"
	"strings"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/bounds"
	"github.com/fencepost-go/fencepost/internal/content"
	"github.com/fencepost-go/fencepost/internal/refusal"
)

// Complete records in the caller's transaction that the work is done, with a result that every later Claim of the key gets (nil for none). A
// claim whose time is out is still its holder's until somebody takes it over; after that, and for one that was ended before, it is ErrStale and nothing
// changes.
//
// Invalid arguments are refused before any statement. Any other error comes from the database: roll back, and do not do the work again on
// account of it. Complete may be repeated as long as the claim is held; if the first one's commit went through, the repeated one is ErrStale, and Find shows
// StateCompleted with the claim's own epoch.
func (l *Ledger) Complete(ctx context.Context, tx db.Tx, claim Claim, result []byte) error {
	var found refusal.Problems
	bounds.CheckPayload(result, l.config.MaxResult, found.On("result"))
	return failed("complete", l.end(ctx, tx, claim, &found, db.EndClaimParams{State: db.ClaimCompleted, Result: result}))
}

// Fail records that the work was not done, and why: the key is free to be claimed again for the same content at once. Do not call it when the
// work may have been done: let the claim run out. The reason must not be blank; what cannot be stored of it is replaced, and it is cut at 4 KiB.
// Errors are as those of Complete.
func (l *Ledger) Fail(ctx context.Context, tx db.Tx, claim Claim, reason string) error {
	return failed("fail", l.endWith(ctx, tx, claim, db.ClaimFailed, reason))
}

// Reject records that the work is refused for good, and why: every later Claim of the key is a Duplicate of StateRejected. The reason is as that of
// Fail, errors as those of Complete.
func (l *Ledger) Reject(ctx context.Context, tx db.Tx, claim Claim, reason string) error {
	return failed("reject", l.endWith(ctx, tx, claim, db.ClaimRejected, reason))
}

func (l *Ledger) endWith(ctx context.Context, tx db.Tx, claim Claim, state int16, reason string) error {
	var found refusal.Problems
	if strings.TrimSpace(reason) == "" {
		found.Add("reason", "is blank")
	}
	return l.end(ctx, tx, claim, &found, db.EndClaimParams{State: state, Reason: reason})
}

func (l *Ledger) end(ctx context.Context, tx db.Tx, claim Claim, found *refusal.Problems, p db.EndClaimParams) error {
	checkKey(found, claim.Tenant, claim.Scope, claim.Key)
	if claim.token == [16]byte(db.FreeToken) {
		found.Add("claim", "was not made by Claim or Take")
	}
	if err := found.Refused(ctx); err != nil {
		return err
	}
	if tx == nil {
		return db.ErrForeignTx
	}
	if p.Reason != "" {
		p.Reason = l.box.Redacted(p.Reason)
	}
	p.Tenant, p.Scope, p.Key, p.Token, p.Result = claim.Tenant, claim.Scope, claim.Key, claim.token[:], content.Bytes(p.Result)
	epochs, err := l.store.EndClaim(ctx, tx, p)
	if err == nil && len(epochs) == 0 {
		err = ErrStale
	}
	return err
}
