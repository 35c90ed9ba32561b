package webhook_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/outbox"
	"github.com/fencepost-go/fencepost/webhook"
)

// patience is how long a test waits for what must come.
const patience = time.Minute

func TestMain(m *testing.M) { pgtest.Main(m) }

func parse(t testing.TB, text string) webhook.Secret {
	t.Helper()
	secret, err := webhook.ParseSecret(text)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// refused says that err is outbox.ErrInvalid of the fields.
func refused(t *testing.T, row string, err error, fields ...string) {
	t.Helper()
	if !errors.Is(err, outbox.ErrInvalid) {
		t.Errorf("%s: %v", row, err)
		return
	}
	for _, field := range fields {
		if !strings.Contains(err.Error(), field+" ") {
			t.Errorf("%s: %v, want a problem of %s", row, err, field)
		}
	}
}
