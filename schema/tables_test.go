package schema_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fencepost-go/fencepost/internal/pgtest"
)

// row maps columns to SQL expressions.
type row map[string]string

// rows are a row of each table that every CHECK accepts.
var rows = map[string]row{
	"message":     {"consumer": "'c'", "target": "'t'", "kind": "'k'", "key": "'1'", "digest": bytesOf(32)},
	"queue":       {"message_id": "1", "consumer": "'c'", "target": "'t'", "kind": "'k'"},
	"order_lease": {"message_id": "1", "leased_until": "now()", "consumer": "'c'", "target": "'t'", "tenant": "''", "order_key": "'o'"},
	"settlement":  {"message_id": "1", "epoch": "1", "attempt": "1", "replays": "0", "outcome": "'delivered'"},
	"worker":      {"name": "'w'", "host": "'h'"},
	"pause":       {"consumer": "'*'", "target": "'*'", "kind": "'*'", "tenant": "'*'", "actor": "'a'", "reason": "'r'"},
	"audit":       {"action": "'cancel'", "tenant": "''", "actor": "'a'", "reason": "'r'"},
	"event":       {"transaction_id": "1", "type": "'t'", "event_id": "'1'", "digest": bytesOf(32)},
	"incarnation": {"one": "true"},
	"reader":      {"name": "'n'", "incarnation": textOf(32), "transaction_id": "0", "position": "0", "digest": "''"},
	"claim":       {"scope": "'s'", "key": "'1'", "digest": bytesOf(32), "token": token, "held_until": "now()"},
	"batch":       {"consumer": "'c'", "target": "'t'", "kind": "'k'", "key": "'1'", "digest": bytesOf(32)},
	"batch_row":   {"batch_id": "1", "number": "1", "message_id": "1"},

	"credential":       {"name": "'w'", "salt": bytesOf(16), "hash": bytesOf(32), "iterations": "1000", "created_by": "'a'", "created_for": "'r'"},
	"credential_scope": {"name": "'w'", "consumer": "'*'", "tenant": "'*'"},
}

// An instant in each direction just outside what is allowed, and the two that stand for never.
const (
	tooEarly = "timestamptz '1999-12-31 23:59:59.999999+00'"
	tooLate  = "timestamptz '9999-12-31 00:00:00.000001+00'"
	past     = "timestamptz '0001-01-01 00:00:00+00'"
	token    = `'\x000102030405060708090a0b0c0d0e0f'`
	noToken  = `'\x00000000000000000000000000000000'`
)

func textOf(length int) string  { return "'" + strings.Repeat("x", length) + "'" }
func wideOf(length int) string  { return "'" + strings.Repeat("é", length/2) + "'" } // bytes, not letters, are counted
func bytesOf(length int) string { return `'\x` + strings.Repeat("00", length) + "'" }

// blank is all that counts as white space. PostgreSQL has no \v, which would be the letter.
const blank = `E' \t\n\x0b\f\r'`

