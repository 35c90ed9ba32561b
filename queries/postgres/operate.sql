-- Operate: what people do to messages. Every act carries an actor and a reason and writes its audit row in the same statement.

-- CancelOpen ends open messages, leased ones included: a running handler learns of it at its next renewal and its settle is stale. An
-- ordered one that is leased while this statement waits for it does not come back, though it is open: this statement cannot see its order
-- lease, which would hold the key until it ran out. Ask again.
-- Guard: ids, scope, open, for an order key no lease since the statement began. Index: primary keys. Locks: queue rows, then order leases,
-- in id order.
-- name: CancelOpen :many
WITH gone AS (
    DELETE FROM outbox.queue AS q
    WHERE q.message_id = ANY (sqlc.arg(ids)::bigint[])
        AND (sqlc.arg(all_tenants)::boolean OR q.tenant = ANY (sqlc.arg(scope)::text[]))
        AND (q.order_key = ''
            OR q.token = E'\\x00000000000000000000000000000000'::bytea
            -- Read with the snapshot that the deletion of order leases has, even where the row itself was waited for.
            OR q.token = ANY (ARRAY(SELECT s.token FROM outbox.queue AS s WHERE s.message_id = ANY (sqlc.arg(ids)::bigint[]))))
    RETURNING q.message_id, q.attempt, q.epoch, q.replays, q.replayed_at, q.state, q.tenant, q.order_key
),
freed AS (
    DELETE FROM outbox.order_lease AS o
    WHERE o.message_id = ANY (ARRAY(SELECT g.message_id FROM gone AS g WHERE g.order_key <> ''))
        AND NOT o.blocked
),
audited AS (
    INSERT INTO outbox.audit (message_id, action, tenant, actor, reason, detail)
    SELECT g.message_id, 'cancel', g.tenant, sqlc.arg(actor)::text, sqlc.arg(reason)::text, CASE WHEN g.state = 1 THEN 'was parked' ELSE 'was pending' END
    FROM gone AS g
)
INSERT INTO outbox.settlement (message_id, outcome, reason, attempt, epoch, replays, replayed_at)
SELECT g.message_id, 'cancelled', sqlc.arg(reason)::text, g.attempt, g.epoch, g.replays, g.replayed_at
FROM gone AS g
RETURNING message_id AS id;

-- ReplayDead brings dead messages back: at once due, their age starting anew, the epoch kept, one more lease always possible. With reset
-- the attempts start at zero. Payload, key and created_at stay as they were. A key that the message blocked is free again. One that died
-- without anybody's word about its last lease (exhausted, or of age after a lease) comes back unsure.
-- Guard: ids, scope, outcome dead; of two replays at once one finds the settlement and the other does not. Index: primary keys.
-- Locks: settlement rows, then the order leases they block, in id order.
-- name: ReplayDead :many
WITH back AS (
    DELETE FROM outbox.settlement AS s
    WHERE s.message_id = ANY (sqlc.arg(ids)::bigint[])
        AND s.outcome = 'dead'
        AND (sqlc.arg(all_tenants)::boolean OR EXISTS (
            SELECT FROM outbox.message AS m WHERE m.id = s.message_id AND m.tenant = ANY (sqlc.arg(scope)::text[])
        ))
    RETURNING s.message_id, s.attempt, s.epoch, s.replays, s.cause
),
envelope AS (
    SELECT
        b.message_id, b.epoch, b.replays, b.cause,
        m.consumer, m.target, m.kind, m.tenant, m.order_key, m.priority, m.max_age,
        -- Saturates below the table's bound, so that one more lease stays possible.
        CASE WHEN sqlc.arg(reset)::boolean THEN 0 ELSE LEAST(b.attempt, 9999) END AS attempt
    FROM back AS b
    CROSS JOIN LATERAL (
        SELECT x.consumer, x.target, x.kind, x.tenant, x.order_key, x.priority, x.max_age
        FROM outbox.message AS x
        WHERE x.id = b.message_id
        OFFSET 0
    ) AS m
),
freed AS (
    DELETE FROM outbox.order_lease AS o
    WHERE o.message_id = ANY (ARRAY(SELECT e.message_id FROM envelope AS e WHERE e.order_key <> ''))
        AND o.blocked
),
audited AS (
    INSERT INTO outbox.audit (message_id, action, tenant, actor, reason, detail)
    SELECT
        e.message_id, 'replay', e.tenant, sqlc.arg(actor)::text, sqlc.arg(reason)::text,
        'was dead, ' || e.cause || CASE WHEN sqlc.arg(reset)::boolean THEN '; attempts reset' ELSE '; attempts kept' END
    FROM envelope AS e
)
INSERT INTO outbox.queue AS q (
    message_id, consumer, target, kind, tenant, order_key, priority, due_at, born_at, expires_at,
    epoch, attempt, attempt_limit, replays, replayed_at, unsure
)
SELECT
    e.message_id, e.consumer, e.target, e.kind, e.tenant, e.order_key, e.priority, statement_timestamp(), statement_timestamp(),
    CASE WHEN e.max_age = 0 THEN '9999-12-31 00:00:00+00'::timestamptz
        ELSE statement_timestamp() + e.max_age * interval '1 microsecond' END,
    e.epoch, e.attempt, e.attempt + 1, e.replays + 1, statement_timestamp(), e.epoch > 0 AND e.cause IN ('age', 'exhausted')
