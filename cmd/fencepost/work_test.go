//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/outbox"
)

// stubborn is a script whose processes, three generations of them, ignore SIGTERM. They hold the FIFO that it is given, and a line says when
// they are there.
const stubborn = `exec 3>"$0"; trap '' TERM; sh -c 'sleep 600 & sleep 600' & echo $FENCEPOST_KEY >&3; wait`

// workArgs is a command line that performs the kind load.
func workArgs(dsn string, flags ...string) []string {
	return slices.Concat([]string{"work", "--dsn", dsn, "--consumer", "shop", "--target", "warehouse", "--kind", "load"}, flags)
}

// fifo makes one; reading it comes to its end when the last process is gone that holds it.
func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// held opens the FIFO when a command has and waits for its line.
func held(t *testing.T, path string) (file *os.File, line string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	if err := file.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fscanln(file, &line); err != nil {
		t.Fatal(err)
	}
	return file, line
}

// No process of a command's group is left when its message must not be performed any more, whatever the processes think of a SIGTERM.
// Shows: S4.9
func TestWorkEndsGroups(t *testing.T) {
	t.Parallel()
	load := outbox.LanePattern{Consumer: outbox.Any, Target: outbox.Any, Kind: "load", Tenant: outbox.Any}
	pause := func(t *testing.T, f fixture, mode outbox.PauseMode) {
		if _, err := f.box.Pause(t.Context(), outbox.AllTenants, load, mode, operator); err != nil {
			t.Fatal(err)
		}
	}
	lose := func(t *testing.T, f fixture) {
		pause(t, f, outbox.PauseLeasing) // lest it be leased again
		if n, err := f.box.ReleaseWorker(t.Context(), outbox.AllTenants, "pod-7", operator); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	cancel := func(t *testing.T, f fixture) {
		if _, err := f.box.Cancel(t.Context(), outbox.AllTenants, []int64{1}, operator); err != nil {
			t.Fatal(err)
		}
	}
	server := func(t *testing.T) fixture { return openFixture(t, pgtest.New(t)) }
	for name, test := range map[string]struct {
		open  func(*testing.T) fixture
		end   func(*testing.T, fixture)
		flags []string
		want  string // in the list of all that is not delivered
	}{
		"lease loss":               {openFileFixture, lose, nil, "pending 1"},
		"lease loss on PostgreSQL": {server, lose, nil, "pending 1"},
		"cancel":                   {openFileFixture, cancel, nil, "cancelled 1"},
		"cancel on PostgreSQL":     {server, cancel, nil, "cancelled 1"},
		"pause":                    {openFileFixture, func(t *testing.T, f fixture) { pause(t, f, outbox.PauseCancel) }, nil, "pending 0"},
		"timeout":                  {openFileFixture, func(*testing.T, fixture) {}, []string{"--timeout", "3s"}, "pending 1"},
		"unknown":                  {openFileFixture, func(*testing.T, fixture) {}, []string{"--timeout", "3s", "--unknown-on-timeout"}, "parked 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, path := test.open(t), fifo(t)
			f.enqueue(t, outbox.Effect{Kind: "load", Key: "order-1"})
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			done := make(chan result)
			args := workArgs(f.dsn, append(test.flags, "--name", "pod-7", "--lease", "6s", "--grace", "300ms", "--exec", "sh", "-c", stubborn, path)...)
			go func() { done <- commandWith(ctx, strings.NewReader(""), args...) }()
			file, key := held(t, path)
			if key != "order-1" {
				t.Errorf("performs %q", key)
			}
			test.end(t, f)
			if _, err := io.ReadAll(file); err != nil {
				t.Error("a process is left: ", err)
			}
			stop()
			if r := <-done; r.code != exitOK {
				t.Errorf("code %d, %s%s", r.code, r.stdout, r.stderr)
			}
			if got := f.state(t); got != test.want {
				t.Errorf("it is %s, want %s", got, test.want)
			}
		})
	}
}

// state is that of the one message, with its attempts.
func (f fixture) state(t *testing.T) string {
	t.Helper()
	details, err := f.box.Show(t.Context(), outbox.AllTenants, 1)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s %d", details.State, details.Attempt)
}

// The same for a worker that is told to stop, and for one that is killed.
// Shows: S4.9
func TestWorkerEndsGroups(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for signal, want := range map[syscall.Signal]string{syscall.SIGTERM: "pending 0", syscall.SIGKILL: "leased 1"} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			f, path := openFileFixture(t), fifo(t)
			f.enqueue(t, outbox.Effect{Kind: "load", Key: "order-1"})
			worker := exec.Command(self, workArgs(f.dsn, "--grace", "300ms", "--drain", "100ms", "--exec", "sh", "-c", stubborn, path)...)
			worker.Env = append(os.Environ(), commandVariable+"=1")
			worker.Stderr = os.Stderr
			if err := worker.Start(); err != nil {
				t.Fatal(err)
			}
			file, _ := held(t, path)
			if err := worker.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(file); err != nil {
				t.Error("a process is left: ", err)
			}
			if err := worker.Wait(); signal == syscall.SIGTERM && err != nil {
				t.Error(err)
			}
			if got := f.state(t); got != want {
				t.Errorf("it is %s, want %s", got, want)
			}
		})
	}
}

// performing is a script that does what the key says.
const performing = `case $FENCEPOST_KEY in
delivered) echo receipt 77 ;;
retried) echo busy >&2; exit 75 ;;
permanent) printf 'line\nno such order\033[2J\n' >&2; exit 65 ;;
unavailable) exit 69 ;;
esac`

