//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/metrics"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/sender"
	"github.com/fencepost-go/fencepost/tracing"
	"github.com/fencepost-go/fencepost/webhook"
)

// The marked secrets of TestCanaries, by what holds them.
const (
	inDSN      = "canary-of-the-password"
	inPayload  = "canary-of-the-payload"
	inMetadata = "canary-of-the-metadata"
	inError    = "canary-of-the-handler"
)

// A search is for secrets in everything that gets out.
type search struct {
	*testing.T
	secrets map[string]string // by what holds them
	places  int
}

// forms are those in which a secret gets about.
func forms(secret string) []string {
	return []string{secret, hex.EncodeToString([]byte(secret)), base64.StdEncoding.EncodeToString([]byte(secret)), fmt.Sprint([]byte(secret)), fmt.Sprintf("%q", secret)}
}

// in looks for every secret in an output, but for those that it is there to show.
func (s *search) in(place, output string, shown ...string) {
	s.Helper()
	s.places++
	for holder, secret := range s.secrets {
		if slices.Contains(shown, holder) {
			continue
		}
		for _, form := range forms(secret) {
			if strings.Contains(output, form) {
				s.Errorf("%s has the secret of the %s: %s", place, holder, output)
				break
			}
		}
	}
}

// W6: one marked secret in each place that holds any, and none in a log, metric, trace, error, table, output or help text.
// Shows: S4.21
func TestCanaries(t *testing.T) {
	plain := openFixture(t, pgtest.New(t))
	f := openFixture(t, strings.Replace(plain.dsn, "@", ":"+inDSN+"@", 1))
	signing := webhook.NewSecret()
	f.ripenForCanaries(t)
	r := command(t, "worker", "add", "mailer", "--consumer", "shop", "--reason", "new host", "--dsn", f.dsn)
	credential, err := outbox.ParseCredential(strings.TrimSpace(r.stdout))
	if err != nil {
		t.Fatal(err, r.stderr)
	}
	_, secret, _ := strings.Cut(credential.Reveal(), ":fpw_")
	s := &search{T: t, secrets: map[string]string{
		"credential": secret, "password": inDSN, "signing key": strings.TrimPrefix(signing.Reveal(), "whsec_"),
		"payload": inPayload, "metadata": inMetadata, "handler": inError,
	}}
	t.Setenv(dsnVariable, f.dsn)
	t.Setenv(credentialVariable, credential.Reveal())
	t.Setenv(secretVariable, signing.Reveal())

	h := newHook(t, signing)
	for _, format := range [][]string{nil, {"--json"}} {
		f.enqueue(t, outbox.Effect{Kind: "load", Key: "posted" + strings.Join(format, ""), Payload: []byte(inPayload)})
		r := command(t, slices.Concat([]string{"work", "--consumer", "shop", "--target", "warehouse", "--kind", "load", "--once", "--allow", "127.0.0.1", "--post", h.URL}, format)...)
		if r.code != exitOK {
			t.Errorf("work: code %d, %s", r.code, r.stderr)
		}
		s.in("work", r.stdout+r.stderr)
	}
	s.performed(f, credential, signing)
	s.printed(f)
	s.stored(f)
	if s.places < 60 {
		t.Errorf("looked at %d places", s.places)
	}
}

// ripenForCanaries enqueues an effect of each fate.
func (f fixture) ripenForCanaries(t *testing.T) {
	t.Helper()
	for _, kind := range []string{"post", "retry", "bury", "park", "panic", "result"} {
		f.enqueue(t, outbox.Effect{Kind: kind, Key: kind + "-1", Payload: []byte(inPayload), Metadata: map[string]string{"token": inMetadata}})
	}
}

