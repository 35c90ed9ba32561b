package badinput

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"strings"
	"time"

	"github.com/fencepost-go/fencepost/outbox"
)

// refuseEffects is what no effect may be: B1, B2, B3, B7, B10, B14, B20. Each refusal leaves the caller's transaction usable.
// Shows: S1.13
func refuseEffects(f *fixture) {
	long := func(n int) string { return strings.Repeat("x", n) }
	entries := func(n, size int) map[string]string {
		m := map[string]string{}
		for i := range n {
			m[fmt.Sprint(i)] = long(size)
		}
		return m
	}
	for row, refuse := range map[string]struct {
		field  string
		change func(*outbox.Effect)
	}{
		"B1 no consumer":           {"Consumer", func(e *outbox.Effect) { e.Consumer = "" }},
		"B1 blank target":          {"Target", func(e *outbox.Effect) { e.Target = " \t\n" }},
		"B1 blank kind":            {"Kind", func(e *outbox.Effect) { e.Kind = "\u00a0" }},
		"B1 blank key":             {"Key", func(e *outbox.Effect) { e.Key = "\u2003\v" }},
		"B1 blank tenant":          {"Tenant", func(e *outbox.Effect) { e.Tenant = " " }},
		"B1 blank order key":       {"OrderKey", func(e *outbox.Effect) { e.OrderKey = "\n" }},
		"B1 wildcard tenant":       {"Tenant", func(e *outbox.Effect) { e.Tenant = "*" }},
		"B1 wildcard consumer":     {"Consumer", func(e *outbox.Effect) { e.Consumer = "*" }},
		"B2 long key":              {"Key", func(e *outbox.Effect) { e.Key = long(256) }},
		"B2 key of long runes":     {"Key", func(e *outbox.Effect) { e.Key = strings.Repeat("\U0001F600", 64) }},
		"B2 huge key":              {"Key", func(e *outbox.Effect) { e.Key = long(10_000) }},
		"B2 long tenant":           {"Tenant", func(e *outbox.Effect) { e.Tenant = long(129) }},
		"B2 long consumer":         {"Consumer", func(e *outbox.Effect) { e.Consumer = long(129) }},
		"B2 long target":           {"Target", func(e *outbox.Effect) { e.Target = long(129) }},
		"B2 long kind":             {"Kind", func(e *outbox.Effect) { e.Kind = long(129) }},
		"B2 long order key":        {"OrderKey", func(e *outbox.Effect) { e.OrderKey = long(129) }},
		"B2 long source event id":  {"SourceEventID", func(e *outbox.Effect) { e.SourceEventID = long(65) }},
		"B3 NUL in the key":        {"Key", func(e *outbox.Effect) { e.Key = "a\x00b" }},
		"B3 NUL in the tenant":     {"Tenant", func(e *outbox.Effect) { e.Tenant = "a\x00" }},
		"B3 bad UTF-8":             {"Key", func(e *outbox.Effect) { e.Key = "a\xff" }},
		"B3 lone surrogate":        {"OrderKey", func(e *outbox.Effect) { e.OrderKey = "\xed\xa0\x80" }},
		"B3 NUL in metadata":       {`Metadata["a"]`, func(e *outbox.Effect) { e.Metadata = map[string]string{"a": "\x00"} }},
		"B3 bad UTF-8 in metadata": {"Metadata", func(e *outbox.Effect) { e.Metadata = map[string]string{"a\xc3": ""} }},
		"B7 payload over the cap":  {"Payload", func(e *outbox.Effect) { e.Payload = make([]byte, outbox.DefaultMaxPayload+1) }},
		"B7 payload of 100 MB":     {"Payload", func(e *outbox.Effect) { e.Payload = make([]byte, 100<<20) }},
		"B10 year 0":               {"DueAt", func(e *outbox.Effect) { e.DueAt = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC) }},
		"B10 year 1999":            {"DueAt", func(e *outbox.Effect) { e.DueAt = time.Date(1999, 12, 31, 23, 59, 59, 0, time.UTC) }},
		"B10 year 10000":           {"DueAt", func(e *outbox.Effect) { e.DueAt = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }},
		"B10 both delay and due":   {"DueAt", func(e *outbox.Effect) { e.Delay, e.DueAt = 1, time.Now() }},
		"B10 negative delay":       {"Delay", func(e *outbox.Effect) { e.Delay = math.MinInt64 }},
		"B10 negative age":         {"MaxAge", func(e *outbox.Effect) { e.MaxAge = -1 }},
		"B10 age over 100 years":   {"MaxAge", func(e *outbox.Effect) { e.MaxAge = outbox.NoMaxAge - 1 }},
		"B10 negative position":    {"SourcePosition", func(e *outbox.Effect) { e.SourcePosition = -1 }},
		"B14 unknown kind":         {"Kind", func(e *outbox.Effect) { e.Kind = "Charge" }},
		"B20 too many entries":     {"Metadata", func(e *outbox.Effect) { e.Metadata = entries(10_000, 0) }},
		"B20 65 entries":           {"Metadata", func(e *outbox.Effect) { e.Metadata = entries(65, 0) }},
		"B20 over 8 KiB":           {"Metadata", func(e *outbox.Effect) { e.Metadata = entries(8, 1024) }},
		"B20 blank name":           {"Metadata", func(e *outbox.Effect) { e.Metadata = map[string]string{" ": "x"} }},
		"B20 reserved name":        {"Metadata", func(e *outbox.Effect) { e.Metadata = map[string]string{"traceparent": "x"} }},
	} {
		bad := valid(row)
		refuse.change(&bad)
		tx := f.Begin()
		f.silently(row, func() {
			receipt, err := f.box.Enqueue(f.Context(), tx.Handle, bad)
			f.refused(row, err, refuse.field)
			receipts, err := f.box.EnqueueMany(f.Context(), tx.Handle, []outbox.Effect{valid("beside"), bad})
			f.refused(row, err, refuse.field)
			if receipt != (outbox.Receipt{}) || receipts != nil {
				f.Errorf("%s: receipts %+v, %+v", row, receipt, receipts)
			}
			if err != nil && len(err.Error()) > 2000 {
				f.Errorf("%s: an error of %d bytes", row, len(err.Error()))
			}
		})
		receipt, err := f.box.Enqueue(f.Context(), tx.Handle, valid("after "+row))
		if err != nil || tx.Commit() != nil || f.show(receipt.ID).State != outbox.StatePending {
			f.Errorf("%s: the transaction cannot go on: %v", row, err)
		}
	}
	every := outbox.Effect{Delay: -1, MaxAge: -1, SourcePosition: -1, Metadata: map[string]string{"baggage": ""}}
	tx := f.Begin()
	defer tx.Rollback()
	_, err := f.box.Enqueue(f.Context(), tx.Handle, every)
	for _, field := range []string{"Consumer", "Target", "Kind", "Key", "Delay", "MaxAge", "SourcePosition", "Metadata"} {
		if err == nil || !strings.Contains(err.Error(), field+" ") {
			f.Errorf("not every problem is reported: %v lacks %s", err, field)
		}
	}
}

