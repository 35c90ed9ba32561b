package batch

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/go-playground/validator/v10"

	"github.com/fencepost-go/fencepost/internal/refusal"
)

// RowsConfig says when a row is a good one. The rules of single values stand in T's own struct tags, as validate:"required,email": see
// github.com/go-playground/validator. The zero RowsConfig has no others.
type RowsConfig[T any] struct {
	// Fields are checks by the name that a field has in JSON. Each is called with the whole row once all rules of the struct tags hold.
	Fields map[string]func(T) error
	// Cross looks at several fields together. It is called once no check of a single field objects. Several problems are joined by errors.Join.
	Cross func(T) error
}

// Rows reads and checks rows of one type: a struct, or a map from string. Rows.Reader and Rows.Channel are what Create takes; Handler decodes what it
// stored. It may be used by several goroutines at once, as the checks must be.
type Rows[T any] struct {
	rules  *validator.Validate // nil for a map, which has none
	fields []string            // sorted
	config RowsConfig[T]
}

// NewRows makes Rows, reporting every problem at once as outbox.ErrInvalid: a rule that does not exist or does not fit its field, a check of a field
// that T does not have.
func NewRows[T any](config RowsConfig[T]) (*Rows[T], error) {
	r := &Rows[T]{fields: slices.Sorted(maps.Keys(config.Fields)), config: config}
	var found refusal.Problems
	var names map[string]bool
	switch t := reflect.TypeFor[T](); {
	case t.Kind() == reflect.Struct:
		names = jsonNames(t)
		r.rules = validator.New(validator.WithRequiredStructEnabled())
		r.rules.RegisterTagNameFunc(func(f reflect.StructField) string {
			if f.Anonymous && f.Tag.Get("json") == "" {
				return embedded
			}
			return jsonName(f)
		})
		tryRules(r.rules, t, &found, map[reflect.Type]bool{})
	case t.Kind() != reflect.Map || t.Key().Kind() != reflect.String:
		found.Addf("T", "is %v, neither a struct nor a map from string", t)
	}
	for _, name := range r.fields {
		if !names[name] {
			found.Addf("Fields", "has %q, which no row has", name)
		}
		if config.Fields[name] == nil {
			found.Addf("Fields", "has nil as the check of %q", name)
		}
	}
	if err := found.Err(); err != nil {
		return nil, failed("new rows", err)
	}
	return r, nil
}

// embedded stands for the name of an embedded struct, which JSON does not have.
const embedded = "\x00"

// jsonName is the name of a field in JSON; "" for one that JSON leaves out.
func jsonName(f reflect.StructField) string {
	tag := f.Tag.Get("json")
	name, _, _ := strings.Cut(tag, ",")
	switch {
	case tag == "-":
		return ""
	case name == "":
		return f.Name
	}
	return name
}

// jsonNames are those of a struct's fields, its embedded structs' included.
func jsonNames(t reflect.Type) map[string]bool {
	names := map[string]bool{}
	for i := range t.NumField() {
		f := t.Field(i)
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case f.Anonymous && inner.Kind() == reflect.Struct && f.Tag.Get("json") == "" && inner != t:
			maps.Copy(names, jsonNames(inner))
		case f.IsExported() && jsonName(f) != "":
			names[jsonName(f)] = true
		}
	}
	return names
}

// tryRules checks a row of zeros of each struct in T, since a rule that cannot be used panics only when it is.
func tryRules(rules *validator.Validate, t reflect.Type, found *refusal.Problems, seen map[reflect.Type]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		tryRules(rules, t.Elem(), found, seen)
	case reflect.Struct:
		defer func() {
			if p := recover(); p != nil {
				found.Addf("T", "has a rule in %v that cannot be used: %v", t, p)
			}
		}()
		for i := range t.NumField() {
			if t.Field(i).IsExported() {
				tryRules(rules, t.Field(i).Type, found, seen)
			}
		}
		_ = rules.Struct(reflect.Zero(t).Interface()) // zeros need not be good
	}
}

// contained turns a panic of the application's code into an error.
func contained(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panicked: %v", p)
		}
	}()
	return call()
}
