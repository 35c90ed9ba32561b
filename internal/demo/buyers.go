package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
)

const buyers = 8

// buy posts the orders to the shop, several at a time, and among them one that is declined.
func buy(ctx context.Context, shopURL string, orders int) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	queue := make(chan order)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: buyers}}
	defer client.CloseIdleConnections()
	var group sync.WaitGroup
	for range buyers {
		group.Go(func() {
			for o := range queue {
				if err := post(ctx, client, shopURL, o); err != nil {
					fail(err)
				}
			}
		})
	}
	for id := 1; id <= orders && ctx.Err() == nil; id++ {
		queue <- order{ID: id, Customer: fmt.Sprintf("customer-%d", id%97), Cents: int64(id % creditLimit)}
		if id == orders/2 {
			queue <- order{ID: orders + 1, Customer: "customer-x", Cents: creditLimit + 1}
		}
	}
	close(queue)
	group.Wait()
	return context.Cause(ctx)
}

func post(ctx context.Context, client *http.Client, shopURL string, o order) error {
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, shopURL+"/orders", bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	response.Body.Close()
	want := http.StatusCreated
	if o.Cents > creditLimit {
		want = http.StatusPaymentRequired
	}
	if response.StatusCode != want {
		return fmt.Errorf("the shop answered order %d with %s", o.ID, response.Status)
	}
	return nil
}