FROM envelope AS e
RETURNING q.message_id AS id;

-- ResolveSettled decides parked messages: delivered or dead. With block_on_dead a dead ordered message keeps its key blocked, unless another
-- has a live lease of the key or blocks it.
-- Guard: ids, scope, parked. Index: primary keys. Locks: queue rows, then order leases, in id order.
-- name: ResolveSettled :many
WITH gone AS (
    DELETE FROM outbox.queue AS q
    WHERE q.message_id = ANY (sqlc.arg(ids)::bigint[])
        AND q.state = 1
        AND (sqlc.arg(all_tenants)::boolean OR q.tenant = ANY (sqlc.arg(scope)::text[]))
    RETURNING q.message_id, q.attempt, q.epoch, q.replays, q.replayed_at, q.consumer, q.target, q.tenant, q.order_key
),
blocked AS (
    INSERT INTO outbox.order_lease AS o (consumer, target, tenant, order_key, message_id, leased_until, blocked)
    SELECT DISTINCT ON (g.tenant, g.order_key, g.consumer, g.target)
        g.consumer, g.target, g.tenant, g.order_key, g.message_id, '0001-01-01 00:00:00+00'::timestamptz, true
    FROM gone AS g
    WHERE g.order_key <> '' AND sqlc.arg(block_on_dead)::boolean AND sqlc.arg(outcome)::text = 'dead'
    ORDER BY g.tenant, g.order_key, g.consumer, g.target, g.message_id
    ON CONFLICT (consumer, target, tenant, order_key) DO UPDATE
        SET message_id = excluded.message_id, leased_until = excluded.leased_until, blocked = true
        WHERE NOT o.blocked
            AND (o.leased_until <= clock_timestamp()
                OR o.leased_until > clock_timestamp() + sqlc.arg(longest_lease)::bigint * interval '1 microsecond')
),
audited AS (
    INSERT INTO outbox.audit (message_id, action, tenant, actor, reason, detail)
    SELECT g.message_id, 'resolve', g.tenant, sqlc.arg(actor)::text, sqlc.arg(reason)::text, 'was parked; ' || sqlc.arg(outcome)::text
    FROM gone AS g
)
INSERT INTO outbox.settlement (message_id, outcome, cause, reason, attempt, epoch, replays, replayed_at)
SELECT
    g.message_id, sqlc.arg(outcome)::text, CASE WHEN sqlc.arg(outcome)::text = 'dead' THEN 'permanent' ELSE '' END,
    sqlc.arg(reason)::text, g.attempt, g.epoch, g.replays, g.replayed_at
FROM gone AS g
RETURNING message_id AS id;

