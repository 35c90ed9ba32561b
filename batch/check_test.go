package batch_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fencepost-go/fencepost/batch"
	"github.com/fencepost-go/fencepost/outbox"
)

type address struct {
	Street string `json:"street" validate:"required"`
}

type shared struct {
	Note string `json:"note,omitempty" validate:"max=5"`
}

// An invitation is what the tests' rows are.
type invitation struct {
	shared
	Email   string    `json:"email" validate:"required,email"`
	Seats   int       `json:"seats" validate:"min=1,max=9"`
	From    int       `json:"from"`
	Until   int       `json:"until"`
	Homes   []address `json:"homes,omitempty" validate:"dive"`
	Country string
}

var errCross = errors.New("until is before from")

func invitations(t testing.TB, calls *[]string) *batch.Rows[invitation] {
	t.Helper()
	called := func(name string) {
		if calls != nil {
			*calls = append(*calls, name)
		}
	}
	rows, err := batch.NewRows(batch.RowsConfig[invitation]{
		Fields: map[string]func(invitation) error{
			"email": func(i invitation) error {
				if called("email"); strings.HasSuffix(i.Email, "@example.org") {
					return errors.New("is one of ours")
				}
				return nil
			},
			"Country": func(i invitation) error {
				if called("Country"); i.Country == "panic" {
					panic("no such country")
				}
				if i.Country == "XX" {
					return errors.New("is unknown")
				}
				return nil
			},
		},
		Cross: func(i invitation) error {
			if called("cross"); i.Until == -1 {
				return errors.Join(errCross, errors.New("and it is odd"))
			}
			if i.Until < i.From {
				return errCross
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// Each phase says all that it finds, and a later one is taken only when the earlier ones find nothing.
// Shows: S4.15
func TestPhases(t *testing.T) {
	t.Parallel()
	const good = `"email":"a@b.example","seats":1`
	for line, want := range map[string][]string{
		`{` + good + `}`: nil,
		" \t{" + good + `,"homes":[{"street":"s"}],"note":"short","Country":"NL"} `: nil,

		``:                          {"decode: : is no JSON object"},
		`null`:                      {"decode: : is no JSON object"},
		`[]`:                        {"decode: : is no JSON object"},
		`"text"`:                    {"decode: : is no JSON object"},
		`{`:                         {"decode: : ends within the object"},
		`{"email":}`:                {"decode: : not JSON at byte 10"},
		`{` + good + `}{}`:          {"decode: : has more after the object"},
		`{` + good + `} x`:          {"decode: : has more after the object"},
		`{` + good + `,"secret":1}`: {"decode: secret: is no field of the row"},
		`{"email":5}`:               {"decode: email: takes a string"},
		`{"homes":[{"street":1}]}`:  {"decode: homes.street: takes a string"},
		"{\"email\":\"\xff\"}":      {"decode: : is not UTF-8 at byte 10"},

		`{}`: {"declarative: email: breaks the rule required", "declarative: seats: breaks the rule min=1"},
		`{"email":"x","seats":10,"note":"longer","homes":[{"street":"s"},{}],"Country":"XX","until":-1}`: {
			"declarative: note: breaks the rule max=5", "declarative: email: breaks the rule email", "declarative: seats: breaks the rule max=9",
			"declarative: homes[1].street: breaks the rule required",
		},

		`{"email":"a@example.org","seats":1,"Country":"XX","until":-1}`:    {"field: Country: is unknown", "field: email: is one of ours"},
		`{"email":"a@example.org","seats":1,"Country":"panic","until":-1}`: {"field: Country: panicked: no such country", "field: email: is one of ours"},

		`{` + good + `,"from":2,"until":1}`: {"cross-field: : until is before from"},
		`{` + good + `,"until":-1}`:         {"cross-field: : until is before from", "cross-field: : and it is odd"},
	} {
		var calls []string
		_, err := invitations(t, &calls).Check(7, []byte(line))
		var got []string
		if err != nil {
			for _, problem := range err.(interface{ Unwrap() []error }).Unwrap() {
				e := problem.(*batch.RowError)
				got = append(got, fmt.Sprintf("%s: %s: %s", e.Phase, e.Field, e.Reason))
				if e.Row != 7 || !strings.Contains(e.Error(), e.Reason) || !strings.HasPrefix(err.Error(), "row 7: "+string(e.Phase)+": ") {
					t.Errorf("%s: %v of %v", line, e, err)
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", line, got, want)
		}
		wantCalls := []string{"Country", "email", "cross"}
		switch {
		case len(want) > 0 && (strings.HasPrefix(want[0], "decode") || strings.HasPrefix(want[0], "declarative")):
			wantCalls = nil
		case len(want) > 0 && strings.HasPrefix(want[0], "field"):
			wantCalls = wantCalls[:2]
		}
		if !slices.Equal(calls, wantCalls) {
			t.Errorf("%s: called %q, want %q", line, calls, wantCalls)
		}
	}
}

func TestCheckedRow(t *testing.T) {
	t.Parallel()
	got, err := invitations(t, nil).Check(1, []byte(`{"email":"a@b.example","seats":2,"note":"n"}`))
	if err != nil || got.Email != "a@b.example" || got.Seats != 2 || got.Note != "n" {
		t.Errorf("%+v, %v", got, err)
	}
	objects, err := batch.NewRows(batch.RowsConfig[map[string]any]{})
	if err != nil {
		t.Fatal(err)
	}
	for line, good := range map[string]bool{`{"any": [1, null]}`: true, `{}`: true, `[1]`: false, `null`: false, `{"a":1`: false} {
		if _, err := objects.Check(1, []byte(line)); (err == nil) != good {
			t.Errorf("%s: %v", line, err)
		}
	}
}

type unknownRule struct {
	Homes []struct {
		Street string `validate:"frobnicated"`
	}
}

type misplacedRule struct {
	Yes bool `validate:"max=3"`
}

type recursive struct {
	Next *recursive `validate:"omitempty"`
}

func TestNewRowsRefuses(t *testing.T) {
	t.Parallel()
	_, err := batch.NewRows(batch.RowsConfig[invitation]{Fields: map[string]func(invitation) error{
		"mail": func(invitation) error { return nil }, "country": func(invitation) error { return nil }, "email": nil,
	}})
	refused(t, "fields", err, `"mail"`, `"country"`, `"email"`)
	_, err = batch.NewRows(batch.RowsConfig[map[string]int]{Fields: map[string]func(map[string]int) error{"a": func(map[string]int) error { return nil }}})
	refused(t, "field of a map", err, `"a"`)
	refused(t, "unknown rule", second(batch.NewRows(batch.RowsConfig[unknownRule]{})), "frobnicated")
	refused(t, "misplaced rule", second(batch.NewRows(batch.RowsConfig[misplacedRule]{})), "misplacedRule")
	refused(t, "a text", second(batch.NewRows(batch.RowsConfig[string]{})), "T ")
	refused(t, "a pointer", second(batch.NewRows(batch.RowsConfig[*invitation]{})), "T ")
	refused(t, "a map by number", second(batch.NewRows(batch.RowsConfig[map[int]string]{})), "T ")
	if _, err := batch.NewRows(batch.RowsConfig[recursive]{}); err != nil {
		t.Error(err)
	}
}

// refused says that err is outbox.ErrInvalid and names all that is wrong.
func refused(t *testing.T, row string, err error, parts ...string) {
	t.Helper()
	if !errors.Is(err, outbox.ErrInvalid) {
		t.Errorf("%s: %v", row, err)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v, want a problem of %s", row, err, part)
		}
	}
}

func second[A any](_ A, err error) error { return err }
