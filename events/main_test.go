package events_test

import (
	"os"
	"testing"

	"github.com/fencepost-go/fencepost/internal/pgtest"
)

func TestMain(m *testing.M) {
	if dsn := os.Getenv(childVariable); dsn != "" {
		os.Exit(childMain(dsn))
	}
	pgtest.Main(m)
}
