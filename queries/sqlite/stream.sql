-- Stream: events read back, in the order of their positions, which is that of the commits: whatever is committed is below the horizon.

-- ReadEventsFrom says where the stream goes on after a place and how that stands (standing: 0 the stream goes on there, 1 no such place in this
-- incarnation, 2 what followed it was purged), with the incarnation. An empty incarnation is the place before the oldest event there is.
-- Guard: incarnation. Index: the primary keys. Locks: none.
-- name: ReadEventsFrom :many
SELECT
    i.id, i.purged_transaction_id, i.purged_position, i.purged_digest,
    CAST(CASE
        WHEN CAST(sqlc.arg(incarnation) AS TEXT) = '' THEN 0
        WHEN i.id <> CAST(sqlc.arg(incarnation) AS TEXT) THEN 1
        WHEN (i.purged_transaction_id, i.purged_position) > (CAST(sqlc.arg(after_transaction_id) AS INTEGER), CAST(sqlc.arg(after_position) AS INTEGER)) THEN 2
        WHEN i.purged_position = CAST(sqlc.arg(after_position) AS INTEGER) AND i.purged_digest = CAST(sqlc.arg(after_digest) AS BLOB) THEN 0
        WHEN EXISTS (
            SELECT 1
            FROM outbox_event AS a
            WHERE a.position = CAST(sqlc.arg(after_position) AS INTEGER)
                AND a.transaction_id = CAST(sqlc.arg(after_transaction_id) AS INTEGER)
                AND a.digest = CAST(sqlc.arg(after_digest) AS BLOB)
        ) THEN 0
        ELSE 1
    END AS INT16) AS standing
FROM outbox_incarnation AS i;

-- ReadEventsBound returns where a page ends: before the first of the events of the scope, types and streams (no types or streams: all) that does
-- not fit max_rows, or starts beyond max_bytes of payload, or else at the last of the examine events after a position; no row when there is none.
-- Guard: scope. Index: the primary key. Locks: none.
-- name: ReadEventsBound :many
SELECT e.position, e.digest
FROM outbox_event AS e
WHERE e.position = (
    SELECT MAX(s.position)
    FROM (
        SELECT x.position
        FROM outbox_event AS x
        WHERE x.position > CAST(sqlc.arg(after_position) AS INTEGER)
        ORDER BY x.position
        LIMIT CAST(sqlc.arg(examine) AS INTEGER)
    ) AS s
    WHERE s.position < COALESCE((
        SELECT MIN(m.position)
        FROM (
            SELECT
                c.position,
                ROW_NUMBER() OVER (ORDER BY c.position) AS nth,
                SUM(c.size) OVER (ORDER BY c.position) - c.size AS ahead
            FROM (
                SELECT x.position, octet_length(x.payload) AS size, x.tenant, x.type, x.stream
                FROM outbox_event AS x
                WHERE x.position > CAST(sqlc.arg(after_position) AS INTEGER)
                ORDER BY x.position
                LIMIT CAST(sqlc.arg(examine) AS INTEGER)
            ) AS c
            WHERE (CAST(sqlc.arg(all_tenants) AS BOOLEAN) OR c.tenant IN (SELECT t.value FROM json_each(CAST(sqlc.arg(scope) AS TEXT)) AS t))
                AND (CAST(sqlc.arg(types) AS TEXT) = '[]' OR c.type IN (SELECT t.value FROM json_each(CAST(sqlc.arg(types) AS TEXT)) AS t))
                AND (CAST(sqlc.arg(streams) AS TEXT) = '[]' OR c.stream IN (SELECT t.value FROM json_each(CAST(sqlc.arg(streams) AS TEXT)) AS t))
        ) AS m
        WHERE m.nth > CAST(sqlc.arg(max_rows) AS INTEGER) OR (m.nth > 1 AND m.ahead >= CAST(sqlc.arg(max_bytes) AS INTEGER))
    ), 9223372036854775807)
);

-- ReadEvents returns the events of the scope, types and streams (no types or streams: all) after a position up to the bound.
-- Guard: scope. Index: the primary key. Locks: none.
-- name: ReadEvents :many
SELECT e.position, e.transaction_id, e.recorded_at, e.tenant, e.stream, e.type, e.event_id, e.digest, e.metadata, e.payload
FROM outbox_event AS e
WHERE e.position > CAST(sqlc.arg(after_position) AS INTEGER)
    AND e.position <= CAST(sqlc.arg(bound) AS INTEGER)
    AND (CAST(sqlc.arg(all_tenants) AS BOOLEAN) OR +e.tenant IN (SELECT t.value FROM json_each(CAST(sqlc.arg(scope) AS TEXT)) AS t))
    AND (CAST(sqlc.arg(types) AS TEXT) = '[]' OR e.type IN (SELECT t.value FROM json_each(CAST(sqlc.arg(types) AS TEXT)) AS t))
    AND (CAST(sqlc.arg(streams) AS TEXT) = '[]' OR e.stream IN (SELECT t.value FROM json_each(CAST(sqlc.arg(streams) AS TEXT)) AS t))
ORDER BY e.position;

-- ReadEnd gives the place after which nothing is to be read yet.
-- Guard: none: a place. Index: the primary keys. Locks: none.
-- name: ReadEnd :many
SELECT
    CAST(COALESCE(l.position, i.purged_position) AS INTEGER) AS position,
    CAST(COALESCE(l.transaction_id, i.purged_transaction_id) AS INTEGER) AS transaction_id,
    CAST(COALESCE(l.digest, i.purged_digest) AS BLOB) AS digest,
    i.id AS incarnation
FROM outbox_incarnation AS i
LEFT JOIN outbox_event AS l ON l.position = (SELECT MAX(e.position) FROM outbox_event AS e);

-- ReadSource reads one event by all that names it. Guard: position, id and tenant. Index: the primary key. Locks: none.
-- name: ReadSource :many
SELECT e.position, e.transaction_id, e.recorded_at, e.tenant, e.stream, e.type, e.event_id, e.digest, e.metadata, e.payload
FROM outbox_event AS e
WHERE e.position = CAST(sqlc.arg(position) AS INTEGER)
    AND +e.event_id = CAST(sqlc.arg(event_id) AS TEXT) AND +e.tenant = CAST(sqlc.arg(tenant) AS TEXT);

-- AdoptStream returns the incarnation of the stream, which is always the file's own. Guard: none. Index: none, it is one row. Locks: none.
-- name: AdoptStream :many
SELECT i.id
FROM outbox_incarnation AS i;

-- FindReaders lists the named readers and where they stand, in the order of their names: those named, or all after a name.
-- Guard: names. Index: the primary key. Locks: none.
-- name: FindReaders :many
SELECT r.name, r.incarnation, r.transaction_id, r.position, r.digest, r.saved_at
FROM outbox_reader AS r
WHERE (CAST(sqlc.arg(all_names) AS BOOLEAN) OR r.name IN (SELECT n.value FROM json_each(CAST(sqlc.arg(names) AS TEXT)) AS n))
    AND r.name > CAST(sqlc.arg(after_name) AS TEXT)
ORDER BY r.name
LIMIT CAST(sqlc.arg(max_rows) AS INTEGER);

-- RemoveReader forgets a named reader, so that retention waits for it no longer.
-- Guard: exact name. Index: the primary key. Locks: none.
-- name: RemoveReader :many
DELETE FROM outbox_reader
WHERE name = CAST(sqlc.arg(name) AS TEXT)
RETURNING name;
