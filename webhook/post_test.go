package webhook_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/webhook"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

var message = outbox.Message{Consumer: "customers", Target: "acme", Kind: "invoice.paid", Key: "invoice/17", Payload: []byte(`{"b": 1,  "a":1}`)}

// poster posts to a server on this host.
func poster(t *testing.T, url string, config webhook.PosterConfig) *webhook.Poster {
	t.Helper()
	where, err := webhook.To(webhook.Endpoint{URL: url, Secrets: []webhook.Secret{parse(t, vectorSecret)}})
	if err != nil {
		t.Fatal(err)
	}
	if config.Allow == nil {
		config.Allow = loopback
	}
	p, err := webhook.NewPoster(where, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.CloseIdleConnections)
	return p
}

func serve(t *testing.T, do http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(do)
	t.Cleanup(server.Close)
	return server
}

// verdict is the class of a handler's error, as the sender sees it.
func verdict(err error) outbox.Verdict { return outbox.OutcomeOf(err).Verdict() }

// The payload arrives byte for byte, under the same id each time, and is verified by who has one of the secrets.
// Shows: S4.20
func TestPost(t *testing.T) {
	t.Parallel()
	private, public := webhook.NewKeyPair()
	old := webhook.NewSecret()
	var seen []string
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		for _, secret := range []webhook.Secret{old, public} {
			signed, err := webhook.Verify(r.Header, body, []webhook.Secret{secret}, 0)
			if err != nil {
				t.Errorf("%v: %v", secret, err)
			}
			seen = append(seen, signed.ID)
		}
		if string(body) != string(message.Payload) || r.Method != http.MethodPost || r.URL.RequestURI() != "/in/a%2Fb?x=1" || r.ContentLength != int64(len(body)) ||
			r.Header.Get("Content-Type") != "application/json" || r.Header.Get("User-Agent") != "fencepost-webhook" || r.Header.Get("Authorization") != "Bearer x" {
			t.Errorf("%s %s %v: %s", r.Method, r.URL.RequestURI(), r.Header, body)
		}
		w.WriteHeader(http.StatusAccepted)
	})
	endpoint := webhook.Endpoint{
		URL: server.URL + "/in/a%2Fb?x=1", Secrets: []webhook.Secret{private, old}, Header: http.Header{"authorization": {"Bearer x"}},
	}
	p, err := webhook.NewPoster(func(context.Context, outbox.Message) (webhook.Endpoint, error) { return endpoint, nil }, webhook.PosterConfig{Allow: loopback})
	if err != nil {
		t.Fatal(err)
	}
	again := message
	again.ID, again.Attempt, again.Epoch, again.Replays = 7, 3, 9, 1
	for _, m := range []outbox.Message{message, again} {
		if err := p.Do(t.Context(), m); err != nil {
			t.Error(err)
		}
	}
	for _, id := range seen {
		if id != webhook.MessageID(message) || !strings.HasPrefix(id, "msg_") || strings.Contains(id, "invoice") {
			t.Errorf("ids %q", seen)
		}
	}
	other := message
	other.Tenant = "other"
	if len(seen) != 4 || webhook.MessageID(other) == seen[0] {
		t.Errorf("ids %q", seen)
	}
}

// Every status has one meaning, which the table changes.
func TestStatuses(t *testing.T) {
	t.Parallel()
	var status atomic.Int64
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(int(status.Load()))
	})
	usual := poster(t, server.URL, webhook.PosterConfig{})
	changed := poster(t, server.URL, webhook.PosterConfig{Statuses: map[int]outbox.Verdict{
		4: outbox.VerdictFailed, 404: outbox.VerdictMoot, 410: outbox.VerdictPermanent, 409: outbox.VerdictDelivered, 202: outbox.VerdictUnknown, 502: outbox.VerdictUnavailable,
		3: outbox.VerdictPermanent,
	}})
	for n := 200; n < 600; n++ {
		status.Store(int64(n))
		want := outbox.VerdictFailed
		switch {
		case n < 300:
			want = outbox.VerdictDelivered
		case n == 410:
			want = outbox.VerdictMoot
		case n == 429:
		case n >= 400 && n < 500:
			want = outbox.VerdictPermanent
		}
		err := usual.Do(t.Context(), message)
		if got := verdict(err); got != want {
			t.Errorf("%d: %v, want %v", n, got, want)
		}
		if answer := (*webhook.StatusError)(nil); want != outbox.VerdictDelivered && (!errors.As(err, &answer) || answer.Status != n) {
			t.Errorf("%d: %v", n, err)
		}
		switch {
		case n == 202:
			want = outbox.VerdictUnknown
		case n == 404:
			want = outbox.VerdictMoot
		case n == 409:
			want = outbox.VerdictDelivered
		case n == 410:
			want = outbox.VerdictPermanent
		case n == 502:
			want = outbox.VerdictUnavailable
		case n >= 300 && n < 400:
			want = outbox.VerdictPermanent
		case n >= 400 && n < 500:
			want = outbox.VerdictFailed
		}
		if got := verdict(changed.Do(t.Context(), message)); got != want {
			t.Errorf("%d: %v, want %v by the table", n, got, want)
		}
	}
}

