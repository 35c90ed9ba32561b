package tracing_test

import (
	"context"
	"fmt"
	"log"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/sender"
	"github.com/fencepost-go/fencepost/tracing"
)

// The span of the handler links to the span in which the effect was enqueued.
func Example() {
	spans := tracetest.NewSpanRecorder() // a program exports them
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	store := memdb.New(memdb.Config{}) // a program uses pgxdb.New or sqldb.New
	box, err := outbox.New(store, outbox.Config{Observer: tracing.New(provider)})
	if err != nil {
		log.Fatal(err)
	}

	ctx, span := provider.Tracer("shop").Start(context.Background(), "place order")
	err = memdb.InTx(ctx, store, box, func(tx *memdb.Tx) error {
		_, err := box.Enqueue(ctx, tx, outbox.Effect{Consumer: "wallets", Target: "ledger", Kind: "charge", Key: "charge/1"})
		return err
	})
	span.End()
	if err != nil {
		log.Fatal(err)
	}

	wallets, err := box.Consumer("wallets", "ledger", outbox.Policy{})
	if err != nil {
		log.Fatal(err)
	}
	s, err := sender.New(box, wallets, sender.Config{Handlers: sender.Handlers{
		"charge": {Do: func(context.Context, outbox.Message) error { return nil }},
	}})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := s.RunOnce(context.Background()); err != nil {
		log.Fatal(err)
	}
	placed, performed := spans.Ended()[0], spans.Ended()[1]
	fmt.Println(performed.Name(), "links to", placed.Name(), performed.Links()[0].SpanContext.SpanID() == placed.SpanContext().SpanID())
	// Output: perform charge links to place order true
}
