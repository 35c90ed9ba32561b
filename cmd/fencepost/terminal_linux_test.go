package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// On a terminal a bulk verb asks, with the number of messages, and acts on a yes only.
func TestBulkVerbsAskOnATerminal(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.many(t, "bulk", 1200)
	before := f.dump(t)
	for _, test := range []struct {
		answer string
		code   int
		stdout string
	}{
		{"n\n", exitNotDone, ""},
		{"\n", exitNotDone, ""},
		{"yes please\n", exitNotDone, ""},
		{"\x04", exitUsage, ""}, // Ctrl-D
		{"Y\n", exitOK, "cancelled 1,200 of 1,200 messages\n"},
	} {
		if after := f.dump(t); after != before {
			t.Fatalf("before the answer %q something was changed", test.answer)
		}
		keyboard, terminal := openTerminal(t)
		keyboard.WriteString(test.answer)
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), []string{"cancel", "--kind", "bulk", "--reason", "r", "--dsn", f.dsn}, terminal, &stdout, &stderr)
		if code != test.code || stdout.String() != test.stdout || !strings.HasPrefix(stderr.String(), "cancel 1,200 open messages? [y/N] ") {
			t.Errorf("%q: code %d, %s%s", test.answer, code, &stdout, &stderr)
		}
	}
	_, terminal := openTerminal(t)
	if r := commandWith(t.Context(), terminal, "cancel", "--kind", "none", "--reason", "r", "--dsn", f.dsn); r.code != exitNotDone || strings.Contains(r.stderr, "?") {
		t.Errorf("asked about nothing: code %d, %s", r.code, r.stderr)
	}
}

// openTerminal gives a terminal and who types into it.
func openTerminal(t *testing.T) (keyboard, terminal *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keyboard.Close() })
	var number, locked int32
	for request, value := range map[uintptr]*int32{syscall.TIOCGPTN: &number, syscall.TIOCSPTLCK: &locked} {
		if _, _, problem := syscall.Syscall(syscall.SYS_IOCTL, keyboard.Fd(), request, uintptr(unsafe.Pointer(value))); problem != 0 {
			t.Fatal(problem)
		}
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	return keyboard, terminal
}