// refused lists for each CHECK what it must refuse, as changes of a good row.
var refused = map[string][]row{
	"message_id_check":         {{"id": "0"}, {"id": "-1"}},
	"message_tenant_check":     {{"tenant": textOf(129)}, {"tenant": wideOf(130)}, {"tenant": "'*'"}, {"tenant": blank}},
	"message_consumer_check":   {{"consumer": textOf(129)}, {"consumer": "'*'"}, {"consumer": blank}, {"consumer": "''"}},
	"message_target_check":     {{"target": textOf(129)}, {"target": "'*'"}, {"target": blank}, {"target": "''"}},
	"message_kind_check":       {{"kind": textOf(129)}, {"kind": "'*'"}, {"kind": blank}, {"kind": "''"}},
	"message_key_check":        {{"key": textOf(256)}, {"key": wideOf(256)}, {"key": blank}, {"key": "''"}},
	"message_order_key_check":  {{"order_key": textOf(129)}, {"order_key": blank}},
	"message_source_check":     {{"source_position": "-1"}, {"source_event_id": textOf(65)}},
	"message_max_age_check":    {{"max_age": "-1"}, {"max_age": "3155760000000001"}},
	"message_created_at_check": {{"created_at": tooEarly}, {"created_at": tooLate}, {"created_at": "'infinity'"}, {"created_at": "'-infinity'"}},
	"message_digest_check":     {{"digest": bytesOf(31)}, {"digest": bytesOf(33)}, {"digest": "''"}},
	"message_metadata_check":   {{"metadata": textOf(65537)}},
	"message_payload_check":    {{"payload": bytesOf(1<<20 + 1)}},

	"queue_lease_check":      {{"token": token}, {"leased_until": "now()"}},
	"queue_token_check":      {{"token": bytesOf(15), "leased_until": "now()"}, {"token": bytesOf(17), "leased_until": "now()"}, {"token": "''", "leased_until": "now()"}},
	"queue_state_check":      {{"state": "2"}, {"state": "-1"}, {"state": "1", "token": token, "leased_until": "now()"}},
	"queue_count_check":      {{"attempt": "-1"}, {"attempt": "10001", "epoch": "10001"}, {"attempt_limit": "-1"}, {"attempt_limit": "10001"}, {"attempt": "2", "epoch": "1"}, {"epoch": "-1"}, {"replays": "-1"}},
	"queue_due_at_check":     {{"due_at": tooEarly}, {"due_at": tooLate}, {"due_at": past}, {"due_at": "'infinity'"}},
	"queue_age_check":        {{"expires_at": "now() - interval '1 microsecond'"}, {"expires_at": tooLate}, {"expires_at": "'infinity'"}, {"born_at": tooLate}, {"born_at": tooEarly}, {"born_at": "'-infinity'"}},
	"queue_past_check":       {{"token": token, "leased_until": "'-infinity'"}, {"token": token, "leased_until": tooLate}, {"token": token, "leased_until": "'infinity'"}, {"replayed_at": "'-infinity'"}, {"replayed_at": tooLate}, {"replayed_at": "'infinity'"}},
	"queue_last_error_check": {{"last_error": textOf(257)}},

	"order_lease_name_check": {
		{"consumer": "''"}, {"consumer": textOf(129)}, {"target": "''"}, {"target": textOf(129)}, {"tenant": textOf(129)},
		{"order_key": "''"}, {"order_key": textOf(129)},
	},
	"order_lease_until_check": {{"leased_until": "'-infinity'"}, {"leased_until": tooLate}, {"leased_until": "'infinity'"}, {"blocked": "true"}},

	"settlement_outcome_check": {{"outcome": "'pending'"}, {"outcome": "''"}, {"outcome": "'Delivered'"}},
	"settlement_cause_check": {
		{"cause": "'age'"}, {"outcome": "'expired'", "cause": "'age'"},
		{"outcome": "'dead'", "reason": "'r'"}, {"outcome": "'dead'", "cause": "'bored'", "reason": "'r'"},
		{"outcome": "'dead'", "cause": "'age'"}, {"outcome": "'dead'", "cause": "'age'", "reason": blank},
	},
	"settlement_count_check":  {{"epoch": "-1"}, {"attempt": "-1"}, {"attempt": "10001"}, {"replays": "-1"}},
	"settlement_at_check":     {{"settled_at": tooEarly}, {"settled_at": tooLate}, {"settled_at": "'infinity'"}, {"replayed_at": "'-infinity'"}, {"replayed_at": tooLate}, {"replayed_at": "'infinity'"}},
	"settlement_reason_check": {{"reason": textOf(4097)}},
	"settlement_result_check": {{"result": textOf(4097)}, {"outcome": "'cancelled'", "result": "'r'"}},

	"worker_name_check": {{"name": textOf(129)}, {"name": blank}, {"name": "''"}},
	"worker_host_check": {{"host": textOf(256)}},
	"worker_at_check":   {{"started_at": tooEarly}, {"started_at": tooLate}, {"started_at": "'infinity'"}, {"seen_at": tooEarly}, {"seen_at": tooLate}, {"seen_at": "'infinity'"}},

	"pause_at_check":     {{"paused_at": tooEarly}, {"paused_at": tooLate}, {"paused_at": "'infinity'"}},
	"pause_mode_check":   {{"mode": "2"}, {"mode": "-1"}},
	"pause_name_check":   {{"consumer": "''"}, {"consumer": textOf(129)}, {"target": "''"}, {"target": textOf(129)}, {"kind": "''"}, {"kind": textOf(129)}, {"tenant": textOf(129)}},
	"pause_actor_check":  {{"actor": "''"}, {"actor": blank}, {"actor": textOf(129)}},
	"pause_reason_check": {{"reason": "''"}, {"reason": blank}, {"reason": textOf(4097)}},

	"audit_at_check":     {{"at": tooEarly}, {"at": tooLate}, {"at": "'infinity'"}},
	"audit_detail_check": {{"detail": textOf(513)}},
	"audit_action_check": {{"action": "'settle'"}, {"action": "''"}},
	"audit_actor_check":  {{"actor": "''"}, {"actor": blank}, {"actor": textOf(129)}},
	"audit_reason_check": {{"reason": "''"}, {"reason": blank}, {"reason": textOf(4097)}},

	"event_position_check":    {{"position": "0"}, {"position": "-1"}, {"transaction_id": "0"}, {"transaction_id": "-1"}},
	"event_recorded_at_check": {{"recorded_at": tooEarly}, {"recorded_at": tooLate}, {"recorded_at": "'infinity'"}, {"recorded_at": "'-infinity'"}},
	"event_tenant_check":      {{"tenant": textOf(129)}, {"tenant": wideOf(130)}, {"tenant": "'*'"}, {"tenant": blank}},
	"event_stream_check":      {{"stream": textOf(129)}, {"stream": wideOf(130)}, {"stream": blank}},
	"event_type_check":        {{"type": textOf(129)}, {"type": "'*'"}, {"type": blank}, {"type": "''"}},
	"event_event_id_check":    {{"event_id": textOf(65)}, {"event_id": wideOf(66)}, {"event_id": blank}, {"event_id": "''"}},
	"event_digest_check":      {{"digest": bytesOf(31)}, {"digest": bytesOf(33)}, {"digest": "''"}},
	"event_metadata_check":    {{"metadata": textOf(65537)}},
	"event_payload_check":     {{"payload": bytesOf(1<<20 + 1)}},

	"incarnation_one_check":    {{"one": "false"}},
	"incarnation_id_check":     {{"id": "''"}, {"id": "repeat('0', 31)"}, {"id": "repeat('0', 33)"}, {"id": "repeat('A', 32)"}, {"id": "repeat('0', 32) || chr(10)"}},
	"incarnation_purged_check": {{"purged_transaction_id": "-1"}, {"purged_position": "-1"}, {"purged_digest": bytesOf(31)}, {"purged_digest": bytesOf(33)}},

	"reader_name_check":     {{"name": textOf(129)}, {"name": blank}, {"name": "''"}},
	"reader_place_check":    {{"transaction_id": "-1"}, {"position": "-1"}, {"incarnation": textOf(31)}, {"incarnation": textOf(33)}, {"digest": bytesOf(33)}},
	"reader_saved_at_check": {{"saved_at": tooEarly}, {"saved_at": tooLate}, {"saved_at": "'infinity'"}},

	"batch_id_check":       {{"id": "0"}, {"id": "-1"}},
	"batch_at_check":       {{"created_at": tooEarly}, {"created_at": tooLate}, {"created_at": "'infinity'"}, {"sealed_at": tooEarly}, {"sealed_at": tooLate}, {"sealed_at": "'infinity'"}, {"completed_at": tooEarly}, {"completed_at": tooLate}, {"completed_at": "'infinity'"}},
	"batch_sealed_check":   {{"completed_at": "now()"}},
	"batch_run_check":      {{"run": "0"}, {"run": "-1"}},
	"batch_tenant_check":   {{"tenant": textOf(129)}, {"tenant": wideOf(130)}, {"tenant": "'*'"}, {"tenant": blank}},
	"batch_consumer_check": {{"consumer": textOf(129)}, {"consumer": "'*'"}, {"consumer": blank}, {"consumer": "''"}},
	"batch_target_check":   {{"target": textOf(129)}, {"target": "'*'"}, {"target": blank}, {"target": "''"}},
	"batch_kind_check":     {{"kind": textOf(129)}, {"kind": "'*'"}, {"kind": blank}, {"kind": "''"}},
	"batch_key_check":      {{"key": textOf(201)}, {"key": wideOf(202)}, {"key": blank}, {"key": "''"}},
	"batch_digest_check":   {{"digest": bytesOf(31)}, {"digest": bytesOf(33)}, {"digest": "''"}},
	"batch_complete_check": {
		{"complete_target": "'t'"}, {"complete_kind": "'k'"}, {"complete_key": "'1'"}, {"complete_priority": "1"}, {"complete_digest": bytesOf(32)},
		{"complete_metadata": "'m'"}, {"complete_payload": bytesOf(1)}, completing(row{"complete_consumer": blank}), completing(row{"complete_consumer": textOf(129)}),
		completing(row{"complete_consumer": "'*'"}), completing(row{"complete_target": blank}), completing(row{"complete_target": "'*'"}),
		completing(row{"complete_target": textOf(129)}), completing(row{"complete_kind": blank}), completing(row{"complete_kind": "'*'"}),
		completing(row{"complete_kind": textOf(129)}), completing(row{"complete_key": blank}), completing(row{"complete_key": textOf(241)}),
		completing(row{"complete_digest": bytesOf(31)}), completing(row{"complete_metadata": textOf(65537)}),
		completing(row{"complete_payload": bytesOf(1<<20 + 1)}),
	},
	"batch_row_number_check": {{"number": "0"}, {"batch_id": "0"}, {"message_id": "-1"}},
	"batch_row_fate_check":   {{"fate": "-1"}, {"fate": "6"}, {"fate": "5", "reason": "'r'"}, {"message_id": "0"}},
	"batch_row_reason_check": {
		{"reason": "'r'"}, {"message_id": "0", "fate": "5"}, {"message_id": "0", "fate": "5", "reason": blank},
		{"message_id": "0", "fate": "5", "reason": textOf(1025)},
	},
	"claim_state_check": {
		{"state": "-1"}, {"state": "4"}, {"state": "1"}, {"token": noToken}, {"held_until": past}, {"ended_at": "now()"},
		{"state": "1", "token": noToken, "held_until": past}, {"state": "1", "token": noToken, "ended_at": "now()"}, {"state": "1", "held_until": past, "ended_at": "now()"},
	},
	"claim_epoch_check":  {{"epoch": "0"}, {"epoch": "-1"}},
	"claim_token_check":  {{"token": bytesOf(15)}, {"token": bytesOf(17)}, {"token": "''"}},
	"claim_at_check":     {{"claimed_at": tooEarly}, {"claimed_at": tooLate}, {"claimed_at": "'infinity'"}, {"held_until": tooLate}, {"held_until": "'-infinity'"}, {"ended_at": tooEarly}, {"ended_at": tooLate}, {"ended_at": "'infinity'"}},
	"claim_tenant_check": {{"tenant": textOf(129)}, {"tenant": wideOf(130)}, {"tenant": "'*'"}, {"tenant": blank}},
	"claim_scope_check":  {{"scope": textOf(129)}, {"scope": blank}, {"scope": "''"}},
	"claim_key_check":    {{"key": textOf(256)}, {"key": wideOf(256)}, {"key": blank}, {"key": "''"}},
	"claim_digest_check": {{"digest": bytesOf(31)}, {"digest": bytesOf(33)}, {"digest": "''"}},
	"claim_reason_check": {
		{"reason": "'r'"}, ended("1", row{"reason": "'r'"}), ended("2", row{}), ended("3", row{}), ended("2", row{"reason": textOf(4097)}),
	},
	"claim_result_check": {
		{"result": bytesOf(1)}, ended("2", row{"reason": "'r'", "result": bytesOf(1)}), ended("3", row{"reason": "'r'", "result": bytesOf(1)}), ended("1", row{"result": bytesOf(1<<20 + 1)}),
	},

	"credential_at_check":   {{"created_at": tooEarly}, {"created_at": tooLate}, {"created_at": "'infinity'"}, {"revoked_at": "'infinity'", "revoked_by": "'b'", "revoked_for": "'r'"}},
	"credential_name_check": {{"name": textOf(129)}, {"name": wideOf(130)}, {"name": "'*'"}, {"name": blank}, {"name": "''"}},
	"credential_created_check": {
		{"created_by": textOf(129)}, {"created_by": blank}, {"created_by": "''"}, {"created_for": textOf(4097)}, {"created_for": blank}, {"created_for": "''"},
	},
	"credential_revoked_check": {
		{"revoked_by": "'b'"}, {"revoked_for": "'r'"}, {"revoked_at": "now()"}, revokedWith(row{"revoked_by": blank}), revokedWith(row{"revoked_for": blank}),
		revokedWith(row{"revoked_by": textOf(129)}), revokedWith(row{"revoked_for": textOf(4097)}),
	},
	"credential_hash_check": {
		{"salt": bytesOf(15)}, {"salt": bytesOf(17)}, {"hash": bytesOf(31)}, {"hash": bytesOf(33)}, {"iterations": "999"}, {"iterations": "10000001"},
	},
	"credential_scope_name_check": {{"name": "''"}, {"name": textOf(129)}, {"consumer": "''"}, {"consumer": textOf(129)}, {"tenant": textOf(129)}},
}

