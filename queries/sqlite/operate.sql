-- Operate: what people do to messages. Every act carries an actor and a reason and writes its audit row in the same transaction.
--
-- OperateOpen, ReplayDeadPick and ReleaseWorkerSee say which messages an act concerns; the queries after them take those ids, which nobody else
-- can change before the commit.

-- OperateOpen returns those of the given messages that are open, or with parked those that are set aside, in the order of their ids.
-- Guard: ids, scope, open or parked. Index: the primary key. Locks: none.
-- name: OperateOpen :many
SELECT q.message_id, q.tenant, CAST(q.state = 1 AS BOOLEAN) AS parked
FROM outbox_queue AS q
WHERE q.message_id IN (SELECT i.value FROM json_each(CAST(sqlc.arg(ids) AS TEXT)) AS i)
    AND (CAST(sqlc.arg(all_tenants) AS BOOLEAN) OR q.tenant IN (SELECT t.value FROM json_each(CAST(sqlc.arg(scope) AS TEXT)) AS t))
    AND (NOT CAST(sqlc.arg(parked) AS BOOLEAN) OR q.state = 1)
ORDER BY q.message_id;

-- OperateAudit records one act on each of the given, {id, tenant, detail}; an id of 0 is not about one message.
-- Guard: none. Index: the primary key; audit_message grows. Locks: none.
-- name: OperateAudit :exec
INSERT INTO outbox_audit (message_id, at, action, tenant, actor, reason, detail)
SELECT
    g.value ->> '$.id', CAST(sqlc.arg(now) AS INTEGER), CAST(sqlc.arg(action) AS TEXT), g.value ->> '$.tenant',
    CAST(sqlc.arg(actor) AS TEXT), CAST(sqlc.arg(reason) AS TEXT), g.value ->> '$.detail'
FROM json_each(CAST(sqlc.arg(given) AS TEXT)) AS g;

-- OperateRevoke takes the leases of messages away. The attempts stay spent, and since nobody knows how far they came, the next lease is unsure.
-- Guard: the caller's. Index: the primary key. Locks: none.
-- name: OperateRevoke :exec
UPDATE outbox_queue
SET unsure = 1,
    token = x'00000000000000000000000000000000',
    leased_until = -62135596800000000,
    leased_by = 0
WHERE message_id IN (SELECT i.value FROM json_each(CAST(sqlc.arg(ids) AS TEXT)) AS i);

-- OperateUnsettle removes the settlements of messages that come back or go for good. Guard: the caller's. Index: the primary key. Locks: none.
-- name: OperateUnsettle :exec
DELETE FROM outbox_settlement
WHERE message_id IN (SELECT i.value FROM json_each(CAST(sqlc.arg(ids) AS TEXT)) AS i);

-- OperateUnblock frees the order key that a dead message holds. Guard: blocked. Index: order_lease_message. Locks: none.
-- name: OperateUnblock :exec
DELETE FROM outbox_order_lease
WHERE message_id = CAST(sqlc.arg(message_id) AS INTEGER)
    AND blocked;

-- ReplayDeadPick returns those of the given messages that are dead, in the order of their ids.
-- Guard: ids, scope, outcome dead. Index: the primary keys. Locks: none.
-- name: ReplayDeadPick :many
SELECT s.message_id, m.tenant, s.cause
FROM outbox_settlement AS s
CROSS JOIN outbox_message AS m ON m.id = s.message_id
WHERE s.message_id IN (SELECT i.value FROM json_each(CAST(sqlc.arg(ids) AS TEXT)) AS i)
    AND +s.outcome = 'dead'
    AND (CAST(sqlc.arg(all_tenants) AS BOOLEAN) OR m.tenant IN (SELECT t.value FROM json_each(CAST(sqlc.arg(scope) AS TEXT)) AS t))
ORDER BY s.message_id;

-- ReplayDeadEnqueue brings dead messages back to the queue: at once due, their age starting anew, the epoch kept, one more lease always
-- possible, for which attempts saturate below the table's bound. One that died without anybody's word about its last lease comes back unsure.
-- Guard: the caller's. Index: the primary keys; queue_due and queue_order grow. Locks: none.
-- name: ReplayDeadEnqueue :exec
INSERT INTO outbox_queue (
    message_id, consumer, target, kind, tenant, order_key, priority, due_at, born_at, expires_at,
    epoch, attempt, attempt_limit, replays, replayed_at, unsure
)
SELECT
    m.id, m.consumer, m.target, m.kind, m.tenant, m.order_key, m.priority, CAST(sqlc.arg(now) AS INTEGER), CAST(sqlc.arg(now) AS INTEGER),
    CASE WHEN m.max_age = 0 THEN 253402214400000000 ELSE CAST(sqlc.arg(now) AS INTEGER) + m.max_age END,
    s.epoch, CASE WHEN CAST(sqlc.arg(reset) AS BOOLEAN) THEN 0 ELSE MIN(s.attempt, 9999) END,
    CASE WHEN CAST(sqlc.arg(reset) AS BOOLEAN) THEN 0 ELSE MIN(s.attempt, 9999) END + 1,
    s.replays + 1, CAST(sqlc.arg(now) AS INTEGER), s.epoch > 0 AND s.cause IN ('age', 'exhausted')
FROM outbox_settlement AS s
CROSS JOIN outbox_message AS m ON m.id = s.message_id
WHERE s.message_id IN (SELECT i.value FROM json_each(CAST(sqlc.arg(ids) AS TEXT)) AS i);

