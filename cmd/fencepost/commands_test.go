package main

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/pgtest"
	"github.com/fencepost-go/fencepost/outbox"
)

func TestStatus(t *testing.T) { onEach(t, testStatus) }

func testStatus(t *testing.T, f fixture) {
	f.fill(t)
	name := "status"
	if f.file != nil {
		name = "status_sqlite"
	}
	golden(t, name, succeed(t, "status", "--dsn", f.dsn))

	r := decode[statusReport](t, "status", "--dsn", f.dsn)
	if len(r.Lanes) != 3 || len(r.Parked) != 1 || len(r.Pauses) != 1 || r.Dead.Count != 2 || r.Cancelled.Count != 1 {
		t.Errorf("status: %+v", r)
	}
	if r.Snapshot.Level != levelOK || r.DeadRows.Level != levelOK {
		t.Errorf("levels %q and %q", r.Snapshot.Level, r.DeadRows.Level)
	}
	if r := decode[statusReport](t, "status", "--dsn", f.dsn, "--tenant", "acme"); len(r.Lanes) != 1 || r.Lanes[0].Tenant != "acme" {
		t.Errorf("lanes of one tenant: %+v", r.Lanes)
	}
}

func TestStatusOfNothing(t *testing.T) {
	t.Parallel()
	golden(t, "status_empty", succeed(t, "status", "--dsn", pgtest.New(t)))
}

func TestStatusMarksCappedCountsAndLevels(t *testing.T) {
	t.Parallel()
	stats := outbox.Stats{
		Lanes:  []outbox.LaneCount{{Consumer: "shop", Target: "warehouse", Lane: outbox.Lane{Kind: "charge"}, Due: 9_000, Leased: 1_000}},
		Parked: []outbox.ParkedCount{{Consumer: "shop", Target: "warehouse", Kind: "ship", Parked: outbox.CountCap}},
		Dead:   outbox.CountCap, Expired: outbox.CountCap - 1,
		Health: outbox.Health{OldestSnapshot: snapshotCritical, DeadRows: deadRowsWarning},
	}
	p := page{colors: true}
	newStatusReport("outbox", stats, nil).text(&p)
	for _, want := range []string{
		"9,000+", "1,000+", "dead 10,000+, cancelled 0, expired 9,999", "parked 10,000+",
		"\x1b[31mcritical\x1b[0m  oldest snapshot 15m0s", "\x1b[33mwarning \x1b[0m  dead rows 50,000",
	} {
		if !strings.Contains(p.String(), want) {
			t.Errorf("no %q in\n%s", want, &p)
		}
	}
}

func TestList(t *testing.T) { onEach(t, testList) }

func testList(t *testing.T, f fixture) {
	f.fill(t)
	for _, state := range states {
		golden(t, "list_"+state, succeed(t, "list", "--dsn", f.dsn, "--state", state))
	}
	r := decode[listReport](t, "list", "--dsn", f.dsn, "--kind", "charge")
	if len(r.Messages) != 2 || r.Messages[0].ID != "1" || r.Messages[0].Epoch != "0" || r.Messages[0].SettledAt != nil || r.Next != "" {
		t.Errorf("list: %+v", r)
	}
	for _, flags := range [][]string{{"--consumer", "other"}, {"--target", "other"}, {"--kind", "other"}, {"--tenant", "other"}} {
		if r := decode[listReport](t, append(flags, "list", "--dsn", f.dsn)...); len(r.Messages) != 0 {
			t.Errorf("%v: %+v", flags, r.Messages)
		}
	}
}

// Whatever the order of a list, its pages together are the list.
func TestListPages(t *testing.T) { onEach(t, testListPages) }

func testListPages(t *testing.T, f fixture) {
	f.fill(t)
	for _, state := range states {
		var paged []messageSummary
		for next := ""; ; {
			flags := []string{"list", "--dsn", f.dsn, "--state", state, "--limit", "1"}
			if next != "" {
				flags = append(flags, "--after", next)
			}
			r := decode[listReport](t, flags...)
			paged = append(paged, r.Messages...)
			if next = r.Next; next == "" {
				break
			}
		}
		whole := decode[listReport](t, "list", "--dsn", f.dsn, "--state", state).Messages
		if len(paged) != len(whole) || len(whole) == 0 && state != "expired" {
			t.Fatalf("%s: pages have %d messages, the list has %d", state, len(paged), len(whole))
		}
		for i := range whole {
			if paged[i].ID != whole[i].ID {
				t.Errorf("%s: place %d is %s in the pages and %s in the list", state, i, paged[i].ID, whole[i].ID)
			}
		}
	}
}

