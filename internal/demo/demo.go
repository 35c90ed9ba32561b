// Package demo is a small shop that does what fencepost is for while everything breaks that can, and then checks the result
// without trusting fencepost.
//
// The shop (shop.go) is an HTTP service that writes an order and the fact that it was placed in one transaction, and with them the effects that
// follow from that, a charge and a mail. Its books (books.go) count each order once, as a handler of a bus. Workers
// (worker.go), processes of their own, perform the effects: they call the receiver (receiver.go), another HTTP service, which keeps a
// ledger and does nothing twice. The story (story.go) places orders and lets things go wrong. In the end the shop's orders are compared
// with the receiver's ledger, the books and the stream of events (report.go).
package demo

import (
	"context"
	"errors"
	"io"
	"time"
)

// MinEffects is the smallest number of effects that leaves room for everything to go wrong.
const MinEffects = 100

// Config of a demo.
type Config struct {
	// DSN is a PostgreSQL server whose role may create databases. The demo makes one of its own there, and drops it in the end. Without a
	// server it makes a file of SQLite.
	DSN string
	// Effects to perform, at least MinEffects; two for each order.
	Effects int
	// Seed decides which calls fail.
	Seed uint64
	// Worker is the command that calls Work.
	Worker []string
	// Progress is told what happens. On a Terminal its last line counts.
	Progress io.Writer
	Terminal bool
}

// Run runs the demo. It leaves nothing behind, also when ctx ends it.
func Run(ctx context.Context, config Config) (report Report, err error) {
	start := time.Now()
	database, err := createDatabase(ctx, config.DSN)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, database.drop()) }()
	on, err := database.open(ctx)
	if err != nil {
		return Report{}, err
	}
	defer on.close()
	box, err := newBox(on)
	if err != nil {
		return Report{}, err
	}
	orders := (config.Effects + 1) / 2
	receiver, err := startReceiver(newFaults(config.Seed, orders))
	if err != nil {
		return Report{}, err
	}
	defer receiver.stop()
	log, err := newLog(box)
	if err != nil {
		return Report{}, err
	}
	shop, err := startShop(ctx, on, box, log)
	if err != nil {
		return Report{}, err
	}
	defer shop.stop()
	books, err := openBooks(ctx, on, log)
	if err != nil {
		return Report{}, err
	}
	crew := &crew{command: config.Worker, database: database, receiver: receiver.url}
	defer crew.kill()
	s := &story{
		box: box, log: log, shop: shop, books: books, receiver: receiver, crew: crew, orders: orders,
		tell: newNarrator(config.Progress, config.Terminal, start),
	}
	if err := s.play(ctx); err != nil {
		return Report{}, err
	}
	return s.report(ctx, config.Seed, time.Since(start))
}
