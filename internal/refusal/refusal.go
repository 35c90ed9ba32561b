// Package refusal gathers everything that is wrong with a Config or a call, for the packages on top of outbox.
package refusal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fencepost-go/fencepost/internal/bounds"
	"github.com/fencepost-go/fencepost/outbox"
)

// Problems are *outbox.InvalidError. The zero Problems are none.
type Problems struct {
	found []error
	index int
	batch bool
}

// At is p for one place of a batch.
func (p *Problems) At(place int) *Problems {
	p.index, p.batch = place, true
	return p
}

// Add adds a problem.
func (p *Problems) Add(field, problem string) {
	p.found = append(p.found, &outbox.InvalidError{Index: p.index, Field: field, Problem: problem, Batch: p.batch})
}

// Addf adds a problem.
func (p *Problems) Addf(field, format string, args ...any) {
	p.Add(field, fmt.Sprintf(format, args...))
}

// On reports the problems of one field.
func (p *Problems) On(field string) bounds.Report {
	return func(problem string) { p.Add(field, problem) }
}

// Between refuses a number out of bounds.
func (p *Problems) Between(field string, value, least, most int) {
	if value < least || value > most {
		p.Addf(field, "is %d, not between %d and %d", value, least, most)
	}
}

// Lasting refuses a duration out of bounds.
func (p *Problems) Lasting(field string, value, least, most time.Duration) {
	if value < least || value > most {
		p.Addf(field, "is %v, not between %v and %v", value, least, most)
	}
}

// Scope refuses what no statement may be given.
func (p *Problems) Scope(scope outbox.Scope) {
	if err := scope.Check(); err != nil {
		p.found = append(p.found, err)
	}
}

// Take takes over what outbox refused about a part of the call, each field under a prefix.
func (p *Problems) Take(prefix string, err error) {
	var all interface{ Unwrap() []error }
	if !errors.As(err, &all) {
		return
	}
	for _, problem := range all.Unwrap() {
		var invalid *outbox.InvalidError
		if errors.As(problem, &invalid) {
			p.Add(prefix+invalid.Field, invalid.Problem)
		}
	}
}

// Err is nil when nothing was found; else it is outbox.ErrInvalid.
func (p *Problems) Err() error {
	if len(p.found) == 0 {
		return nil
	}
	return refused(p.found)
}

// Refused says why a call must not send a statement: its arguments are invalid, or its context is over already.
func (p *Problems) Refused(ctx context.Context) error {
	if err := p.Err(); err != nil {
		return err
	}
	return ctx.Err()
}

type refused []error

func (r refused) Error() string {
	const shown = 10
	texts := make([]string, 0, shown+1)
	for _, err := range r[:min(len(r), shown)] {
		texts = append(texts, err.Error())
	}
	if more := len(r) - shown; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}

func (r refused) Unwrap() []error { return r }