-- ResolveRetry lets parked messages run again: at once due, their age starting anew, one more lease always possible. They stay unsure, so
-- a kind that can reconcile asks before it executes.
-- Guard: ids, scope, parked. Index: primary keys. Locks: queue rows in id order.
-- name: ResolveRetry :many
WITH freed AS (
    UPDATE outbox.queue AS q
    SET state = 0,
        due_at = statement_timestamp(),
        born_at = statement_timestamp(),
        expires_at = COALESCE((
            SELECT statement_timestamp() + NULLIF(m.max_age, 0) * interval '1 microsecond' FROM outbox.message AS m WHERE m.id = q.message_id
        ), '9999-12-31 00:00:00+00'::timestamptz),
        attempt = LEAST(q.attempt, 9999),
        attempt_limit = LEAST(q.attempt, 9999) + 1
    WHERE q.message_id = ANY (sqlc.arg(ids)::bigint[])
        AND q.state = 1
        AND (sqlc.arg(all_tenants)::boolean OR q.tenant = ANY (sqlc.arg(scope)::text[]))
    RETURNING q.message_id, q.tenant
),
audited AS (
    INSERT INTO outbox.audit (message_id, action, tenant, actor, reason, detail)
    SELECT f.message_id, 'resolve', f.tenant, sqlc.arg(actor)::text, sqlc.arg(reason)::text, 'was parked; retry'
    FROM freed AS f
)
SELECT f.message_id::bigint AS id FROM freed AS f;

-- PauseLane stops the lanes it names (each name may be the wildcard '*') until ResumeLane of the same four names.
-- Guard: the scope of a wildcard is the caller's to check. Index: pause_pkey. Locks: the pause row.
-- name: PauseLane :many
WITH audited AS (
    INSERT INTO outbox.audit (action, tenant, actor, reason, detail)
    VALUES ('pause', sqlc.arg(tenant)::text, sqlc.arg(actor)::text, sqlc.arg(reason)::text,
        concat_ws(' ', sqlc.arg(consumer)::text, sqlc.arg(target)::text, sqlc.arg(kind)::text))
)
INSERT INTO outbox.pause AS z (consumer, target, kind, tenant, mode, actor, reason)
VALUES (sqlc.arg(consumer)::text, sqlc.arg(target)::text, sqlc.arg(kind)::text, sqlc.arg(tenant)::text, sqlc.arg(mode)::smallint,
    sqlc.arg(actor)::text, sqlc.arg(reason)::text)
ON CONFLICT (consumer, target, kind, tenant) DO UPDATE
    SET mode = excluded.mode, actor = excluded.actor, reason = excluded.reason, paused_at = excluded.paused_at
RETURNING z.paused_at;

-- ResumeLane lifts the pause of exactly these four names; no row comes back when there was none.
-- Guard: exact names. Index: pause_pkey. Locks: the pause row.
-- name: ResumeLane :many
WITH lifted AS (
    DELETE FROM outbox.pause AS z
    WHERE z.consumer = sqlc.arg(consumer)::text
        AND z.target = sqlc.arg(target)::text
        AND z.kind = sqlc.arg(kind)::text
        AND z.tenant = sqlc.arg(tenant)::text
    RETURNING z.paused_at
),
audited AS (
    INSERT INTO outbox.audit (action, tenant, actor, reason, detail)
    SELECT 'resume', sqlc.arg(tenant)::text, sqlc.arg(actor)::text, sqlc.arg(reason)::text,
        concat_ws(' ', sqlc.arg(consumer)::text, sqlc.arg(target)::text, sqlc.arg(kind)::text)
    FROM lifted
)
SELECT l.paused_at::timestamptz AS paused_at FROM lifted AS l;

