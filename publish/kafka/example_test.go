package kafkapub_test

import (
	"context"
	"fmt"
	"log"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/publish/kafka"
)

// Messages of one customer are one partition's, in order.
func ExamplePublisher() {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders")) // a fake; a program has brokers
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...)) // a program keeps one client
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	publisher, err := kafkapub.New(client, kafkapub.Config{Topic: "orders"})
	if err != nil {
		log.Fatal(err)
	}
	for i, kind := range []string{"placed", "paid"} {
		m := outbox.Message{ID: int64(i), Consumer: "shop", Target: "events", Kind: kind, Key: kind + "/17", OrderKey: "customer/3", Payload: []byte(`{"order": 17}`)}
		result, err := publisher.Handler().DoResult(context.Background(), m) // a sender does this: sender.Handlers{"paid": publisher.Handler()}
		fmt.Println(result, err)
	}
	// Output:
	// topic=orders partition=0 offset=0 <nil>
	// topic=orders partition=0 offset=1 <nil>
}
