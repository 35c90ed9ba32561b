-- Move: what `fencepost move` does in the database that takes over an outbox. Rows come as JSON arrays of objects with the columns' names; none of the
-- statements is for a program that sends.

-- MoveEmpty says that nothing is here but what a first migration makes. Guard: none. Index: the primary keys. Locks: none.
-- name: MoveEmpty :many
SELECT (
    NOT EXISTS (SELECT FROM outbox.message) AND NOT EXISTS (SELECT FROM outbox.queue) AND NOT EXISTS (SELECT FROM outbox.settlement)
    AND NOT EXISTS (SELECT FROM outbox.order_lease) AND NOT EXISTS (SELECT FROM outbox.pause) AND NOT EXISTS (SELECT FROM outbox.audit)
)::boolean AS nothing;

-- MoveReserve lets new messages, acts and workers begin after the given ids; it never goes back. schema_name is the schema's.
-- Guard: none. Index: none. Locks: the sequences, for an instant.
-- name: MoveReserve :many
SELECT setval(
    pg_get_serial_sequence(format('%I.%I', sqlc.arg(schema_name)::text, s.name), 'id'),
    GREATEST(s.highest, nextval(pg_get_serial_sequence(format('%I.%I', sqlc.arg(schema_name)::text, s.name), 'id')))
)::bigint AS reserved
FROM (VALUES ('message', sqlc.arg(message)::bigint), ('audit', sqlc.arg(audit)::bigint), ('worker', sqlc.arg(worker)::bigint)) AS s (name, highest);

-- MoveIn stores rows of another outbox as they are and returns the messages it stored. What is here already, from a run before, it leaves alone; of an
-- open or settled message it takes the rest of its rows only together with the message, so that none comes back which was finished here.
-- Guard: no such row yet. Index: the primary keys, message_key_unique. Locks: the new rows.
-- name: MoveIn :many
WITH stored AS (
    INSERT INTO outbox.message
    SELECT (r).*
    FROM json_populate_recordset(NULL::outbox.message, sqlc.arg(messages)::text::json) AS r
    ON CONFLICT DO NOTHING
    RETURNING id
),
opened AS (
    INSERT INTO outbox.queue
    SELECT (r).*
    FROM json_populate_recordset(NULL::outbox.queue, sqlc.arg(queue)::text::json) AS r
    WHERE (r).message_id = ANY (ARRAY(SELECT x.id FROM stored AS x))
),
settled AS (
    INSERT INTO outbox.settlement
    SELECT (r).*
    FROM json_populate_recordset(NULL::outbox.settlement, sqlc.arg(settlements)::text::json) AS r
    WHERE (r).message_id = ANY (ARRAY(SELECT x.id FROM stored AS x))
),
blocked AS (
    INSERT INTO outbox.order_lease
    SELECT (r).*
    FROM json_populate_recordset(NULL::outbox.order_lease, sqlc.arg(order_leases)::text::json) AS r
    WHERE (r).message_id = ANY (ARRAY(SELECT x.id FROM stored AS x))
),
paused AS (
    INSERT INTO outbox.pause
    SELECT (r).*
    FROM json_populate_recordset(NULL::outbox.pause, sqlc.arg(pauses)::text::json) AS r
    ON CONFLICT DO NOTHING
),
audited AS (
    INSERT INTO outbox.audit
    OVERRIDING SYSTEM VALUE
    SELECT (r).*
    FROM json_populate_recordset(NULL::outbox.audit, sqlc.arg(audits)::text::json) AS r
    ON CONFLICT DO NOTHING
)
SELECT x.id::bigint AS id FROM stored AS x;

-- MoveCompare says of each table how many rows are given, how many it has with an id above after_id and up to upto (of pauses all), and the lowest id of
-- those that are not exactly as they are given (0 = all are; of a pause 1).
-- Guard: none. Index: the primary keys, order_lease_message. Locks: none.
-- name: MoveCompare :many
SELECT
    'message'::text AS rows_of, json_array_length(sqlc.arg(messages)::text::json)::bigint AS given, count(*)::bigint AS held,
    COALESCE(min(t.id) FILTER (WHERE t.* IS DISTINCT FROM r.*), 0)::bigint AS strange
FROM outbox.message AS t
LEFT JOIN json_populate_recordset(NULL::outbox.message, sqlc.arg(messages)::text::json) AS r ON (r).id = t.id
WHERE t.id > sqlc.arg(after_id)::bigint AND t.id <= sqlc.arg(upto)::bigint
UNION ALL
SELECT
    'queue', json_array_length(sqlc.arg(queue)::text::json), count(*),
    COALESCE(min(t.message_id) FILTER (WHERE t.* IS DISTINCT FROM r.*), 0)
FROM outbox.queue AS t
LEFT JOIN json_populate_recordset(NULL::outbox.queue, sqlc.arg(queue)::text::json) AS r ON (r).message_id = t.message_id
WHERE t.message_id > sqlc.arg(after_id)::bigint AND t.message_id <= sqlc.arg(upto)::bigint
UNION ALL
SELECT
    'settlement', json_array_length(sqlc.arg(settlements)::text::json), count(*),
    COALESCE(min(t.message_id) FILTER (WHERE t.* IS DISTINCT FROM r.*), 0)
FROM outbox.settlement AS t
LEFT JOIN json_populate_recordset(NULL::outbox.settlement, sqlc.arg(settlements)::text::json) AS r ON (r).message_id = t.message_id
WHERE t.message_id > sqlc.arg(after_id)::bigint AND t.message_id <= sqlc.arg(upto)::bigint
UNION ALL
SELECT
    'order_lease', json_array_length(sqlc.arg(order_leases)::text::json), count(*),
    COALESCE(min(t.message_id) FILTER (WHERE t.* IS DISTINCT FROM r.*), 0)
FROM outbox.order_lease AS t
LEFT JOIN json_populate_recordset(NULL::outbox.order_lease, sqlc.arg(order_leases)::text::json) AS r ON (r).message_id = t.message_id
WHERE t.message_id > sqlc.arg(after_id)::bigint AND t.message_id <= sqlc.arg(upto)::bigint
UNION ALL
SELECT
    'audit', json_array_length(sqlc.arg(audits)::text::json), count(*),
    COALESCE(min(t.id) FILTER (WHERE t.* IS DISTINCT FROM r.*), 0)
FROM outbox.audit AS t
LEFT JOIN json_populate_recordset(NULL::outbox.audit, sqlc.arg(audits)::text::json) AS r ON (r).id = t.id
WHERE t.id > sqlc.arg(after_id)::bigint AND t.id <= sqlc.arg(upto)::bigint
UNION ALL
SELECT
    'pause', json_array_length(sqlc.arg(pauses)::text::json), count(*),
    COALESCE(min(1) FILTER (WHERE t.* IS DISTINCT FROM r.*), 0)
FROM outbox.pause AS t
LEFT JOIN json_populate_recordset(NULL::outbox.pause, sqlc.arg(pauses)::text::json) AS r
    ON ((r).consumer, (r).target, (r).kind, (r).tenant) = (t.consumer, t.target, t.kind, t.tenant);

-- MoveResume lifts the pause that a move itself made, which has this reason. Guard: everything, by that reason. Index: pause_pkey. Locks: the pause row.
-- name: MoveResume :many
DELETE FROM outbox.pause AS z
WHERE z.consumer = '*' AND z.target = '*' AND z.kind = '*' AND z.tenant = '*' AND z.reason = sqlc.arg(reason)::text
RETURNING z.paused_at;
