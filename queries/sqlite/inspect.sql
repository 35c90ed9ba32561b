-- Inspect: read only. Lists are paged by key and bounded in what they examine; counts are capped.
--
-- The bound of a list comes first: List...Bound returns where the last row stands that the page may look at, or no row when there are fewer. The
-- list itself then stops there, or at a full page, and reads its rows in the order of the index, so nothing is sorted.

-- ShowMessage reads one message whole, payload included, with its queue row or its settlement.
-- Guard: scope. Index: primary keys. Locks: none.
-- name: ShowMessage :many
SELECT
    m.id, m.tenant, m.consumer, m.target, m.kind, m.key, m.order_key, CAST(m.priority AS INT32) AS priority, m.max_age,
    m.source_position, m.source_event_id, m.created_at, m.digest, m.metadata, m.payload,
    CAST(COALESCE(
        s.outcome,
        CASE
            WHEN q.state = 1 THEN 'parked'
            WHEN q.token <> x'00000000000000000000000000000000' AND q.leased_until > CAST(sqlc.arg(now) AS INTEGER) THEN 'leased'
            ELSE 'pending'
        END
    ) AS TEXT) AS state,
    CAST(COALESCE(s.attempt, q.attempt, 0) AS INT32) AS attempt,
    CAST(COALESCE(s.epoch, q.epoch, 0) AS INTEGER) AS epoch,
    CAST(COALESCE(s.replays, q.replays, 0) AS INT32) AS replays,
    CAST(COALESCE(s.replayed_at, q.replayed_at, -62135596800000000) AS INTEGER) AS replayed_at,
    CAST(COALESCE(s.cause, '') AS TEXT) AS cause,
    CAST(COALESCE(s.reason, q.last_error, '') AS TEXT) AS reason,
    CAST(COALESCE(s.result, '') AS TEXT) AS result,
    CAST(COALESCE(s.settled_at, -62135596800000000) AS INTEGER) AS settled_at,
    CAST(COALESCE(q.attempt_limit, 0) AS INT32) AS attempt_limit,
    CAST(COALESCE(q.due_at, -62135596800000000) AS INTEGER) AS due_at,
    CAST(COALESCE(q.born_at, -62135596800000000) AS INTEGER) AS born_at,
    CAST(COALESCE(q.expires_at, -62135596800000000) AS INTEGER) AS expires_at,
    CAST(COALESCE(q.leased_until, -62135596800000000) AS INTEGER) AS leased_until,
    CAST(COALESCE((SELECT w.name FROM outbox_worker AS w WHERE w.id = COALESCE(s.settled_by, q.leased_by)), '') AS TEXT) AS worker
FROM outbox_message AS m
LEFT JOIN outbox_settlement AS s ON s.message_id = m.id
LEFT JOIN outbox_queue AS q ON q.message_id = m.id
WHERE m.id = CAST(sqlc.arg(id) AS INTEGER)
    AND (CAST(sqlc.arg(all_tenants) AS BOOLEAN) OR m.tenant IN (SELECT t.value FROM json_each(CAST(sqlc.arg(scope) AS TEXT)) AS t));

-- ListOpenBound: the open message after after_id and skip others. Guard: none: an id. Index: the primary key. Locks: none.
-- name: ListOpenBound :many
SELECT q.message_id
FROM outbox_queue AS q
WHERE q.message_id > CAST(sqlc.arg(after_id) AS INTEGER)
ORDER BY q.message_id
LIMIT 1 OFFSET CAST(sqlc.arg(skip) AS INTEGER);

-- ListOpen pages open messages above after_id up to the bound in id order, at most max_rows; empty filters match all.
-- Guard: scope. Index: the primary keys. Locks: none.
-- name: ListOpen :many
SELECT
    q.message_id AS id, q.tenant, q.consumer, q.target, q.kind, m.key, q.order_key,
    CAST(CASE
        WHEN q.state = 1 THEN 'parked'
        WHEN q.leased_until > CAST(sqlc.arg(now) AS INTEGER) THEN 'leased'
        ELSE 'pending'
    END AS TEXT) AS state,
    CAST(q.attempt AS INT32) AS attempt, q.epoch, CAST(q.replays AS INT32) AS replays, q.replayed_at,
    CAST('' AS TEXT) AS cause, q.last_error AS reason, m.created_at, q.due_at, q.leased_until,
    CAST(-62135596800000000 AS INTEGER) AS settled_at
