//go:build unix

package sidecar

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fencepost-go/fencepost/outbox"
)

func TestEnvironment(t *testing.T) {
	t.Parallel()
	m := message()
	m.Metadata = map[string]string{"trace": "a\nb", "<&>": "\x01é"}
	environ := Inherit([]string{"PATH=/bin:/usr/bin", "FENCEPOST_DSN=postgres://u:pw@h/d", "FENCEPOST_ID=99", "LANG=C"}, nil, nil)
	c := newCommand(t, Config{Args: []string{"sh", "-c", "unset PWD OLDPWD SHLVL _; FENCEPOST_MARK=${#FENCEPOST_MARK}; env | sort"}, Environ: environ, KeepOutput: true})
	got, err := c.Do(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"FENCEPOST_ATTEMPT=2", "FENCEPOST_CONSUMER=shop", "FENCEPOST_EPOCH=3", "FENCEPOST_ID=17", "FENCEPOST_KEY=order-1", "FENCEPOST_KIND=charge",
		"FENCEPOST_LEASED_UNTIL=2026-01-31T09:15:00.0000005Z", "FENCEPOST_MARK=26", `FENCEPOST_METADATA={"<&>":"\u0001é","trace":"a\nb"}`,
		"FENCEPOST_ORDER_KEY=customer-7", "FENCEPOST_TARGET=bank", "FENCEPOST_TENANT=acme", "FENCEPOST_UNSURE=0", "LANG=C", "PATH=/bin:/usr/bin",
	}
	if lines := strings.Split(got, "\n"); !slices.Equal(lines, want) {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

func TestMetadataFits(t *testing.T) {
	t.Parallel()
	m := message()
	m.Unsure = true
	m.Metadata = map[string]string{"a": strings.Repeat("\x01", 8<<10), "traceparent": strings.Repeat("\x02", 2<<10)}
	environ, err := Environ(m)
	if err != nil {
		t.Fatal(err)
	}
	var metadata map[string]string
	text := strings.TrimPrefix(environ[len(environ)-1], "FENCEPOST_METADATA=")
	if err := json.Unmarshal([]byte(text), &metadata); err != nil || !maps.Equal(metadata, m.Metadata) {
		t.Error(err)
	}
	if !slices.Contains(environ, "FENCEPOST_UNSURE=1") {
		t.Error(environ)
	}
	if environ, err := Environ(outbox.Message{}); err != nil || environ[len(environ)-1] != "FENCEPOST_METADATA={}" {
		t.Error(environ, err)
	}
}

// What only a row holds that was written past the library is its own trouble, and the text of it is not told.
func TestWhatNoVariableHolds(t *testing.T) {
	t.Parallel()
	for _, change := range []func(*outbox.Message){
		func(m *outbox.Message) { m.Key = "s3cr3t\x00" },
		func(m *outbox.Message) { m.Tenant = strings.Repeat("s3cr3t", 30_000) },
		func(m *outbox.Message) { m.Metadata = map[string]string{"a": strings.Repeat("s3cr3t", 30_000)} },
	} {
		m := message()
		change(&m)
		_, err := shell(t, "exit 0").Do(t.Context(), m)
		if outcome := outbox.OutcomeOf(err); outcome.Verdict() != outbox.VerdictPermanent || strings.Contains(outcome.Reason(), "s3cr3t") {
			t.Errorf("%v, %.100s", outcome.Verdict(), outcome.Reason())
		}
	}
}

func TestInherit(t *testing.T) {
	t.Parallel()
	environ := []string{
		"PATH=/bin", "FENCEPOST_DSN=x", "FENCEPOST_ANYTHING=x", "PGPASSWORD=pw", "PGHOST=h", "DATABASE_URL=postgres://other", "SHOP_DB=postgres://u:s3cr3t@h/d",
		"COPY=at postgres://u:s3cr3t@h/d!", "EMPTY=", "PWD=/",
	}
	got := Inherit(environ, []string{"postgres://u:s3cr3t@h/d", ""}, []string{"PGHOST", "FENCEPOST_ANYTHING", "SHOP_DB"})
	if want := []string{"PATH=/bin", "PGHOST=h", "SHOP_DB=postgres://u:s3cr3t@h/d", "EMPTY=", "PWD=/"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
