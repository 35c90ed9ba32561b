package outbox

import (
	"context"
	"fmt"
)

// problems gathers everything that is wrong with one call.
type problems struct {
	found []error
	index int
	batch bool
}

func (p *problems) add(field, problem string) {
	p.found = append(p.found, &InvalidError{Index: p.index, Field: field, Problem: problem, Batch: p.batch})
}

func (p *problems) addf(field, format string, args ...any) {
	p.add(field, fmt.Sprintf(format, args...))
}

// at is p for one place of a batch.
func (p *problems) at(place int) *problems {
	p.index, p.batch = place, true
	return p
}

// whole is p for what concerns the call and no place of its batch.
func (p *problems) whole() *problems {
	p.index, p.batch = 0, false
	return p
}

// err is nil when nothing was found.
func (p *problems) err() error {
	if len(p.found) == 0 {
		return nil
	}
	return invalids(p.found)
}

type invalids []error

func (v invalids) Error() string {
	return ErrInvalid.Error() + ": " + listed(len(v), func(i int) string { return v[i].Error() })
}

func (v invalids) Unwrap() []error { return v }

// refused says why a call must not send a statement: its arguments are invalid, or its context is over already.
func (p *problems) refused(ctx context.Context) error {
	if err := p.err(); err != nil {
		return err
	}
	return ctx.Err()
}
