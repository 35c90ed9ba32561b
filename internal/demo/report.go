package demo

import (
	"context"
	"time"
)

// A Report is what came of a demo.
type Report struct {
	Seed       uint64  `json:"seed"`
	Orders     int     `json:"orders"`
	Enqueued   int     `json:"enqueued"`
	Delivered  int     `json:"delivered"`
	Retried    int     `json:"retried"`
	Dead       int     `json:"dead"`
	Replayed   int     `json:"replayed"`
	Duplicates int     `json:"duplicates"` // calls for what the receiver had performed already
	Held       int     `json:"held"`       // leases of the killed worker: no more duplicates than these
	Lost       int     `json:"lost"`       // effects of an order that the receiver has not
	Unexpected int     `json:"unexpected"` // effects that the receiver has without an order
	Events     int     `json:"events"`     // orders in the stream of events, each once
	Booked     int     `json:"booked"`     // orders that the books counted
	Seconds    float64 `json:"seconds"`
}

// OK says whether every promise was kept.
func (r Report) OK() bool {
	return r.Lost == 0 && r.Unexpected == 0 && r.Duplicates <= r.Held && r.Events == r.Orders && r.Booked == r.Orders
}

// report compares the shop's orders with the receiver's ledger. Neither side knows of fencepost.
func (s *story) report(ctx context.Context, seed uint64, took time.Duration) (Report, error) {
	orders, err := s.shop.on.ids(ctx, "SELECT id FROM shop_orders")
	if err != nil {
		return Report{}, err
	}
	stream, err := s.readStream(ctx, len(orders))
	if err != nil {
		return Report{}, err
	}
	booked, err := s.shop.on.ids(ctx, "SELECT orders FROM shop_turnover")
	if err != nil {
		return Report{}, err
	}
	s.receiver.mu.Lock()
	defer s.receiver.mu.Unlock()
	r := Report{
		Seed: seed, Orders: len(orders), Enqueued: 2 * len(orders), Retried: s.receiver.failures, Dead: s.dead, Replayed: s.back,
		Duplicates: s.receiver.duplicates, Held: s.held, Seconds: took.Seconds(),
	}
	for _, n := range booked {
		r.Booked += n
	}
	for _, id := range orders {
		if stream[id] == 1 {
			r.Events++
		}
		for _, kind := range []string{kindCharge, kindMail} {
			if s.receiver.ledger[key(id, kind)] {
				r.Delivered++
			} else {
				r.Lost++
			}
		}
	}
	r.Unexpected = len(s.receiver.ledger) - r.Delivered + len(stream) - r.Events
	return r, nil
}
