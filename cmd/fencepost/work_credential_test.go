//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fencepost-go/fencepost/outbox"
)

// A worker takes its credential from the environment or a file, and what it performs inherits neither.
// Shows: S4.21
func TestWorkUnderACredential(t *testing.T) {
	f := openFileFixture(t)
	f.enqueue(t, outbox.Effect{Kind: "load", Key: "a"}, outbox.Effect{Kind: "load", Key: "b"}, outbox.Effect{Kind: "load", Key: "c", Tenant: "acme"})
	add := func(name string, flags ...string) string {
		t.Helper()
		return strings.TrimSpace(succeed(t, append([]string{"worker", "add", name, "--consumer", "shop", "--reason", "r", "--dsn", f.dsn}, flags...)...))
	}
	file := func(content string) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), "credential")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	all, narrow := add("all"), add("narrow", "--tenant", "")
	secret := all[strings.LastIndex(all, ":")+1:]
	work := func(flags ...string) result {
		return command(t, workArgs(f.dsn, append(flags, "--once", "--exec", "sh", "-c", `! env | grep fpw_ || exit 65; echo "$0" >&2; exit 1`, secret)...)...)
	}
	refused := func(what string, code int, want string, r result) {
		t.Helper()
		if r.code != code || r.stdout != "" && code == exitUsage || !strings.Contains(r.stderr, want) || strings.Contains(r.stdout+r.stderr, "fpw_") {
			t.Errorf("%s: code %d, %s%s\nwant %s", what, r.code, r.stdout, r.stderr, want)
		}
	}
	refused("no credential", exitUsage, "the file of --credential-file holds no credential", work("--credential-file", file("nonsense fpw_1")))
	refused("secret for a file", exitUsage, "cannot read the file of --credential-file: no such file", work("--credential-file", "fpw_1"))
	refused("empty file", exitUsage, "the file of --credential-file holds no credential", work("--credential-file", file("\n")))
	refused("wrong secret", exitFailed, "worker is not identified", work("--credential-file", file(strings.Replace(all, "all:", "narrow:", 1))))
	refused("all tenants", exitFailed, `worker is not permitted: worker "narrow", consumer "shop", all tenants`, work("--credential-file", file(narrow)))
	refused("another name", exitUsage, "Name is not that of the Credential", work("--credential-file", file(all), "--name", "pod-7"))

	t.Setenv("COPY", all)
	t.Setenv(credentialVariable, narrow)
	if r := work("--tenant", ""); r.code != exitOK || strings.Contains(r.stdout+r.stderr, "fpw_") {
		t.Errorf("code %d, %s%s", r.code, r.stdout, r.stderr)
	}
	t.Setenv(credentialVariable, "")
	if r := work("--credential-file", file(all+"\n"), "--name", "all"); r.code != exitOK || strings.Contains(r.stdout+r.stderr, "fpw_") {
		t.Errorf("code %d, %s%s", r.code, r.stdout, r.stderr)
	}
	if got := f.rows(t, "SELECT concat_ws(' ', message_id, last_error) FROM outbox.queue ORDER BY message_id"); strings.Contains(got, "fpw_") || strings.Count(got, "***") != 1 {
		t.Errorf("kept %s", got)
	}
	succeed(t, "worker", "revoke", "all", "--reason", "r", "--dsn", f.dsn)
	t.Setenv(credentialVariable, all)
	refused("revoked", exitFailed, `worker revoked: "all"`, work())
	t.Setenv(credentialVariable, canary)
	if r := work(); r.code != exitUsage || !strings.Contains(r.stderr, credentialVariable+" holds no credential") || strings.Contains(r.stderr, canary) {
		t.Errorf("code %d, %s", r.code, r.stderr)
	}
}
