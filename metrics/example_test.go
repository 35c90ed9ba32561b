package metrics_test

import (
	"context"
	"fmt"
	"log"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fencepost-go/fencepost/internal/memdb"
	"github.com/fencepost-go/fencepost/metrics"
	"github.com/fencepost-go/fencepost/outbox"
)

// A service registers with prometheus.DefaultRegisterer and serves promhttp.Handler.
func Example() {
	registry := prometheus.NewRegistry()
	observer, err := metrics.New(registry, metrics.Config{
		Consumers: []metrics.Consumer{{Name: "wallets", Target: "ledger"}},
		Kinds:     []string{"charge"},
	})
	if err != nil {
		log.Fatal(err)
	}
	store := memdb.New(memdb.Config{}) // a program uses pgxdb.New or sqldb.New
	box, err := outbox.New(store, outbox.Config{Observer: observer})
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	err = memdb.InTx(ctx, store, box, func(tx *memdb.Tx) error {
		_, err := box.Enqueue(ctx, tx, outbox.Effect{Consumer: "wallets", Target: "ledger", Kind: "charge", Key: "charge/1"})
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		log.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "fencepost_enqueued_total" {
			fmt.Println(family.GetName(), family.Metric[0].GetCounter().GetValue())
		}
	}
	// Output: fencepost_enqueued_total 1
}
