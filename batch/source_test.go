package batch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/fencepost-go/fencepost/batch"
)

// read gives the rows of a source as text: payloads, and the reasons of rejected ones.
func read(ctx context.Context, source batch.Source) (rows []string, err error) {
	for row, err := range batch.RowsOf(ctx, source) {
		if err != nil {
			return rows, err
		}
		text := string(row.Payload)
		if row.Problem != nil {
			text = row.Problem.Error()
		}
		rows = append(rows, fmt.Sprintf("%d %s", row.Number, text))
	}
	return rows, nil
}

func objects(t testing.TB) *batch.Rows[map[string]any] {
	t.Helper()
	rows, err := batch.NewRows(batch.RowsConfig[map[string]any]{})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestReader(t *testing.T) {
	t.Parallel()
	long := `{"a":"` + strings.Repeat("x", 1<<20) + `"}`
	longest := `{"a":"` + strings.Repeat("x", 1<<20-8) + `"}`
	for input, want := range map[string][]string{
		"":                                  nil,
		"\n \n\r\n\t\r\n":                   nil,
		"{}":                                {"1 {}"},
		"{}\n":                              {"1 {}"},
		"\ufeff{}\r\n\r\n {\"a\":1} \r\n{}": {"1 {}", `2 {"a":1}`, "3 {}"},
		"\n\n{}\n\nx\n{}\n":                 {"1 {}", "2 row 2: decode: is no JSON object", "3 {}"},
		"{}\n" + long + "\n{}":              {"1 {}", "2 row 2: decode: has more than 1048576 bytes", "3 {}"},
		"{}\n" + long:                       {"1 {}", "2 row 2: decode: has more than 1048576 bytes"},
		longest + "\r\n{}\n":                {"1 " + longest, "2 {}"},
		"{}\n{\"a\":":                       {"1 {}", "2 row 2: decode: ends within the object"},
		"{}\n\ufeff{}\n":                    {"1 {}", "2 row 2: decode: is no JSON object"},
	} {
		for name, in := range map[string]io.Reader{
			"whole": strings.NewReader(input), "bytes": iotest.OneByteReader(strings.NewReader(input)), "end with data": iotest.DataErrReader(strings.NewReader(input)),
		} {
			if name == "bytes" && len(input) > 1<<20 {
				in = iotest.HalfReader(strings.NewReader(input))
			}
			got, err := read(t.Context(), objects(t).Reader(in))
			if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("%s of %.60q:\n got %.200q, %v\nwant %.200q", name, input, got, err, want)
			}
		}
	}
}

// A reader that fails is an error: what it gave before is no whole batch.
func TestReaderFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk is gone")
	for _, before := range []string{"", "{}\n", "{}\n{", strings.Repeat("x", 2<<20)} {
		_, err := read(t.Context(), objects(t).Reader(io.MultiReader(strings.NewReader(before), iotest.ErrReader(broken))))
		if !errors.Is(err, broken) {
			t.Errorf("after %.20q: %v", before, err)
		}
	}
}

// endless is a line without an end.
type endless int

func (n *endless) Read(p []byte) (int, error) {
	if *n -= endless(len(p)); *n < 0 {
		return 0, io.EOF
	}
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestReaderMemoryIsBounded(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	line := endless(256 << 20)
	got, err := read(t.Context(), objects(t).Reader(&line))
	runtime.ReadMemStats(&after)
	if err != nil || len(got) != 1 || !strings.Contains(got[0], "has more than") {
		t.Errorf("%q, %v", got, err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 16<<20 {
		t.Errorf("%d MB were taken", grown>>20)
	}
}

func TestChannel(t *testing.T) {
	t.Parallel()
	in := make(chan invitation, 4)
	in <- invitation{Email: "a@b.example", Seats: 1}
	in <- invitation{Email: "a@b.example"}
	in <- invitation{Email: "a@b.example", Seats: 1, Country: "panic"}
	close(in)
	got, err := read(t.Context(), invitations(t, nil).Channel(in))
	want := []string{
		`1 {"email":"a@b.example","seats":1,"from":0,"until":0,"Country":""}`, "2 row 2: declarative: seats: breaks the rule min=1",
		"3 row 3: field: Country: panicked: no such country",
	}
	if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q, %v", got, err)
	}
	why := errors.New("the other side failed")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := read(ctx, invitations(t, nil).Channel(make(chan invitation))); !errors.Is(err, why) {
		t.Error(err)
	}
	odd := make(chan map[string]any, 2)
	odd <- map[string]any{"f": func() {}}
	odd <- nil // which no Handler could read back
	close(odd)
	got, err = read(t.Context(), objects(t).Channel(odd))
	if err != nil || !slices.Equal(got, []string{"1 row 1: decode: cannot be written as JSON", "2 row 2: decode: is no JSON object"}) {
		t.Errorf("%q, %v", got, err)
	}
}

// FuzzReader compares the rows of any input with what cutting it at its line ends gives.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{"", "{}", "{}\r\n\n{\"a\":1}", "\ufeff{}\n", "[]\n{\"a\":\"\xff\"}\n\v\n", "{\"a\":{}}x\n{"} {
		f.Add(seed)
	}
	rows := objects(f)
	f.Fuzz(func(t *testing.T, input string) {
		got, err := read(t.Context(), rows.Reader(iotest.HalfReader(strings.NewReader(input))))
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for line := range strings.SplitSeq(strings.TrimPrefix(input, "\ufeff"), "\n") {
			if line = strings.Trim(line, " \t\r"); line == "" {
				continue
			}
			number := len(want) + 1
			if _, err := rows.Check(number, []byte(line)); err != nil {
				line = err.Error()
			}
			want = append(want, fmt.Sprintf("%d %s", number, line))
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
