package db

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Translate puts the sentinel before a server's error that has one; drivers return every error through it. It knows a server's error by its
// SQLState method, which the errors of pgx and of lib/pq both have.
func Translate(err error) error {
	var failure interface{ SQLState() string }
	if err == nil || !errors.As(err, &failure) {
		return err
	}
	var sentinel error
	switch failure.SQLState() {
	case "40001", "40P01":
		sentinel = ErrRetry
	case "42P01", "3F000":
		sentinel = ErrNoSchema
	default:
		return err
	}
	return fmt.Errorf("%w: %w", sentinel, err)
}

// repeats bounds how often a transaction of a store's own runs when the server refuses it. At READ COMMITTED only a deadlock is left, and the
// lock order of the statements makes that rare.
const repeats = 5

// Repeat runs a transaction of a store's own until it succeeds, fails otherwise than by ErrRetry, was refused five times, or ctx ends.
func Repeat(ctx context.Context, run func() error) error {
	for n := 1; ; n++ {
		err := Translate(run())
		if n == repeats || !errors.Is(err, ErrRetry) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(rand.N(time.Millisecond << n)):
		}
	}
}
