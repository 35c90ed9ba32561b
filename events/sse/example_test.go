package sse_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"

	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/events/sse"
	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/outbox"
)

// A server with a stream for each tenant, which ends when it is told to.
func Example() {
	box, err := outbox.New(memdb.New(memdb.Config{}), outbox.Config{}) // a program uses pgxdb.New, sqldb.New or sqlitedb.Open
	if err != nil {
		log.Fatal(err)
	}
	l, err := events.New(box, events.Config{})
	if err != nil {
		log.Fatal(err)
	}
	feed, err := events.NewFeed(l, events.FeedConfig{})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	fed := make(chan error, 1)
	go func() { fed <- feed.Run(ctx) }()

	stream, err := sse.New(feed, func(r *http.Request) (events.Filter, error) {
		tenant, err := tenantOf(r)
		return events.Filter{Scope: outbox.Tenants(tenant)}, err
	}, sse.Config{})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/events", stream)
	server := &http.Server{Addr: "localhost:0", Handler: mux}
	server.RegisterOnShutdown(stream.Close)
	served := make(chan error, 1)
	go func() { served <- server.ListenAndServe() }()

	// At the end, when a signal comes:
	if err := server.Shutdown(context.Background()); err != nil {
		log.Fatal(err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
	stop()
	fmt.Println(<-fed)
	// Output: <nil>
}

// tenantOf stands for the application's own authentication.
func tenantOf(r *http.Request) (string, error) {
	if name, _, ok := r.BasicAuth(); ok && name != "" {
		return name, nil
	}
	return "", sse.ErrUnauthenticated
}
