package janitor_test

import (
	"context"
	"fmt"
	"log"

	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/janitor"
	"github.com/fencepost-go/fencepost/outbox"
)

// A janitor for cron. A service calls Run, which blocks, beside its senders.
func Example() {
	ctx := context.Background()
	box, err := outbox.New(memdb.New(memdb.Config{}), outbox.Config{}) // a program uses pgxdb.New or sqldb.New
	if err != nil {
		log.Fatal(err)
	}
	j, err := janitor.New(box, janitor.Config{Scope: outbox.AllTenants, Dead: janitor.KeepForever})
	if err != nil {
		log.Fatal(err)
	}
	report, err := j.RunOnce(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Purged.Total(), "messages removed")
	// Output: 0 messages removed
}