FROM outbox_queue AS q
CROSS JOIN outbox_message AS m ON m.id = q.message_id
WHERE q.message_id > CAST(sqlc.arg(after_id) AS INTEGER)
    AND q.message_id <= CAST(sqlc.arg(bound) AS INTEGER)
    AND (CAST(sqlc.arg(all_tenants) AS BOOLEAN) OR q.tenant IN (SELECT t.value FROM json_each(CAST(sqlc.arg(scope) AS TEXT)) AS t))
    AND (CAST(sqlc.arg(consumer) AS TEXT) = '' OR q.consumer = CAST(sqlc.arg(consumer) AS TEXT))
    AND (CAST(sqlc.arg(target) AS TEXT) = '' OR q.target = CAST(sqlc.arg(target) AS TEXT))
    AND (CAST(sqlc.arg(kind) AS TEXT) = '' OR q.kind = CAST(sqlc.arg(kind) AS TEXT))
    AND (CAST(sqlc.arg(state) AS TEXT) = '' OR CAST(sqlc.arg(state) AS TEXT) = CASE
        WHEN q.state = 1 THEN 'parked'
        WHEN q.leased_until > CAST(sqlc.arg(now) AS INTEGER) THEN 'leased'
        ELSE 'pending'
    END)
ORDER BY q.message_id
LIMIT CAST(sqlc.arg(max_rows) AS INTEGER);

-- ListUndeliveredBound: the settlement of one outcome before (before_at, before_id) and skip others. The pair is written as in PurgeUndeliveredSee.
-- Guard: none: an id and an instant. Index: settlement_undelivered read backwards. Locks: none.
-- name: ListUndeliveredBound :many
SELECT s.settled_at, s.message_id
FROM outbox_settlement AS s
WHERE s.outcome = CAST(sqlc.arg(outcome) AS TEXT)
    AND s.outcome <> 'delivered'
    AND (s.settled_at, s.message_id) < (+CAST(sqlc.arg(before_at) AS INTEGER), +CAST(sqlc.arg(before_id) AS INTEGER) COLLATE BINARY)
ORDER BY s.settled_at DESC, s.message_id DESC
LIMIT 1 OFFSET CAST(sqlc.arg(skip) AS INTEGER);

-- ListUndelivered pages settled messages of one outcome (dead, cancelled or expired), newest first, before (before_at, before_id) down to the
-- bound, at most max_rows; empty filters match all. Guard: scope. Index: settlement_undelivered read backwards, the primary keys. Locks: none.
-- name: ListUndelivered :many
SELECT
    s.message_id AS id, m.tenant, m.consumer, m.target, m.kind, m.key, m.order_key, CAST(s.outcome AS TEXT) AS state,
    CAST(s.attempt AS INT32) AS attempt, s.epoch, CAST(s.replays AS INT32) AS replays, s.replayed_at,
    CAST(s.cause AS TEXT) AS cause, s.reason, m.created_at, CAST(-62135596800000000 AS INTEGER) AS due_at,
    CAST(-62135596800000000 AS INTEGER) AS leased_until, s.settled_at
FROM outbox_settlement AS s
CROSS JOIN outbox_message AS m ON m.id = s.message_id
WHERE s.outcome = CAST(sqlc.arg(outcome) AS TEXT)
    AND s.outcome <> 'delivered'
    AND (s.settled_at, s.message_id) < (+CAST(sqlc.arg(before_at) AS INTEGER), +CAST(sqlc.arg(before_id) AS INTEGER) COLLATE BINARY)
    AND (s.settled_at, s.message_id) >= (+CAST(sqlc.arg(bound_at) AS INTEGER), +CAST(sqlc.arg(bound_id) AS INTEGER) COLLATE BINARY)
    AND (CAST(sqlc.arg(all_tenants) AS BOOLEAN) OR m.tenant IN (SELECT t.value FROM json_each(CAST(sqlc.arg(scope) AS TEXT)) AS t))
    AND (CAST(sqlc.arg(consumer) AS TEXT) = '' OR m.consumer = CAST(sqlc.arg(consumer) AS TEXT))
    AND (CAST(sqlc.arg(target) AS TEXT) = '' OR m.target = CAST(sqlc.arg(target) AS TEXT))
    AND (CAST(sqlc.arg(kind) AS TEXT) = '' OR m.kind = CAST(sqlc.arg(kind) AS TEXT))
ORDER BY s.settled_at DESC, s.message_id DESC
LIMIT CAST(sqlc.arg(max_rows) AS INTEGER);

-- ListDeliveredBound: the settlement before before_id and skip others. Guard: none: an id. Index: the primary key read backwards. Locks: none.
-- name: ListDeliveredBound :many
SELECT s.message_id
FROM outbox_settlement AS s
WHERE s.message_id < CAST(sqlc.arg(before_id) AS INTEGER)
ORDER BY s.message_id DESC
LIMIT 1 OFFSET CAST(sqlc.arg(skip) AS INTEGER);

