package db

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Translate puts the sentinel before a server's error that has one; drivers return every error of their statements through it. It knows a
// server's error by its SQLState method, which the errors of pgx and of lib/pq both have.
func Translate(err error) error {
	switch sqlState(err) {
	case "40001", "40P01":
		return fmt.Errorf("%w: %w", ErrRetry, err)
	case "57014", "55P03", "25P04":
		return fmt.Errorf("%w: %w", ErrTimeout, err)
	case "42P01", "3F000":
		return fmt.Errorf("%w: %w", ErrNoSchema, err)
	case "42501", "28000", "28P01", "3D000":
		return fmt.Errorf("%w: %w", ErrDenied, err)
	default:
		return err
	}
}

// TranslateCaller is Translate for the error of a caller's function, which may come from statements of its own: a table that those miss is
// none of ours. What is translated already stays as it is.
func TranslateCaller(err error) error {
	if state := sqlState(err); errors.Is(err, ErrRetry) || state != "40001" && state != "40P01" {
		return err
	}
	return fmt.Errorf("%w: %w", ErrRetry, err)
}

// sqlState is the code of a server's error, "" for any other.
func sqlState(err error) string {
	var failure interface{ SQLState() string }
	if err == nil || !errors.As(err, &failure) {
		return ""
	}
	return failure.SQLState()
}

// CheckEncoding refuses a connection whose client_encoding turns text into other characters.
func CheckEncoding(client string) error {
	if client == "UTF8" {
		return nil
	}
	return fmt.Errorf("%w but %s: put client_encoding=UTF8 into the connection string, or ALTER ROLE … RESET client_encoding", ErrEncoding, client)
}

// Vanished says that the server refused to run a prepared statement, which it no longer has (DISCARD ALL, DEALLOCATE ALL) or whose result has
// another type since a migration.
func Vanished(err error) bool {
	state := sqlState(err)
	return state == "26000" || state == "0A000"
}

// repeats bounds how often a transaction of a store's own runs when the server refuses it. At READ COMMITTED only a deadlock is left, and the
// lock order of the statements makes that rare.
const repeats = 5

// Repeat runs a transaction of a store's own until it succeeds, fails otherwise than by ErrRetry or a vanished statement, was refused five
// times, or ctx ends.
func Repeat[T any](ctx context.Context, run func() (T, error)) (T, error) {
	for n := 1; ; n++ {
		result, err := run()
		if err == nil {
			return result, nil
		}
		err = Translate(err)
		if n < repeats && (errors.Is(err, ErrRetry) || Vanished(err)) {
			select {
			case <-ctx.Done():
			case <-time.After(rand.N(time.Millisecond << n)):
				continue
			}
		}
		var none T
		return none, err
	}
}