// storeOddEffects is what looks bad and is not: it comes back byte for byte. B1, B2, B7, B8, B20, B29.
func storeOddEffects(f *fixture) {
	for row, change := range map[string]func(*outbox.Effect){
		"B1 spaces around": func(e *outbox.Effect) { e.Key, e.Tenant = " key ", "\tacme" },
		"B2 longest names": func(e *outbox.Effect) {
			e.Tenant, e.OrderKey = strings.Repeat("é", 64), strings.Repeat("\U0001F600", 32)
		},
		"B2 longest key":           func(e *outbox.Effect) { e.Key = strings.Repeat("x", 252) + "日" },
		"B7 longest payload":       func(e *outbox.Effect) { e.Payload = bytes.Repeat([]byte{0, 0xff}, outbox.DefaultMaxPayload/2) },
		"B8 no payload":            func(e *outbox.Effect) { e.Payload = nil },
		"B8 empty payload":         func(e *outbox.Effect) { e.Payload = []byte{} },
		"B8 null payload":          func(e *outbox.Effect) { e.Payload = []byte("null") },
		"B8 NUL payload":           func(e *outbox.Effect) { e.Payload = []byte{0} },
		"B20 fullest metadata":     func(e *outbox.Effect) { e.Metadata = map[string]string{"a": strings.Repeat("\x01", 8191)} },
		"B20 escapes in metadata":  func(e *outbox.Effect) { e.Metadata = map[string]string{`"\`: "<\u2028>\n\x7f"} },
		"B29 Latin":                func(e *outbox.Effect) { e.Key = "key-a" },
		"B29 Cyrillic":             func(e *outbox.Effect) { e.Key = "key-\u0430" },
		"B29 composed":             func(e *outbox.Effect) { e.Key = "key-\u00e9" },
		"B29 decomposed":           func(e *outbox.Effect) { e.Key = "key-e\u0301" },
		"B29 right to left":        func(e *outbox.Effect) { e.Key = "key-\u202egnp" },
		"B29 other case":           func(e *outbox.Effect) { e.Key = "KEY-A" },
		"B29 trailing space":       func(e *outbox.Effect) { e.Key = "key-a " },
		"B29 wildcard as a key":    func(e *outbox.Effect) { e.Key, e.OrderKey = "*", "*" },
		"B29 control characters":   func(e *outbox.Effect) { e.Key = "\x1b[31m\r\n\u0085'; DROP TABLE message --" },
		"B10 the first and last":   func(e *outbox.Effect) { e.DueAt = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"B10 the longest age":      func(e *outbox.Effect) { e.MaxAge = 36525 * 24 * time.Hour },
		"B10 the last due instant": func(e *outbox.Effect) { e.DueAt = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC) },
		"B10 the longest delay":    func(e *outbox.Effect) { e.Delay, e.MaxAge = math.MaxInt64, outbox.NoMaxAge },
	} {
		odd := valid(row)
		change(&odd)
		receipts := f.enqueue(odd, odd)
		if receipts[0].Status != outbox.Recorded || receipts[1].Status != outbox.Duplicate || receipts[1].ID != receipts[0].ID {
			f.Errorf("%s: receipts %+v", row, receipts)
			continue
		}
		got := f.show(receipts[0].ID)
		if got.Key != odd.Key || got.Tenant != odd.Tenant || got.OrderKey != odd.OrderKey || !bytes.Equal(got.Payload, odd.Payload) ||
			got.Payload == nil || !maps.Equal(got.Metadata, odd.Metadata) {
			f.Errorf("%s: came back as %+v", row, got)
		}
	}
}