-- ListDelivered pages delivered messages below before_id down to the bound, newest id first, at most max_rows; empty filters match all.
-- Guard: scope. Index: the primary keys, read backwards. Locks: none.
-- name: ListDelivered :many
SELECT
    s.message_id AS id, m.tenant, m.consumer, m.target, m.kind, m.key, m.order_key, CAST(s.outcome AS TEXT) AS state,
    CAST(s.attempt AS INT32) AS attempt, s.epoch, CAST(s.replays AS INT32) AS replays, s.replayed_at,
    CAST('' AS TEXT) AS cause, CAST('' AS TEXT) AS reason, m.created_at, CAST(-62135596800000000 AS INTEGER) AS due_at,
    CAST(-62135596800000000 AS INTEGER) AS leased_until, s.settled_at
FROM outbox_settlement AS s
CROSS JOIN outbox_message AS m ON m.id = s.message_id
WHERE s.message_id < CAST(sqlc.arg(before_id) AS INTEGER)
    AND s.message_id >= CAST(sqlc.arg(bound) AS INTEGER)
    AND s.outcome = 'delivered'
    AND (CAST(sqlc.arg(all_tenants) AS BOOLEAN) OR m.tenant IN (SELECT t.value FROM json_each(CAST(sqlc.arg(scope) AS TEXT)) AS t))
    AND (CAST(sqlc.arg(consumer) AS TEXT) = '' OR m.consumer = CAST(sqlc.arg(consumer) AS TEXT))
    AND (CAST(sqlc.arg(target) AS TEXT) = '' OR m.target = CAST(sqlc.arg(target) AS TEXT))
    AND (CAST(sqlc.arg(kind) AS TEXT) = '' OR m.kind = CAST(sqlc.arg(kind) AS TEXT))
ORDER BY s.message_id DESC
LIMIT CAST(sqlc.arg(max_rows) AS INTEGER);

-- ListPauses lists the kill switches. Guard: scope (a wildcard concerns everybody). Index: pause_pkey (the table is small). Locks: none.
-- name: ListPauses :many
SELECT z.consumer, z.target, z.kind, z.tenant, CAST(z.mode AS INT32) AS mode, z.actor, z.reason, z.paused_at
FROM outbox_pause AS z
WHERE CAST(sqlc.arg(all_tenants) AS BOOLEAN)
    OR z.tenant = '*'
    OR z.tenant IN (SELECT t.value FROM json_each(CAST(sqlc.arg(scope) AS TEXT)) AS t)
ORDER BY z.consumer, z.target, z.kind, z.tenant
LIMIT 1000;

-- ListCredentials lists named workers without what they are verified by, a row for each consumer and tenant that one is let in for.
-- Guard: none. Index: credential_pkey, credential_scope_pkey (the tables are small). Locks: none.
-- name: ListCredentials :many
SELECT c.name, c.created_at, c.created_by, c.created_for, c.revoked_at, c.revoked_by, c.revoked_for, s.consumer, s.tenant
FROM outbox_credential AS c
INNER JOIN outbox_credential_scope AS s ON s.name = c.name
ORDER BY c.name, s.consumer, s.tenant
LIMIT CAST(sqlc.arg(max_rows) AS INTEGER);

-- CountLanes lists the lanes with pending messages after (consumer, target, kind, tenant, priority), at most max_rows, by a loose index scan: the
-- plus takes the columns' affinity off, with which a row value would seek by its first column alone.
-- Guard: scope. Index: queue_due. Locks: none.
-- name: CountLanes :many
WITH RECURSIVE lane AS (
    SELECT
        CAST(sqlc.arg(after_consumer) AS TEXT) AS consumer,
        CAST(sqlc.arg(after_target) AS TEXT) AS target,
        CAST(sqlc.arg(after_kind) AS TEXT) AS kind,
        CAST(sqlc.arg(after_tenant) AS TEXT) AS tenant,
        CAST(sqlc.arg(after_priority) AS INTEGER) AS priority,
        0 AS found
    UNION ALL
    SELECT q.consumer, q.target, q.kind, q.tenant, q.priority, 1
    FROM lane
    CROSS JOIN outbox_queue AS q ON q.message_id = (
        SELECT n.message_id
        FROM outbox_queue AS n
        WHERE n.state = 0
            AND (n.consumer, n.target, n.kind, n.tenant, n.priority) > (+lane.consumer, +lane.target, +lane.kind, +lane.tenant, +lane.priority)
        ORDER BY n.consumer, n.target, n.kind, n.tenant, n.priority
        LIMIT 1
    )
)
SELECT
    CAST(lane.consumer AS TEXT) AS consumer, CAST(lane.target AS TEXT) AS target, CAST(lane.kind AS TEXT) AS kind,
    CAST(lane.tenant AS TEXT) AS tenant, CAST(lane.priority AS INT32) AS priority
