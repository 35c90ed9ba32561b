package natspub_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/publish/nats"
)

// Two deliveries of one message, as after a crash between the acknowledgement and the settle, are one message of the stream.
func ExamplePublisher() {
	ctx := context.Background()
	broker, stopBroker := runServer()
	defer stopBroker()
	conn, err := nats.Connect(broker, nats.MaxReconnects(-1)) // a program keeps one connection
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}}); err != nil {
		log.Fatal(err)
	}

	publisher, err := natspub.New(js, natspub.Config{
		SubjectOf: func(m outbox.Message) (string, error) { return "orders." + m.Kind, nil },
	})
	if err != nil {
		log.Fatal(err)
	}
	paid := outbox.Message{Consumer: "shop", Target: "events", Kind: "paid", Key: "order/17", Payload: []byte(`{"order": 17}`)}
	for range 2 {
		result, err := publisher.Handler().DoResult(ctx, paid) // a sender does this: sender.Handlers{"paid": publisher.Handler()}
		fmt.Println(result, err)
	}
	// Output:
	// stream=ORDERS sequence=1 <nil>
	// stream=ORDERS sequence=1 duplicate=true <nil>
}

// runServer is a server for the example; a program connects to its own.
func runServer() (url string, stopServer func()) {
	dir, err := os.MkdirTemp("", "natspub")
	if err != nil {
		log.Fatal(err)
	}
	s, err := server.NewServer(options(dir))
	if err != nil {
		log.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(patience) {
		log.Fatal("the server does not start")
	}
	return s.ClientURL(), func() {
		stop(s)
		os.RemoveAll(dir)
	}
}
