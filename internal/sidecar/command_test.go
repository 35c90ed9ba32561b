//go:build unix

package sidecar

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/fencepost-go/fencepost/internal/bounds"
	"github.com/fencepost-go/fencepost/outbox"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]struct {
		verdict outbox.Verdict
		reason  string
	}{
		"exit 0":                             {outbox.VerdictDelivered, ""},
		"echo fine >&2":                      {outbox.VerdictDelivered, ""},
		"exit 65":                            {outbox.VerdictPermanent, "exit status 65"},
		"echo no such order >&2; exit 65":    {outbox.VerdictPermanent, "exit status 65: no such order"},
		"exit 69":                            {outbox.VerdictUnavailable, "exit status 69"},
		"exit 75":                            {outbox.VerdictFailed, "exit status 75"},
		"exit 1":                             {outbox.VerdictFailed, "exit status 1"},
		"exit 2":                             {outbox.VerdictFailed, "exit status 2"},
		"exit 255":                           {outbox.VerdictFailed, "exit status 255"},
		"no-such-command-of-all 2>/dev/null": {outbox.VerdictFailed, "exit status 127"},
		"kill -KILL $$":                      {outbox.VerdictFailed, "signal: killed"},
		"kill -TERM $$":                      {outbox.VerdictFailed, "signal: terminated"},
		"printf 'a\\nb\\n' >&2; exit 1":      {outbox.VerdictFailed, "exit status 1: b\na\nb"},
	} {
		_, err := shell(t, script).Do(t.Context(), message())
		if got := outbox.OutcomeOf(err); got.Verdict() != want.verdict || got.Reason() != want.reason {
			t.Errorf("%s: %v, %q", script, got.Verdict(), got.Reason())
		}
	}
}

func TestPayload(t *testing.T) {
	t.Parallel()
	m := message()
	m.Payload = bytes.Repeat([]byte("\x00\xff\n\r "), bounds.LargestPayload/5)
	for script, want := range map[string]string{
		"wc -c":                     strconv.Itoa(len(m.Payload)),
		"head -c 5 | od -An -tx1":   "00 ff 0a 0d 20",
		"exit 0":                    "", // it never reads
		"exec <&-; echo closed":     "closed",
		"sleep 0.1; exec <&-; echo": "",
	} {
		if result, err := shell(t, script).Do(t.Context(), m); err != nil || strings.TrimSpace(result) != want {
			t.Errorf("%s: %q, %v", script, result, err)
		}
	}
	m.Payload = nil
	if result, err := shell(t, "wc -c").Do(t.Context(), m); err != nil || strings.TrimSpace(result) != "0" {
		t.Errorf("no payload: %q, %v", result, err)
	}
}

// What a command prints is kept to its end, and fit for a table and a terminal.
func TestOutput(t *testing.T) {
	t.Parallel()
	flood := "i=0; while [ $i -lt 300 ]; do i=$((i+1)); printf '%01000d\\n' $i; done"
	for name, script := range map[string]string{
		"lines":   flood + " >&2; echo last >&2; exit 1",
		"long":    "printf 'first\\n%05000d' 7 >&2; exit 1",
		"no line": flood + " | tr -d '\\n' >&2; exit 1",
		"bytes":   "printf 'bad \\377\\376 \\033[2J \\000 end' >&2; exit 1",
		"half":    "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); printf '\\303\\244'; done >&2; exit 1",
		"both":    flood + " & " + flood + " >&2; wait; exit 1",
	} {
		_, err := shell(t, script).Do(t.Context(), message())
		if err == nil {
			t.Fatalf("%s: no error", name)
		}
		text := err.Error()
		if len(text) > bounds.Reason || !utf8.ValidString(text) || strings.ContainsAny(text, "\x00\x1b") || !strings.HasPrefix(text, "exit status 1: ") {
			t.Errorf("%s: %d bytes, %.100q", name, len(text), text)
		}
		switch name {
		case "lines":
			if !strings.HasPrefix(text, "exit status 1: last\n0") || !strings.HasSuffix(text, "0300\nlast") || len(text) < bounds.Reason-10 {
				t.Errorf("%d bytes, %.100q", len(text), text)
			}
		case "bytes":
			if text != "exit status 1: bad \ufffd\ufffd \ufffd[2J \ufffd end" {
				t.Errorf("%q", text)
			}
		}
	}
	result, err := shell(t, flood+"; printf end").Do(t.Context(), message())
	if err != nil || len(result) > bounds.Reason || !strings.HasSuffix(result, "0300\nend") {
		t.Errorf("%v, %d bytes", err, len(result))
	}
	discarding := newCommand(t, Config{Args: []string{"sh", "-c", flood}})
	if result, err := discarding.Do(t.Context(), message()); err != nil || result != "" {
		t.Errorf("%q, %v", result, err)
	}
}

