package dbtest

import (
	"context"
	"errors"

	"github.com/fencepost-go/fencepost/db"
)

var wakeTests = []test{
	{name: "reaches every listener", run: wakeReaches},
	{name: "nobody need listen", run: wakeAlone},
}

// A store without a connection to listen on says so; else hints of either handle arrive until the context ends.
func wakeReaches(f *fixture) {
	ctx, stop := context.WithCancel(f.Context())
	defer stop()
	woken, done := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		done <- f.Second.Listen(ctx, func() {
			select {
			case woken <- struct{}{}:
			default:
			}
		})
	}()
	hears := func(what string) bool {
		select {
		case <-woken:
			return true
		case err := <-done:
			if !errors.Is(err, db.ErrNoListener) {
				f.Errorf("%s: listening ended with %v", what, err)
			}
			return false
		}
	}
	if !hears("once connected") {
		return
	}
	if err := f.Store.Wake(f.Context()); err != nil {
		f.Fatal(err)
	}
	hears("a hint")
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		f.Errorf("at the end of its context: %v", err)
	}
}

func wakeAlone(f *fixture) {
	if err := f.Store.Wake(f.Context()); err != nil {
		f.Error(err)
	}
}
