package memdb

import (
	"bytes"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/internal/tables"
)

// A CheckError is a write that the schema's CHECK constraints refuse. Nothing of its statement is kept.
type CheckError struct {
	Table      string
	Constraint string // as the schema names it; "encoding" for text that a database cannot store
}

func (e *CheckError) Error() string {
	return fmt.Sprintf("memdb: a row of %s violates %s", e.Table, e.Constraint)
}

// A check is one CHECK constraint of the schema, by its name there.
type check[R any] struct {
	name string
	ok   func(R) bool
}

func verify[R any](table string, checks []check[R], row R) error {
	for _, c := range checks {
		if !c.ok(row) {
			return &CheckError{table, c.name}
		}
	}
	return nil
}

const century = 3_155_760_000_000_000 // microseconds

var earliest = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

var messageChecks = []check[tables.Message]{
	{"encoding", func(m tables.Message) bool {
		return storable(m.Tenant, m.Consumer, m.Target, m.Kind, m.Key, m.OrderKey, m.SourceEventID, m.Metadata)
	}},
	{"message_id_check", func(m tables.Message) bool { return m.ID > 0 }},
	{"message_tenant_check", func(m tables.Message) bool { return m.Tenant == "" || name(m.Tenant) }},
	{"message_consumer_check", func(m tables.Message) bool { return name(m.Consumer) }},
	{"message_target_check", func(m tables.Message) bool { return name(m.Target) }},
	{"message_kind_check", func(m tables.Message) bool { return name(m.Kind) }},
	{"message_key_check", func(m tables.Message) bool { return len(m.Key) <= 255 && !blank(m.Key) }},
	{"message_order_key_check", func(m tables.Message) bool {
		return m.OrderKey == "" || len(m.OrderKey) <= 128 && !blank(m.OrderKey)
	}},
	{"message_source_check", func(m tables.Message) bool { return m.SourcePosition >= 0 && len(m.SourceEventID) <= 64 }},
	{"message_max_age_check", func(m tables.Message) bool { return m.MaxAge >= 0 && m.MaxAge <= century }},
	{"message_created_at_check", func(m tables.Message) bool { return between(m.CreatedAt, earliest, tables.Forever) }},
	{"message_digest_check", func(m tables.Message) bool { return len(m.Digest) == 32 }},
	{"message_metadata_check", func(m tables.Message) bool { return len(m.Metadata) <= 65536 }},
	{"message_payload_check", func(m tables.Message) bool { return len(m.Payload) <= 1048576 }},
}

var queueChecks = []check[tables.Queue]{
	{"encoding", func(q tables.Queue) bool { return storable(q.LastError) }},
	{"queue_lease_check", func(q tables.Queue) bool { return held(q) == !q.LeasedUntil.Equal(db.Never) }},
	{"queue_token_check", func(q tables.Queue) bool { return len(q.Token) == 16 }},
	{"queue_state_check", func(q tables.Queue) bool {
		return q.State == tables.Pending || q.State == tables.Parked && bytes.Equal(q.Token, db.FreeToken)
	}},
	{"queue_count_check", func(q tables.Queue) bool {
		return counted(q.Attempt) && counted(q.AttemptLimit) && q.Epoch >= int64(q.Attempt) && q.Replays >= 0
	}},
	{"queue_due_at_check", func(q tables.Queue) bool { return between(q.DueAt, earliest, tables.Forever) }},
	{"queue_age_check", func(q tables.Queue) bool { return between(q.ExpiresAt, q.BornAt, tables.Forever) }},
	{"queue_last_error_check", func(q tables.Queue) bool { return len(q.LastError) <= 256 }},
}

var orderLeaseChecks = []check[tables.OrderLease]{
	{"order_lease_key_check", func(o tables.OrderLease) bool { return o.OrderKey != "" }},
}

var settlementChecks = []check[tables.Settlement]{
	{"encoding", func(s tables.Settlement) bool { return storable(s.Reason, s.Result) }},
	{"settlement_outcome_check", func(s tables.Settlement) bool { return oneOf(s.Outcome, "delivered", "dead", "cancelled", "expired") }},
	{"settlement_cause_check", func(s tables.Settlement) bool {
		if s.Outcome != "dead" {
			return s.Cause == ""
		}
		return oneOf(s.Cause, "permanent", "moot", "attempts", "age", "exhausted") && !blank(s.Reason)
	}},
	{"settlement_count_check", func(s tables.Settlement) bool { return s.Epoch >= 0 && counted(s.Attempt) && s.Replays >= 0 }},
	{"settlement_reason_check", func(s tables.Settlement) bool { return len(s.Reason) <= 4096 }},
	{"settlement_result_check", func(s tables.Settlement) bool {
		return len(s.Result) <= 4096 && (s.Result == "" || s.Outcome == "delivered")
	}},
}