// 410 calls the hook, whose failure is told and changes nothing.
func TestGone(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "not any more", http.StatusGone) })
	calls := 0
	var problem error
	p := poster(t, server.URL, webhook.PosterConfig{Gone: func(_ context.Context, m outbox.Message, e webhook.Endpoint) error {
		if calls++; m.Key != message.Key || e.URL != server.URL {
			t.Errorf("%v %v", m, e)
		}
		return problem
	}})
	if err := p.Do(t.Context(), message); verdict(err) != outbox.VerdictMoot || err.Error() != "answered 410 Gone: not any more" || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
	problem = outbox.Unknown(errors.New("no connection"))
	err := p.Do(t.Context(), message)
	if verdict(err) != outbox.VerdictMoot || err.Error() != "answered 410 Gone: not any more; and the endpoint was not disabled: no connection" || calls != 2 {
		t.Errorf("%v after %d calls", err, calls)
	}
}

// An answer that is to be tried again later is a snooze, of which only its policy says whether and how far it is heard.
func TestRetryAfterIsASnooze(t *testing.T) {
	t.Parallel()
	var status int
	var after string
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", after)
		w.WriteHeader(status)
	})
	p := poster(t, server.URL, webhook.PosterConfig{MaxRetryAfter: 10 * time.Minute})
	for _, row := range []struct {
		status int
		after  string
		want   outbox.Verdict
		least  time.Duration
		most   time.Duration
	}{
		{429, "60", outbox.VerdictSnoozed, time.Minute, time.Minute},
		{503, "60", outbox.VerdictSnoozed, time.Minute, time.Minute},
		{503, time.Now().Add(5 * time.Minute).UTC().Format(http.TimeFormat), outbox.VerdictSnoozed, 3 * time.Minute, 5 * time.Minute},
		{503, "86400", outbox.VerdictSnoozed, 10 * time.Minute, 10 * time.Minute},
		{503, "99999999999999999999", outbox.VerdictSnoozed, 10 * time.Minute, 10 * time.Minute},
		{503, "0", outbox.VerdictFailed, 0, 0},
		{503, "never", outbox.VerdictFailed, 0, 0},
		{503, "", outbox.VerdictFailed, 0, 0},
		{500, "60", outbox.VerdictFailed, 0, 0},
		{302, "60", outbox.VerdictFailed, 0, 0},
		{400, "60", outbox.VerdictPermanent, 0, 0},
		{410, "60", outbox.VerdictMoot, 0, 0},
		{200, "60", outbox.VerdictDelivered, 0, 0},
	} {
		status, after = row.status, row.after
		err := p.Do(t.Context(), message)
		var answer *webhook.StatusError
		if verdict(err) != row.want || errors.As(err, &answer) && (answer.RetryAfter < row.least || answer.RetryAfter > row.most) {
			t.Errorf("%d with %q: %v, %v", row.status, row.after, verdict(err), err)
		}
	}
}

// A reason has the status and how the body began, and nothing of the endpoint but its host.
func TestReason(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("é", 1<<20)
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, large)
	})
	err := poster(t, server.URL+"/canary", webhook.PosterConfig{}).Do(t.Context(), message)
	var answer *webhook.StatusError
	if !errors.As(err, &answer) || answer.Body != large[:4<<10] || !strings.HasPrefix(err.Error(), "answered 418 I'm a teapot: éé") {
		t.Errorf("%.100v", err)
	}
	server.Close()
	err = poster(t, server.URL+"/canary?canary", webhook.PosterConfig{}).Do(t.Context(), message)
	if text := err.Error(); strings.Contains(text, "canary") || !strings.HasPrefix(text, "webhook: post to "+server.URL+": ") {
		t.Errorf("%v", err)
	}
}