// No part of a secret is kept, wherever the output is cut.
func TestOutputIsRedactedBeforeItIsCut(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("s3cr3t", 20)
	redact := func(text string) string { return strings.ReplaceAll(text, secret, "***") }
	for _, filler := range []int{0, 1, 100, bounds.Reason - 50, kept - 60, kept - 1} {
		var out tail
		for range 100 {
			_, _ = out.Write([]byte(secret))
		}
		_, _ = out.Write(bytes.Repeat([]byte("x"), filler))
		if text := out.text(redact, bounds.Reason); strings.Contains(text, "s3cr3t") || filler > longestSecret && !strings.HasSuffix(text, "x") {
			t.Errorf("after %d: %.200q", filler, text)
		}
	}
}

func TestCommandsThatCannotRun(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	plain := filepath.Join(folder, "plain-name")
	if err := os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{}, {""}, {"no-such-name"}, {filepath.Join(folder, "no-such-name")}, {folder}, {plain}} {
		_, err := New(Config{Args: args, Guard: []string{self(), asGuard}})
		if err == nil || strings.Contains(err.Error(), "-name") || strings.Contains(err.Error(), folder) {
			t.Errorf("%q: %v", args, err)
		}
	}
	if err := os.Chmod(plain, 0o700); err != nil {
		t.Fatal(err)
	}
	c := newCommand(t, Config{Args: []string{plain}})
	if _, err := c.Do(t.Context(), message()); err != nil {
		t.Error(err)
	}
	for _, spoil := range []func() error{
		func() error { return os.WriteFile(plain, []byte("#!/no/such/interpreter\n"), 0o700) },
		func() error { return os.Remove(plain) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Do(t.Context(), message()); outbox.OutcomeOf(err).Verdict() != outbox.VerdictUnavailable {
			t.Error(err)
		}
	}
	// One message that is too large is its own trouble alone.
	large := newCommand(t, Config{Args: []string{"true"}, Environ: many(100, strings.Repeat("x", 100_000))})
	if _, err := large.Do(t.Context(), message()); !errors.Is(err, syscall.E2BIG) || outbox.OutcomeOf(err).Verdict() != outbox.VerdictFailed {
		t.Error(err)
	}
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(outbox.ErrLeaseLost)
	if _, err := c.Do(ended, message()); !errors.Is(err, outbox.ErrLeaseLost) {
		t.Error(err)
	}
}

func many(n int, value string) (environ []string) {
	for i := range n {
		environ = append(environ, "V"+strconv.Itoa(i)+"="+value)
	}
	return environ
}

// What a command leaves running does not outlive it and does not hold it up; a daemon that left the group holds it up for a moment only.
func TestWhatACommandLeaves(t *testing.T) {
	t.Parallel()
	v := keepVigil(t)
	done := make(chan error)
	c := shell(t, `exec 3>"$0"; trap '' TERM; sleep 600 & echo ready >&3`, v.path)
	began := time.Now()
	go func() {
		_, err := c.Do(t.Context(), message())
		done <- err
	}()
	v.ready()
	if err := <-done; err != nil {
		t.Error(err)
	}
	v.over()
	pid, err := newCommand(t, Config{Args: []string{self(), asDaemon}, KeepOutput: true}).Do(t.Context(), message())
	if err != nil {
		t.Fatal(err)
	}
	if daemon, err := strconv.Atoi(pid); err != nil || syscall.Kill(daemon, syscall.SIGKILL) != nil {
		t.Errorf("no daemon %q is there", pid)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
}
