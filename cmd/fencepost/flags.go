package main

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

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

func (f durationFlag) String() string {
	if *f.value == 0 {
		return "" // no default
	}
	return f.value.String()
}

func (durationFlag) Type() string { return "duration" }

// optionalInt is an intFlag whose default is none.
type optionalInt struct{ intFlag }

func (f optionalInt) String() string { return "" }

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

// textFlag is a flag's text. An explicit blank is refused, so that an empty variable of a script never widens what is meant.
type textFlag struct{ value *string }

func (f textFlag) Set(text string) error {
	if strings.TrimSpace(text) == "" {
		return usagef("must not be blank")
	}
	*f.value = text
	return nil
}

func (f textFlag) String() string { return *f.value }
func (textFlag) Type() string     { return "text" }

// choiceFlag is a flag's word out of a few.
type choiceFlag struct {
	value *string
	of    []string
}

func (f choiceFlag) Set(text string) error {
	if !slices.Contains(f.of, text) {
		return usagef("must be one of %s", strings.Join(f.of, ", "))
	}
	*f.value = text
	return nil
}

func (f choiceFlag) String() string { return *f.value }
func (choiceFlag) Type() string     { return "word" }

// noneFlag is a flag that takes the word none beside its values, since a zero never means that.
type noneFlag struct {
	pflag.Value
	none func()
}

func (f noneFlag) Set(text string) error {
	if text == "none" {
		f.none()
		return nil
	}
	if err := f.Value.Set(text); err != nil {
		return usagef("%v, or the word none", err)
	}
	return nil
}
