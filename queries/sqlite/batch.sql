-- Batch: jobs of many messages, each row with a fate of its own. Rows are added in the transaction that enqueues their messages; triggers on
-- queue and settlement (schema/sqlite) keep the fates and complete the batches, whoever ends or replays a message.
--
-- Fates: 0 open, 1 delivered, 2 dead, 3 cancelled, 4 expired, 5 rejected. Not sealed or not completed yet is 9999-12-31.

-- AddBatch begins a batch; no row comes back when its key is taken: AddBatchFound says by what.
-- Guard: the unique constraint (tenant, consumer, key). Index: batch_key_unique. Locks: none beside the write lock.
-- name: AddBatch :many
INSERT INTO outbox_batch (
    tenant, consumer, target, kind, key, digest, complete_consumer, complete_target, complete_kind, complete_key, complete_priority,
    complete_digest, complete_metadata, complete_payload, created_at
)
VALUES (
    sqlc.arg(tenant), sqlc.arg(consumer), sqlc.arg(target), sqlc.arg(kind), sqlc.arg(key), sqlc.arg(digest), sqlc.arg(complete_consumer),
    sqlc.arg(complete_target), sqlc.arg(complete_kind), sqlc.arg(complete_key), sqlc.arg(complete_priority), sqlc.arg(complete_digest),
    sqlc.arg(complete_metadata), sqlc.arg(complete_payload), sqlc.arg(created_at)
)
ON CONFLICT (tenant, consumer, key) DO NOTHING
RETURNING id;

-- AddBatchFound says what stands under a key that is taken, and whether that was begun with the same digest.
-- Guard: exact (tenant, consumer, key). Index: batch_key_unique. Locks: none.
-- name: AddBatchFound :many
SELECT b.id, CAST(b.digest = CAST(sqlc.arg(digest) AS BLOB) AS BOOLEAN) AS same_digest
FROM outbox_batch AS b
WHERE b.tenant = CAST(sqlc.arg(tenant) AS TEXT) AND b.consumer = CAST(sqlc.arg(consumer) AS TEXT) AND b.key = CAST(sqlc.arg(key) AS TEXT);

-- FindBatch finds a batch by its key.
-- Guard: exact (tenant, consumer, key), scope. Index: batch_key_unique. Locks: none.
-- name: FindBatch :many
SELECT b.id
FROM outbox_batch AS b
WHERE b.tenant = CAST(sqlc.arg(tenant) AS TEXT) AND b.consumer = CAST(sqlc.arg(consumer) AS TEXT) AND b.key = CAST(sqlc.arg(key) AS TEXT)
    AND (CAST(sqlc.arg(all_tenants) AS BOOLEAN) OR b.tenant IN (SELECT t.value FROM json_each(CAST(sqlc.arg(scope) AS TEXT)) AS t));

-- AddBatchRows adds rows, each {number, message_id, reason}, to a batch that is not sealed, in the transaction that enqueued their messages, and
-- returns the numbers that it added. A row that is there stays as it is, and so does a message's row in another batch: FindBatchRows says what
-- stands. message_id 0 is a row that was rejected, for its reason. A message that has ended already gives its row its fate.
-- Guard: scope, not sealed. Index: the primary keys, batch_row_message. Locks: none beside the write lock.
-- name: AddBatchRows :many
INSERT INTO outbox_batch_row (batch_id, number, message_id, fate, reason)
SELECT
    b.id, g.value ->> '$.number', g.value ->> '$.message_id',
    CASE
        WHEN g.value ->> '$.message_id' = 0 THEN 5
        WHEN EXISTS (SELECT 1 FROM outbox_queue AS q WHERE q.message_id = g.value ->> '$.message_id') THEN 0
        ELSE CASE (SELECT s.outcome FROM outbox_settlement AS s WHERE s.message_id = g.value ->> '$.message_id')
            WHEN 'dead' THEN 2 WHEN 'cancelled' THEN 3 WHEN 'expired' THEN 4 ELSE 1 END
    END,
    g.value ->> '$.reason'
FROM json_each(CAST(sqlc.arg(given) AS TEXT)) AS g
CROSS JOIN outbox_batch AS b ON b.id = CAST(sqlc.arg(batch_id) AS INTEGER)
WHERE b.sealed_at = 253402214400000000
    AND (CAST(sqlc.arg(all_tenants) AS BOOLEAN) OR b.tenant IN (SELECT t.value FROM json_each(CAST(sqlc.arg(scope) AS TEXT)) AS t))
ON CONFLICT DO NOTHING
RETURNING CAST(number AS INT32) AS number;

