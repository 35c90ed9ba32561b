-- Enqueue: effects recorded in the caller's transaction.

-- Enqueue stores the messages of one call and their queue rows, and answers with one row per input, in input order.
-- Ids are drawn in input order; rows are inserted in the order of their identity, so that two overlapping batches cannot deadlock.
-- A key that exists is left alone and reported as not stored: FindKeys says why. Of one key given twice the first is stored.
-- Guard: the unique constraint (tenant, consumer, key). A caller at REPEATABLE READ or above gets 40001 on a concurrent duplicate.
-- Index: message_key_unique to detect duplicates; plain inserts otherwise. Locks: the rows it inserts.
-- name: Enqueue :many
WITH given AS (
    SELECT
        nextval('outbox.message_id_seq') AS id,
        unnest(sqlc.arg(tenants)::text[]) AS tenant,
        unnest(sqlc.arg(consumers)::text[]) AS consumer,
        unnest(sqlc.arg(targets)::text[]) AS target,
        unnest(sqlc.arg(kinds)::text[]) AS kind,
        unnest(sqlc.arg(keys)::text[]) AS key,
        unnest(sqlc.arg(order_keys)::text[]) AS order_key,
        unnest(sqlc.arg(priorities)::smallint[]) AS priority,
        unnest(sqlc.arg(digests)::bytea[]) AS digest,
        unnest(sqlc.arg(metadatas)::text[]) AS metadata,
        unnest(sqlc.arg(payloads)::bytea[]) AS payload,
        unnest(sqlc.arg(source_positions)::bigint[]) AS source_position,
        unnest(sqlc.arg(source_event_ids)::text[]) AS source_event_id,
        unnest(sqlc.arg(max_ages)::bigint[]) AS max_age,
        unnest(sqlc.arg(due_ats)::timestamptz[]) AS due_at,
        unnest(sqlc.arg(delays)::bigint[]) AS delay
),
stored AS (
    INSERT INTO outbox.message (
        id, tenant, consumer, target, kind, key, order_key, priority, digest, metadata, payload,
        source_position, source_event_id, max_age
    )
    SELECT
        g.id, g.tenant, g.consumer, g.target, g.kind, g.key, g.order_key, g.priority, g.digest, g.metadata, g.payload,
        g.source_position, g.source_event_id, g.max_age
    FROM given AS g
    ORDER BY g.tenant, g.consumer, g.key, g.id
    ON CONFLICT (tenant, consumer, key) DO NOTHING
    RETURNING id
),
timed AS (
    SELECT
        g.id, g.consumer, g.target, g.kind, g.tenant, g.order_key, g.priority, g.max_age,
        -- A due time in the past means now.
        GREATEST(g.due_at, statement_timestamp() + g.delay * interval '1 microsecond') AS due_at
    FROM given AS g
    INNER JOIN stored AS s ON s.id = g.id
),
queued AS (
    INSERT INTO outbox.queue (message_id, consumer, target, kind, tenant, order_key, priority, due_at, born_at, expires_at)
    SELECT
        t.id, t.consumer, t.target, t.kind, t.tenant, t.order_key, t.priority, t.due_at, t.due_at,
        CASE WHEN t.max_age = 0 THEN '9999-12-31 00:00:00+00'::timestamptz
            ELSE LEAST(t.due_at + t.max_age * interval '1 microsecond', '9999-12-31 00:00:00+00'::timestamptz) END
    FROM timed AS t
)
SELECT
    g.id::bigint AS id,
    (s.id IS NOT NULL)::boolean AS stored
FROM given AS g
LEFT JOIN stored AS s ON s.id = g.id
ORDER BY g.id;

