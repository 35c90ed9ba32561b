-- Enqueue: effects recorded in the caller's transaction, inside a savepoint: all of a call or nothing.

-- EnqueueMessage stores one message; no row comes back when its key exists: FindKeys says why. Of one key given twice the first is stored.
-- Guard: the unique constraint (tenant, consumer, key). Index: message_key_unique. Locks: none beside the write lock.
-- name: EnqueueMessage :many
INSERT INTO outbox_message (
    tenant, consumer, target, kind, key, order_key, priority, digest, metadata, payload, source_position, source_event_id, max_age, created_at
)
VALUES (
    sqlc.arg(tenant), sqlc.arg(consumer), sqlc.arg(target), sqlc.arg(kind), sqlc.arg(key), sqlc.arg(order_key), sqlc.arg(priority),
    sqlc.arg(digest), sqlc.arg(metadata), sqlc.arg(payload), sqlc.arg(source_position), sqlc.arg(source_event_id), sqlc.arg(max_age),
    sqlc.arg(created_at)
)
ON CONFLICT (tenant, consumer, key) DO NOTHING
RETURNING id;

-- EnqueueDue stores the queue row of a message just stored; the caller gives its first due time, from which it ages.
-- Guard: the primary key. Index: the primary key; queue_due and queue_order grow. Locks: none beside the write lock.
-- name: EnqueueDue :exec
INSERT INTO outbox_queue (message_id, consumer, target, kind, tenant, order_key, priority, due_at, born_at, expires_at)
VALUES (
    sqlc.arg(message_id), sqlc.arg(consumer), sqlc.arg(target), sqlc.arg(kind), sqlc.arg(tenant), sqlc.arg(order_key), sqlc.arg(priority),
    sqlc.arg(due_at), sqlc.arg(due_at), sqlc.arg(expires_at)
);

-- EnqueueLeasedDue is EnqueueDue for a message that is born leased.
-- Guard: the primary key; the caller has seen that the lane is not paused. Index: the primary key; queue_due grows. Locks: none beside the write lock.
-- name: EnqueueLeasedDue :exec
INSERT INTO outbox_queue (
    message_id, consumer, target, kind, tenant, order_key, priority, due_at, born_at, expires_at, attempt, epoch, token, leased_by, leased_until
)
VALUES (
    sqlc.arg(message_id), sqlc.arg(consumer), sqlc.arg(target), sqlc.arg(kind), sqlc.arg(tenant), '', sqlc.arg(priority),
    sqlc.arg(due_at), sqlc.arg(due_at), sqlc.arg(expires_at), 1, 1, sqlc.arg(token), sqlc.arg(leased_by), sqlc.arg(leased_until)
);

-- FindKeys says what stands under the given keys, each {tenant, consumer, key, digest in hex}: for the inputs that Enqueue did not store.
-- State: the outcome of a settled message, else pending, leased or parked.
-- Guard: exact (tenant, consumer, key). Index: message_key_unique, then the primary keys. Locks: none.
-- name: FindKeys :many
SELECT
    CAST(g.key + 1 AS INT32) AS ordinal,
    m.id,
    CAST(m.digest = unhex(g.value ->> '$.digest') AS BOOLEAN) AS same_digest,
    CAST(COALESCE(
        s.outcome,
        CASE WHEN q.state = 1 THEN 'parked' WHEN q.leased_until > CAST(sqlc.arg(now) AS INTEGER) THEN 'leased' ELSE 'pending' END
    ) AS TEXT) AS state
FROM json_each(CAST(sqlc.arg(given) AS TEXT)) AS g
CROSS JOIN outbox_message AS m
    ON m.tenant = g.value ->> '$.tenant' AND m.consumer = g.value ->> '$.consumer' AND m.key = g.value ->> '$.key'
LEFT JOIN outbox_settlement AS s ON s.message_id = m.id
LEFT JOIN outbox_queue AS q ON q.message_id = m.id;