-- FindBatchRows says what stands under numbers of a batch, for those that AddBatchRows did not add: one that does not come back is not there,
-- since the batch is sealed, unknown in this scope, or its message is of another batch.
-- Guard: scope. Index: the primary keys. Locks: none.
-- name: FindBatchRows :many
SELECT CAST(r.number AS INT32) AS number, r.message_id, CAST(r.fate AS INT16) AS fate, r.reason
FROM outbox_batch AS b
CROSS JOIN outbox_batch_row AS r ON r.batch_id = b.id
WHERE b.id = CAST(sqlc.arg(batch_id) AS INTEGER)
    AND (CAST(sqlc.arg(all_tenants) AS BOOLEAN) OR b.tenant IN (SELECT t.value FROM json_each(CAST(sqlc.arg(scope) AS TEXT)) AS t))
    AND r.number IN (SELECT n.value FROM json_each(CAST(sqlc.arg(numbers) AS TEXT)) AS n)
ORDER BY r.number;

-- SealBatch says that a batch has all its rows, and completes it if none is open. No row comes back when it was sealed before, or is unknown in
-- this scope.
-- Guard: scope, not sealed. Index: the primary key; for the completion batch_row_fate. Locks: none beside the write lock.
-- name: SealBatch :many
UPDATE outbox_batch
SET sealed_at = CAST(sqlc.arg(now) AS INTEGER)
WHERE id = CAST(sqlc.arg(id) AS INTEGER)
    AND (CAST(sqlc.arg(all_tenants) AS BOOLEAN) OR tenant IN (SELECT t.value FROM json_each(CAST(sqlc.arg(scope) AS TEXT)) AS t))
    AND sealed_at = 253402214400000000
RETURNING id;

-- CountBatch counts the rows of a batch by fate. With detail it looks up the open messages, too, and counts those that are leased and parked; the
-- others wait.
-- Guard: id, scope. Index: the primary keys, batch_row_fate. Locks: none.
-- name: CountBatch :many
SELECT
    b.id, b.tenant, b.consumer, b.target, b.kind, b.key, b.created_at, b.sealed_at, b.completed_at, CAST(b.run AS INT32) AS run,
    b.complete_consumer, b.complete_target, b.complete_kind, b.complete_key,
    (SELECT COUNT(*) FROM outbox_batch_row AS r WHERE r.batch_id = b.id AND r.fate = 0) AS open,
    (SELECT COUNT(*) FROM outbox_batch_row AS r WHERE r.batch_id = b.id AND r.fate = 1) AS delivered,
    (SELECT COUNT(*) FROM outbox_batch_row AS r WHERE r.batch_id = b.id AND r.fate = 2) AS dead,
    (SELECT COUNT(*) FROM outbox_batch_row AS r WHERE r.batch_id = b.id AND r.fate = 3) AS cancelled,
    (SELECT COUNT(*) FROM outbox_batch_row AS r WHERE r.batch_id = b.id AND r.fate = 4) AS expired,
    (SELECT COUNT(*) FROM outbox_batch_row AS r WHERE r.batch_id = b.id AND r.fate = 5) AS rejected,
    CAST((
        SELECT COALESCE(SUM((SELECT q.state = 0 AND q.leased_until > CAST(sqlc.arg(now) AS INTEGER) FROM outbox_queue AS q WHERE q.message_id = r.message_id)), 0)
        FROM outbox_batch_row AS r
        WHERE r.batch_id = b.id AND r.fate = 0 AND CAST(sqlc.arg(detail) AS BOOLEAN)
    ) AS INTEGER) AS leased,
    CAST((
        SELECT COALESCE(SUM((SELECT q.state FROM outbox_queue AS q WHERE q.message_id = r.message_id)), 0)
        FROM outbox_batch_row AS r
        WHERE r.batch_id = b.id AND r.fate = 0 AND CAST(sqlc.arg(detail) AS BOOLEAN)
    ) AS INTEGER) AS parked
FROM outbox_batch AS b
WHERE b.id = CAST(sqlc.arg(id) AS INTEGER)
    AND (CAST(sqlc.arg(all_tenants) AS BOOLEAN) OR b.tenant IN (SELECT t.value FROM json_each(CAST(sqlc.arg(scope) AS TEXT)) AS t));

