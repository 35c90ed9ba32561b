package fencepost_test

import (
	"context"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/ledger"
)

func printLabel(ctx context.Context, tx db.Tx, l *ledger.Ledger, order string, print func() ([]byte, error)) ([]byte, error) {
	claimed, err := l.Claim(ctx, tx, ledger.Request{Scope: "labels", Key: order, Digest: ledger.DigestOf([]byte(order))})
	switch {
	case err != nil: // ErrConflict among them: the key was used for other content
		return nil, err
	case claimed.Status != ledger.Claimed: // InProgress, with Until, or a Duplicate of what was rejected have no result
		return claimed.Result, nil
	}
	label, err := print()
	if err != nil {
		return nil, err // rolls the claim back
	}
	return label, l.Complete(ctx, tx, claimed.Claim, label)
}
