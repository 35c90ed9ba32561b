package batch_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/fencepost-go/fencepost/batch"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/sender"
)

// A person is a row of the import below.
type person struct {
	Email string `json:"email" validate:"required,email"`
	Born  int    `json:"born" validate:"min=1900"`
}

// An import of people: four lines, of which one is rejected and one fails.
func Example() {
	ctx := context.Background()
	box, err := outbox.New(memdb.New(memdb.Config{}), outbox.Config{}) // a program uses pgxdb.New, sqldb.New or sqlitedb.Open
	if err != nil {
		log.Fatal(err)
	}
	batches, err := batch.New(box, batch.Config{})
	if err != nil {
		log.Fatal(err)
	}
	people, err := batch.NewRows(batch.RowsConfig[person]{})
	if err != nil {
		log.Fatal(err)
	}
	file := strings.NewReader(`{"email": "ann@example.com", "born": 1990}
{"email": "bob", "born": 1880}
{"email": "cleo@example.com", "born": 2001}
{"email": "dan@example.com", "born": 1975}
`)
	receipt, err := batches.Create(ctx, batch.Spec{Consumer: "users", Target: "directory", Kind: "import", Key: "people-2026"}, people.Reader(file))
	if err != nil {
		log.Fatal(err)
	}

	users, err := box.Consumer("users", "directory", outbox.Policy{})
	if err != nil {
		log.Fatal(err)
	}
	handler := batch.Handler(people, func(_ context.Context, row batch.Row[person]) (string, error) {
		if row.Value.Email == "cleo@example.com" {
			return "", outbox.Permanent(errors.New("is there already"))
		}
		return fmt.Sprintf("user-%d", row.Number), nil
	})
	s, err := sender.New(box, users, sender.Config{Handlers: sender.Handlers{"import": handler}})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := s.RunOnce(ctx); err != nil {
		log.Fatal(err)
	}

	progress, err := batches.Progress(ctx, outbox.Scope{}, receipt.ID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(progress.Total, "rows,", progress.Delivered, "delivered,", progress.Dead, "dead,", progress.Rejected, "rejected, completed:", progress.Completed())
	rows, err := batches.ListRows(ctx, outbox.Scope{}, receipt.ID, batch.RowsQuery{Limit: 10})
	for _, row := range rows {
		fmt.Println(row.Number, row.Fate, row.Result+row.Reason)
	}
	fmt.Println(err)
	// Output:
	// 4 rows, 2 delivered, 1 dead, 1 rejected, completed: true
	// 1 delivered user-1
	// 2 rejected declarative: email: breaks the rule email; born: breaks the rule min=1900
	// 3 dead is there already
	// 4 delivered user-4
	// <nil>
}
