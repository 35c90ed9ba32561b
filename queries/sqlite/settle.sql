-- Settle: what came of a leased message, one operation per outcome, each one write transaction.
--
-- SettleFence says which of the given messages the caller may settle; the queries after it take those ids, which nobody else can change before
-- the commit, and end the lease. Rows are found by primary key alone. Given rows and lists of ids travel as JSON.

-- SettleFence returns those of the given messages, each {id, token in hex, place}, whose token is the current one and whose lease is not over;
-- accept_late takes a lease that is. place is the caller's number for the message. A token of zeros is nobody's.
-- Guard: id, token, consumer, target, scope, lease. Index: the primary key. Locks: none.
-- name: SettleFence :many
SELECT
    CAST(g.value ->> '$.place' AS INTEGER) AS place, q.message_id, q.order_key, CAST(q.attempt AS INT32) AS attempt, q.born_at, q.expires_at
FROM json_each(CAST(sqlc.arg(given) AS TEXT)) AS g
CROSS JOIN outbox_queue AS q ON q.message_id = g.value ->> '$.id'
WHERE q.token = unhex(g.value ->> '$.token')
    AND q.token <> x'00000000000000000000000000000000'
    AND q.consumer = CAST(sqlc.arg(consumer) AS TEXT)
    AND q.target = CAST(sqlc.arg(target) AS TEXT)
    AND (CAST(sqlc.arg(all_tenants) AS BOOLEAN) OR q.tenant IN (SELECT t.value FROM json_each(CAST(sqlc.arg(scope) AS TEXT)) AS t))
    AND (CAST(sqlc.arg(accept_late) AS BOOLEAN) OR q.leased_until > CAST(sqlc.arg(now) AS INTEGER))
ORDER BY q.message_id;

-- SettleRecord writes the settlements of messages that are still in the queue, each {id, cause, reason, result}.
-- Guard: the caller's. Index: the primary keys. Locks: none.
-- name: SettleRecord :exec
INSERT INTO outbox_settlement (message_id, outcome, cause, reason, result, attempt, epoch, replays, replayed_at, settled_by, settled_at)
SELECT
    q.message_id, CAST(sqlc.arg(outcome) AS TEXT), g.value ->> '$.cause', g.value ->> '$.reason', g.value ->> '$.result',
    q.attempt, q.epoch, q.replays, q.replayed_at, q.leased_by, CAST(sqlc.arg(now) AS INTEGER)
FROM json_each(CAST(sqlc.arg(given) AS TEXT)) AS g
CROSS JOIN outbox_queue AS q ON q.message_id = g.value ->> '$.id';

-- SettleDequeue removes messages from the queue. Guard: the caller's. Index: the primary key. Locks: none.
-- name: SettleDequeue :exec
DELETE FROM outbox_queue
WHERE message_id IN (SELECT i.value FROM json_each(CAST(sqlc.arg(ids) AS TEXT)) AS i);

-- SettleErase removes messages, envelope included: their keys are free again. Guard: the caller's. Index: the primary key. Locks: none.
-- name: SettleErase :exec
DELETE FROM outbox_message
WHERE id IN (SELECT i.value FROM json_each(CAST(sqlc.arg(ids) AS TEXT)) AS i);

-- SettleUnorder ends the order lease of a message: one at a time, since of a list SQLite would rather read the whole table when it has been told that
-- it is small. Guard: not blocked. Index: order_lease_message. Locks: none.
-- name: SettleUnorder :exec
DELETE FROM outbox_order_lease
WHERE message_id = CAST(sqlc.arg(message_id) AS INTEGER)
    AND NOT blocked;

-- SettleBlock leaves the order key of a dead message blocked until it is replayed or purged, or the key is unblocked.
-- Guard: the caller's. Index: order_lease_message. Locks: none.
-- name: SettleBlock :exec
UPDATE outbox_order_lease
SET blocked = 1, leased_until = -62135596800000000
WHERE message_id = CAST(sqlc.arg(message_id) AS INTEGER);

-- SettleAgain frees one message for another attempt at due_at. Guard: the caller's. Index: the primary key; queue_due changes. Locks: none.
-- name: SettleAgain :exec
UPDATE outbox_queue
SET due_at = CAST(sqlc.arg(due_at) AS INTEGER),
    attempt = CAST(sqlc.arg(attempt) AS INTEGER),
    unsure = CAST(sqlc.arg(unsure) AS BOOLEAN),
    last_error = CAST(sqlc.arg(last_error) AS TEXT),
    token = x'00000000000000000000000000000000',
    leased_until = -62135596800000000,
    leased_by = 0
WHERE message_id = CAST(sqlc.arg(message_id) AS INTEGER);

-- SettlePark sets one message aside: no lease takes it until an operator resolves it.
-- Guard: the caller's. Index: the primary key; queue_due and queue_parked change. Locks: none.
-- name: SettlePark :exec
UPDATE outbox_queue
SET state = 1,
    unsure = 1,
    last_error = CAST(sqlc.arg(last_error) AS TEXT),
    token = x'00000000000000000000000000000000',
    leased_until = -62135596800000000,
    leased_by = 0
WHERE message_id = CAST(sqlc.arg(message_id) AS INTEGER);

-- FindFates tells what stands for the given ids now: the classification of rows that a settle, a renewal or an operator's statement did not
-- change. state is the outcome of a settled message, else pending, leased or parked; an id that does not come back is unknown in this scope.
-- Guard: scope. Index: the primary keys. Locks: none.
-- name: FindFates :many
SELECT
    m.id,
    CAST(COALESCE(
        s.outcome,
        CASE
            WHEN q.state = 1 THEN 'parked'
            WHEN q.token <> x'00000000000000000000000000000000' AND q.leased_until > CAST(sqlc.arg(now) AS INTEGER) THEN 'leased'
            ELSE 'pending'
        END
    ) AS TEXT) AS state,
    CAST(COALESCE(s.epoch, q.epoch, 0) AS INTEGER) AS epoch,
    CAST(COALESCE(s.attempt, q.attempt, 0) AS INT32) AS attempt,
    CAST(COALESCE(s.cause, '') AS TEXT) AS cause,
    CAST(COALESCE(s.reason, q.last_error, '') AS TEXT) AS reason,
    CAST(q.token IS NOT NULL AND q.token <> x'00000000000000000000000000000000' AS BOOLEAN) AS held
FROM json_each(CAST(sqlc.arg(ids) AS TEXT)) AS i
CROSS JOIN outbox_message AS m ON m.id = i.value
LEFT JOIN outbox_settlement AS s ON s.message_id = m.id
LEFT JOIN outbox_queue AS q ON q.message_id = m.id
WHERE CAST(sqlc.arg(all_tenants) AS BOOLEAN) OR m.tenant IN (SELECT t.value FROM json_each(CAST(sqlc.arg(scope) AS TEXT)) AS t);