// A redirect is an answer, and nothing is sent where it points.
// B30
func TestB30Redirects(t *testing.T) {
	t.Parallel()
	inner := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") })
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, inner.URL, status) })
		if err := poster(t, server.URL, webhook.PosterConfig{}).Do(t.Context(), message); verdict(err) != outbox.VerdictFailed {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// One connection serves one message after another, whatever the size of the answers; of HTTP/2 also those at once.
func TestConnectionsAreUsedAgain(t *testing.T) {
	t.Parallel()
	for _, two := range []bool{false, true} {
		var connections, requests atomic.Int64
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if requests.Add(1); two != (r.ProtoMajor == 2) {
				t.Errorf("%s", r.Proto)
			}
			_, _ = io.WriteString(w, strings.Repeat("x", 20<<10))
		}))
		server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				connections.Add(1)
			}
		}
		server.EnableHTTP2 = two
		server.StartTLS()
		t.Cleanup(server.Close)
		roots := x509.NewCertPool()
		roots.AddCert(server.Certificate())
		p := poster(t, server.URL, webhook.PosterConfig{TLS: &tls.Config{RootCAs: roots}, HTTPSOnly: true})
		for range 20 {
			if err := p.Do(t.Context(), message); err != nil {
				t.Error(err)
			}
		}
		if connections.Load() != 1 || requests.Load() != 20 {
			t.Errorf("HTTP/2 %t: %d connections for %d requests", two, connections.Load(), requests.Load())
		}
		if err := poster(t, server.URL, webhook.PosterConfig{}).Do(t.Context(), message); verdict(err) != outbox.VerdictUnavailable {
			t.Errorf("a certificate of nobody's: %v", err)
		}
	}
}

// hang answers nothing until the client has gone.
func hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// Targets of which no answer comes; each says when something arrives.
func silent(t *testing.T, arrived func()) string {
	return serve(t, func(w http.ResponseWriter, r *http.Request) { arrived(); hang(w, r) }).URL
}

func deaf(t *testing.T, arrived func()) string {
	return "https://" + listen(t, func(net.Conn) { arrived() })
}

func breaking(t *testing.T, _ func()) string {
	return "http://" + listen(t, func(c net.Conn) {
		defer c.Close()
		if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			_, _ = io.Copy(io.Discard, r.Body)
		}
	})
}

func closed(t *testing.T, _ func()) string {
	server := serve(t, nil)
	server.Close()
	return server.URL
}

func nameless(*testing.T, func()) string { return "http://no-such-name.invalid" }

// Without an answer it counts how far the request came, and who ended it.
// Shows: S4.23
func TestUnanswered(t *testing.T) {
	t.Parallel()
	const short, connected = 100 * time.Millisecond, 2 * time.Second // connected is long enough to be so on a busy machine
	for row, try := range map[string]struct {
		target                      func(*testing.T, func()) string
		timeout, connecting, sender time.Duration
		cause                       error
		plain, doubtful             outbox.Verdict
		text                        string
	}{
		"nobody listens": {target: closed, plain: outbox.VerdictUnavailable, doubtful: outbox.VerdictUnavailable, text: "refused"},
		"no such name":   {target: nameless, plain: outbox.VerdictUnavailable, doubtful: outbox.VerdictUnavailable, text: "no such host"},
		"no handshake":   {target: deaf, connecting: short, plain: outbox.VerdictUnavailable, doubtful: outbox.VerdictUnavailable, text: "timeout"},
		"no connection":  {target: deaf, timeout: short, plain: outbox.VerdictUnavailable, doubtful: outbox.VerdictUnavailable, text: "no answer in time"},
		"no answer":      {target: silent, timeout: connected, plain: outbox.VerdictFailed, doubtful: outbox.VerdictUnknown, text: "no answer in time"},
		"breaks":         {target: breaking, plain: outbox.VerdictFailed, doubtful: outbox.VerdictUnknown, text: "EOF"},
		"stopping":       {target: silent, cause: outbox.ErrStopping, plain: outbox.VerdictFailed, doubtful: outbox.VerdictFailed, text: "stopping"},
		"lease lost":     {target: deaf, cause: outbox.ErrLeaseLost, plain: outbox.VerdictFailed, doubtful: outbox.VerdictFailed, text: "lease lost"},
		"kind's timeout": {target: silent, sender: connected, plain: outbox.VerdictFailed, doubtful: outbox.VerdictUnknown, text: "handler timeout"},
	} {
		for _, doubt := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %t", row, doubt), func(t *testing.T) {
				t.Parallel()
				config := webhook.PosterConfig{Timeout: patience, ConnectTimeout: patience, UnknownOnTimeout: doubt, Resolver: resolver(nil)}
				want := try.plain
				if try.timeout > 0 {
					config.Timeout = try.timeout
				}
				if try.connecting > 0 {
					config.ConnectTimeout = try.connecting
				}
				if doubt {
					want = try.doubtful
				}
				ctx, end := context.WithCancelCause(t.Context())
				defer end(nil)
				if try.sender > 0 {
					var cancel func()
					ctx, cancel = context.WithTimeoutCause(ctx, try.sender, errors.New("handler timeout"))
					defer cancel()
				}
				url := try.target(t, func() {
					if try.cause != nil {
						end(try.cause)
					}
				})
				err := poster(t, url, config).Do(ctx, message)
				if verdict(err) != want || !strings.Contains(err.Error(), try.text) {
					t.Errorf("%v, %v; want %v", verdict(err), err, want)
				}
			})
		}
	}
}

