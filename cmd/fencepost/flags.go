package main

import (
	"strconv"
	"time"

	"github.com/fencepost-go/fencepost/internal/schemaname"
)

// intFlag is a flag's whole number between bounds. An explicit 0 is out of bounds like any other: it never means "no limit".
type intFlag struct {
	value    *int
	min, max int
}

func (f intFlag) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil {
		return usagef("is not a whole number")
	}
	if n < f.min || n > f.max {
		return usagef("must be between %d and %d", f.min, f.max)
	}
	*f.value = n
	return nil
}

func (f intFlag) String() string { return strconv.Itoa(*f.value) }
func (intFlag) Type() string     { return "number" }

// durationFlag is a flag's length of time between bounds.
type durationFlag struct {
	value    *time.Duration
	min, max time.Duration
}

func (f durationFlag) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return usagef("is not a duration such as 500ms, 10s or 1m30s")
	}
	if d < f.min || d > f.max {
		return usagef("must be between %v and %v", f.min, f.max)
	}
	*f.value = d
	return nil
}

func (f durationFlag) String() string { return f.value.String() }
func (durationFlag) Type() string     { return "duration" }

// versionFlag is an intFlag whose default is "none".
type versionFlag struct{ intFlag }

func (f versionFlag) String() string { return "" }

// schemaFlag is a flag's name of a schema.
type schemaFlag struct{ value *string }

func (f schemaFlag) Set(text string) error {
	if schemaname.Validate(text) != nil { // whose words would repeat the text
		return usagef("must be 1 to 63 letters, digits, _ and -, and not a name of PostgreSQL's own")
	}
	*f.value = text
	return nil
}

func (f schemaFlag) String() string { return *f.value }
func (schemaFlag) Type() string     { return "name" }
