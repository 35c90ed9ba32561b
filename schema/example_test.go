package schema_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"log/slog"
	"os"

	"github.com/fencepost-go/fencepost/schema"
)

// A service migrates as it starts; its replicas may do so at the same moment.
func Example() {
	ctx := context.Background()
	db, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	if err := schema.Up(ctx, db, schema.Config{Logger: slog.Default()}); err != nil {
		log.Fatal(err)
	}

	migrations, err := schema.Status(ctx, db, schema.Config{})
	if err != nil {
		log.Fatal(err)
	}
	for _, migration := range migrations {
		fmt.Println(migration.Version, migration.Name, migration.AppliedAt)
	}
}

// The SQL for a database administrator who runs it by hand.
func ExamplePrint() {
	if err := schema.Print(os.Stdout, schema.Config{Name: "billing-outbox"}); err != nil {
		log.Fatal(err)
	}
}

// The SQL of a role for each part of a system, for an administrator to review and run after each migration.
func ExampleGrants() {
	if err := schema.Grants(os.Stdout, schema.Config{RolePrefix: "shop_outbox_"}); err != nil {
		log.Fatal(err)
	}
}
