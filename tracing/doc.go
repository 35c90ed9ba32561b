// Package tracing carries traces across an outbox, with OpenTelemetry: New gives an outbox.Observer for outbox.Config.
//
// At an enqueue the span of the caller's context, and its baggage, are written into the reserved metadata of the effects (W3C traceparent,
// tracestate and baggage; outbox.Observer.Propagate has the bounds). Each attempt of a handler is a span of its own, which links to the
// producer's span instead of continuing it: hours may lie between, and attempts are many. The handler's context carries that span and the
// producer's baggage.
//
// Attributes are numbers and the names of consumer, target, kind and outcome. No tenant, key, payload, metadata or error text is recorded:
// an outcome comes here before outbox.Config.Redact has seen it.
package tracing
