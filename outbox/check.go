package outbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/fencepost-go/fencepost/db"
)

// CheckSchema compares the tables with what this program works with, which are newer ones, too, if migrations only added to them. It answers
// ErrSchemaTooOld, ErrSchemaTooNew or db.ErrNoSchema, which say what to do. A program should call it before it enqueues; a sender does before its first lease.
func (b *Box) CheckSchema(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return failed("check schema", err)
	}
	oldest, newest := b.store.SchemaRange()
	versions, err := b.store.ReadVersion(ctx)
	switch {
	case errors.Is(err, db.ErrNoSchema):
		return failed("check schema", &noSchemaError{b.store.Schema(), b.migrate(), err})
	case err != nil:
		return failed("check schema", err)
	case versions[0] < oldest:
		return failed("check schema", fmt.Errorf("%w: schema %q is at version %d, this program needs at least %d: %s",
			ErrSchemaTooOld, b.store.Schema(), versions[0], oldest, b.migrate()))
	case versions[0] >= db.RefusedSchema:
		return failed("check schema", fmt.Errorf("%w: schema %q is at version %d, this program knows up to %d and works below %d: run a newer release of it",
			ErrSchemaTooNew, b.store.Schema(), versions[0], newest, db.RefusedSchema))
	}
	return nil
}

// A noSchemaError says what to do; the cause, which it wraps, has nothing to add.
type noSchemaError struct {
	schema, advice string
	cause          error
}

func (e *noSchemaError) Error() string {
	return fmt.Sprintf("schema %q has no tables: %s", e.schema, e.advice)
}

func (e *noSchemaError) Unwrap() error { return e.cause }

// migrate is the advice to do so.
func (b *Box) migrate() string {
	if file, ok := b.store.(interface{ DSN() string }); ok {
		return fmt.Sprintf("run `fencepost migrate --dsn %s`", file.DSN())
	}
	if name := b.store.Schema(); name != "outbox" {
		return fmt.Sprintf("run `fencepost migrate --schema %s`", name)
	}
	return "run `fencepost migrate`"
}

// A Role is what the database role of this process may do.
type Role struct {
	// MayLease and MaySettle: the role has what a sender needs.
	MayLease, MaySettle bool
	// Superuser, BypassRLS and Owner: it has what no sender should have.
	Superuser, BypassRLS, Owner bool
}

// CheckRole reads what the role of this process may do, in one query. Retryable.
func (b *Box) CheckRole(ctx context.Context) (Role, error) {
	if err := ctx.Err(); err != nil {
		return Role{}, failed("check role", err)
	}
	rows, err := b.store.CheckRole(ctx, db.CheckRoleParams{SchemaName: b.store.Schema()})
	if err != nil || len(rows) == 0 {
		return Role{}, failed("check role", err)
	}
	row := rows[0]
	return Role{
		MayLease: row.MayLease, MaySettle: row.MaySettle,
		Superuser: row.Superuser, BypassRLS: row.BypassRls, Owner: row.Owner,
	}, nil
}

// Problems says in words what is wrong with the role for a sender; none for a good one.
func (r Role) Problems() []string {
	var problems []string
	for _, rule := range []struct {
		broken  bool
		problem string
	}{
		{!r.MayLease, "may not lease messages"},
		{!r.MaySettle, "may not settle messages"},
		{r.Superuser, "is a superuser"},
		{r.BypassRLS, "bypasses row-level security"},
		{r.Owner, "owns the tables"},
	} {
		if rule.broken {
			problems = append(problems, rule.problem)
		}
	}
	return problems
}
