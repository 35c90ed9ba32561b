-- Batch: jobs of many messages, each row with a fate of its own. Rows are added in the transaction that enqueues their messages; triggers on
-- queue and settlement (schema/postgres) keep the fates and complete the batches, whoever ends or replays a message.
--
-- Fates: 0 open, 1 delivered, 2 dead, 3 cancelled, 4 expired, 5 rejected. Not sealed or not completed yet is 9999-12-31.

-- AddBatch begins a batch, unless its key is taken, and says what stands under the key then: added false, and whether that was begun with the same
-- digest. No row comes back when another began it in this very moment: ask again.
-- Guard: the unique constraint (tenant, consumer, key). Index: batch_key_unique. Locks: the row.
-- name: AddBatch :many
WITH added AS (
    INSERT INTO outbox.batch AS b (
        tenant, consumer, target, kind, key, digest, complete_consumer, complete_target, complete_kind, complete_key, complete_priority,
        complete_digest, complete_metadata, complete_payload
    )
    VALUES (
        sqlc.arg(tenant)::text, sqlc.arg(consumer)::text, sqlc.arg(target)::text, sqlc.arg(kind)::text, sqlc.arg(key)::text,
        sqlc.arg(digest)::bytea, sqlc.arg(complete_consumer)::text, sqlc.arg(complete_target)::text, sqlc.arg(complete_kind)::text,
        sqlc.arg(complete_key)::text, sqlc.arg(complete_priority)::smallint, sqlc.arg(complete_digest)::bytea,
        sqlc.arg(complete_metadata)::text, sqlc.arg(complete_payload)::bytea
    )
    ON CONFLICT (tenant, consumer, key) DO NOTHING
    RETURNING b.id
)
SELECT a.id::bigint AS id, true AS added, true AS same_digest FROM added AS a
UNION ALL
SELECT b.id, false, b.digest = sqlc.arg(digest)::bytea
FROM outbox.batch AS b
WHERE b.tenant = sqlc.arg(tenant)::text AND b.consumer = sqlc.arg(consumer)::text AND b.key = sqlc.arg(key)::text;

-- FindBatch finds a batch by its key.
-- Guard: exact (tenant, consumer, key), scope. Index: batch_key_unique. Locks: none.
-- name: FindBatch :many
SELECT b.id
FROM outbox.batch AS b
WHERE b.tenant = sqlc.arg(tenant)::text AND b.consumer = sqlc.arg(consumer)::text AND b.key = sqlc.arg(key)::text
    AND (sqlc.arg(all_tenants)::boolean OR b.tenant = ANY (sqlc.arg(scope)::text[]));

-- AddBatchRows adds rows to a batch that is not sealed, in the transaction that enqueued their messages, and returns the numbers that it added. A
-- row that is there stays as it is, and so does a message's row in another batch: FindBatchRows says what stands. message_id 0 is a row that was
-- rejected, for its reason. A message that has ended already gives its row its fate.
-- Guard: scope, not sealed. A caller at REPEATABLE READ or above gets 40001 beside a seal. Index: batch_pkey, batch_row_pkey,
-- batch_row_message. Locks: the batch, against its seal, and open messages that another transaction enqueued.
-- name: AddBatchRows :many
WITH filling AS MATERIALIZED (
    SELECT b.id
    FROM outbox.batch AS b
    WHERE b.id = sqlc.arg(batch_id)::bigint
        AND (sqlc.arg(all_tenants)::boolean OR b.tenant = ANY (sqlc.arg(scope)::text[]))
        AND b.sealed_at = '9999-12-31 00:00:00+00'
    FOR KEY SHARE
)
INSERT INTO outbox.batch_row AS r (batch_id, number, message_id, fate, reason)
SELECT f.id, g.number, g.message_id, CASE WHEN g.message_id = 0 THEN 5 ELSE 0 END, g.reason
FROM filling AS f
CROSS JOIN (
    SELECT
        unnest(sqlc.arg(numbers)::integer[]) AS number,
        unnest(sqlc.arg(message_ids)::bigint[]) AS message_id,
        unnest(sqlc.arg(reasons)::text[]) AS reason
) AS g
ORDER BY g.number
ON CONFLICT DO NOTHING
RETURNING r.number;