-- EnqueueLeased is Enqueue by a process that performs what it enqueues: where leases says a length (0: not), the message is born leased, to that
-- worker, attempt 1 and epoch 1; token is fresh for this call. leased_at is when, in microseconds since 1970, 0 where it was not: a caller's
-- DateStyle may be one that its driver cannot read.
-- A statement of its own, since it needs the rights of a sender too, which who only produces does not have.
-- Guard: as Enqueue; born leased only without an order key, due now, and in a lane that is not paused.
-- Index: as Enqueue, and pause_pkey where a lease is asked for. Locks: the rows it inserts.
-- name: EnqueueLeased :many
WITH given AS (
    SELECT
        nextval('outbox.message_id_seq') AS id,
        unnest(sqlc.arg(tenants)::text[]) AS tenant,
        unnest(sqlc.arg(consumers)::text[]) AS consumer,
        unnest(sqlc.arg(targets)::text[]) AS target,
        unnest(sqlc.arg(kinds)::text[]) AS kind,
        unnest(sqlc.arg(keys)::text[]) AS key,
        unnest(sqlc.arg(order_keys)::text[]) AS order_key,
        unnest(sqlc.arg(priorities)::smallint[]) AS priority,
        unnest(sqlc.arg(digests)::bytea[]) AS digest,
        unnest(sqlc.arg(metadatas)::text[]) AS metadata,
        unnest(sqlc.arg(payloads)::bytea[]) AS payload,
        unnest(sqlc.arg(source_positions)::bigint[]) AS source_position,
        unnest(sqlc.arg(source_event_ids)::text[]) AS source_event_id,
        unnest(sqlc.arg(max_ages)::bigint[]) AS max_age,
        unnest(sqlc.arg(due_ats)::timestamptz[]) AS due_at,
        unnest(sqlc.arg(delays)::bigint[]) AS delay,
        unnest(sqlc.arg(leases)::bigint[]) AS lease,
        unnest(sqlc.arg(workers)::bigint[]) AS worker
),
stored AS (
    INSERT INTO outbox.message (
        id, tenant, consumer, target, kind, key, order_key, priority, digest, metadata, payload,
        source_position, source_event_id, max_age
    )
    SELECT
        g.id, g.tenant, g.consumer, g.target, g.kind, g.key, g.order_key, g.priority, g.digest, g.metadata, g.payload,
        g.source_position, g.source_event_id, g.max_age
    FROM given AS g
    ORDER BY g.tenant, g.consumer, g.key, g.id
    ON CONFLICT (tenant, consumer, key) DO NOTHING
    RETURNING id
),
-- Once for each row: the pauses would be asked for each column that follows from them.
timed AS MATERIALIZED (
    SELECT
        g.id, g.consumer, g.target, g.kind, g.tenant, g.order_key, g.priority, g.max_age, g.lease, g.worker,
        -- A due time in the past means now.
        GREATEST(g.due_at, statement_timestamp() + g.delay * interval '1 microsecond') AS due_at,
        g.lease > 0 AND g.order_key = '' AND g.delay = 0 AND g.due_at <= statement_timestamp()
        AND NOT EXISTS (
            SELECT FROM outbox.pause AS z
            WHERE z.consumer IN (g.consumer, '*')
                AND z.target IN (g.target, '*')
                AND z.kind IN (g.kind, '*')
                AND z.tenant IN (g.tenant, '*')
        ) AS leased
    FROM given AS g
    INNER JOIN stored AS s ON s.id = g.id
),
queued AS (
    INSERT INTO outbox.queue (
        message_id, consumer, target, kind, tenant, order_key, priority, due_at, born_at, expires_at,
        attempt, epoch, token, leased_by, leased_until
    )
    SELECT
        t.id, t.consumer, t.target, t.kind, t.tenant, t.order_key, t.priority, t.due_at, t.due_at,
        CASE WHEN t.max_age = 0 THEN '9999-12-31 00:00:00+00'::timestamptz
            ELSE LEAST(t.due_at + t.max_age * interval '1 microsecond', '9999-12-31 00:00:00+00'::timestamptz) END,
        t.leased::integer,
        t.leased::integer,
        CASE WHEN t.leased THEN sqlc.arg(token)::bytea ELSE E'\\x00000000000000000000000000000000'::bytea END,
        CASE WHEN t.leased THEN t.worker ELSE 0 END,
        CASE WHEN t.leased THEN t.due_at + t.lease * interval '1 microsecond' ELSE '0001-01-01 00:00:00+00'::timestamptz END
    FROM timed AS t
    RETURNING message_id, due_at, attempt
)
SELECT
    g.id::bigint AS id,
    (q.message_id IS NOT NULL)::boolean AS stored,
    (CASE WHEN q.attempt = 1 THEN extract(epoch FROM q.due_at) * 1000000 ELSE 0 END)::bigint AS leased_at
FROM given AS g
LEFT JOIN queued AS q ON q.message_id = g.id
ORDER BY g.id;

-- FindKeys says what stands under the given keys: for the inputs that Enqueue did not store. It runs as a second statement, since
-- the first cannot see the winner of a race. State: the outcome of a settled message, else pending, leased or parked. Digests are compared here:
-- a caller's bytea_output may be one that its driver cannot read.
-- Guard: exact (tenant, consumer, key). Index: message_key_unique, then the primary keys. Locks: none.
-- name: FindKeys :many
SELECT
    k.ordinal::integer AS ordinal,
    m.id,
    (m.digest = k.digest)::boolean AS same_digest,
    COALESCE(
        s.outcome,
        CASE WHEN q.state = 1 THEN 'parked' WHEN q.leased_until > clock_timestamp() THEN 'leased' ELSE 'pending' END
    )::text AS state
FROM (
    SELECT
        generate_subscripts(sqlc.arg(tenants)::text[], 1) AS ordinal,
        unnest(sqlc.arg(tenants)::text[]) AS tenant,
        unnest(sqlc.arg(consumers)::text[]) AS consumer,
        unnest(sqlc.arg(keys)::text[]) AS key,
        unnest(sqlc.arg(digests)::bytea[]) AS digest
) AS k
CROSS JOIN LATERAL (
    SELECT x.id, x.digest
    FROM outbox.message AS x
    WHERE x.tenant = k.tenant AND x.consumer = k.consumer AND x.key = k.key
    OFFSET 0
) AS m
LEFT JOIN outbox.settlement AS s ON s.message_id = m.id
LEFT JOIN outbox.queue AS q ON q.message_id = m.id;
