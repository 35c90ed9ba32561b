package sqlitedb

import (
	"path/filepath"
	"testing"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/schema"
)

// A handle prepares what its transactions use, once, and nothing else.
func TestStatementsArePreparedOnUse(t *testing.T) {
	t.Parallel()
	store, err := Open(filepath.Join(t.TempDir(), "shop.db"), Config{Synchronous: Normal})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := schema.Up(t.Context(), store.DB(), schema.Config{Dialect: schema.SQLite}); err != nil {
		t.Fatal(err)
	}
	known := func() map[any]any {
		all := map[any]any{}
		store.writer.prepared.Range(func(query, prepared any) bool { all[query] = prepared; return true })
		return all
	}
	var first map[any]any
	for _, want := range []int{0, 3, 3} { // BecomeWriter, ReadClock, RegisterWorker
		if _, err := store.RegisterWorker(t.Context(), db.RegisterWorkerParams{Name: "w"}); err != nil {
			t.Fatal(err)
		}
		prepared := known()
		if len(prepared) != want {
			t.Fatalf("%d statements are prepared, want %d", len(prepared), want)
		}
		for query, statement := range first {
			if prepared[query] != statement {
				t.Errorf("prepared again: %s", query)
			}
		}
		first = prepared
	}
}
