package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/fencepost-go/fencepost/events"
	"github.com/fencepost-go/fencepost/outbox"
)

// The effects of an order, who performs them, and where.
const (
	kindCharge = "charge"
	kindMail   = "mail"
	consumer   = "shop"
	target     = "receiver"
)

type order struct {
	ID       int    `json:"id"`
	Customer string `json:"customer"`
	Cents    int64  `json:"cents"`
}

// creditLimit is what nobody may spend in one order.
const creditLimit = 100_000

var errDeclined = errors.New("above the credit limit")

// A shop is the service that has effects.
type shop struct {
	*service
	on  connection
	box *outbox.Box
	log *events.Log
}

func startShop(ctx context.Context, on connection, box *outbox.Box, log *events.Log) (*shop, error) {
	const tables = `CREATE TABLE shop_orders (id bigint PRIMARY KEY, customer text NOT NULL, cents bigint NOT NULL)`
	if err := on.execute(ctx, tables); err != nil {
		return nil, err
	}
	s := &shop{on: on, box: box, log: log}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", s.postOrder)
	var err error
	s.service, err = serve(mux)
	return s, err
}

func (s *shop) postOrder(w http.ResponseWriter, r *http.Request) {
	var o order
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	switch err := s.place(r.Context(), o); {
	case errors.Is(err, errDeclined):
		http.Error(w, err.Error(), http.StatusPaymentRequired)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		w.WriteHeader(http.StatusCreated)
	}
}

// place writes the order and the fact that it was placed in one transaction, and with it what follows: all exist or none does.
func (s *shop) place(ctx context.Context, o order) error {
	payload, err := json.Marshal(o)
	if err != nil {
		return err
	}
	placed := events.Event{ID: fmt.Sprintf("order-%d", o.ID), Stream: o.Customer, Type: orderPlaced, Payload: payload}
	return s.on.inTx(ctx, s.box, func(tx transaction) error {
		const insert = `INSERT INTO shop_orders (id, customer, cents) VALUES ($1, $2, $3)`
		if err := tx.execute(ctx, insert, o.ID, o.Customer, o.Cents); err != nil {
			return err
		}
		if _, err := s.log.Append(ctx, tx.own, placed); err != nil {
			return err
		}
		if o.Cents > creditLimit {
			return errDeclined // too late on purpose: what was written above is rolled back, effects included
		}
		return nil
	})
}

func (o order) effects() ([]outbox.Effect, error) {
	payload, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	var effects []outbox.Effect
	for _, kind := range []string{kindCharge, kindMail} {
		effects = append(effects, outbox.Effect{
			Consumer: consumer,
			Target:   target,
			Kind:     kind,
			Key:      key(o.ID, kind),
			Payload:  payload,
		})
	}
	return effects, nil
}

// key identifies an effect, here and at the receiver.
func key(order int, kind string) string { return fmt.Sprintf("order-%d/%s", order, kind) }