-- ListBatches looks at the batches below before_id, the newest first, at most examine of them, and says of each whether it is one of a consumer
-- ('' = any), with unfinished not completed.
-- Guard: scope. Index: the primary key. Locks: none.
-- name: ListBatches :many
SELECT
    b.id, b.tenant, b.consumer, b.target, b.kind, b.key, b.created_at, b.sealed_at, b.completed_at, CAST(b.run AS INT32) AS run,
    CAST(
        (CAST(sqlc.arg(all_tenants) AS BOOLEAN) OR b.tenant IN (SELECT t.value FROM json_each(CAST(sqlc.arg(scope) AS TEXT)) AS t))
        AND (CAST(sqlc.arg(consumer) AS TEXT) = '' OR b.consumer = CAST(sqlc.arg(consumer) AS TEXT))
        AND (NOT CAST(sqlc.arg(unfinished) AS BOOLEAN) OR b.completed_at = 253402214400000000)
        AS BOOLEAN
    ) AS matched
FROM outbox_batch AS b
WHERE b.id < CAST(sqlc.arg(before_id) AS INTEGER)
ORDER BY b.id DESC
LIMIT CAST(sqlc.arg(examine) AS INTEGER);

-- ListBatchRowsPick returns the numbers of the rows of a batch above a number.
-- Guard: batch, scope. Index: the primary keys. Locks: none.
-- name: ListBatchRowsPick :many
SELECT CAST(r.number AS INT32) AS number
FROM outbox_batch AS b
CROSS JOIN outbox_batch_row AS r ON r.batch_id = b.id
WHERE b.id = CAST(sqlc.arg(batch_id) AS INTEGER)
    AND (CAST(sqlc.arg(all_tenants) AS BOOLEAN) OR b.tenant IN (SELECT t.value FROM json_each(CAST(sqlc.arg(scope) AS TEXT)) AS t))
    AND r.number > CAST(sqlc.arg(after_number) AS INTEGER)
ORDER BY r.number
LIMIT CAST(sqlc.arg(max_rows) AS INTEGER);

-- ListBatchRowsOf is ListBatchRowsPick for the rows of one fate. Guard: batch, scope, fate. Index: batch_row_fate, the primary key. Locks: none.
-- name: ListBatchRowsOf :many
SELECT CAST(r.number AS INT32) AS number
FROM outbox_batch AS b
CROSS JOIN outbox_batch_row AS r ON r.batch_id = b.id
WHERE b.id = CAST(sqlc.arg(batch_id) AS INTEGER)
    AND (CAST(sqlc.arg(all_tenants) AS BOOLEAN) OR b.tenant IN (SELECT t.value FROM json_each(CAST(sqlc.arg(scope) AS TEXT)) AS t))
    AND r.fate = CAST(sqlc.arg(fate) AS INT16)
    AND r.number > CAST(sqlc.arg(after_number) AS INTEGER)
ORDER BY r.number
LIMIT CAST(sqlc.arg(max_rows) AS INTEGER);

-- ListBatchRows reads the rows of a batch with these numbers, and what is known of their messages: of a purged one nothing but its fate. state is
-- that of an open message, else the fate's word.
-- Guard: the caller's. Index: the primary keys. Locks: none.
-- name: ListBatchRows :many
SELECT
    CAST(r.number AS INT32) AS number, r.message_id, CAST(r.fate AS INT16) AS fate,
    CAST(COALESCE(m.key, '') AS TEXT) AS message_key,
    CAST(CASE r.fate
        WHEN 0 THEN CASE WHEN q.state = 1 THEN 'parked' WHEN q.leased_until > CAST(sqlc.arg(now) AS INTEGER) THEN 'leased' ELSE 'pending' END
        WHEN 1 THEN 'delivered'
        WHEN 2 THEN 'dead'
        WHEN 3 THEN 'cancelled'
        WHEN 4 THEN 'expired'
        ELSE 'rejected'
    END AS TEXT) AS state,
    CAST(COALESCE(s.attempt, q.attempt, 0) AS INT32) AS attempt,
    CAST(COALESCE(s.cause, '') AS TEXT) AS cause,
    CAST(COALESCE(NULLIF(r.reason, ''), s.reason, q.last_error, '') AS TEXT) AS reason,
    CAST(COALESCE(s.result, '') AS TEXT) AS result,
    CAST(COALESCE(s.settled_at, -62135596800000000) AS INTEGER) AS settled_at
FROM outbox_batch_row AS r
LEFT JOIN outbox_message AS m ON m.id = r.message_id
LEFT JOIN outbox_settlement AS s ON s.message_id = r.message_id
LEFT JOIN outbox_queue AS q ON q.message_id = r.message_id
WHERE r.batch_id = CAST(sqlc.arg(batch_id) AS INTEGER)
    AND r.number IN (SELECT n.value FROM json_each(CAST(sqlc.arg(numbers) AS TEXT)) AS n)
ORDER BY r.number;