func TestWork(t *testing.T) {
	t.Parallel()
	f := openFileFixture(t)
	s := transcript{t: t, dsn: f.dsn}
	for _, key := range []string{"delivered", "retried", "permanent", "unavailable"} {
		f.enqueue(t, outbox.Effect{Kind: "load", Key: key, Tenant: "acme", Payload: []byte("{}")})
	}
	work := func(flags ...string) string {
		args := workArgs(f.dsn, append(flags, "--once", "--name", "worker-1", "--slots", "1", "--jitter", "none", "--keep-output", "--exec", "sh", "-c", performing)...)
		r := command(t, args...)
		if r.code != exitOK {
			t.Errorf("code %d, %s", r.code, r.stderr)
		}
		return r.stdout
	}
	s.WriteString(work() + work("--json") + "\n")
	s.run("show", "1")
	s.run("list", "--state", "dead")
	s.run("list")
	golden(t, "work", s.String())
}

func TestWorkJSON(t *testing.T) {
	t.Parallel()
	f := openFileFixture(t)
	f.enqueue(t, outbox.Effect{Kind: "load", Key: "retried"}, outbox.Effect{Kind: "load", Key: "permanent" + hostile[:12]})
	r := command(t, workArgs(f.dsn, "--once", "--json", "--exec", "sh", "-c", "echo no >&2; exit 65")...)
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	if r.code != exitOK || len(lines) != 3 {
		t.Fatalf("code %d, %s%s", r.code, r.stdout, r.stderr)
	}
	for _, text := range append(lines, strings.Split(strings.TrimSpace(r.stderr), "\n")...) {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil || strings.ContainsAny(text, "\x1b\u202e\u009b") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A command gets nothing that leads into the database, and what it prints of it is not kept.
func TestWorkKeepsSecrets(t *testing.T) {
	f := openFixture(t, pgtest.New(t))
	dsn := strings.Replace(f.dsn, "@", ":"+canary+"@", 1)
	if !strings.Contains(dsn, canary) {
		t.Fatal(dsn)
	}
	for _, name := range []string{dsnVariable, "DATABASE_URL", "SHOP_DATABASE"} {
		t.Setenv(name, dsn)
	}
	t.Setenv("PGPASSWORD", canary)
	t.Setenv("SHOP_PASSWORD", canary)
	t.Setenv("SHOP_NAME", "corner shop")
	f.enqueue(t, outbox.Effect{Kind: "load", Key: "order-1"})
	script := `env >&2; echo "at $0: not for $1!" >&2; exit 65`
	r := command(t, append([]string{"work"}, workArgs(dsn, "--once", "--exec", "sh", "-c", script, dsn, canary)[3:]...)...) // by the environment
	if r.code != exitOK || strings.Contains(r.stdout+r.stderr, canary) {
		t.Errorf("code %d, %s%s", r.code, r.stdout, r.stderr)
	}
	details, err := f.box.Show(t.Context(), outbox.AllTenants, 1)
	if err != nil {
		t.Fatal(err)
	}
	reason := details.Reason
	if details.State != outbox.StateDead || !strings.HasPrefix(reason, "exit status 65: at ***: not for ***!\n") || !strings.Contains(reason, "SHOP_NAME=corner shop") {
		t.Errorf("%s: %s", details.State, reason)
	}
	for _, secret := range []string{canary, "SHOP_DATABASE", "SHOP_PASSWORD", "PGPASSWORD", "DATABASE_URL", dsnVariable} {
		if strings.Contains(reason, secret) {
			t.Errorf("the command knew %s", secret)
		}
	}
}

func TestSecretsOf(t *testing.T) {
	t.Parallel()
	redact := redactor(secretsOf("postgres://u:a%2Fb-s3cr3t@h/d", "a/b-s3cr3t"))
	for text, want := range map[string]string{
		"at postgres://u:a%2Fb-s3cr3t@h/d": "at ***",
		"a/b-s3cr3t":                       "***",
		"mysql://u:a%2Fb-s3cr3t@other/d":   "mysql://u***other/d",
		"user=u password=a/b-s3cr3t":       "user=u ***",
		"nothing":                          "nothing",
	} {
		if got := redact(text); got != want {
			t.Errorf("%q became %q", text, got)
		}
	}
	short := redactor(secretsOf("postgres://u:app@h/d", "app"))
	if got := short("the app at postgres://u:app@h/d and mysql://u:app@x"); got != "the app at *** and mysql://u***x" {
		t.Error(got)
	}
}

// A worker whose guard is gone ends.
func TestWorkWithoutItsGuard(t *testing.T) {
	t.Parallel()
	f := openFileFixture(t)
	broken := make(chan struct{})
	close(broken)
	w := working{connection: connection{dsn: f.dsn, schema: "outbox"}, consumer: "shop", target: "warehouse", kinds: []string{"load"}, scope: func() outbox.Scope { return outbox.AllTenants }}
	w.ways = []way{brokenWay{broken}}
	cmd := newWork()
	cmd.SetContext(t.Context())
	cmd.SetErr(io.Discard)
	if err := w.run(cmd, nil); err == nil || !strings.Contains(err.Error(), "guard") {
		t.Error(err)
	}
}

type brokenWay struct{ broken chan struct{} }

func (brokenWay) addFlags(*pflag.FlagSet) {}
func (brokenWay) name() string            { return "broken" }
func (brokenWay) chosen() bool            { return true }
func (b brokenWay) open(opening) (performer, error) {
	do := func(context.Context, outbox.Message) (string, error) { return "", nil }
	return performer{do: do, broken: b.broken, close: func() {}}, nil
}