-- ResolveRetryAgain lets parked messages run again: at once due, their age starting anew, one more lease always possible. They stay unsure.
-- Guard: the caller's. Index: the primary keys; queue_due and queue_parked change. Locks: none.
-- name: ResolveRetryAgain :exec
UPDATE outbox_queue
SET state = 0,
    due_at = CAST(sqlc.arg(now) AS INTEGER),
    born_at = CAST(sqlc.arg(now) AS INTEGER),
    expires_at = COALESCE((
        SELECT CAST(sqlc.arg(now) AS INTEGER) + NULLIF(m.max_age, 0) FROM outbox_message AS m WHERE m.id = outbox_queue.message_id
    ), 253402214400000000),
    attempt = MIN(attempt, 9999),
    attempt_limit = MIN(attempt, 9999) + 1
WHERE message_id IN (SELECT i.value FROM json_each(CAST(sqlc.arg(ids) AS TEXT)) AS i);

-- PauseLane stops the lanes it names (each name may be the wildcard '*') until ResumeLane of the same four names.
-- Guard: the scope of a wildcard is the caller's to check. Index: the primary key. Locks: none.
-- name: PauseLane :exec
INSERT INTO outbox_pause (consumer, target, kind, tenant, mode, actor, reason, paused_at)
VALUES (
    CAST(sqlc.arg(consumer) AS TEXT), CAST(sqlc.arg(target) AS TEXT), CAST(sqlc.arg(kind) AS TEXT), CAST(sqlc.arg(tenant) AS TEXT),
    CAST(sqlc.arg(mode) AS INT16), CAST(sqlc.arg(actor) AS TEXT), CAST(sqlc.arg(reason) AS TEXT), CAST(sqlc.arg(now) AS INTEGER)
)
ON CONFLICT (consumer, target, kind, tenant) DO UPDATE
    SET mode = excluded.mode, actor = excluded.actor, reason = excluded.reason, paused_at = excluded.paused_at;

-- ResumeLane lifts the pause of exactly these four names; no row comes back when there was none.
-- Guard: exact names. Index: the primary key. Locks: none.
-- name: ResumeLane :many
DELETE FROM outbox_pause
WHERE consumer = CAST(sqlc.arg(consumer) AS TEXT)
    AND target = CAST(sqlc.arg(target) AS TEXT)
    AND kind = CAST(sqlc.arg(kind) AS TEXT)
    AND tenant = CAST(sqlc.arg(tenant) AS TEXT)
RETURNING paused_at;

-- ReleaseWorkerSee looks at the open messages above after_id, at most examine of them, and says of each whether the named worker has it.
-- Guard: worker name, scope, leased. Index: the primary key, worker_name. Locks: none.
-- name: ReleaseWorkerSee :many
SELECT
    q.message_id, q.tenant,
    CAST(
        q.token <> x'00000000000000000000000000000000'
        AND q.leased_by IN (SELECT w.id FROM outbox_worker AS w WHERE w.name = CAST(sqlc.arg(worker) AS TEXT))
        AND (CAST(sqlc.arg(all_tenants) AS BOOLEAN) OR q.tenant IN (SELECT t.value FROM json_each(CAST(sqlc.arg(scope) AS TEXT)) AS t))
        AS BOOLEAN
    ) AS theirs
FROM outbox_queue AS q
WHERE q.message_id > CAST(sqlc.arg(after_id) AS INTEGER)
ORDER BY q.message_id
LIMIT CAST(sqlc.arg(examine) AS INTEGER);

-- UnblockKey frees an order key that a dead message holds; no row comes back when it was not blocked.
-- Guard: exact key, blocked. Index: the primary key. Locks: none.
-- name: UnblockKey :many
DELETE FROM outbox_order_lease
WHERE consumer = CAST(sqlc.arg(consumer) AS TEXT)
    AND target = CAST(sqlc.arg(target) AS TEXT)
    AND tenant = CAST(sqlc.arg(tenant) AS TEXT)
    AND order_key = CAST(sqlc.arg(order_key) AS TEXT)
    AND blocked
RETURNING message_id;

-- AddCredential lets a named worker in; no row comes back when the name was given before, be it to one that is revoked.
-- Guard: the primary key. Index: credential_pkey. Locks: none beside the write lock.
-- name: AddCredential :many
INSERT INTO outbox_credential (name, salt, hash, iterations, created_by, created_for, created_at)
VALUES (
    sqlc.arg(name), sqlc.arg(salt), sqlc.arg(hash), sqlc.arg(iterations), sqlc.arg(actor), sqlc.arg(reason), sqlc.arg(now)
)
ON CONFLICT (name) DO NOTHING
RETURNING created_at;

-- AddCredentialScope says which consumers and tenants a named worker is let in for, each {consumer, tenant}.
-- Guard: the caller's. Index: credential_scope_pkey. Locks: none beside the write lock.
-- name: AddCredentialScope :exec
INSERT INTO outbox_credential_scope (name, consumer, tenant)
SELECT CAST(sqlc.arg(name) AS TEXT), g.value ->> '$.consumer', g.value ->> '$.tenant'
FROM json_each(CAST(sqlc.arg(given) AS TEXT)) AS g;

-- RevokeCredential shuts a named worker out; no row comes back when there is none that is let in.
-- Guard: exact name, not revoked. Index: credential_pkey. Locks: none beside the write lock.
-- name: RevokeCredential :many
UPDATE outbox_credential
SET revoked_at = CAST(sqlc.arg(now) AS INTEGER), revoked_by = CAST(sqlc.arg(actor) AS TEXT), revoked_for = CAST(sqlc.arg(reason) AS TEXT)
WHERE name = CAST(sqlc.arg(name) AS TEXT)
    AND revoked_at = 253402214400000000
RETURNING revoked_at;
