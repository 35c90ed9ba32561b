package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

func TestPrintable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                   "",
		"zoë 日本 ✓":           "zoë 日本 ✓",
		"a\nb\r\tc":          `a\nb\r\tc`,
		"\x1b[2J":            `\u001b[2J`,
		"\x00\x7f":           `\u0000\u007f`,
		"\u009b31m":          `\u009b31m`,
		"\u202egnp.exe":      `\u202egnp.exe`,
		"\ufeff\u200b":       `\ufeff\u200b`,
		"a\xff\xc3":          `a\xff\xc3`,
		"\ufffd":             "\ufffd",
		"\U000e0041":         `\U000e0041`,
		"\u2028\u00a0\u00ad": `\u2028\u00a0\u00ad`,
	} {
		if got := printable(text); got != want {
			t.Errorf("printable(%q) = %q, want %q", text, got, want)
		}
	}
}

func FuzzPrintableJSON(f *testing.F) {
	f.Add(hostile)
	f.Add("\U000e0041\u009b\u2028")
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "\ufffd")
		document, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		shown := printableJSON(document)
		var back string
		if err := json.Unmarshal(shown, &back); err != nil || back != text {
			t.Errorf("%q became %s, %v", text, shown, err)
		}
		if i := strings.IndexFunc(string(shown), isControl); i >= 0 {
			t.Errorf("%q became %q", text, shown)
		}
	})
}

func TestColors(t *testing.T) { // not parallel: it changes the environment
	device, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // a character device, as a terminal is
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	if !colors(device) || colors(&strings.Builder{}) {
		t.Error("colours are for terminals, and for them only")
	}
	t.Setenv("NO_COLOR", "1")
	if colors(device) {
		t.Error("NO_COLOR is not respected")
	}
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "dumb")
	if colors(device) {
		t.Error("a dumb terminal has no colours")
	}
}
