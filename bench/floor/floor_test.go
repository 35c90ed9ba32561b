package floor

import (
	"strings"
	"testing"
)

func TestScript(t *testing.T) {
	script, err := Script()
	if err != nil {
		t.Fatal(err)
	}
	for _, absent := range []string{"sqlc.", "ARRAY[]"} {
		if strings.Contains(script, absent) {
			t.Errorf("an argument has no value: %s", script)
		}
	}
	for _, want := range []string{"\nBEGIN;\n", "INSERT INTO outbox.queue", "ARRAY[:payload::bytea]::bytea[]", ";\nCOMMIT;\n"} {
		if !strings.Contains(script, want) {
			t.Errorf("no %q in %s", want, script)
		}
	}
}