var workerChecks = []check[tables.Worker]{
	{"encoding", func(w tables.Worker) bool { return storable(w.Name, w.Host) }},
	{"worker_name_check", func(w tables.Worker) bool { return len(w.Name) <= 128 && !blank(w.Name) }},
	{"worker_host_check", func(w tables.Worker) bool { return len(w.Host) <= 255 }},
}

var pauseChecks = []check[tables.Pause]{
	{"encoding", func(p tables.Pause) bool {
		return storable(p.Consumer, p.Target, p.Kind, p.Tenant, p.Actor, p.Reason)
	}},
	{"pause_mode_check", func(p tables.Pause) bool { return p.Mode == 0 || p.Mode == 1 }},
	{"pause_name_check", func(p tables.Pause) bool {
		return within(p.Consumer, 1, 128) && within(p.Target, 1, 128) && within(p.Kind, 1, 128) && within(p.Tenant, 0, 128)
	}},
	{"pause_actor_check", func(p tables.Pause) bool { return len(p.Actor) <= 128 && !blank(p.Actor) }},
	{"pause_reason_check", func(p tables.Pause) bool { return len(p.Reason) <= 4096 && !blank(p.Reason) }},
}

var auditChecks = []check[tables.Audit]{
	{"encoding", func(a tables.Audit) bool { return storable(a.Tenant, a.Actor, a.Reason, a.Detail) }},
	{"audit_action_check", func(a tables.Audit) bool {
		return oneOf(a.Action, "cancel", "replay", "resolve", "pause", "resume", "release", "unblock")
	}},
	{"audit_actor_check", func(a tables.Audit) bool { return len(a.Actor) <= 128 && !blank(a.Actor) }},
	{"audit_reason_check", func(a tables.Audit) bool { return len(a.Reason) <= 4096 && !blank(a.Reason) }},
}

var eventChecks = []check[tables.Event]{
	{"encoding", func(e tables.Event) bool { return storable(e.Tenant, e.Stream, e.Type, e.EventID, e.Metadata) }},
	{"event_tenant_check", func(e tables.Event) bool { return e.Tenant == "" || name(e.Tenant) }},
	{"event_stream_check", func(e tables.Event) bool { return e.Stream == "" || len(e.Stream) <= 128 && !blank(e.Stream) }},
	{"event_type_check", func(e tables.Event) bool { return name(e.Type) }},
	{"event_event_id_check", func(e tables.Event) bool { return len(e.EventID) <= 64 && !blank(e.EventID) }},
	{"event_digest_check", func(e tables.Event) bool { return len(e.Digest) == 32 }},
	{"event_metadata_check", func(e tables.Event) bool { return len(e.Metadata) <= 65536 }},
	{"event_payload_check", func(e tables.Event) bool { return len(e.Payload) <= 1048576 }},
}

var readerChecks = []check[tables.Reader]{
	{"encoding", func(r tables.Reader) bool { return storable(r.Name, r.Incarnation) }},
	{"reader_name_check", func(r tables.Reader) bool { return len(r.Name) <= 128 && !blank(r.Name) }},
	{"reader_place_check", func(r tables.Reader) bool {
		return r.TransactionID >= 0 && r.Position >= 0 && len(r.Incarnation) == 32 && len(r.Digest) <= 32
	}},
}

var claimChecks = []check[tables.Claim]{
	{"encoding", func(c tables.Claim) bool { return storable(c.Tenant, c.Scope, c.Key, c.Reason) }},
	{"claim_state_check", func(c tables.Claim) bool {
		held := c.State == db.ClaimHeld
		return c.State >= 0 && c.State <= 3 && held == !bytes.Equal(c.Token, db.FreeToken) && held == !c.HeldUntil.Equal(db.Never) &&
			held == c.EndedAt.Equal(tables.Forever)
	}},
	{"claim_token_check", func(c tables.Claim) bool { return len(c.Token) == 16 }},
	{"claim_at_check", func(c tables.Claim) bool { return !c.HeldUntil.After(tables.Forever) }},
	{"claim_tenant_check", func(c tables.Claim) bool { return c.Tenant == "" || name(c.Tenant) }},
	{"claim_scope_check", func(c tables.Claim) bool { return len(c.Scope) <= 128 && !blank(c.Scope) }},
	{"claim_key_check", func(c tables.Claim) bool { return len(c.Key) <= 255 && !blank(c.Key) }},
	{"claim_digest_check", func(c tables.Claim) bool { return len(c.Digest) == 32 }},
	{"claim_reason_check", func(c tables.Claim) bool {
		return len(c.Reason) <= 4096 && (c.State == db.ClaimFailed || c.State == db.ClaimRejected) == (c.Reason != "")
	}},
	{"claim_result_check", func(c tables.Claim) bool {
		return len(c.Result) <= 1048576 && (c.State == db.ClaimCompleted || len(c.Result) == 0)
	}},
}