-- FindBatchRows says what stands under numbers of a batch, for those that AddBatchRows did not add: one that does not come back is not there,
-- since the batch is sealed, unknown in this scope, or its message is of another batch.
-- Guard: scope. Index: batch_pkey, batch_row_pkey. Locks: none.
-- name: FindBatchRows :many
SELECT r.number, r.message_id, r.fate, r.reason
FROM outbox.batch_row AS r
WHERE r.batch_id = (
        SELECT b.id FROM outbox.batch AS b
        WHERE b.id = sqlc.arg(batch_id)::bigint AND (sqlc.arg(all_tenants)::boolean OR b.tenant = ANY (sqlc.arg(scope)::text[]))
    )
    AND r.number = ANY (sqlc.arg(numbers)::integer[])
ORDER BY r.number;

-- SealBatch says that a batch has all its rows, and completes it if none is open. No row comes back when it was sealed before, or is unknown in
-- this scope. It waits for transactions that add rows.
-- Guard: scope, not sealed. Index: batch_pkey; for the completion batch_row_fate. Locks: the batch.
-- name: SealBatch :many
WITH filled AS MATERIALIZED (
    SELECT b.id
    FROM outbox.batch AS b
    WHERE b.id = sqlc.arg(id)::bigint
        AND (sqlc.arg(all_tenants)::boolean OR b.tenant = ANY (sqlc.arg(scope)::text[]))
    FOR UPDATE
)
UPDATE outbox.batch AS b
SET sealed_at = clock_timestamp()
WHERE b.id = (SELECT f.id FROM filled AS f) AND b.sealed_at = '9999-12-31 00:00:00+00'
RETURNING b.id;

-- CountBatch counts the rows of a batch by fate. With detail it looks up the open messages, too, and counts those that are leased and parked; the
-- others wait.
-- Guard: id, scope. Index: batch_pkey, batch_row_fate; with detail queue_pkey. Locks: none.
-- name: CountBatch :many
SELECT
    b.id, b.tenant, b.consumer, b.target, b.kind, b.key, b.created_at, b.sealed_at, b.completed_at, b.run,
    b.complete_consumer, b.complete_target, b.complete_kind, b.complete_key,
    c.total::bigint AS total, c.open::bigint AS open, c.delivered::bigint AS delivered, c.dead::bigint AS dead,
    c.cancelled::bigint AS cancelled, c.expired::bigint AS expired, c.rejected::bigint AS rejected,
    d.leased::bigint AS leased, d.parked::bigint AS parked
FROM outbox.batch AS b
CROSS JOIN LATERAL (
    SELECT
        count(*) AS total,
        count(*) FILTER (WHERE r.fate = 0) AS open,
        count(*) FILTER (WHERE r.fate = 1) AS delivered,
        count(*) FILTER (WHERE r.fate = 2) AS dead,
        count(*) FILTER (WHERE r.fate = 3) AS cancelled,
        count(*) FILTER (WHERE r.fate = 4) AS expired,
        count(*) FILTER (WHERE r.fate = 5) AS rejected
    FROM outbox.batch_row AS r
    WHERE r.batch_id = b.id
) AS c
CROSS JOIN LATERAL (
    SELECT
        count(*) FILTER (WHERE q.state = 0 AND q.leased_until > clock_timestamp()) AS leased,
        count(*) FILTER (WHERE q.state = 1) AS parked
    FROM outbox.batch_row AS r
    CROSS JOIN LATERAL (SELECT x.state, x.leased_until FROM outbox.queue AS x WHERE x.message_id = r.message_id OFFSET 0) AS q
    WHERE r.batch_id = b.id AND r.fate = 0 AND sqlc.arg(detail)::boolean
) AS d
WHERE b.id = sqlc.arg(id)::bigint
    AND (sqlc.arg(all_tenants)::boolean OR b.tenant = ANY (sqlc.arg(scope)::text[]));