-- ReleaseWorker takes the leases of one named worker away; the attempts stay spent, and a later settle of that worker is stale. It
-- looks at the open messages above after_id, at most examine of them, and returns the last one seen with released false. A lease granted
-- while it waits for the row stays: its order lease is younger than the statement's snapshot.
-- Guard: worker name, scope, leased by the token it saw. Index: queue_pkey, worker_name. Locks: queue rows, then order leases, in id order.
-- name: ReleaseWorker :many
WITH seen AS (
    SELECT q.message_id, q.leased_by, q.token, q.tenant
    FROM outbox.queue AS q
    WHERE q.message_id > sqlc.arg(after_id)::bigint
    ORDER BY q.message_id
    LIMIT sqlc.arg(examine)::integer
),
theirs AS (
    SELECT s.message_id, s.token
    FROM seen AS s
    WHERE s.leased_by = ANY (ARRAY(SELECT w.id FROM outbox.worker AS w WHERE w.name = sqlc.arg(worker)::text))
        AND s.token <> E'\\x00000000000000000000000000000000'::bytea
        AND (sqlc.arg(all_tenants)::boolean OR s.tenant = ANY (sqlc.arg(scope)::text[]))
),
released AS (
    UPDATE outbox.queue AS q
    SET token = E'\\x00000000000000000000000000000000',
        leased_until = '0001-01-01 00:00:00+00',
        leased_by = 0,
        unsure = true
    WHERE q.message_id = ANY (ARRAY(SELECT t.message_id FROM theirs AS t))
        AND q.token = ANY (ARRAY(SELECT t.token FROM theirs AS t))
    RETURNING q.message_id, q.tenant, q.order_key
),
freed AS (
    DELETE FROM outbox.order_lease AS o
    WHERE o.message_id = ANY (ARRAY(SELECT r.message_id FROM released AS r WHERE r.order_key <> ''))
        AND NOT o.blocked
),
audited AS (
    INSERT INTO outbox.audit (message_id, action, tenant, actor, reason, detail)
    SELECT r.message_id, 'release', r.tenant, sqlc.arg(actor)::text, sqlc.arg(reason)::text, sqlc.arg(worker)::text
    FROM released AS r
)
SELECT r.message_id::bigint AS id, true AS released FROM released AS r
UNION ALL
(SELECT s.message_id, false FROM seen AS s ORDER BY s.message_id DESC LIMIT 1);

-- UnblockKey frees an order key that a dead message holds; no row comes back when it was not blocked.
-- Guard: exact key, blocked. Index: order_lease_pkey. Locks: the order lease.
-- name: UnblockKey :many
WITH freed AS (
    DELETE FROM outbox.order_lease AS o
    WHERE o.consumer = sqlc.arg(consumer)::text
        AND o.target = sqlc.arg(target)::text
        AND o.tenant = sqlc.arg(tenant)::text
        AND o.order_key = sqlc.arg(order_key)::text
        AND o.blocked
    RETURNING o.message_id
),
audited AS (
    INSERT INTO outbox.audit (message_id, action, tenant, actor, reason, detail)
    SELECT f.message_id, 'unblock', sqlc.arg(tenant)::text, sqlc.arg(actor)::text, sqlc.arg(reason)::text, sqlc.arg(order_key)::text
    FROM freed AS f
)
SELECT f.message_id::bigint AS id FROM freed AS f;

-- AddCredential lets a named worker in, for the given pairs of consumer and tenant (each may be the wildcard '*'). No row comes back when the name
-- was given before, be it to one that is revoked. Who did it and why stands in the row itself.
-- Guard: the primary key. Index: credential_pkey, credential_scope_pkey. Locks: the new rows.
-- name: AddCredential :many
WITH added AS (
    INSERT INTO outbox.credential (name, salt, hash, iterations, created_by, created_for)
    VALUES (sqlc.arg(name)::text, sqlc.arg(salt)::bytea, sqlc.arg(hash)::bytea, sqlc.arg(iterations)::integer, sqlc.arg(actor)::text,
        sqlc.arg(reason)::text)
    ON CONFLICT (name) DO NOTHING
    RETURNING name, created_at
),
scoped AS (
    INSERT INTO outbox.credential_scope (name, consumer, tenant)
    SELECT a.name, s.consumer, s.tenant
    FROM added AS a
    CROSS JOIN (SELECT unnest(sqlc.arg(consumers)::text[]) AS consumer, unnest(sqlc.arg(tenants)::text[]) AS tenant) AS s
)
SELECT a.created_at::timestamptz AS created_at FROM added AS a;

-- RevokeCredential shuts a named worker out; no row comes back when there is none that is let in. Who did it and why stands in the row itself.
-- Guard: exact name, not revoked. Index: credential_pkey. Locks: the row.
-- name: RevokeCredential :many
UPDATE outbox.credential AS c
SET revoked_at = clock_timestamp(), revoked_by = sqlc.arg(actor)::text, revoked_for = sqlc.arg(reason)::text
WHERE c.name = sqlc.arg(name)::text
    AND c.revoked_at = '9999-12-31 00:00:00+00'
RETURNING c.revoked_at;