func TestShow(t *testing.T) { onEach(t, testShow) }

func testShow(t *testing.T, f fixture) {
	f.fill(t)
	for _, id := range []string{"4", "5", "8", "9"} {
		golden(t, "show_"+id, succeed(t, "show", id, "--dsn", f.dsn))
	}
	r := decode[messageReport](t, "show", "5", "--dsn", f.dsn)
	if r.ID != "5" || r.Key != "order-5\n\u202e" || r.PayloadText != "" || !bytes.Equal(r.PayloadBase64, []byte{0xff, 0, 1}) {
		t.Errorf("show: %+v", r)
	}
	if r := decode[messageReport](t, "show", "9", "--dsn", f.dsn); r.MaxAgeSeconds != 3600 || r.SourcePosition != "3" {
		t.Errorf("show: %+v", r)
	}
	raw := succeed(t, "show", "4", "--dsn", f.dsn, "--json")
	if payload := base64.StdEncoding.EncodeToString([]byte("{\"sku\": 7}\n" + hostile[:12])); !strings.Contains(raw, payload) {
		t.Errorf("no payload %s in %s", payload, raw)
	}
	missing := command(t, "show", "99", "--dsn", f.dsn)
	if missing.code != exitNotDone || missing.stderr != "fencepost: no message has the id 99; was it purged, or is it another --tenant's?\n" {
		t.Errorf("code %d, %s", missing.code, missing.stderr)
	}
	if other := command(t, "show", "1", "--tenant", "acme", "--dsn", f.dsn); other.code != exitNotDone {
		t.Errorf("another tenant's message: code %d, %s", other.code, other.stdout)
	}
}

// Nothing that comes from the database reaches a terminal as a control character, in a table or in JSON.
func TestControlCharactersAreEscaped(t *testing.T) { onEach(t, testControlCharactersAreEscaped) }

func testControlCharactersAreEscaped(t *testing.T, f fixture) {
	f.fill(t)
	for _, args := range [][]string{{"list", "--state", "dead"}, {"show", "4"}, {"show", "5"}, {"status"}} {
		for _, format := range []string{"--json=false", "--json"} {
			out := succeed(t, append(args, format, "--dsn", f.dsn)...)
			if i := strings.IndexFunc(out, isControl); i >= 0 {
				t.Errorf("%v %s prints %q", args, format, out[i:min(len(out), i+10)])
			}
		}
	}
}

func isControl(r rune) bool { return r != '\n' && printable(string(r)) != string(r) }

func TestMigrate(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Empty(t)
	status := func() migrationReport {
		return decode[migrationReport](t, "migrate", "--status", "--dsn", dsn, "--schema", "Box-2")
	}
	if r := status(); r.Version != 0 || len(r.Migrations) == 0 || r.Migrations[0].AppliedAt != nil {
		t.Errorf("before: %+v", r)
	}
	missing := command(t, "status", "--dsn", dsn)
	if missing.code != exitFailed || !strings.Contains(missing.stderr, "fencepost migrate") {
		t.Errorf("status without tables: code %d, %s", missing.code, missing.stderr)
	}
	for range 2 {
		up := command(t, "migrate", "--dsn", dsn, "--schema", "Box-2")
		if up.code != exitOK {
			t.Fatal(up.stderr)
		}
		golden(t, "migrate", up.stdout)
	}
	if r := status(); r.Version != db.NewestSchema || r.Migrations[0].AppliedAt == nil {
		t.Errorf("after up: %+v", r)
	}
	succeed(t, "status", "--dsn", dsn, "--schema", "Box-2")
	if r := command(t, "migrate", "--down", "--to", "0", "--dsn", dsn, "--schema", "Box-2"); r.code != exitUsage {
		t.Errorf("down without --yes: code %d", r.code)
	}
	if r := command(t, "migrate", "--down", "--to", "0", "--yes", "--dsn", dsn, "--schema", "Box-2"); r.code != exitOK {
		t.Errorf("down: %s", r.stderr)
	}
	if r := status(); r.Version != 0 {
		t.Errorf("after down: %+v", r)
	}
	if script := succeed(t, "migrate", "--print", "--schema", "Box-2"); !strings.Contains(script, `CREATE TABLE "Box-2".message`) {
		t.Errorf("the script begins %.200s", script)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	if r := decode[versionReport](t, "version"); r.NewestSchema != db.NewestSchema || r.Version == "" || r.Go == "" {
		t.Errorf("version: %+v", r)
	}
	if text := succeed(t, "version"); !strings.HasPrefix(text, "fencepost ") {
		t.Error(text)
	}
}
