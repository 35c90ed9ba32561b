package sqlitedb

import (
	"context"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/fencepost-go/fencepost/db"
	"github.com/fencepost-go/fencepost/db/sqlitedb/internal/gen"
)

// AuditMessages implements db.Doctor.
func (s *Store) AuditMessages(ctx context.Context, arg db.AuditMessagesParams) ([]db.AuditMessagesRow, error) {
	return read(ctx, s, func(q *gen.Queries, now int64) ([]db.AuditMessagesRow, error) {
		bound, err := q.AuditMessagesBound(ctx, gen.AuditMessagesBoundParams{AfterID: arg.AfterID, Skip: int64(arg.Examine) - 1})
		if err != nil {
			return nil, err
		}
		upto := bound.Upto
		if upto == 0 {
			upto = math.MaxInt64
		}
		messages, err := q.AuditMessagesCount(ctx, gen.AuditMessagesCountParams{AfterID: arg.AfterID, Upto: upto})
		if err != nil {
			return nil, err
		}
		found, err := q.AuditMessages(ctx, gen.AuditMessagesParams{AfterID: arg.AfterID, Upto: upto, Now: now})
		rows := []db.AuditMessagesRow{}
		for _, row := range found {
			for problem := range strings.Lines(row.Problems) {
				rows = append(rows, db.AuditMessagesRow{ID: row.ID, Problem: strings.TrimSpace(problem)})
			}
		}
		return append(rows, db.AuditMessagesRow{ID: bound.Upto, Messages: messages, Highest: bound.Highest}), err
	})
}

// ListHeads implements db.Doctor.
func (s *Store) ListHeads(ctx context.Context, arg db.ListHeadsParams) ([]db.ListHeadsRow, error) {
	return read(ctx, s, func(q *gen.Queries, now int64) ([]db.ListHeadsRow, error) {
		looked, err := q.ListHeads(ctx, gen.ListHeadsParams{
			AfterConsumer: arg.AfterConsumer, AfterTarget: arg.AfterTarget, AfterTenant: arg.AfterTenant, AfterOrderKey: arg.AfterOrderKey,
			Examine: int64(arg.Examine), BornBefore: now - arg.Age, Now: now,
		})
		at := instant(now)
		rows, closing := []db.ListHeadsRow{}, db.ListHeadsRow{LeasedUntil: at, DueAt: at, BornAt: at, Now: at}
		for _, row := range looked {
			if row.Final {
				closing.Consumer, closing.Target, closing.Tenant, closing.OrderKey = row.Consumer, row.Target, row.Tenant, row.OrderKey
			}
			if row.Held {
				rows = append(rows, db.ListHeadsRow{
					Consumer: row.Consumer, Target: row.Target, Tenant: row.Tenant, OrderKey: row.OrderKey, ID: row.ID, Kind: row.Kind,
					Attempt: row.Attempt, Parked: row.Parked, Paused: row.Paused, Blocker: row.Blocker,
					LeasedUntil: instant(row.LeasedUntil), DueAt: instant(row.DueAt), BornAt: instant(row.BornAt), Now: at,
				})
			}
		}
		return append(rows, closing), err
	})
}

// surroundings reads the facts, one a row. sqlc knows neither the pragmas nor the catalogue. synchronous is that of a commit: a file that is not
// synced at all is one whose fsync is off. An index has its table's prefix off; those of the primary keys cannot be missing.
const surroundings = `
SELECT 'setting', 'server_version', 'SQLite ' || sqlite_version()
UNION ALL SELECT 'setting', 'role', 'file'
UNION ALL SELECT 'setting', 'path', d.file FROM pragma_database_list AS d WHERE d.name = 'main'
UNION ALL SELECT 'setting', 'journal_mode', p.journal_mode FROM pragma_journal_mode AS p
UNION ALL SELECT 'setting', 'fsync', CASE p.synchronous WHEN 0 THEN 'off' ELSE 'on' END FROM pragma_synchronous AS p
UNION ALL SELECT 'setting', 'synchronous', CASE p.synchronous WHEN 0 THEN 'off' WHEN 1 THEN 'normal' WHEN 2 THEN 'full' ELSE 'extra' END FROM pragma_synchronous AS p
UNION ALL SELECT 'setting', 'busy_timeout', p.timeout FROM pragma_busy_timeout AS p
UNION ALL SELECT 'setting', 'page_size', p.page_size FROM pragma_page_size AS p
UNION ALL SELECT 'setting', 'page_count', p.page_count FROM pragma_page_count AS p
UNION ALL SELECT 'setting', 'freelist_count', p.freelist_count FROM pragma_freelist_count AS p
UNION ALL SELECT 'table', substr(t.name, 8), '' FROM sqlite_schema AS t WHERE t.type = 'table' AND t.name GLOB 'outbox_*'
UNION ALL SELECT 'index', e.value, CASE WHEN i.name IS NULL THEN 'missing' ELSE 'valid' END
FROM json_each('["audit_message", "order_lease_message", "queue_due", "queue_order", "queue_parked", "settlement_undelivered", "worker_name"]') AS e
LEFT JOIN sqlite_schema AS i ON i.type = 'index' AND i.name = 'outbox_' || e.value
UNION ALL SELECT 'session', 'sees all', 'true'
UNION ALL SELECT 'session', 'prepared transaction', '0'`

// ReadSurroundings implements db.Doctor. Its facts are SQLite's own; log_bytes is the size of the write-ahead log.
func (s *Store) ReadSurroundings(ctx context.Context, _ db.ReadSurroundingsParams) ([]db.ReadSurroundingsRow, error) {
	found, err := s.reader.pool.QueryContext(ctx, surroundings)
	if err != nil {
		return nil, translate(err)
	}
	defer func() { _ = found.Close() }()
	rows := []db.ReadSurroundingsRow{}
	for found.Next() {
		var row db.ReadSurroundingsRow
		if err := found.Scan(&row.Section, &row.Name, &row.Value); err != nil {
			return nil, translate(err)
		}
		rows = append(rows, row)
		if row.Name != "path" {
			continue
		}
		if log, err := os.Stat(row.Value + "-wal"); err == nil {
			rows = append(rows, db.ReadSurroundingsRow{Section: "setting", Name: "log_bytes", Value: strconv.FormatInt(log.Size(), 10)})
		}
	}
	return rows, translate(found.Err())
}
