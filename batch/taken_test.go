package batch_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fencepost-go/fencepost/batch"
	"github.com/fencepost-go/fencepost/outbox"
)

// The effect at the end of a later run never has a row's key, even when it is the same consumer's and has the batch's key.
func TestEndAmongTheRows(t *testing.T) {
	t.Parallel()
	onStores(t, func(r *rig) {
		s := spec()
		s.OnComplete.Consumer, s.OnComplete.Key = s.Consumer, s.Key
		id := r.mustCreate(s, text(2), batch.Receipt{Rows: 2})
		r.perform(2)
		if n, err := r.Rerun(r.Context(), outbox.AllTenants, id, by); n != 1 || err != nil {
			r.Fatal(n, err)
		}
		r.perform()
		r.stands(id, "run 2: 2 = 0 open + 2 delivered + 0 dead + 0 cancelled + 0 expired + 0 rejected, sealed, completed")
		page, err := r.Box().List(r.Context(), outbox.AllTenants, outbox.ListQuery{Filter: outbox.Filter{Kind: "close"}, Limit: 100})
		var keys []string
		for _, m := range page.Messages {
			keys = append(keys, m.Key)
		}
		if !slices.Equal(keys, []string{"may", "may/run-2"}) || err != nil {
			r.Errorf("at the end: %q, %v", keys, err)
		}
	})
}

// An effect at the end whose key is taken would be lost, so the batch is not begun; the key that a batch's own effect has is its own.
func TestEndThatIsTaken(t *testing.T) {
	t.Parallel()
	onStores(t, func(r *rig) {
		r.mustCreate(spec(), text(1), batch.Receipt{Rows: 1})
		r.perform()
		r.mustCreate(spec(), text(1), batch.Receipt{Rows: 1, Duplicate: 1})
		s := spec()
		s.Key = "june"
		if _, err := r.create(s, text(1)); !errors.Is(err, batch.ErrConflict) || !strings.Contains(err.Error(), "OnComplete.Key") {
			r.Errorf("same content: %v", err)
		}
		s.OnComplete.Payload = []byte("other")
		if _, err := r.create(s, text(1)); !errors.Is(err, batch.ErrConflict) || !strings.Contains(err.Error(), "OnComplete.Key") {
			r.Errorf("other content: %v", err)
		}
		if page, err := r.List(r.Context(), outbox.AllTenants, batch.ListQuery{Limit: 9}); len(page.Batches) != 1 || err != nil {
			r.Errorf("%+v, %v", page, err)
		}
		s.OnComplete.Key = "close-june"
		r.mustCreate(s, text(1), batch.Receipt{Rows: 1})
	})
}