var credentialChecks = []check[tables.Credential]{
	{"encoding", func(c tables.Credential) bool {
		return storable(c.Name, c.CreatedBy, c.CreatedFor, c.RevokedBy, c.RevokedFor)
	}},
	{"credential_name_check", func(c tables.Credential) bool { return name(c.Name) }},
	{"credential_created_check", func(c tables.Credential) bool {
		return len(c.CreatedBy) <= 128 && !blank(c.CreatedBy) && len(c.CreatedFor) <= 4096 && !blank(c.CreatedFor)
	}},
	{"credential_revoked_check", func(c tables.Credential) bool {
		revoked := !c.RevokedAt.Equal(tables.Forever)
		return len(c.RevokedBy) <= 128 && len(c.RevokedFor) <= 4096 && revoked != blank(c.RevokedBy) && revoked != blank(c.RevokedFor)
	}},
	{"credential_hash_check", func(c tables.Credential) bool {
		return len(c.Salt) == 16 && len(c.Hash) == 32 && c.Iterations >= 1_000 && c.Iterations <= 10_000_000
	}},
}

var scopeChecks = []check[tables.CredentialScope]{
	{"encoding", func(s tables.CredentialScope) bool { return storable(s.Name, s.Consumer, s.Tenant) }},
	{"credential_scope_name_check", func(s tables.CredentialScope) bool {
		return within(s.Name, 1, 128) && within(s.Consumer, 1, 128) && within(s.Tenant, 0, 128)
	}},
}

var batchChecks = []check[tables.Batch]{
	{"encoding", func(b tables.Batch) bool {
		return storable(b.Tenant, b.Consumer, b.Target, b.Kind, b.Key, b.CompleteConsumer, b.CompleteTarget, b.CompleteKind, b.CompleteKey, b.CompleteMetadata)
	}},
	{"batch_tenant_check", func(b tables.Batch) bool { return b.Tenant == "" || name(b.Tenant) }},
	{"batch_consumer_check", func(b tables.Batch) bool { return name(b.Consumer) }},
	{"batch_target_check", func(b tables.Batch) bool { return name(b.Target) }},
	{"batch_kind_check", func(b tables.Batch) bool { return name(b.Kind) }},
	{"batch_key_check", func(b tables.Batch) bool { return len(b.Key) <= 200 && !blank(b.Key) }},
	{"batch_digest_check", func(b tables.Batch) bool { return len(b.Digest) == 32 }},
	{"batch_complete_check", func(b tables.Batch) bool {
		if b.CompleteConsumer == "" {
			return b.CompleteTarget+b.CompleteKind+b.CompleteKey+b.CompleteMetadata == "" && b.CompletePriority == 0 &&
				len(b.CompleteDigest)+len(b.CompletePayload) == 0
		}
		return name(b.CompleteConsumer) && name(b.CompleteTarget) && name(b.CompleteKind) && len(b.CompleteKey) <= 240 && !blank(b.CompleteKey) &&
			len(b.CompleteDigest) == 32 && len(b.CompleteMetadata) <= 65536 && len(b.CompletePayload) <= 1048576
	}},
}

var batchRowChecks = []check[tables.BatchRow]{
	{"encoding", func(r tables.BatchRow) bool { return storable(r.Reason) }},
	{"batch_row_number_check", func(r tables.BatchRow) bool { return r.Number > 0 && r.MessageID >= 0 }},
	{"batch_row_reason_check", func(r tables.BatchRow) bool {
		return len(r.Reason) <= 1024 && (r.Fate == db.RowRejected) == !blank(r.Reason)
	}},
}

// storable says whether a database can keep the texts.
func storable(texts ...string) bool {
	for _, text := range texts {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return false
		}
	}
	return true
}

// name says whether the text may name a consumer, target, kind or tenant; the wildcard of a pause is none.
func name(s string) bool { return len(s) <= 128 && s != "*" && !blank(s) }

func blank(s string) bool { return strings.Trim(s, " \t\n\v\f\r") == "" }

func within(s string, shortest, longest int) bool { return len(s) >= shortest && len(s) <= longest }

func between(t, first, last time.Time) bool { return !t.Before(first) && !t.After(last) }

func counted(n int32) bool { return n >= 0 && n <= 10000 }

func oneOf(s string, allowed ...string) bool {
	for _, a := range allowed {
		if s == a {
			return true
		}
	}
	return false
}
