package outboxtest

import (
	"reflect"
	"testing"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/outbox"
)

// RequireEnqueued fails the test at once unless the effect was enqueued as the transaction sees it: it may be the uncommitted one of the code
// under test, of any driver (pgxdb.Tx, sqldb.Tx), or one that began later. For a box from New it may be nil: what is committed.
//
// The effect matches by Tenant, Consumer and Key, and by its content (Target, Kind, OrderKey, Payload, Metadata) unless all of that is left
// empty. The receipt has the message's id and state; Box.Show gives all of it once it is committed.
func RequireEnqueued(t testing.TB, box *outbox.Box, tx db.Tx, effect outbox.Effect) outbox.Receipt {
	t.Helper()
	if tx == nil {
		own := memory(t, box).Begin()
		defer own.Rollback()
		tx = own
	}
	found, err := box.Find(t.Context(), tx, []outbox.Effect{effect})
	if err != nil {
		t.Fatal(err)
	}
	receipt := found[0]
	anyContent := reflect.DeepEqual(effect, outbox.Effect{Tenant: effect.Tenant, Consumer: effect.Consumer, Key: effect.Key})
	switch {
	case receipt.Status == outbox.NotFound:
		t.Fatalf("no effect of consumer %q, tenant %q is enqueued with the key %q", effect.Consumer, effect.Tenant, effect.Key)
	case receipt.Status == outbox.Conflicted && !anyContent:
		t.Fatalf("the effect of consumer %q, tenant %q with the key %q (message %d) is enqueued with another target, kind, order key, payload or metadata",
			effect.Consumer, effect.Tenant, effect.Key, receipt.ID)
	}
	return receipt
}
