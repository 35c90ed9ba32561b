//go:build unix

package main

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/webhook"
)

// A hook is an endpoint that verifies what it is posted and answers what the payload says.
type hook struct {
	*httptest.Server
	lock     sync.Mutex
	payloads []string
	ids      map[string]bool
	kinds    map[string]int // with what else says which message it is
}

func newHook(t *testing.T, secrets ...webhook.Secret) *hook {
	t.Helper()
	h := &hook{ids: map[string]bool{}, kinds: map[string]int{}}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		for _, secret := range secrets {
			if _, err := webhook.Verify(r.Header, body, []webhook.Secret{secret}, 0); err != nil {
				t.Errorf("%s is not signed by %v: %v", body, secret, err)
			}
		}
		h.lock.Lock()
		h.payloads = append(h.payloads, string(body))
		h.ids[r.Header.Get(webhook.HeaderID)] = true
		h.kinds[r.Header.Get("Fencepost-Tenant")+" "+r.Header.Get("Fencepost-Kind")+" "+r.Header.Get("Fencepost-Key")+" "+r.Header.Get("Fencepost-Attempt")]++
		h.lock.Unlock()
		status := http.StatusOK
		_, _ = fmt.Sscanf(string(body), "answer %d", &status)
		w.WriteHeader(status)
		fmt.Fprintf(w, "because of %s", body)
	}))
	t.Cleanup(h.Close)
	return h
}

// Each answer has its outcome, and a table of one's own changes it; on either store.
func TestWorkPosts(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) fixture{
		"sqlite": openFileFixture, "postgres": func(t *testing.T) fixture { return openFixture(t, pgtest.New(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := open(t)
			private, public := webhook.NewKeyPair()
			symmetric := webhook.NewSecret()
			h := newHook(t, symmetric, public)
			want := map[string]string{
				"answer 200": "delivered 1", "answer 204": "delivered 1", "answer 302": "pending 1", "answer 400": "dead 1 permanent",
				"answer 404": "pending 1", "answer 409": "delivered 1", "answer 410": "dead 1 moot", "answer 429": "pending 1",
				"answer 500": "pending 1", "answer 501": "parked 1",
			}
			keys := slices.Sorted(maps.Keys(want))
			effects := make([]outbox.Effect, len(keys))
			for i, key := range keys {
				effects[i] = outbox.Effect{Kind: "load", Key: key, Payload: []byte(key)}
			}
			f.enqueue(t, effects...)
			args := workArgs(f.dsn, "--once", "--name", "worker-1", "--secret-file", inputFile(t, symmetric.Reveal(), private.Reveal()), "--allow", "127.0.0.1",
				"--status", "404=retry", "--status", "409=delivered", "--status", "501=unknown", "--post", h.URL+"/hook?token=in-the-url")
			r := command(t, args...)
			if r.code != exitOK || strings.Contains(r.stdout+r.stderr, "in-the-url") {
				t.Errorf("code %d, %s%s", r.code, r.stdout, r.stderr)
			}
			for i, key := range keys {
				details, err := f.box.Show(t.Context(), outbox.AllTenants, int64(i+1))
				if err != nil {
					t.Fatal(err)
				}
				if got := strings.TrimSpace(fmt.Sprintf("%s %d %s", details.State, details.Attempt, details.Cause)); got != want[key] {
					t.Errorf("%s: %s, want %s (%s)", key, got, want[key], details.Reason)
				}
				if strings.HasPrefix(want[key], "dead") && (!strings.Contains(details.Reason, "because of "+key) || strings.Contains(details.Reason, "in-the-url")) {
					t.Errorf("%s: %s", key, details.Reason)
				}
			}
			slices.Sort(h.payloads)
			if !slices.Equal(h.payloads, keys) || len(h.ids) != len(keys) {
				t.Errorf("posted %q with %d ids", h.payloads, len(h.ids))
			}
			if len(h.kinds) != len(keys) || h.kinds[" load answer%20410 1"] != 1 {
				t.Errorf("posted %v", h.kinds)
			}
		})
	}
}

