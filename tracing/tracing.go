package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/fencepost-go/fencepost/outbox"
)

// Attributes of a handler's span.
const (
	ConsumerKey  = attribute.Key("fencepost.consumer")
	TargetKey    = attribute.Key("fencepost.target")
	KindKey      = attribute.Key("fencepost.kind")
	MessageIDKey = attribute.Key("fencepost.message_id")
	AttemptKey   = attribute.Key("fencepost.attempt")
	EpochKey     = attribute.Key("fencepost.epoch")
	ReplaysKey   = attribute.Key("fencepost.replays")
	// OutcomeKey has the word of the outbox.Verdict; it is set when the handler is done.
	OutcomeKey = attribute.Key("fencepost.outcome")
)

// spanKey is where a handler's context has its span, whatever other observers add to it.
type spanKey struct{}

const scope = "github.com/fencepost-go/fencepost/tracing"

// The reserved names of the metadata are those of these two.
var propagator = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})

// New makes an observer whose spans come from the provider; nil is otel.GetTracerProvider().
func New(provider trace.TracerProvider) *outbox.Observer {
	if provider == nil {
		provider = otel.GetTracerProvider()
	}
	tracer := provider.Tracer(scope)
	return &outbox.Observer{
		Propagate: func(ctx context.Context) map[string]string {
			carrier := propagation.MapCarrier{}
			propagator.Inject(ctx, carrier)
			return carrier
		},
		HandlerStarting: func(ctx context.Context, m outbox.Message) context.Context {
			origin := Origin(ctx, m)
			options := []trace.SpanStartOption{trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
				ConsumerKey.String(m.Consumer), TargetKey.String(m.Target), KindKey.String(m.Kind), MessageIDKey.Int64(m.ID),
				AttemptKey.Int(m.Attempt), EpochKey.Int64(m.Epoch), ReplaysKey.Int(m.Replays),
			)}
			if producer := trace.SpanContextFromContext(origin); producer.IsValid() {
				options = append(options, trace.WithLinks(trace.Link{SpanContext: producer}))
			}
			ctx, span := tracer.Start(origin, "perform "+m.Kind, options...)
			return context.WithValue(ctx, spanKey{}, span)
		},
		HandlerDone: func(ctx context.Context, _ outbox.Message, outcome outbox.Outcome, _ time.Duration) {
			span, ok := ctx.Value(spanKey{}).(trace.Span)
			if !ok {
				return
			}
			span.SetAttributes(OutcomeKey.String(outcome.Verdict().String()))
			switch outcome.Verdict() {
			case outbox.VerdictFailed, outbox.VerdictPermanent, outbox.VerdictUnknown, outbox.VerdictUnavailable:
				span.SetStatus(codes.Error, outcome.Verdict().String())
			}
			span.End()
		},
	}
}

// Origin is ctx with the span (a remote one) and the baggage of the message's producer in place of its own; without a span or baggage where
// the producer had none. It is for those who run a loop of their own.
func Origin(ctx context.Context, m outbox.Message) context.Context {
	ctx = trace.ContextWithSpanContext(baggage.ContextWithoutBaggage(ctx), trace.SpanContext{})
	return propagator.Extract(ctx, propagation.MapCarrier(m.Metadata))
}