-- ListBatches lists batches, the newest first: those below before_id, of a consumer (empty = any), with unfinished those that are not completed. It
-- looks at no more than examine of them; when there may be more, the last one it looked at follows, not matched.
-- Guard: scope. Index: batch_pkey. Locks: none.
-- name: ListBatches :many
WITH seen AS MATERIALIZED (
    SELECT
        b.id, b.tenant, b.consumer, b.target, b.kind, b.key, b.created_at, b.sealed_at, b.completed_at, b.run,
        ((sqlc.arg(all_tenants)::boolean OR b.tenant = ANY (sqlc.arg(scope)::text[]))
            AND (sqlc.arg(consumer)::text = '' OR b.consumer = sqlc.arg(consumer)::text)
            AND (NOT sqlc.arg(unfinished)::boolean OR b.completed_at = '9999-12-31 00:00:00+00')) AS matched
    FROM outbox.batch AS b
    WHERE b.id < sqlc.arg(before_id)::bigint
    ORDER BY b.id DESC
    LIMIT sqlc.arg(examine)::integer
),
matching AS MATERIALIZED (
    SELECT s.* FROM seen AS s WHERE s.matched ORDER BY s.id DESC LIMIT sqlc.arg(max_rows)::integer
)
SELECT
    m.id::bigint AS id, m.tenant::text AS tenant, m.consumer::text AS consumer, m.target::text AS target, m.kind::text AS kind,
    m.key::text AS key, m.created_at::timestamptz AS created_at, m.sealed_at::timestamptz AS sealed_at,
    m.completed_at::timestamptz AS completed_at, m.run::integer AS run, true AS matched
FROM matching AS m
UNION ALL
(
    SELECT s.id, '', '', '', '', '', s.created_at, s.sealed_at, s.completed_at, 0, false
    FROM seen AS s
    WHERE (SELECT count(*) FROM seen AS x) = sqlc.arg(examine)::integer
        AND (SELECT count(*) FROM matching AS x) < sqlc.arg(max_rows)::integer
    ORDER BY s.id
    LIMIT 1
);

-- ListBatchRows lists the rows of a batch above a number, of one fate or (-1) of any, with what is known of their messages: of a purged one nothing
-- but its fate. state is that of an open message, else the fate's word.
-- Guard: batch, scope. Index: batch_row_pkey or batch_row_fate, the primary keys. Locks: none.
-- name: ListBatchRows :many
WITH mine AS MATERIALIZED (
    SELECT b.id
    FROM outbox.batch AS b
    WHERE b.id = sqlc.arg(batch_id)::bigint AND (sqlc.arg(all_tenants)::boolean OR b.tenant = ANY (sqlc.arg(scope)::text[]))
),
page AS MATERIALIZED (
    (
        SELECT r.number, r.message_id, r.fate, r.reason
        FROM outbox.batch_row AS r
        WHERE sqlc.arg(fate)::smallint < 0
            AND r.batch_id = (SELECT m.id FROM mine AS m)
            AND r.number > sqlc.arg(after_number)::integer
        ORDER BY r.number
        LIMIT sqlc.arg(max_rows)::integer
    )
    UNION ALL
    (
        SELECT r.number, r.message_id, r.fate, r.reason
        FROM outbox.batch_row AS r
        WHERE r.batch_id = (SELECT m.id FROM mine AS m)
            AND r.fate = sqlc.arg(fate)::smallint
            AND r.number > sqlc.arg(after_number)::integer
        ORDER BY r.number
        LIMIT sqlc.arg(max_rows)::integer
    )
)
SELECT
    p.number::integer AS number,
    p.message_id::bigint AS message_id,
    p.fate::smallint AS fate,
    COALESCE(m.key, '')::text AS key,
    CASE p.fate
        WHEN 0 THEN CASE WHEN q.state = 1 THEN 'parked' WHEN q.leased_until > clock_timestamp() THEN 'leased' ELSE 'pending' END
        WHEN 1 THEN 'delivered'
        WHEN 2 THEN 'dead'
        WHEN 3 THEN 'cancelled'
        WHEN 4 THEN 'expired'
        ELSE 'rejected'
    END::text AS state,
    COALESCE(s.attempt, q.attempt, 0)::integer AS attempt,
    COALESCE(s.cause, '')::text AS cause,
    COALESCE(NULLIF(p.reason, ''), s.reason, q.last_error, '')::text AS reason,
    COALESCE(s.result, '')::text AS result,
    COALESCE(s.settled_at, '0001-01-01 00:00:00+00'::timestamptz)::timestamptz AS settled_at
FROM page AS p
LEFT JOIN outbox.message AS m ON m.id = p.message_id
LEFT JOIN outbox.settlement AS s ON s.message_id = p.message_id
LEFT JOIN outbox.queue AS q ON q.message_id = p.message_id
ORDER BY p.number;