// revokedWith changes a credential to a revoked one.
func revokedWith(changes row) row {
	values := row{"revoked_at": "now()", "revoked_by": "'b'", "revoked_for": "'r'"}
	maps.Copy(values, changes)
	return values
}

// completing changes a batch to one whose completion records a message.
func completing(changes row) row {
	all := row{"complete_consumer": "'c'", "complete_target": "'t'", "complete_kind": "'k'", "complete_key": "'1'", "complete_digest": bytesOf(32)}
	maps.Copy(all, changes)
	return all
}

// ended changes a claim to one that ended in the state.
func ended(state string, changes row) row {
	values := row{"state": state, "token": noToken, "held_until": past, "ended_at": "now()"}
	maps.Copy(values, changes)
	return values
}

// accepted lists for each table the rows that reach its bounds.
var accepted = map[string][]row{
	"message": {
		{}, {"id": "9223372036854775807"},
		{"tenant": textOf(128), "consumer": textOf(128), "target": textOf(128), "kind": textOf(128), "key": textOf(255), "order_key": textOf(128)},
		{"tenant": wideOf(128), "key": wideOf(254)}, {"tenant": "' x '"},
		{"tenant": "'v'", "consumer": "'v'", "target": "'v'", "kind": "'v'", "key": "'v'", "order_key": "'v'"},
		{"source_event_id": textOf(64), "max_age": "3155760000000000", "metadata": textOf(65536), "payload": bytesOf(1 << 20)},
		{"created_at": "'2000-01-01 00:00:00+00'"}, {"created_at": "'9999-12-31 00:00:00+00'"},
	},
	"queue": {
		{}, {"token": token, "leased_until": "now()", "epoch": "1", "attempt": "1"}, {"state": "1"},
		{"attempt": "10000", "attempt_limit": "10000", "epoch": "10000"}, {"last_error": textOf(256)},
		{"due_at": "'2000-01-01 00:00:00+00'"}, {"due_at": "'9999-12-31 00:00:00+00'", "born_at": "'9999-12-31 00:00:00+00'"},
		{"expires_at": "now()", "born_at": "now()"},
	},
	"order_lease": {{}, {"consumer": textOf(128), "target": textOf(128), "tenant": textOf(128), "order_key": textOf(128)}, {"blocked": "true", "leased_until": past}},
	"settlement": {
		{}, {"outcome": "'cancelled'"}, {"outcome": "'expired'"}, {"result": textOf(4096)}, {"reason": "'note'"},
		{"outcome": "'dead'", "cause": "'permanent'", "reason": textOf(4096)}, {"outcome": "'dead'", "cause": "'moot'", "reason": "'r'"},
		{"outcome": "'dead'", "cause": "'attempts'", "reason": "'r'"}, {"outcome": "'dead'", "cause": "'age'", "reason": "'r'"},
		{"outcome": "'dead'", "cause": "'exhausted'", "reason": "'r'", "attempt": "10000"},
	},
	"worker": {{}, {"name": textOf(128), "host": textOf(255)}, {"host": "''"}},
	"pause":  {{}, {"mode": "1"}, {"tenant": "''"}, {"consumer": textOf(128), "reason": textOf(4096), "actor": textOf(128)}},
	"audit":  {{}, {"reason": textOf(4096), "detail": textOf(512), "actor": textOf(128), "message_id": "1"}},
	"event": {
		{}, {"position": "9223372036854775807", "transaction_id": "9223372036854775807"}, {"tenant": wideOf(128)}, {"stream": "'*'"},
		{"tenant": textOf(128), "stream": textOf(128), "type": textOf(128), "event_id": textOf(64), "metadata": textOf(65536), "payload": bytesOf(1 << 20)},
		{"recorded_at": "'2000-01-01 00:00:00+00'"}, {"recorded_at": "'9999-12-31 00:00:00+00'"},
	},
	"incarnation": {{}, {"purged_transaction_id": "1", "purged_position": "1", "purged_digest": bytesOf(32)}},
	"reader":      {{}, {"name": textOf(128), "transaction_id": "1", "position": "1", "digest": bytesOf(32)}},
	"batch": {
		{}, {"tenant": textOf(128), "consumer": textOf(128), "target": textOf(128), "kind": textOf(128), "key": textOf(200)},
		{"sealed_at": "now()"}, {"sealed_at": "now()", "completed_at": "now()", "run": "2147483647"}, completing(row{"complete_priority": "-32768"}),
		completing(row{"complete_consumer": textOf(128), "complete_target": textOf(128), "complete_kind": textOf(128), "complete_key": textOf(240),
			"complete_metadata": textOf(65536), "complete_payload": bytesOf(1 << 20)}),
	},
	"batch_row": {{}, {"fate": "4"}, {"message_id": "0", "fate": "5", "reason": textOf(1024)}, {"number": "2147483647", "message_id": "9223372036854775807", "fate": "1"}},
	"claim": {
		{}, {"tenant": textOf(128), "scope": textOf(128), "key": textOf(255), "held_until": "'9999-12-31 00:00:00+00'"},
		ended("1", row{}), ended("1", row{"result": bytesOf(1 << 20)}), ended("2", row{"reason": textOf(4096)}), ended("3", row{"reason": "'r'"}),
	},
	"credential": {
		{}, {"name": textOf(128), "created_by": textOf(128), "created_for": textOf(4096), "iterations": "10000000"}, {"name": "'v:'"},
		revokedWith(row{"revoked_by": textOf(128), "revoked_for": textOf(4096)}),
	},
	"credential_scope": {{}, {"name": textOf(128), "consumer": textOf(128), "tenant": textOf(128)}, {"tenant": "''"}},
}

