package dbtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencepost-go/fencepost/internal/tables"
)

// SQL does what a harness does beside the store, alike for every driver: by statements of its own on a plain pool.
type SQL struct {
	DB     *sql.DB
	Schema string // "" = outbox
	SQLite bool   // the pool is of a file, whose tables have a prefix
}

// instants are the tables with the columns that Age moves.
var instants = map[string][]string{
	"message":     {"created_at"},
	"queue":       {"due_at", "born_at", "expires_at", "leased_until", "replayed_at"},
	"order_lease": {"leased_until"},
	"settlement":  {"settled_at", "replayed_at"},
	"worker":      {"started_at", "seen_at"},
	"pause":       {"paused_at"},
	"audit":       {"at"},
	"event":       {"recorded_at"},
	"reader":      {"saved_at"},
	"claim":       {"claimed_at", "held_until", "ended_at"},
	"credential":  {"created_at", "revoked_at"},

	"batch":            {"created_at", "sealed_at", "completed_at"},
	"batch_row":        nil,
	"credential_scope": nil,
}

// Age is Harness.Age.
func (s SQL) Age(t testing.TB, d time.Duration) {
	t.Helper()
	tx, err := s.DB.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal("age: ", err)
	}
	defer tx.Rollback()
	for table, columns := range instants {
		var set []string
		for _, column := range columns {
			set = append(set, fmt.Sprintf(s.moved(), column))
		}
		if len(set) == 0 {
			continue
		}
		statement := "UPDATE " + s.qualified(table) + " SET " + strings.Join(set, ", ")
		if _, err := tx.ExecContext(t.Context(), statement, d.Microseconds()); err != nil {
			t.Fatalf("age %s: %v", table, err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal("age: ", err)
	}
}

// moved sets a column of an instant back by the first argument, in microseconds.
func (s SQL) moved() string {
	if s.SQLite {
		return `%[1]s = CASE WHEN %[1]s IN (-62135596800000000, 253402214400000000) THEN %[1]s ELSE %[1]s - $1 END`
	}
	return `%[1]s = CASE WHEN %[1]s IN ('0001-01-01 00:00:00+00', '9999-12-31 00:00:00+00') THEN %[1]s
		ELSE %[1]s - $1 * interval '1 microsecond' END`
}

func (s SQL) qualified(table string) string {
	if s.SQLite {
		return "outbox_" + table
	}
	schema := s.Schema
	if schema == "" {
		schema = "outbox"
	}
	return `"` + schema + `".` + table
}

// Reset is Harness.Reset. Ids go on.
func (s SQL) Reset(t testing.TB) {
	t.Helper()
	// Batches first: what is deleted elsewhere would complete them.
	var all strings.Builder
	for _, table := range append([]string{"batch", "batch_row"}, slices.Collect(maps.Keys(instants))...) {
		all.WriteString("DELETE FROM " + s.qualified(table) + ";")
	}
	if _, err := s.DB.ExecContext(t.Context(), all.String()); err != nil {
		t.Fatal("reset: ", err)
	}
}

// Dump is Harness.Dump: one snapshot of all tables.
func (s SQL) Dump(t testing.TB) Dump {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // also for tests that clean up
	tx, err := s.DB.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		t.Fatal("dump: ", err)
	}
	defer tx.Rollback()
	var d Dump
	err = errors.Join(
		tx.QueryRowContext(ctx, s.clock()).Scan(utc{&d.Now}),
		read(ctx, tx, &d.Messages, s.sorted("id, source_position, max_age, created_at, priority, tenant, consumer, target, kind, key, order_key, "+
			"source_event_id, digest, metadata, payload", "message", "id"),
			func(m *tables.Message) []any {
				return []any{
					&m.ID, &m.SourcePosition, &m.MaxAge, utc{&m.CreatedAt}, &m.Priority, &m.Tenant, &m.Consumer, &m.Target, &m.Kind, &m.Key,
					&m.OrderKey, &m.SourceEventID, &m.Digest, &m.Metadata, &m.Payload,
				}
			}),
		read(ctx, tx, &d.Queue, s.sorted("message_id, leased_by, epoch, due_at, born_at, expires_at, leased_until, replayed_at, attempt, "+
			"attempt_limit, replays, priority, state, unsure, token, consumer, target, kind, tenant, order_key, last_error", "queue", "message_id"),
			func(q *tables.Queue) []any {
				return []any{
					&q.MessageID, &q.LeasedBy, &q.Epoch, utc{&q.DueAt}, utc{&q.BornAt}, utc{&q.ExpiresAt}, utc{&q.LeasedUntil}, utc{&q.ReplayedAt},
					&q.Attempt, &q.AttemptLimit, &q.Replays, &q.Priority, &q.State, &q.Unsure, &q.Token, &q.Consumer, &q.Target, &q.Kind, &q.Tenant,
					&q.OrderKey, &q.LastError,
				}
			}),
		read(ctx, tx, &d.OrderLeases, s.sorted("message_id, leased_until, blocked, consumer, target, tenant, order_key", "order_lease",
			s.texts("consumer", "target", "tenant", "order_key")),
			func(o *tables.OrderLease) []any {
				return []any{&o.MessageID, utc{&o.LeasedUntil}, &o.Blocked, &o.Consumer, &o.Target, &o.Tenant, &o.OrderKey}
			}),
		read(ctx, tx, &d.Settlements, s.sorted("message_id, epoch, settled_by, settled_at, replayed_at, attempt, replays, outcome, cause, reason, result",
			"settlement", "message_id"),
			func(r *tables.Settlement) []any {
				return []any{
					&r.MessageID, &r.Epoch, &r.SettledBy, utc{&r.SettledAt}, utc{&r.ReplayedAt}, &r.Attempt, &r.Replays, &r.Outcome, &r.Cause,
					&r.Reason, &r.Result,
				}
			}),
		read(ctx, tx, &d.Workers, s.sorted("id, started_at, seen_at, name, host", "worker", "id"),
			func(w *tables.Worker) []any {
				return []any{&w.ID, utc{&w.StartedAt}, utc{&w.SeenAt}, &w.Name, &w.Host}
			}),
		read(ctx, tx, &d.Pauses, s.sorted("paused_at, mode, consumer, target, kind, tenant, actor, reason", "pause",
			s.texts("consumer", "target", "kind", "tenant")),
			func(p *tables.Pause) []any {
				return []any{utc{&p.PausedAt}, &p.Mode, &p.Consumer, &p.Target, &p.Kind, &p.Tenant, &p.Actor, &p.Reason}
			}),
		read(ctx, tx, &d.Audits, s.sorted("id, message_id, at, action, tenant, actor, reason, detail", "audit", "id"),
			func(a *tables.Audit) []any {
				return []any{&a.ID, &a.MessageID, utc{&a.At}, &a.Action, &a.Tenant, &a.Actor, &a.Reason, &a.Detail}
			}),
		read(ctx, tx, &d.Events, s.sorted("position, transaction_id, recorded_at, tenant, stream, type, event_id, digest, metadata, payload",
			"event", "position"),
			func(e *tables.Event) []any {
				return []any{
					&e.Position, &e.TransactionID, utc{&e.RecordedAt}, &e.Tenant, &e.Stream, &e.Type, &e.EventID, &e.Digest, &e.Metadata, &e.Payload,
				}
			}),
		read(ctx, tx, &d.Readers, s.sorted("transaction_id, position, saved_at, name, incarnation, digest", "reader", s.texts("name")),
			func(r *tables.Reader) []any {
				return []any{&r.TransactionID, &r.Position, utc{&r.SavedAt}, &r.Name, &r.Incarnation, &r.Digest}
			}),
		read(ctx, tx, &d.Claims, s.sorted("epoch, claimed_at, held_until, ended_at, state, token, tenant, scope, key, digest, reason, result",
			"claim", s.texts("tenant", "scope", "key")),
			func(c *tables.Claim) []any {
				return []any{
					&c.Epoch, utc{&c.ClaimedAt}, utc{&c.HeldUntil}, utc{&c.EndedAt}, &c.State, &c.Token, &c.Tenant, &c.Scope, &c.Key, &c.Digest,
					&c.Reason, &c.Result,
				}
			}),
		read(ctx, tx, &d.Credentials, s.sorted("created_at, revoked_at, iterations, name, created_by, created_for, revoked_by, revoked_for, salt, hash",
			"credential", s.texts("name")),
			func(c *tables.Credential) []any {
				return []any{
					utc{&c.CreatedAt}, utc{&c.RevokedAt}, &c.Iterations, &c.Name, &c.CreatedBy, &c.CreatedFor, &c.RevokedBy, &c.RevokedFor, &c.Salt, &c.Hash,
				}
			}),
		read(ctx, tx, &d.Scopes, s.sorted("name, consumer, tenant", "credential_scope", s.texts("name", "consumer", "tenant")),
			func(c *tables.CredentialScope) []any { return []any{&c.Name, &c.Consumer, &c.Tenant} }),
		read(ctx, tx, &d.Batches, s.sorted("id, created_at, sealed_at, completed_at, run, complete_priority, tenant, consumer, target, kind, key, digest, "+
			"complete_consumer, complete_target, complete_kind, complete_key, complete_digest, complete_metadata, complete_payload", "batch", "id"),
			func(b *tables.Batch) []any {
				return []any{
					&b.ID, utc{&b.CreatedAt}, utc{&b.SealedAt}, utc{&b.CompletedAt}, &b.Run, &b.CompletePriority, &b.Tenant, &b.Consumer, &b.Target,
					&b.Kind, &b.Key, &b.Digest, &b.CompleteConsumer, &b.CompleteTarget, &b.CompleteKind, &b.CompleteKey, &b.CompleteDigest,
					&b.CompleteMetadata, &b.CompletePayload,
				}
			}),
		read(ctx, tx, &d.BatchRows, s.sorted("batch_id, message_id, number, fate, reason", "batch_row", "batch_id, number"),
			func(r *tables.BatchRow) []any { return []any{&r.BatchID, &r.MessageID, &r.Number, &r.Fate, &r.Reason} }),
	)
	if err != nil {
		t.Fatal("dump: ", err)
	}
	return d
}

func (s SQL) clock() string {
	if s.SQLite {
		return "SELECT CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER) * 1000"
	}
	return "SELECT clock_timestamp()"
}

// texts sorts by the bytes of the columns.
func (s SQL) texts(columns ...string) string {
	if s.SQLite {
		return strings.Join(columns, ", ")
	}
	return strings.Join(columns, ` COLLATE "C", `) + ` COLLATE "C"`
}

func (s SQL) sorted(columns, table, order string) string {
	return "SELECT " + columns + " FROM " + s.qualified(table) + " ORDER BY " + order
}

func read[R any](ctx context.Context, tx *sql.Tx, into *[]R, query string, fields func(*R) []any) error {
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var row R
		if err := rows.Scan(fields(&row)...); err != nil {
			return err
		}
		*into = append(*into, row)
	}
	return rows.Err()
}

// utc scans an instant, which drivers return in one location or another, and a file as microseconds.
type utc struct{ t *time.Time }

func (u utc) Scan(value any) error {
	switch t := value.(type) {
	case time.Time:
		*u.t = t.UTC()
	case int64:
		*u.t = time.UnixMicro(t).UTC()
	default:
		return fmt.Errorf("%T is no instant", value)
	}
	return nil
}