// The machine's own addresses are for those who say so; no connection spends no attempt; no answer in time is what was asked for.
func TestWorkPostsNowhere(t *testing.T) {
	t.Parallel()
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil { // only then the server sees the client go
			t.Error(err)
		}
		<-r.Context().Done()
	}))
	t.Cleanup(silent.Close)
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	secret := inputFile(t, webhook.NewSecret().Reveal())
	for name, test := range map[string]struct {
		flags []string
		want  string
	}{
		"refused":  {[]string{"--post", strings.Replace(silent.URL, "127.0.0.1", "localhost", 1)}, "dead 1"},
		"down":     {[]string{"--allow", "127.0.0.0/8", "--post", down.URL}, "pending 0"},
		"timeout":  {[]string{"--allow", "127.0.0.0/8", "--timeout", "300ms", "--post", silent.URL}, "pending 1"},
		"unknown":  {[]string{"--allow", "127.0.0.0/8", "--timeout", "300ms", "--unknown-on-timeout", "--post", silent.URL}, "parked 1"},
		"not sent": {[]string{"--allow", "127.0.0.0/8", "--timeout", "300ms", "--unknown-on-timeout", "--post", down.URL}, "pending 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := openFileFixture(t)
			f.enqueue(t, outbox.Effect{Kind: "load", Key: "order-1"})
			r := command(t, workArgs(f.dsn, append(test.flags, "--once", "--secret-file", secret)...)...)
			if got := f.state(t); r.code != exitOK || got != test.want {
				t.Errorf("code %d, %s, want %s; %s", r.code, got, test.want, r.stderr)
			}
		})
	}
}

// Nothing is posted unsigned, and no secret is told, wherever it comes from and whatever is wrong with it.
func TestWorkPostsSigned(t *testing.T) {
	f := openFileFixture(t)
	good := webhook.NewSecret()
	h := newHook(t, good)
	work := func(flags ...string) result {
		return command(t, workArgs(f.dsn, append([]string{"--once", "--allow", "127.0.0.1", "--post", h.URL}, flags...)...)...)
	}
	refused := func(r result, want string) {
		t.Helper()
		if r.code != exitUsage || !strings.Contains(r.stderr, want) || strings.Contains(r.stdout+r.stderr, canary) {
			t.Errorf("code %d, %s, want %s", r.code, r.stderr, want)
		}
	}
	refused(work(), "--post signs what it sends: put a secret into the file of --secret-file or into FENCEPOST_WEBHOOK_SECRET")
	t.Setenv(secretVariable, good.Reveal()+" "+canary)
	refused(work(), secretVariable+": number 2: ")
	refused(work("--secret-file", inputFile(t, "whsec_"+canary)), "the file of --secret-file: number 1: ")
	refused(work("--secret-file", inputFile(t, "\n")), "put a secret into")
	nowhere := func(flags ...string) result {
		return command(t, workArgs(f.dsn, append([]string{"--once", "--secret-file", inputFile(t, good.Reveal())}, flags...)...)...)
	}
	refused(nowhere("--post", h.URL), "127.0.0.1 is not public, and no network that is allowed has it; --allow opens it")
	refused(nowhere("--post", h.URL, "--allow", "127.0.0.1", "--https-only"), "URL is not https")
	refused(nowhere("--post", "ftp://a.example"), "URL is neither http nor https")
	_, public := webhook.NewKeyPair()
	refused(work("--secret-file", inputFile(t, public.Reveal())), "has a public key, which cannot sign")
	refused(work("--secret-file", "whsec_"+canary), "cannot read the file of --secret-file: no such file")

	t.Setenv(secretVariable, good.Reveal())
	f.enqueue(t, outbox.Effect{Kind: "load", Key: "order-1"})
	if r := work(); r.code != exitOK || len(h.payloads) != 1 {
		t.Errorf("code %d, %s; posted %d", r.code, r.stderr, len(h.payloads))
	}
}
