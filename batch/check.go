package batch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-playground/validator/v10"

	"github.com/fencepost-go/fencepost/internal/bounds"
	"github.com/fencepost-go/fencepost/internal/content"
)

// A Phase is a step of checking a row. A later one is taken only when the earlier ones find nothing.
type Phase string

const (
	// PhaseDecode: the row is a JSON object that fits T, with no other fields than T's.
	PhaseDecode Phase = "decode"
	// PhaseDeclarative: the rules in T's struct tags hold.
	PhaseDeclarative Phase = "declarative"
	// PhaseField: no check of a single field objects (RowsConfig.Fields).
	PhaseField Phase = "field"
	// PhaseCross: neither does the check of several together (RowsConfig.Cross).
	PhaseCross Phase = "cross-field"
)

// A RowError is one problem of a row.
type RowError struct {
	// Row counts from 1, without blank lines.
	Row   int
	Phase Phase
	// Field is its name in JSON, with those above it, as in address.street; empty for what concerns the row.
	Field string
	// Reason repeats nothing of the row, unless a check of the application does.
	Reason string
}

func (e *RowError) Error() string { return fmt.Sprintf("row %d: %s: %s", e.Row, e.Phase, e.problem()) }

func (e *RowError) problem() string {
	if e.Field == "" {
		return e.Reason
	}
	return e.Field + ": " + e.Reason
}

// rejected are the problems of one phase of one row.
type rejected []*RowError

func (r rejected) Error() string { return fmt.Sprintf("row %d: %s", r[0].Row, r.reason()) }

// reason is what is stored with the row.
func (r rejected) reason() string {
	texts := make([]string, len(r))
	for i, e := range r {
		texts[i] = e.problem()
	}
	return string(r[0].Phase) + ": " + strings.Join(texts, "; ")
}

func (r rejected) Unwrap() []error {
	all := make([]error, len(r))
	for i, e := range r {
		all[i] = e
	}
	return all
}

// Check decodes and checks one row as Create does. The error has a *RowError for each problem of the first phase that finds one; its Unwrap() []error
// has them all.
func (r *Rows[T]) Check(number int, line []byte) (T, error) {
	value, err := decode[T](line)
	if err == nil {
		err = r.check(value)
	}
	if err != nil {
		return value, numbered(err, number)
	}
	return value, nil
}

// numbered says which row it is.
func numbered(problems error, number int) error {
	found := problems.(rejected)
	for _, e := range found {
		e.Row = number
	}
	return found
}

func reject(phase Phase, field, reason string) error {
	return rejected{{Phase: phase, Field: field, Reason: reason}}
}

// decode is the first phase.
func decode[T any](line []byte) (value T, err error) {
	if at := bounds.InvalidUTF8(string(line)); at >= 0 {
		return value, reject(PhaseDecode, "", fmt.Sprintf("is not UTF-8 at byte %d", at))
	}
	if !bytes.HasPrefix(bytes.TrimLeft(line, space), []byte("{")) { // null would decode into anything
		return value, reject(PhaseDecode, "", "is no JSON object")
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	err = contained(func() error { return decoder.Decode(&value) })
	if err == nil {
		if _, err = decoder.Token(); err == io.EOF {
			return value, nil
		}
		return value, reject(PhaseDecode, "", "has more after the object")
	}
	var mismatch *json.UnmarshalTypeError
	name, unknown := strings.CutPrefix(err.Error(), "json: unknown field ")
	switch {
	case errors.As(err, &mismatch) && mismatch.Field != "":
		return value, reject(PhaseDecode, mismatch.Field, "takes a "+mismatch.Type.String())
	case unknown:
		if plain, problem := strconv.Unquote(name); problem == nil {
			name = plain
		}
		return value, reject(PhaseDecode, name, "is no field of the row")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return value, reject(PhaseDecode, "", "ends within the object")
	}
	return value, reject(PhaseDecode, "", content.Unquoted(err))
}

// check is the phases after the first.
func (r *Rows[T]) check(value T) error {
	var found rejected
	add := func(phase Phase, field string, err error) {
		if err != nil {
			found = append(found, &RowError{Phase: phase, Field: field, Reason: err.Error()})
		}
	}
	if r.rules != nil {
		var broken validator.ValidationErrors
		err := contained(func() error { return r.rules.Struct(value) })
		if errors.As(err, &broken) {
			for _, b := range broken {
				add(PhaseDeclarative, fieldOf(b), errors.New("breaks the rule "+ruleOf(b)))
			}
		} else {
			add(PhaseDeclarative, "", err)
		}
	}
	if len(found) == 0 {
		for _, name := range r.fields {
			add(PhaseField, name, contained(func() error { return r.config.Fields[name](value) }))
		}
	}
	if len(found) == 0 && r.config.Cross != nil {
		err := contained(func() error { return r.config.Cross(value) })
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, err := range joined.Unwrap() {
				add(PhaseCross, "", err)
			}
		} else {
			add(PhaseCross, "", err)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found
}

// fieldOf is the place of a broken rule in the row, without the name of T.
func fieldOf(b validator.FieldError) string {
	_, field, _ := strings.Cut(b.Namespace(), ".")
	return strings.ReplaceAll(field, embedded+".", "")
}

// ruleOf is a rule as its struct tag has it.
func ruleOf(b validator.FieldError) string {
	if b.Param() == "" {
		return b.Tag()
	}
	return b.Tag() + "=" + b.Param()
}
