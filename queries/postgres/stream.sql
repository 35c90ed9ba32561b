-- Stream: events read back, in the order (transaction_id, position) below the oldest running transaction, where nothing is added any more.

-- ReadEvents reads on after a place: at most max_rows events of the scope, types and streams (no types or streams: all), none that starts beyond
-- max_bytes of payload, looking at no more than examine. The closing row comes last: the place to go on after, and how the given one stands (standing):
-- 0 the stream goes on there, 1 no such place in this incarnation, 2 what followed it was purged, 3 the tables were restored from a dump: AdoptStream.
-- No event comes unless it is 0. An empty incarnation is the place before the oldest event there is.
-- Guard: incarnation, scope, horizon. Index: event_order; event_pkey for the given place. Locks: none.
-- name: ReadEvents :many
WITH era AS (
    SELECT
        i.id, i.purged_transaction_id, i.purged_position, i.purged_digest,
        -- From the oldest event on: after the mark, since an old snapshot may keep the index entries of what is gone.
        GREATEST(sqlc.arg(after_transaction_id)::bigint, CASE WHEN sqlc.arg(incarnation)::text = '' THEN i.purged_transaction_id ELSE 0 END) AS from_transaction_id,
        GREATEST(sqlc.arg(after_position)::bigint, CASE WHEN sqlc.arg(incarnation)::text = '' THEN i.purged_position ELSE 0 END) AS from_position,
        i.base + pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS horizon,
        CASE
            WHEN i.written_by <> i.xmin::text::bigint THEN 3
            WHEN sqlc.arg(incarnation)::text = '' THEN 0
            WHEN i.id <> sqlc.arg(incarnation)::text THEN 1
            WHEN (i.purged_transaction_id, i.purged_position) > (sqlc.arg(after_transaction_id)::bigint, sqlc.arg(after_position)::bigint) THEN 2
            WHEN i.purged_position = sqlc.arg(after_position)::bigint AND i.purged_digest = sqlc.arg(after_digest)::bytea THEN 0
            WHEN EXISTS (
                SELECT FROM outbox.event AS a
                WHERE a.position = sqlc.arg(after_position)::bigint
                    AND a.transaction_id = sqlc.arg(after_transaction_id)::bigint
                    AND a.digest = sqlc.arg(after_digest)::bytea
            ) THEN 0
            ELSE 1
        END AS standing
    FROM outbox.incarnation AS i
),
seen AS MATERIALIZED (
    SELECT e.position, e.transaction_id, e.recorded_at, e.tenant, e.stream, e.type, e.event_id, e.digest, e.metadata, e.payload
    FROM outbox.event AS e
    WHERE (e.transaction_id, e.position) > ((SELECT h.from_transaction_id FROM era AS h), (SELECT h.from_position FROM era AS h))
        AND e.transaction_id < (SELECT h.horizon FROM era AS h)
        AND (SELECT h.standing FROM era AS h) = 0
    ORDER BY e.transaction_id, e.position
    LIMIT sqlc.arg(examine)::integer
),
matching AS MATERIALIZED (
    SELECT
        s.position, s.transaction_id,
        row_number() OVER (ORDER BY s.transaction_id, s.position) AS nth,
        sum(octet_length(s.payload)) OVER (ORDER BY s.transaction_id, s.position) - octet_length(s.payload) AS ahead
    FROM seen AS s
    WHERE (sqlc.arg(all_tenants)::boolean OR s.tenant = ANY (sqlc.arg(scope)::text[]))
        AND (cardinality(sqlc.arg(types)::text[]) = 0 OR s.type = ANY (sqlc.arg(types)::text[]))
        AND (cardinality(sqlc.arg(streams)::text[]) = 0 OR s.stream = ANY (sqlc.arg(streams)::text[]))
),
bound AS (
    -- The first that does not fit; the page ends before it.
    SELECT m.transaction_id, m.position
    FROM matching AS m
    WHERE m.nth > sqlc.arg(max_rows)::integer OR (m.nth > 1 AND m.ahead >= sqlc.arg(max_bytes)::bigint)
    ORDER BY m.nth
    LIMIT 1
)
SELECT
    w.position, w.transaction_id, w.recorded_at, w.tenant, w.stream, w.type, w.event_id, w.digest, w.metadata, w.payload,
    ''::text AS incarnation, 0::smallint AS standing, false AS closing
