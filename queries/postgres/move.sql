-- Move: what `fencepost move` does in the database that takes over an outbox. Rows come as JSON arrays of objects with the columns' names; none of the
-- statements is for a program that sends.

-- MoveEmpty says that nothing is here but what a first migration makes. Guard: none. Index: the primary keys. Locks: none.
-- name: MoveEmpty :many
SELECT (
    NOT EXISTS (SELECT FROM outbox.message) AND NOT EXISTS (SELECT FROM outbox.queue) AND NOT EXISTS (SELECT FROM outbox.settlement)
    AND NOT EXISTS (SELECT FROM outbox.order_lease) AND NOT EXISTS (SELECT FROM outbox.pause) AND NOT EXISTS (SELECT FROM outbox.audit)
    AND NOT EXISTS (SELECT FROM outbox.event) AND NOT EXISTS (SELECT FROM outbox.reader) AND NOT EXISTS (SELECT FROM outbox.claim)
    AND NOT EXISTS (SELECT FROM outbox.batch)
)::boolean AS nothing;

-- MoveReserve lets new messages, acts, workers and events begin after the given ids; it never goes back. schema_name is the schema's.
-- Guard: none. Index: none. Locks: the sequences, for an instant.
-- name: MoveReserve :many
SELECT setval(
    pg_get_serial_sequence(format('%I.%I', sqlc.arg(schema_name)::text, s.name), s.id),
    GREATEST(s.highest, nextval(pg_get_serial_sequence(format('%I.%I', sqlc.arg(schema_name)::text, s.name), s.id)))
)::bigint AS reserved
FROM (
    VALUES
    ('message', 'id', sqlc.arg(message)::bigint), ('audit', 'id', sqlc.arg(audit)::bigint), ('worker', 'id', sqlc.arg(worker)::bigint),
    ('event', 'position', sqlc.arg(event)::bigint)
) AS s (name, id, highest);

-- MoveStream makes the stream here the one that is moved: its cursors are good here too. Its events have their positions as transaction numbers, and the
-- base puts all that is appended from now on after the highest of them.
-- Guard: none. Index: incarnation_pkey. Locks: the incarnation's row.
-- name: MoveStream :many
UPDATE outbox.incarnation AS i
SET id = sqlc.arg(stream)::text, purged_transaction_id = sqlc.arg(purged_position)::bigint, purged_position = sqlc.arg(purged_position)::bigint,
    purged_digest = sqlc.arg(purged_digest)::bytea,
    written_by = pg_current_xact_id()::xid::text::bigint,
    base = GREATEST(i.base, 1 - pg_snapshot_xmin(pg_current_snapshot())::text::bigint + sqlc.arg(event)::bigint)
WHERE i.one
RETURNING i.base;

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
),
told AS (
    INSERT INTO outbox.event
    SELECT (r).*
    FROM json_populate_recordset(NULL::outbox.event, sqlc.arg(events)::text::json) AS r
    ON CONFLICT DO NOTHING
),
placed AS (
    INSERT INTO outbox.reader
    SELECT (r).*
    FROM json_populate_recordset(NULL::outbox.reader, sqlc.arg(readers)::text::json) AS r
    ON CONFLICT DO NOTHING
),
claimed AS (
    INSERT INTO outbox.claim
    SELECT (r).*
    FROM json_populate_recordset(NULL::outbox.claim, sqlc.arg(claims)::text::json) AS r
    ON CONFLICT DO NOTHING
)
SELECT x.id::bigint AS id FROM stored AS x;

-- MoveCompare says of each table how many rows are given, how many it has with an id above after_id and up to upto (of pauses, readers and the
-- incarnation all, of claims those given), and the lowest id of those that are not exactly as they are given (0 = all are; of what has no id 1). With the
-- last id there are no more claims than claims_in_all.
-- Guard: none. Index: the primary keys, order_lease_message; claim_pkey, read once as a whole at the end. Locks: none.
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
    ON ((r).consumer, (r).target, (r).kind, (r).tenant) = (t.consumer, t.target, t.kind, t.tenant)
UNION ALL
SELECT
    'event', json_array_length(sqlc.arg(events)::text::json), count(*),
    COALESCE(min(t.position) FILTER (WHERE t.* IS DISTINCT FROM r.*), 0)
FROM outbox.event AS t
LEFT JOIN json_populate_recordset(NULL::outbox.event, sqlc.arg(events)::text::json) AS r ON (r).position = t.position
WHERE t.position > sqlc.arg(after_id)::bigint AND t.position <= sqlc.arg(upto)::bigint
UNION ALL
SELECT
    'reader', json_array_length(sqlc.arg(readers)::text::json), count(*),
    COALESCE(min(1) FILTER (WHERE t.* IS DISTINCT FROM r.*), 0)
FROM outbox.reader AS t
LEFT JOIN json_populate_recordset(NULL::outbox.reader, sqlc.arg(readers)::text::json) AS r ON (r).name = t.name
UNION ALL
SELECT
    'incarnation', json_array_length(sqlc.arg(incarnations)::text::json), count(*),
    COALESCE(min(1) FILTER (WHERE (t.id, t.purged_transaction_id, t.purged_position, t.purged_digest)
        IS DISTINCT FROM ((r).id, (r).purged_transaction_id, (r).purged_position, (r).purged_digest)), 0)
FROM outbox.incarnation AS t
LEFT JOIN json_populate_recordset(NULL::outbox.incarnation, sqlc.arg(incarnations)::text::json) AS r ON (r).id = t.id
UNION ALL
SELECT
    'claim', json_array_length(sqlc.arg(claims)::text::json), count(t.key),
    GREATEST(
        COALESCE(min(1) FILTER (WHERE t.key IS NOT NULL AND t.* IS DISTINCT FROM r.*), 0),
        CASE WHEN sqlc.arg(upto)::bigint = 9223372036854775807 THEN
            (SELECT (count(*) > sqlc.arg(claims_in_all)::bigint)::integer FROM outbox.claim AS a)
        ELSE 0 END
    )
FROM json_populate_recordset(NULL::outbox.claim, sqlc.arg(claims)::text::json) AS r
LEFT JOIN outbox.claim AS t ON (t.tenant, t.scope, t.key) = ((r).tenant, (r).scope, (r).key);

-- MoveResume lifts the pause that a move itself made, which has this reason. Guard: everything, by that reason. Index: pause_pkey. Locks: the pause row.
-- name: MoveResume :many
DELETE FROM outbox.pause AS z
WHERE z.consumer = '*' AND z.target = '*' AND z.kind = '*' AND z.tenant = '*' AND z.reason = sqlc.arg(reason)::text
RETURNING z.paused_at;
