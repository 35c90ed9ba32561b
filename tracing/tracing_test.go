package tracing

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/sender"
)

// A bench is a box in memory whose spans are recorded.
type bench struct {
	*testing.T
	spans    *tracetest.SpanRecorder
	provider *sdktrace.TracerProvider
	box      *outbox.Box
	wallets  *outbox.Consumer
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, spans: tracetest.NewSpanRecorder()}
	b.provider = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(b.spans))
	var err error
	b.box, err = outbox.New(memdb.New(memdb.Config{}), outbox.Config{Observer: New(b.provider), Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if b.wallets, err = b.box.Consumer("wallets", "ledger", outbox.Policy{}); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) enqueue(ctx context.Context, keys ...string) {
	b.Helper()
	err := memdb.InTx(ctx, b.box.Store().(*memdb.Store), b.box, func(tx *memdb.Tx) error {
		for _, key := range keys {
			if _, err := b.box.Enqueue(ctx, tx, outbox.Effect{Consumer: "wallets", Target: "ledger", Kind: "charge", Key: key}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) perform(ctx context.Context, do func(context.Context, outbox.Message) error) []sdktrace.ReadOnlySpan {
	b.Helper()
	s, err := sender.New(b.box, b.wallets, sender.Config{Handlers: sender.Handlers{"charge": {Do: do}}})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := s.RunOnce(ctx); err != nil {
		b.Fatal(err)
	}
	return slices.DeleteFunc(b.spans.Ended(), func(s sdktrace.ReadOnlySpan) bool { return s.SpanKind() != trace.SpanKindConsumer })
}

// The span of a handler begins a trace of its own, linked to the span under which the effect was enqueued, whatever span Run was called under.
func TestHandlerLinksToTheProducer(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	member, err := baggage.NewMember("plan", "gold")
	if err != nil {
		t.Fatal(err)
	}
	bag, err := baggage.New(member)
	if err != nil {
		t.Fatal(err)
	}
	ctx, producer := b.provider.Tracer("shop").Start(baggage.ContextWithBaggage(t.Context(), bag), "place order")
	b.enqueue(ctx, "a")
	producer.End()

	run, whole := b.provider.Tracer("shop").Start(t.Context(), "main")
	defer whole.End()
	var seen trace.SpanContext
	spans := b.perform(run, func(ctx context.Context, m outbox.Message) error {
		seen = trace.SpanContextFromContext(ctx)
		if plan := baggage.FromContext(ctx).Member("plan").Value(); plan != "gold" {
			t.Errorf("baggage %q", plan)
		}
		return nil
	})
	if len(spans) != 1 {
		t.Fatalf("spans %v", spans)
	}
	span := spans[0]
	if span.SpanContext().SpanID() != seen.SpanID() || span.Name() != "perform charge" {
		t.Errorf("the handler ran in %v, not in %q %v", seen, span.Name(), span.SpanContext())
	}
	links := span.Links()
	if len(links) != 1 || links[0].SpanContext.SpanID() != producer.SpanContext().SpanID() || links[0].SpanContext.TraceID() != producer.SpanContext().TraceID() {
		t.Errorf("links %+v", links)
	}
	if span.Parent().IsValid() || span.SpanContext().TraceID() == producer.SpanContext().TraceID() || span.SpanContext().TraceID() == whole.SpanContext().TraceID() {
		t.Errorf("the span continues another: parent %v", span.Parent())
	}
	want := []attribute.KeyValue{
		ConsumerKey.String("wallets"), TargetKey.String("ledger"), KindKey.String("charge"), MessageIDKey.Int64(1), AttemptKey.Int(1),
		EpochKey.Int64(1), ReplaysKey.Int(0), OutcomeKey.String("delivered"),
	}
	if got := span.Attributes(); !slices.Equal(got, want) {
		t.Errorf("attributes %v", got)
	}
	if span.Status().Code != codes.Unset {
		t.Errorf("status %v", span.Status())
	}
}

// Each way to end is the span's outcome, and nothing of the error is told.
func TestOutcomesOfSpans(t *testing.T) {
	t.Parallel()
	secret := errors.New("secret")
	endings := map[string]struct {
		err  error
		want codes.Code
	}{
		"delivered":   {nil, codes.Unset},
		"failed":      {secret, codes.Error},
		"permanent":   {outbox.Permanent(secret), codes.Error},
		"moot":        {outbox.Moot(secret), codes.Unset},
		"unknown":     {outbox.Unknown(secret), codes.Error},
		"unavailable": {outbox.Unavailable(secret), codes.Error},
		"snoozed":     {outbox.Snooze(1), codes.Unset},
	}
	b := newBench(t)
	for outcome := range endings {
		b.enqueue(t.Context(), outcome)
	}
	spans := b.perform(t.Context(), func(_ context.Context, m outbox.Message) error { return endings[m.Key].err })
	ended := map[string]codes.Code{}
	for _, span := range spans {
		attributes := attribute.NewSet(span.Attributes()...)
		outcome, _ := attributes.Value(OutcomeKey)
		ended[outcome.AsString()] = span.Status().Code
		if strings.Contains(span.Status().Description, "secret") || len(span.Events()) > 0 || len(span.Links()) > 0 {
			t.Errorf("%s: status %+v, events %v, links %v", outcome.AsString(), span.Status(), span.Events(), span.Links())
		}
	}
	want := map[string]codes.Code{}
	for outcome, ending := range endings {
		want[outcome] = ending.want
	}
	if !maps.Equal(ended, want) {
		t.Errorf("ended %v, want %v", ended, want)
	}
}

// A handler that panics ends its span too.
func TestPanicsEndTheSpan(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.enqueue(t.Context(), "a")
	spans := b.perform(t.Context(), func(context.Context, outbox.Message) error { panic("out of order") })
	if len(spans) != 1 || spans[0].Status().Code != codes.Error {
		t.Errorf("spans %v", spans)
	}
}

// A span that was not begun here is not ended here.
func TestOnlyItsOwnSpanIsEnded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx, span := b.provider.Tracer("shop").Start(t.Context(), "main")
	New(b.provider).HandlerDone(ctx, outbox.Message{}, outbox.Delivered(), 0)
	if !span.IsRecording() {
		t.Error("ended the caller's span")
	}
}

func TestOriginReplacesTheCallersOwn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx, span := b.provider.Tracer("shop").Start(t.Context(), "loop")
	defer span.End()
	if got := trace.SpanContextFromContext(Origin(ctx, outbox.Message{})); got.IsValid() {
		t.Errorf("of a message without a trace: %v", got)
	}
	const producer = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	got := trace.SpanContextFromContext(Origin(ctx, outbox.Message{Metadata: map[string]string{"traceparent": producer, "tracestate": "x=1"}}))
	if got.SpanID().String() != "b7ad6b7169203331" || !got.IsRemote() || !got.IsSampled() || got.TraceState().Get("x") != "1" {
		t.Errorf("origin %+v", got)
	}
}
