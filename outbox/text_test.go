package outbox

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fencepost-go/fencepost/internal/memdb"
)

// I26: recording a failure cannot fail, whatever its text.
// Shows: S1.22
func TestReasonIsStorable(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{}, Policy{})
	for name, test := range map[string]struct{ text, want string }{
		"plain":          {"connection refused", "connection refused"},
		"trimmed":        {" \n refused \t", "refused"},
		"NUL":            {"a\x00b", "a\uFFFDb"},
		"bad UTF-8":      {"a\xffb\xc3", "a\uFFFDb\uFFFD"},
		"ANSI":           {"\x1b[31mred\x1b[0m\r\n\tnext", "\uFFFD[31mred\uFFFD[0m\r\n\tnext"},
		"lone surrogate": {"\xed\xa0\x80", "\uFFFD\uFFFD\uFFFD"},
		"blank":          {" \n", "(nothing left after redaction)"},
	} {
		if got := b.box.reason(test.text, maxReason); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	for _, rune := range []string{"a", "é", "日", "\U0001F600", "\xff", "\x80"} {
		got := b.box.reason(strings.Repeat(rune, 10<<20/len(rune)), maxReason)
		if len(got) > maxReason || len(got) < maxReason-utf8.UTFMax || !utf8.ValidString(got) {
			t.Errorf("10 MB of %q became %d bytes, valid %t", rune, len(got), utf8.ValidString(got))
		}
	}
}

func FuzzReasonIsStorable(f *testing.F) {
	for _, seed := range []string{"", "a\x00", "\xff\xfe", " \u0085", strings.Repeat("日", 2000)} {
		f.Add(seed, 256)
	}
	box, err := New(memdb.New(memdb.Config{}), Config{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = 32 + (limit&0x7fffffff)%maxReason
		got := box.reason(text, limit)
		if got == "" || len(got) > limit || !utf8.ValidString(got) || strings.ContainsRune(got, 0) || strings.TrimSpace(got) != got {
			t.Errorf("%q became %q", text, got)
		}
	})
}

func TestRedactorIsContained(t *testing.T) {
	t.Parallel()
	contained := 0
	config := Config{
		Observer: &Observer{Contained: func(string, any) { contained++ }},
		Redact:   func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") },
	}
	b := newBench(t, config, Policy{})
	if got := b.box.reason("login hunter2 refused", maxReason); got != "login *** refused" {
		t.Errorf("got %q", got)
	}
	config.Redact = func(string) string { panic("hunter2") }
	b = newBench(t, config, Policy{})
	if got := b.box.reason("login hunter2 refused", maxReason); strings.Contains(got, "hunter2") || got == "" || contained != 1 {
		t.Errorf("got %q, contained %d times", got, contained)
	}
	config.Redact = func(string) string { return "" }
	b = newBench(t, config, Policy{})
	if got := b.box.reason("hunter2", maxReason); got != "(nothing left after redaction)" {
		t.Errorf("got %q", got)
	}
}

func TestCutKeepsRunesWhole(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text  string
		limit int
		want  string
	}{
		{"", 3, ""}, {"abc", 3, "abc"}, {"abcd", 3, "abc"}, {"aé", 2, "a"}, {"日本", 5, "日"}, {"日本", 2, ""}, {"\U0001F600a", 3, ""},
	} {
		if got := cut(test.text, test.limit); got != test.want {
			t.Errorf("cut(%q, %d) = %q, want %q", test.text, test.limit, got, test.want)
		}
	}
}