// performed runs a sender with everything that watches one, until it is revoked.
func (s *search) performed(f fixture, credential outbox.Credential, signing webhook.Secret) {
	s.Helper()
	var logs bytes.Buffer
	registry := prometheus.NewRegistry()
	measured, err := metrics.New(registry, metrics.Config{Kinds: []string{"post", "retry", "bury", "park", "panic", "result"}})
	if err != nil {
		s.Fatal(err)
	}
	spans := tracetest.NewSpanRecorder()
	traced := tracing.New(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)))
	box, err := outbox.New(f.on.store, outbox.Config{
		RequireCredential: true,
		Redact:            func(text string) string { return strings.ReplaceAll(text, inError, "***") },
		Observer:          outbox.Observers(measured, traced),
		Logger:            slog.New(slog.NewJSONHandler(&logs, &slog.HandlerOptions{Level: slog.LevelDebug, AddSource: true})),
	})
	if err != nil {
		s.Fatal(err)
	}
	h := newHook(s.T, signing)
	where, err := webhook.To(webhook.Endpoint{URL: h.URL, Secrets: []webhook.Secret{signing}})
	if err != nil {
		s.Fatal(err)
	}
	poster, err := webhook.NewPoster(where, webhook.PosterConfig{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		s.Fatal(err)
	}
	wrong := errors.New("token " + inError + " was refused")
	do := func(err error) sender.Handler {
		return sender.Handler{Do: func(context.Context, outbox.Message) error { return err }}
	}
	started, ended := make(chan struct{}, 1), make(chan error, 1)
	config := sender.Config{Credential: credential, Scope: outbox.AllTenants, Lease: 6 * time.Second, Handlers: sender.Handlers{
		"post": {Do: poster.Do}, "retry": do(wrong), "bury": do(outbox.Permanent(wrong)), "park": do(outbox.Unknown(wrong)),
		"panic":  {Do: func(context.Context, outbox.Message) error { panic(wrong) }},
		"result": {DoResult: func(context.Context, outbox.Message) (string, error) { return "as " + inError, nil }},
		"wait": {Do: func(ctx context.Context, _ outbox.Message) error {
			started <- struct{}{}
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return wrong
		}},
	}}
	s.in("config", inEveryVerb(config))
	run, err := sender.New(box, f.consumer(s.T), config)
	if err != nil {
		s.Fatal(err)
	}
	s.in("sender", inEveryVerb(run)+inEveryVerb(*run))
	if counts, err := run.RunOnce(s.Context()); err != nil || counts.Leased != 6 {
		s.Fatalf("%+v, %v", counts, err)
	}
	done := make(chan error, 1)
	go func() { done <- run.Run(s.Context()) }()
	f.enqueue(s.T, outbox.Effect{Kind: "wait", Key: "wait-1", Payload: []byte(inPayload)})
	<-started
	s.in("worker revoke", succeed(s.T, "worker", "revoke", "mailer", "--reason", "a test"))
	err = <-done
	if cause := <-ended; !errors.Is(err, outbox.ErrRevoked) || cause != outbox.ErrRevoked {
		s.Errorf("ended with %v, its handler by %v", err, cause)
	}
	s.in("error of the run", inEveryVerb(err))
	_, err = run.RunOnce(s.Context())
	s.in("error of the start", inEveryVerb(err))
	succeed(s.T, "worker", "add", "mailer-2", "--consumer", "shop", "--reason", "a test", "--out", s.TempDir()+"/credential")

	s.in("log", logs.String())
	families, err := registry.Gather()
	if err != nil || len(families) < 5 {
		s.Fatal(len(families), err)
	}
	for _, family := range families {
		s.in("metric", family.String())
	}
	if len(spans.Ended()) < 6 {
		s.Errorf("%d spans", len(spans.Ended()))
	}
	for _, span := range spans.Ended() {
		s.in("span", fmt.Sprint(span.Name(), span.Attributes(), span.Status(), span.Links(), fmt.Sprintf("%+v", span.Events())))
	}
	if !strings.Contains(logs.String(), "handler panicked") || !strings.Contains(logs.String(), "dead letter") || !strings.Contains(logs.String(), "***") {
		s.Errorf("logged %s", logs.String())
	}
}

func inEveryVerb(value any) string {
	out := ""
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%p"} {
		out += fmt.Sprintf(verb, value) + "\n"
	}
	return out
}

// printed looks at what every command prints, and at every help text, with the secrets in the environment.
func (s *search) printed(f fixture) {
	s.Helper()
	for _, args := range [][]string{
		{"status"}, {"doctor"}, {"doctor", "--full"}, {"doctor", "--report"}, {"list"}, {"worker", "list"}, {"events", "readers"}, {"version"}, {"grants"}, {"retries", "1"},
		{"list", "--state", "delivered"}, {"list", "--state", "dead"}, {"list", "--state", "parked"}, {"list", "--state", "pending"},
		{"replay", "--all", "--dry-run"}, {"cancel", "--all", "--dry-run"}, {"status", "--timeout", "1ms"}, {"migrate", "--status"}, {"worker", "revoke", "mailer", "--reason", "r"},
	} {
		for _, format := range [][]string{nil, {"--json"}} {
			r := command(s.T, append(args, format...)...)
			s.in(strings.Join(args, " "), r.stdout+r.stderr)
		}
	}
	for id := range 9 {
		r := command(s.T, "show", fmt.Sprint(id+1), "--json")
		s.in("show", r.stdout+r.stderr, "payload", "metadata") // which it is there to show
	}
	for _, cmd := range append(allCommands(), newRoot()) {
		s.in("help of "+cmd.CommandPath(), succeed(s.T, append(strings.Fields(cmd.CommandPath())[1:], "--help")...))
	}
}

// stored looks at every column of every table, but for those whose purpose is content.
func (s *search) stored(f fixture) {
	s.Helper()
	names := f.rows(s.T, "SELECT relname::text FROM pg_class WHERE relnamespace = 'outbox'::regnamespace AND relkind = 'r' ORDER BY 1")
	for table := range strings.SplitSeq(names, "\n") {
		rows := f.rows(s.T, "SELECT (to_jsonb(x) - 'payload' - 'metadata')::text FROM "+pgx.Identifier{"outbox", table}.Sanitize()+" AS x")
		s.in("table "+table, rows)
	}
	for _, table := range []string{"message", "queue", "settlement", "worker", "credential", "credential_scope"} {
		if !slices.Contains(strings.Fields(names), table) || f.rows(s.T, "SELECT 'x' FROM outbox."+table+" LIMIT 1") == "" {
			s.Errorf("there is nothing in %s", table)
		}
	}
	if content := f.rows(s.T, "SELECT convert_from(payload, 'UTF8') || metadata FROM outbox.message WHERE kind = 'post'"); !strings.Contains(content, inPayload) || !strings.Contains(content, inMetadata) {
		s.Errorf("content is %s", content)
	}
}