FROM (
    SELECT s.position, s.transaction_id, s.recorded_at, s.tenant, s.stream, s.type, s.event_id, s.digest, s.metadata, s.payload
    FROM seen AS s
    INNER JOIN matching AS m ON m.position = s.position
    WHERE NOT EXISTS (SELECT FROM bound AS b WHERE (b.transaction_id, b.position) <= (s.transaction_id, s.position))
    ORDER BY s.transaction_id, s.position
) AS w
UNION ALL
SELECT
    COALESCE(l.position, NULLIF(sqlc.arg(after_position)::bigint, 0), h.purged_position)::bigint,
    COALESCE(l.transaction_id, NULLIF(sqlc.arg(after_transaction_id)::bigint, 0), h.purged_transaction_id)::bigint,
    '0001-01-01 00:00:00+00'::timestamptz, '', '', '', '',
    COALESCE(l.digest, CASE WHEN sqlc.arg(after_position)::bigint = 0 THEN h.purged_digest ELSE sqlc.arg(after_digest)::bytea END)::bytea,
    '', ''::bytea, h.id, h.standing::smallint, true
FROM era AS h
LEFT JOIN LATERAL (
    SELECT s.position, s.transaction_id, s.digest
    FROM seen AS s
    WHERE NOT EXISTS (SELECT FROM bound AS b WHERE (b.transaction_id, b.position) <= (s.transaction_id, s.position))
    ORDER BY s.transaction_id DESC, s.position DESC
    LIMIT 1
) AS l ON true;

-- ReadEnd gives the place after which nothing is to be read yet; its rows are as the closing row of ReadEvents.
-- Guard: horizon. Index: event_order. Locks: none.
-- name: ReadEnd :many
SELECT
    COALESCE(l.position, i.purged_position)::bigint AS position,
    COALESCE(l.transaction_id, i.purged_transaction_id)::bigint AS transaction_id,
    COALESCE(l.digest, i.purged_digest)::bytea AS digest,
    i.id AS incarnation,
    (CASE WHEN i.written_by <> i.xmin::text::bigint THEN 3 ELSE 0 END)::smallint AS standing
FROM outbox.incarnation AS i
LEFT JOIN LATERAL (
    SELECT e.position, e.transaction_id, e.digest
    FROM outbox.event AS e
    WHERE e.transaction_id < (SELECT x.base + pg_snapshot_xmin(pg_current_snapshot())::text::bigint FROM outbox.incarnation AS x)
    ORDER BY e.transaction_id DESC, e.position DESC
    LIMIT 1
) AS l ON true;

-- ReadSource reads one event by all that names it. A committed one is found whatever the horizon.
-- Guard: position, id and tenant. Index: event_pkey. Locks: none.
-- name: ReadSource :many
SELECT e.position::bigint AS position, e.transaction_id, e.recorded_at, e.tenant, e.stream, e.type, e.event_id, e.digest, e.metadata, e.payload
FROM outbox.event AS e
WHERE e.position = sqlc.arg(position)::bigint AND e.event_id = sqlc.arg(event_id)::text AND e.tenant = sqlc.arg(tenant)::text;

-- AdoptStream makes the tables of a restored dump this server's own: a new incarnation, whose events come after all that is there. Nothing
-- happens to one that is its own already; the id that comes back is the current one.
-- Guard: the row's own xmin. Index: incarnation_pkey, event_order. Locks: the incarnation's row.
-- name: AdoptStream :many
WITH adopted AS (
    UPDATE outbox.incarnation AS i
    SET id = replace(gen_random_uuid()::text, '-', ''),
        written_by = pg_current_xact_id()::xid::text::bigint,
        base = 1 - pg_snapshot_xmin(pg_current_snapshot())::text::bigint + GREATEST(
            i.purged_transaction_id,
            (SELECT e.transaction_id FROM outbox.event AS e ORDER BY e.transaction_id DESC, e.position DESC LIMIT 1)
        )
    WHERE i.one AND i.written_by <> i.xmin::text::bigint
    RETURNING i.id
)
SELECT a.id::text AS id FROM adopted AS a
UNION ALL
SELECT i.id FROM outbox.incarnation AS i WHERE i.written_by = i.xmin::text::bigint;

-- FindReaders lists the named readers and where they stand, in the order of their names: those named, or all after a name.
-- Guard: names. Index: reader_pkey. Locks: none.
-- name: FindReaders :many
SELECT r.name, r.incarnation, r.transaction_id, r.position, r.digest, r.saved_at
FROM outbox.reader AS r
WHERE (sqlc.arg(all_names)::boolean OR r.name = ANY (sqlc.arg(names)::text[]))
    AND r.name > sqlc.arg(after_name)::text
ORDER BY r.name
LIMIT sqlc.arg(max_rows)::integer;

-- RemoveReader forgets a named reader, so that retention waits for it no longer.
-- Guard: exact name. Index: reader_pkey. Locks: the reader's row.
-- name: RemoveReader :many
DELETE FROM outbox.reader AS r
WHERE r.name = sqlc.arg(name)::text
RETURNING r.name;
