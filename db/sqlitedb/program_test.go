package sqlitedb_test

import (
	"testing"

	"github.com/fencepost-go/fencepost/db/sqlitedb"
	"github.com/fencepost-go/fencepost/outbox"
)

// The program that docs/sqlite.md gives to copy works, and works again on the file that it made.
func TestExampleProgram(t *testing.T) {
	t.Chdir(t.TempDir())
	const runs = 2
	for range runs {
		Example()
	}
	store, err := sqlitedb.Open("shop.db", sqlitedb.Config{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	box, err := outbox.New(store, outbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	page, err := box.List(t.Context(), outbox.AllTenants, outbox.ListQuery{State: outbox.StateDelivered, Limit: 10})
	if err != nil || len(page.Messages) != runs {
		t.Errorf("delivered: %+v, %v", page.Messages, err)
	}
}