// insert returns the statement for a good row of the table with changes.
func insert(table string, changes row) string {
	values := maps.Clone(rows[table])
	maps.Copy(values, changes)
	columns := slices.Sorted(maps.Keys(values))
	var expressions []string
	for _, column := range columns {
		expressions = append(expressions, values[column])
	}
	return "INSERT INTO outbox." + table + " (" + strings.Join(columns, ", ") + ") VALUES (" + strings.Join(expressions, ", ") + ")"
}

// Shows: S1.36
func TestChecks(t *testing.T) {
	t.Parallel()
	db := connect(t, pgtest.New(t))
	checks := map[string]string{} // the table of each
	found, err := db.QueryContext(t.Context(), `SELECT o.conname, c.relname
		FROM pg_constraint AS o JOIN pg_class AS c ON c.oid = o.conrelid
		WHERE o.contype = 'c' AND o.connamespace = 'outbox'::regnamespace`)
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	for found.Next() {
		var check, table string
		if err := found.Scan(&check, &table); err != nil {
			t.Fatal(err)
		}
		checks[check] = table
		if len(refused[check]) == 0 {
			t.Errorf("%s has no row that it must refuse", check)
		}
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}

	for check, bad := range refused {
		table, ok := checks[check]
		if !ok {
			t.Errorf("there is no %s", check)
			continue
		}
		for _, changes := range bad {
			_, err := db.ExecContext(t.Context(), insert(table, changes))
			var violation *pgconn.PgError
			if !errors.As(err, &violation) || violation.Code != "23514" || violation.ConstraintName != check {
				t.Errorf("%s with %.100v: got %v", check, changes, err)
			}
		}
	}
	for table := range rows {
		for _, changes := range accepted[table] {
			execute(t, db, "TRUNCATE outbox."+table)
			execute(t, db, insert(table, changes))
		}
	}
}

