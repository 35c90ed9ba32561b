-- Append: facts, and how far their readers came, recorded in the caller's transaction, inside a savepoint: all of a call or nothing.

-- AppendEvent stores one event; no row comes back when its id exists: FindEvents says why. Of one id given twice the first is stored.
-- Guard: the unique constraint (tenant, event_id). Index: event_id_unique. Locks: none beside the write lock.
-- name: AppendEvent :many
INSERT INTO outbox_event (recorded_at, tenant, stream, type, event_id, digest, metadata, payload)
VALUES (
    sqlc.arg(recorded_at), sqlc.arg(tenant), sqlc.arg(stream), sqlc.arg(type), sqlc.arg(event_id), sqlc.arg(digest), sqlc.arg(metadata),
    sqlc.arg(payload)
)
ON CONFLICT (tenant, event_id) DO NOTHING
RETURNING position;

-- FindEvents says what stands under the given ids, each {tenant, event_id, digest in hex}: for the events that AppendEvents did not store.
-- Guard: exact (tenant, event_id). Index: event_id_unique. Locks: none.
-- name: FindEvents :many
SELECT
    CAST(g.key + 1 AS INT32) AS ordinal,
    e.position,
    CAST(e.digest = unhex(g.value ->> '$.digest') AS BOOLEAN) AS same_digest
FROM json_each(CAST(sqlc.arg(given) AS TEXT)) AS g
CROSS JOIN outbox_event AS e ON e.tenant = g.value ->> '$.tenant' AND e.event_id = g.value ->> '$.event_id';

-- SaveReaderOn moves a named reader that stands where the caller thinks (from_*); no row comes back when it does not, or is new.
-- Guard: name and place. Index: the primary key. Locks: none beside the write lock.
-- name: SaveReaderOn :many
UPDATE outbox_reader
SET incarnation = CAST(sqlc.arg(incarnation) AS TEXT), transaction_id = CAST(sqlc.arg(transaction_id) AS INTEGER),
    position = CAST(sqlc.arg(position) AS INTEGER), digest = CAST(sqlc.arg(digest) AS BLOB), saved_at = CAST(sqlc.arg(saved_at) AS INTEGER)
WHERE name = CAST(sqlc.arg(name) AS TEXT)
    AND transaction_id = CAST(sqlc.arg(from_transaction_id) AS INTEGER) AND position = CAST(sqlc.arg(from_position) AS INTEGER)
RETURNING name;

-- SaveReaderNew begins a named reader; no row comes back when there is one. Guard: name. Index: the primary key. Locks: none beside the write lock.
-- name: SaveReaderNew :many
INSERT INTO outbox_reader (name, incarnation, transaction_id, position, digest, saved_at)
VALUES (
    sqlc.arg(name), sqlc.arg(incarnation), sqlc.arg(transaction_id), sqlc.arg(position), sqlc.arg(digest), sqlc.arg(saved_at)
)
ON CONFLICT (name) DO NOTHING
RETURNING name;