// Where endpoints share a lane, one that is down is the message's failure and not the lane's.
func TestNoConnection(t *testing.T) {
	t.Parallel()
	err := poster(t, closed(t, nil), webhook.PosterConfig{NoConnection: outbox.VerdictFailed}).Do(t.Context(), message)
	if verdict(err) != outbox.VerdictFailed || !strings.Contains(err.Error(), "refused") {
		t.Errorf("%v, %v", verdict(err), err)
	}
}

// With a header that says that a request can be repeated the transport would do that by itself. An attempt sends it once, and says what came of that.
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Idempotency-Key", "x-idempotency-key"} {
		for doubt, want := range map[bool]outbox.Verdict{false: outbox.VerdictFailed, true: outbox.VerdictUnknown} {
			var requests atomic.Int64
			var server *httptest.Server
			server = serve(t, func(http.ResponseWriter, *http.Request) {
				if requests.Add(1) > 1 { // on the same connection
					server.Listener.Close()
					panic(http.ErrAbortHandler)
				}
			})
			where, err := webhook.To(webhook.Endpoint{
				URL: server.URL, Secrets: []webhook.Secret{webhook.NewSecret()}, Header: http.Header{name: {message.Key}},
			})
			if err != nil {
				t.Fatal(err)
			}
			p, err := webhook.NewPoster(where, webhook.PosterConfig{Allow: loopback, UnknownOnTimeout: doubt})
			if err != nil {
				t.Fatal(err)
			}
			defer p.CloseIdleConnections()
			if err := p.Do(t.Context(), message); err != nil {
				t.Error(err)
			}
			if err := p.Do(t.Context(), message); verdict(err) != want || requests.Load() != 2 {
				t.Errorf("%s: %v after %d requests, %v; want %v", name, verdict(err), requests.Load(), err, want)
			}
		}
	}
}

// The status decides, not the body, which only explains.
func TestEndlessBody(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]outbox.Verdict{200: outbox.VerdictDelivered, 500: outbox.VerdictFailed} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(status)
				_, _ = io.WriteString(w, "begun")
				_ = http.NewResponseController(w).Flush()
				hang(w, r)
			})
			err := poster(t, server.URL, webhook.PosterConfig{Timeout: patience}).Do(t.Context(), message)
			if verdict(err) != want || err != nil && err.Error() != "answered 500 Internal Server Error: begun" {
				t.Errorf("%v", err)
			}
		})
	}
}

// A target that switches protocols would own the connection, which no context ends any more.
func TestSwitchingProtocols(t *testing.T) {
	t.Parallel()
	address := listen(t, func(c net.Conn) {
		if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil { // an answer to no request is none
			_, _ = io.Copy(io.Discard, r.Body)
		}
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: hold\r\n\r\n")
		_, _ = io.Copy(io.Discard, c)
	})
	done := make(chan error, 1)
	go func() { done <- poster(t, "http://"+address, webhook.PosterConfig{}).Do(t.Context(), message) }()
	select {
	case err := <-done:
		if verdict(err) != outbox.VerdictFailed || !strings.HasPrefix(err.Error(), "answered 101 ") {
			t.Errorf("%v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the slot is held")
	}
}

// listen serves raw connections.
func listen(t *testing.T, serve func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var open sync.Map // a connection that nobody holds is closed when the garbage is collected
	t.Cleanup(func() {
		l.Close()
		open.Range(func(c, _ any) bool {
			c.(net.Conn).Close()
			return true
		})
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			open.Store(c, nil)
			go serve(c)
		}
	}()
	return l.Addr().String()
}