// An instant without a time zone means something else in each session.
func TestInstantsHaveAZone(t *testing.T) {
	t.Parallel()
	db := connect(t, pgtest.New(t))
	bad := query[string](t, db, `SELECT COALESCE(string_agg(attrelid::regclass || '.' || attname, ' '), '')
		FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
		WHERE c.relnamespace = 'outbox'::regnamespace AND a.attnum > 0
			AND a.atttypid IN ('timestamp'::regtype, 'timestamp[]'::regtype, 'time'::regtype, 'timetz'::regtype, 'date'::regtype)`)
	if bad != "" {
		t.Error(bad)
	}
}

// The server's defaults let a table of a million dead rows wait for its vacuum, which a queue cannot.
func TestAutovacuumIsTuned(t *testing.T) {
	t.Parallel()
	db := connect(t, pgtest.New(t))
	for table, settings := range map[string][]string{
		"message":     {"autovacuum_vacuum_scale_factor=0.05", "autovacuum_vacuum_insert_scale_factor=0.2", "autovacuum_analyze_scale_factor=0.05"},
		"queue":       {"fillfactor=42", "autovacuum_vacuum_scale_factor=0.0", "autovacuum_vacuum_threshold=5000", "autovacuum_vacuum_cost_delay=0"},
		"order_lease": {"fillfactor=50", "autovacuum_vacuum_scale_factor=0.0", "autovacuum_vacuum_threshold=2000"},
		"settlement":  {"autovacuum_vacuum_scale_factor=0.05", "autovacuum_vacuum_insert_scale_factor=0.2", "autovacuum_analyze_scale_factor=0.05"},
		"worker":      {"fillfactor=50"},
		"event":       {"autovacuum_vacuum_scale_factor=0.05", "autovacuum_vacuum_insert_scale_factor=0.2", "autovacuum_analyze_scale_factor=0.05"},
		"reader":      {"fillfactor=50"},
		"claim":       {"fillfactor=70", "autovacuum_vacuum_scale_factor=0.05"},
		"batch":       {"fillfactor=50"},
		"batch_row":   {"autovacuum_vacuum_scale_factor=0.05", "autovacuum_vacuum_insert_scale_factor=0.2", "autovacuum_analyze_scale_factor=0.05"},
	} {
		options := query[string](t, db, "SELECT array_to_string(reloptions, ' ') FROM pg_class WHERE oid = $1::text::regclass", "outbox."+table)
		for _, setting := range settings {
			if !slices.Contains(strings.Fields(options), setting) {
				t.Errorf("%s has %s, without %s", table, options, setting)
			}
		}
	}
}
