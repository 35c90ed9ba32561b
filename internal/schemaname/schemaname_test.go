package schemaname_test

import (
	"strings"
	"testing"

	"github.com/fencepost-go/fencepost/internal/schemaname"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"outbox", "My-Schema", "a", "-", "7", "select", "public", strings.Repeat("x", 63)} {
		if err := schemaname.Validate(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for name, problem := range map[string]string{
		"":                          "is empty",
		strings.Repeat("x", 64):     "has 64 bytes",
		`a"b`:                       "holds more than",
		"a'b":                       "holds more than",
		"a b":                       "holds more than",
		"a.b":                       "holds more than",
		"a$b":                       "holds more than",
		"a\nb":                      "holds more than",
		"outbox\n":                  "holds more than",
		"a\x00b":                    "holds more than",
		"\xff":                      "holds more than",
		"schéma":                    "holds more than",
		"x; DROP SCHEMA public; --": "holds more than",
		"pg_catalog":                "reserved",
		"pg_x":                      "reserved",
		"information_schema":        "reserved",
	} {
		if err := schemaname.Validate(name); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%q: got %v, want %q", name, err, problem)
		}
	}
}

func TestSwap(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]string{
		// The qualifier.
		"SELECT id FROM outbox.message":                 `SELECT id FROM "My-Schema".message`,
		"outbox.queue, outbox.message":                  `"My-Schema".queue, "My-Schema".message`,
		"(outbox.queue)":                                `("My-Schema".queue)`,
		"nextval('outbox.message_id_seq')":              `nextval('"My-Schema".message_id_seq')`,
		"NEXTVAL (\n'outbox.message_id_seq'::regclass)": "NEXTVAL (\n'\"My-Schema\".message_id_seq'::regclass)",
		"AS $$ SELECT 1 FROM outbox.queue $$":           `AS $$ SELECT 1 FROM "My-Schema".queue $$`,
		"-- don't\nFROM outbox.queue":                   "-- don't\nFROM \"My-Schema\".queue",
		"/* don't\n'*/ FROM outbox.queue":               "/* don't\n'*/ FROM \"My-Schema\".queue",
		`btrim(a, E'\'\\') FROM outbox.queue`:           `btrim(a, E'\'\\') FROM "My-Schema".queue`,
		"a = 'it''s' FROM outbox.queue":                 `a = 'it''s' FROM "My-Schema".queue`,

		// The name by itself.
		"CREATE SCHEMA outbox;":               `CREATE SCHEMA "My-Schema";`,
		"create schema if not exists outbox;": `create schema if not exists "My-Schema";`,
		"DROP SCHEMA IF EXISTS outbox":        `DROP SCHEMA IF EXISTS "My-Schema"`,
		"ALL TABLES IN SCHEMA outbox FROM":    `ALL TABLES IN SCHEMA "My-Schema" FROM`,
		"oid = 'outbox'::regnamespace":        `oid = '"My-Schema"'::regnamespace`,

		// What only looks like it.
		"myoutbox.queue":          "myoutbox.queue",
		"my_outbox.queue":         "my_outbox.queue",
		"éoutbox.queue":           "éoutbox.queue",
		"outbox2.queue":           "outbox2.queue",
		"OUTBOX_X":                "OUTBOX_X",
		"q.outbox":                "q.outbox",
		"q.outbox.field":          "q.outbox.field",
		"schemaoutbox":            "schemaoutbox",
		"CREATE SCHEMA outboxx":   "CREATE SCHEMA outboxx",
		"AS outbox":               "AS outbox",
		`"outbox.queue"`:          `"outbox.queue"`,
		"'outbox.queue'":          "'outbox.queue'",
		"'outbox'":                "'outbox'",
		"'outbox'::text":          "'outbox'::text",
		`'"outbox'::regnamespace`: `'"outbox'::regnamespace`,
		"'''outbox.queue'":        "'''outbox.queue'",
		`E'\'outbox.queue'`:       `E'\'outbox.queue'`,
		"mynextval('outbox.q')":   "mynextval('outbox.q')",
		"-- outbox.queue":         "-- outbox.queue",
		"/* outbox.queue */":      "/* outbox.queue */",
		"":                        "",
	} {
		if got := schemaname.Swap(sql, "My-Schema"); got != want {
			t.Errorf("%q:\n got %q\nwant %q", sql, got, want)
		}
		if got := schemaname.Swap(sql, schemaname.Default); got != sql {
			t.Errorf("%q is not kept for the default name: %q", sql, got)
		}
	}
}
