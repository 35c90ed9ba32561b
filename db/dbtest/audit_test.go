package dbtest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

// sound is a dump of one message that is leased with its order key, and one that is dead and blocks its key.
func sound() Dump {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	until := now.Add(time.Minute)
	return Dump{
		Now:      now,
		Messages: []tables.Message{{ID: 1, Consumer: "c", OrderKey: "a"}, {ID: 2, Consumer: "c", OrderKey: "b"}},
		Queue: []tables.Queue{{
			MessageID: 1, Consumer: "c", OrderKey: "a", Token: []byte("0123456789abcdef"), LeasedUntil: until, ExpiresAt: tables.Forever, Epoch: 1, Attempt: 1,
			LeasedBy: 5, Replays: 1,
		}},
		Settlements: []tables.Settlement{{MessageID: 2, Outcome: "dead", Epoch: 3, Attempt: 2}},
		OrderLeases: []tables.OrderLease{
			{MessageID: 1, Consumer: "c", OrderKey: "a", LeasedUntil: until}, {MessageID: 2, Consumer: "c", OrderKey: "b", LeasedUntil: db.Never, Blocked: true},
		},
		Audits: []tables.Audit{{ID: 1, MessageID: 1, Action: "replay"}, {ID: 2, MessageID: 1, Action: "cancel"}},
	}
}

func TestProblemsOfSoundTables(t *testing.T) {
	t.Parallel()
	if problems := Problems(sound()); len(problems) != 0 {
		t.Errorf("found %q", problems)
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	for want, spoil := range map[string]func(*Dump){
		"1 is neither open nor settled":       func(d *Dump) { d.Queue = nil },
		"1 is open and settled":               func(d *Dump) { d.Settlements[0].MessageID = 1 },
		"queue row 1 has no message":          func(d *Dump) { d.Messages = d.Messages[1:] },
		"settlement 2 has no message":         func(d *Dump) { d.Messages = d.Messages[:1] },
		"in another lane":                     func(d *Dump) { d.Queue[0].Tenant = "x" },
		"a token or a lease":                  func(d *Dump) { d.Queue[0].Token = db.FreeToken },
		"is free but leased by 5":             func(d *Dump) { d.Queue[0].Token, d.Queue[0].LeasedUntil = db.FreeToken, db.Never },
		"parked and leased":                   func(d *Dump) { d.Queue[0].State = tables.Parked },
		"is due":                              func(d *Dump) { d.Queue[0].BornAt = d.Now },
		"counts 2 replays, the audit table 1": func(d *Dump) { d.Queue[0].Replays = 2 },
		"counts 4 replays, the audit table 0": func(d *Dump) { d.Settlements[0].Replays = 4 },
		"at attempt 4 of epoch 3":             func(d *Dump) { d.Settlements[0].Attempt = 4 },
		"without that of its order key":       func(d *Dump) { d.OrderLeases = d.OrderLeases[1:] },
		"which is not of that key":            func(d *Dump) { d.OrderLeases[0].OrderKey = "z" },
		"which is not dead":                   func(d *Dump) { d.Settlements[0].Outcome = "delivered" },
		"is not that of message 1":            func(d *Dump) { d.OrderLeases[0].LeasedUntil = d.Now },
	} {
		d := sound()
		spoil(&d)
		if problems := Problems(d); !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, want) }) {
			t.Errorf("want %q, found %q", want, problems)
		}
	}
}
