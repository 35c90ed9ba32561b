package batch_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/fencepost-go/fencepost/batch"
	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/outbox"
)

// Each role of fencepost grants does its part of a batch, and no other's.
func TestRoles(t *testing.T) {
	t.Parallel()
	dsn := pgtest.New(t)
	as := pgtest.Roles(t, dsn)
	producer, sender, operator, viewer := openPgxAt(t, as("producer")), openPgxAt(t, as("sender")), openPgxAt(t, as("operator")), openPgxAt(t, as("viewer"))
	in := io.MultiReader(strings.NewReader(text(4)), iotest.ErrReader(io.ErrClosedPipe))
	if got, err := producer.Create(t.Context(), spec(), objects(t).Reader(in)); !errors.Is(err, io.ErrClosedPipe) || got.Rows != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	id := producer.mustCreate(spec(), text(4)+"x\n", batch.Receipt{Rows: 5, Rejected: 1, Duplicate: 3})
	producer.mustCreate(spec(), text(4)+"x\n", batch.Receipt{Rows: 5, Rejected: 1, Duplicate: 5})
	sender.perform(2)
	operator.rerun(id, 1)
	operator.cancel(id, 1)
	if got := operator.rows(id, batch.RowsQuery{Fate: batch.FateDelivered, Limit: 1}); !slices.Equal(got, []string{"1 delivered  may/1 mail-1"}) {
		t.Errorf("%q", got)
	}
	const want = "run 2: 5 = 0 open + 3 delivered + 0 dead + 1 cancelled + 0 expired + 1 rejected, sealed, completed"
	for _, r := range []*rig{producer, sender, operator, viewer} {
		r.stands(id, want)
		if n := r.listed(outbox.AllTenants, batch.ListQuery{Limit: 9}); n != 1 {
			t.Errorf("%d batches", n)
		}
	}
	for name, err := range map[string]error{
		"rows of a viewer": second(viewer.ListRows(t.Context(), outbox.AllTenants, id, batch.RowsQuery{Limit: 1})),
		"viewer":           second(viewer.create(spec(), text(1))), "sender": second(sender.create(spec(), text(1))),
		"cancel of a viewer": second(viewer.Cancel(t.Context(), outbox.AllTenants, id, by)),
	} {
		if !errors.Is(err, db.ErrDenied) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