FROM lane
WHERE lane.found
    AND (CAST(sqlc.arg(all_tenants) AS BOOLEAN) OR lane.tenant IN (SELECT t.value FROM json_each(CAST(sqlc.arg(scope) AS TEXT)) AS t))
LIMIT CAST(sqlc.arg(max_rows) AS INTEGER);

-- CountLanesOne counts the pending messages of one lane, the first cap of them: due now, deferred, leased, and the earliest due time.
-- Guard: the lane. Index: queue_due. Locks: none.
-- name: CountLanesOne :one
SELECT
    CAST(COALESCE(SUM(e.due_at <= CAST(sqlc.arg(now) AS INTEGER) AND e.leased_until <= CAST(sqlc.arg(now) AS INTEGER)), 0) AS INTEGER) AS due,
    CAST(COALESCE(SUM(e.due_at > CAST(sqlc.arg(now) AS INTEGER)), 0) AS INTEGER) AS later,
    CAST(COALESCE(SUM(e.leased_until > CAST(sqlc.arg(now) AS INTEGER)), 0) AS INTEGER) AS leased,
    CAST(COALESCE(MIN(e.due_at), -62135596800000000) AS INTEGER) AS earliest
FROM (
    SELECT q.due_at, q.leased_until
    FROM outbox_queue AS q
    WHERE q.state = 0
        AND q.consumer = CAST(sqlc.arg(consumer) AS TEXT)
        AND q.target = CAST(sqlc.arg(target) AS TEXT)
        AND q.kind = CAST(sqlc.arg(kind) AS TEXT)
        AND q.tenant = CAST(sqlc.arg(tenant) AS TEXT)
        AND q.priority = CAST(sqlc.arg(priority) AS INTEGER)
    ORDER BY q.due_at
    LIMIT CAST(sqlc.arg(cap) AS INTEGER)
) AS e;

-- CountParked counts parked messages by (consumer, target, kind), cap at most in all.
-- Guard: scope. Index: queue_parked. Locks: none.
-- name: CountParked :many
SELECT CAST(e.consumer AS TEXT) AS consumer, CAST(e.target AS TEXT) AS target, CAST(e.kind AS TEXT) AS kind, COUNT(*) AS parked
FROM (
    SELECT q.consumer, q.target, q.kind
    FROM outbox_queue AS q
    WHERE q.state = 1
        AND (CAST(sqlc.arg(all_tenants) AS BOOLEAN) OR q.tenant IN (SELECT t.value FROM json_each(CAST(sqlc.arg(scope) AS TEXT)) AS t))
    ORDER BY q.consumer, q.target, q.kind, q.tenant
    LIMIT CAST(sqlc.arg(cap) AS INTEGER)
) AS e
GROUP BY e.consumer, e.target, e.kind
ORDER BY e.consumer, e.target, e.kind;

-- CountUndelivered counts dead, cancelled and expired messages, each capped at cap.
-- Guard: none: counts over all tenants, without any of their content. Index: settlement_undelivered. Locks: none.
-- name: CountUndelivered :many
SELECT
    CAST(o.value AS TEXT) AS outcome,
    CAST((
        SELECT COUNT(*)
        FROM (
            SELECT s.message_id
            FROM outbox_settlement AS s
            WHERE s.outcome = o.value AND s.outcome <> 'delivered'
            LIMIT CAST(sqlc.arg(cap) AS INTEGER)
        ) AS e
    ) AS INTEGER) AS settled
FROM json_each('["dead", "cancelled", "expired"]') AS o;

-- ReadHealth reads how much there is. SQLite keeps no estimates: live_rows is exact up to cap, and settled_estimate is the span of the settled ids,
-- which also counts those between them that are open or purged. Guard: none. Index: the primary keys, a count of cap entries. Locks: none.
-- name: ReadHealth :one
SELECT
    CAST((SELECT COUNT(*) FROM (SELECT q.message_id FROM outbox_queue AS q LIMIT CAST(sqlc.arg(cap) AS INTEGER)) AS e) AS INTEGER) AS live_rows,
    CAST(COALESCE((SELECT MAX(s.message_id) FROM outbox_settlement AS s) - (SELECT MIN(s.message_id) FROM outbox_settlement AS s) + 1, 0) AS INTEGER)
        AS settled_estimate,
    CAST('SQLite ' || sqlite_version() AS TEXT) AS server_version;
