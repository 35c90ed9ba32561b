-- Lease: find due lanes, lease due messages, keep, extend and give back a lease.
--
-- Boundaries, everywhere: due when due_at <= now, over when leased_until <= now or further ahead than the longest lease (a clock stepped
-- back), too old when the expiry <= now, spent when attempt >= limit. A unary plus before a column of another table keeps SQLite seeking by all
-- columns of a row value.

-- DueLanes lists the lanes that have a due message, with the instant the earliest one came due: a loose scan that reads one index
-- entry a lane. Each seed {consumer, target, kind, tenant, priority} names where it goes on: after (tenant, priority), or, when not all tenants
-- are in scope, within exactly that tenant after that priority. Start with priority -32769.
-- Guard: paused lanes are left out; the scope is the seeds' tenants. Index: queue_due. Locks: none.
-- name: DueLanes :many
WITH RECURSIVE lane (seed, consumer, target, kind, tenant, priority, due_at) AS (
    SELECT
        CAST(g.key AS INTEGER) + 1, g.value ->> '$.consumer', g.value ->> '$.target', g.value ->> '$.kind', g.value ->> '$.tenant',
        CAST(g.value ->> '$.priority' AS INTEGER), 253402214400000000
    FROM json_each(CAST(sqlc.arg(seeds) AS TEXT)) AS g
    UNION ALL
    SELECT l.seed, l.consumer, l.target, l.kind, q.tenant, q.priority, q.due_at
    FROM lane AS l
    CROSS JOIN outbox_queue AS q ON q.message_id = CASE WHEN CAST(sqlc.arg(all_tenants) AS BOOLEAN)
        THEN (
            SELECT n.message_id
            FROM outbox_queue AS n
            WHERE n.state = 0 AND n.consumer = +l.consumer AND n.target = +l.target AND n.kind = +l.kind
                AND (n.tenant, n.priority) > (+l.tenant, +l.priority)
            ORDER BY n.tenant, n.priority, n.due_at
            LIMIT 1
        )
        ELSE (
            SELECT n.message_id
            FROM outbox_queue AS n
            WHERE n.state = 0 AND n.consumer = +l.consumer AND n.target = +l.target AND n.kind = +l.kind
                AND n.tenant = +l.tenant AND n.priority > +l.priority
            ORDER BY n.priority, n.due_at
            LIMIT 1
        )
        END
)
SELECT CAST(l.seed AS INT32) AS seed, CAST(l.tenant AS TEXT) AS tenant, CAST(l.priority AS INT32) AS priority, CAST(l.due_at AS INTEGER) AS due_at
FROM lane AS l
WHERE l.due_at <= CAST(sqlc.arg(now) AS INTEGER)
    AND NOT EXISTS (
        SELECT 1
        FROM outbox_pause AS z
        WHERE z.consumer IN (l.consumer, '*') AND z.target IN (l.target, '*') AND z.kind IN (l.kind, '*') AND z.tenant IN (l.tenant, '*')
    )
LIMIT CAST(sqlc.arg(max_rows) AS INTEGER);

-- LeaseDueLanes returns the numbers, from 0, of those given lanes {kind, tenant} that may be leased.
-- Guard: scope, pause. Index: pause_pkey. Locks: none.
-- name: LeaseDueLanes :many
SELECT CAST(g.key AS INTEGER) AS place
FROM json_each(CAST(sqlc.arg(lanes) AS TEXT)) AS g
WHERE (CAST(sqlc.arg(all_tenants) AS BOOLEAN)
        OR g.value ->> '$.tenant' IN (SELECT t.value FROM json_each(CAST(sqlc.arg(scope) AS TEXT)) AS t))
    AND NOT EXISTS (
        SELECT 1
        FROM outbox_pause AS z
        WHERE z.consumer IN (CAST(sqlc.arg(consumer) AS TEXT), '*') AND z.target IN (CAST(sqlc.arg(target) AS TEXT), '*')
            AND z.kind IN (g.value ->> '$.kind', '*') AND z.tenant IN (g.value ->> '$.tenant', '*')
    )
ORDER BY g.key;

-- LeaseDuePick picks at most quota messages of one lane from its watermark (after_due, after_id) on, of the next examine entries, and says
-- what each has spent. Those at the instant of the watermark are sought by themselves: a row value does not seek by the primary key.
-- Guard: due, free, the head of its order key. Index: queue_due for the lane, queue_order for the head. Locks: none.
-- name: LeaseDuePick :many
WITH entry AS (
    SELECT t.message_id, t.due_at, t.order_key, t.leased_until, t.attempt, t.attempt_limit, t.expires_at, t.born_at, t.last_error
    FROM (
        SELECT q.message_id, q.due_at, q.order_key, q.leased_until, q.attempt, q.attempt_limit, q.expires_at, q.born_at, q.last_error
        FROM outbox_queue AS q
        WHERE q.state = 0 AND q.consumer = CAST(sqlc.arg(consumer) AS TEXT) AND q.target = CAST(sqlc.arg(target) AS TEXT)
            AND q.kind = CAST(sqlc.arg(kind) AS TEXT) AND q.tenant = CAST(sqlc.arg(tenant) AS TEXT)
            AND q.priority = CAST(sqlc.arg(priority) AS INTEGER)
            AND q.due_at = CAST(sqlc.arg(after_due) AS INTEGER) AND q.due_at <= CAST(sqlc.arg(now) AS INTEGER)
            AND q.message_id > CAST(sqlc.arg(after_id) AS INTEGER)
        ORDER BY q.message_id
        LIMIT CAST(sqlc.arg(examine) AS INTEGER)
    ) AS t
    UNION ALL
    SELECT t.message_id, t.due_at, t.order_key, t.leased_until, t.attempt, t.attempt_limit, t.expires_at, t.born_at, t.last_error
    FROM (
        SELECT q.message_id, q.due_at, q.order_key, q.leased_until, q.attempt, q.attempt_limit, q.expires_at, q.born_at, q.last_error
        FROM outbox_queue AS q
        WHERE q.state = 0 AND q.consumer = CAST(sqlc.arg(consumer) AS TEXT) AND q.target = CAST(sqlc.arg(target) AS TEXT)
            AND q.kind = CAST(sqlc.arg(kind) AS TEXT) AND q.tenant = CAST(sqlc.arg(tenant) AS TEXT)
            AND q.priority = CAST(sqlc.arg(priority) AS INTEGER)
            AND q.due_at > CAST(sqlc.arg(after_due) AS INTEGER) AND q.due_at <= CAST(sqlc.arg(now) AS INTEGER)
        ORDER BY q.due_at, q.message_id
        LIMIT CAST(sqlc.arg(examine) AS INTEGER)
    ) AS t
    ORDER BY 2, 1
    LIMIT CAST(sqlc.arg(examine) AS INTEGER)
)
SELECT
    e.message_id, e.due_at, e.order_key, e.leased_until, e.last_error,
    CAST(e.attempt >= MAX(CAST(sqlc.arg(attempt_limit) AS INTEGER), e.attempt_limit) AS BOOLEAN) AS spent,
    CAST(MIN(e.expires_at, CASE WHEN CAST(sqlc.arg(max_age) AS INTEGER) = 0 THEN e.expires_at ELSE e.born_at + CAST(sqlc.arg(max_age) AS INTEGER) END)
        <= CAST(sqlc.arg(now) AS INTEGER) AS BOOLEAN) AS aged
FROM entry AS e
WHERE (e.leased_until <= CAST(sqlc.arg(now) AS INTEGER) OR e.leased_until > CAST(sqlc.arg(latest) AS INTEGER))
    AND (e.order_key = '' OR e.message_id = (
        SELECT h.message_id
        FROM outbox_queue AS h
        WHERE h.consumer = CAST(sqlc.arg(consumer) AS TEXT) AND h.target = CAST(sqlc.arg(target) AS TEXT)
            AND h.tenant = CAST(sqlc.arg(tenant) AS TEXT) AND h.order_key = e.order_key AND h.order_key <> ''
        ORDER BY h.message_id
        LIMIT 1
    ))
ORDER BY e.due_at, e.message_id
LIMIT CAST(sqlc.arg(quota) AS INTEGER);

-- LeaseDueBound returns the entry of one lane up to which LeaseDuePick examined it, when there were as many as it examines.
-- Guard: due. Index: queue_due. Locks: none.
-- name: LeaseDueBound :many
SELECT e.due_at, e.message_id
FROM (
    SELECT t.due_at, t.message_id
    FROM (
        SELECT q.due_at, q.message_id
        FROM outbox_queue AS q
        WHERE q.state = 0 AND q.consumer = CAST(sqlc.arg(consumer) AS TEXT) AND q.target = CAST(sqlc.arg(target) AS TEXT)
            AND q.kind = CAST(sqlc.arg(kind) AS TEXT) AND q.tenant = CAST(sqlc.arg(tenant) AS TEXT)
            AND q.priority = CAST(sqlc.arg(priority) AS INTEGER)
            AND q.due_at = CAST(sqlc.arg(after_due) AS INTEGER) AND q.due_at <= CAST(sqlc.arg(now) AS INTEGER)
            AND q.message_id > CAST(sqlc.arg(after_id) AS INTEGER)
        ORDER BY q.message_id
        LIMIT CAST(sqlc.arg(examine) AS INTEGER)
    ) AS t
    UNION ALL
    SELECT t.due_at, t.message_id
    FROM (
        SELECT q.due_at, q.message_id
        FROM outbox_queue AS q
        WHERE q.state = 0 AND q.consumer = CAST(sqlc.arg(consumer) AS TEXT) AND q.target = CAST(sqlc.arg(target) AS TEXT)
            AND q.kind = CAST(sqlc.arg(kind) AS TEXT) AND q.tenant = CAST(sqlc.arg(tenant) AS TEXT)
            AND q.priority = CAST(sqlc.arg(priority) AS INTEGER)
            AND q.due_at > CAST(sqlc.arg(after_due) AS INTEGER) AND q.due_at <= CAST(sqlc.arg(now) AS INTEGER)
        ORDER BY q.due_at, q.message_id
        LIMIT CAST(sqlc.arg(examine) AS INTEGER)
    ) AS t
) AS e
ORDER BY e.due_at, e.message_id
LIMIT 1 OFFSET CAST(sqlc.arg(examine) AS INTEGER) - 1;

-- LeaseOrder takes the order keys of the given messages until the instant, or blocks them, and returns the messages that got theirs: of two
-- of one key the smaller id. The messages must be in the queue.
-- Guard: no live lease of the key, not blocked. Index: order_lease_pkey. Locks: none.
-- name: LeaseOrder :many
INSERT OR REPLACE INTO outbox_order_lease (consumer, target, tenant, order_key, message_id, leased_until, blocked)
SELECT
    q.consumer, q.target, q.tenant, q.order_key, MIN(q.message_id), CAST(sqlc.arg(until) AS INTEGER), CAST(sqlc.arg(blocked) AS BOOLEAN)
FROM outbox_queue AS q
WHERE q.message_id IN (SELECT i.value FROM json_each(CAST(sqlc.arg(ids) AS TEXT)) AS i)
    AND +q.order_key <> ''
    AND NOT EXISTS (
        SELECT 1
        FROM outbox_order_lease AS o
        WHERE o.consumer = q.consumer AND o.target = q.target AND o.tenant = q.tenant AND o.order_key = q.order_key
            AND (o.blocked OR o.leased_until BETWEEN CAST(sqlc.arg(now) AS INTEGER) + 1 AND CAST(sqlc.arg(latest) AS INTEGER))
    )
GROUP BY q.consumer, q.target, q.tenant, q.order_key
RETURNING message_id;

-- LeaseGrant leases the given messages. A token that is still there belongs to a lease that was lost: nobody knows how far its handler came.
-- Guard: the caller's. Index: the primary key; no index changes. Locks: none.
-- name: LeaseGrant :exec
UPDATE outbox_queue
SET attempt = attempt + 1,
    epoch = epoch + 1,
    unsure = unsure OR token <> x'00000000000000000000000000000000',
    token = CAST(sqlc.arg(token) AS BLOB),
    leased_by = CAST(sqlc.arg(worker) AS INTEGER),
    leased_until = CAST(sqlc.arg(until) AS INTEGER)
WHERE message_id IN (SELECT i.value FROM json_each(CAST(sqlc.arg(ids) AS TEXT)) AS i);

-- LeaseRead reads open messages with their envelopes. Guard: the caller's. Index: the primary keys. Locks: none.
-- name: LeaseRead :many
SELECT
    q.message_id, q.due_at, m.tenant, m.kind, m.key, m.order_key, CAST(m.priority AS INT32) AS priority, m.source_position, m.source_event_id,
    m.created_at, m.metadata, m.payload, CAST(q.attempt AS INT32) AS attempt, q.epoch, CAST(q.replays AS INT32) AS replays,
    CAST(q.unsure AS BOOLEAN) AS unsure, q.leased_until
FROM json_each(CAST(sqlc.arg(ids) AS TEXT)) AS i
CROSS JOIN outbox_queue AS q ON q.message_id = i.value
CROSS JOIN outbox_message AS m ON m.id = i.value;

-- LeaseSuccessorsPick picks the heads of the given order keys {tenant, order_key}, those of the given kinds {kind, attempt_limit, max_age}. A
-- head that is spent or too old is left to LeaseDue, which buries it.
-- Guard: as LeaseDue. Index: queue_order for the head, the primary key for the rest. Locks: none.
-- name: LeaseSuccessorsPick :many
SELECT q.message_id
FROM json_each(CAST(sqlc.arg(wanted) AS TEXT)) AS w
CROSS JOIN outbox_queue AS q ON q.message_id = (
    SELECT h.message_id
    FROM outbox_queue AS h
    WHERE h.consumer = CAST(sqlc.arg(consumer) AS TEXT) AND h.target = CAST(sqlc.arg(target) AS TEXT)
        AND h.tenant = w.value ->> '$.tenant' AND h.order_key = w.value ->> '$.order_key' AND h.order_key <> ''
    ORDER BY h.message_id
    LIMIT 1
)
CROSS JOIN json_each(CAST(sqlc.arg(kinds) AS TEXT)) AS k ON k.value ->> '$.kind' = q.kind
WHERE +q.state = 0
    AND q.due_at <= CAST(sqlc.arg(now) AS INTEGER)
    AND (q.leased_until <= CAST(sqlc.arg(now) AS INTEGER) OR q.leased_until > CAST(sqlc.arg(latest) AS INTEGER))
    AND (CAST(sqlc.arg(all_tenants) AS BOOLEAN) OR q.tenant IN (SELECT t.value FROM json_each(CAST(sqlc.arg(scope) AS TEXT)) AS t))
    AND q.attempt < MAX(CAST(k.value ->> '$.attempt_limit' AS INTEGER), q.attempt_limit)
    AND MIN(q.expires_at, CASE WHEN CAST(k.value ->> '$.max_age' AS INTEGER) = 0 THEN q.expires_at
        ELSE q.born_at + CAST(k.value ->> '$.max_age' AS INTEGER) END) > CAST(sqlc.arg(now) AS INTEGER)
    AND NOT EXISTS (
        SELECT 1
        FROM outbox_pause AS z
        WHERE z.consumer IN (q.consumer, '*') AND z.target IN (q.target, '*') AND z.kind IN (q.kind, '*') AND z.tenant IN (q.tenant, '*')
    )
LIMIT CAST(sqlc.arg(max_rows) AS INTEGER);

-- LeaseHeld returns those of the given messages, each {id, token in hex, place}, whose token is the current one, and with live true only
-- those whose lease is not over. A token of zeros is nobody's. Guard: id, token, lease. Index: the primary key. Locks: none.
-- name: LeaseHeld :many
SELECT CAST(g.value ->> '$.place' AS INTEGER) AS place, q.message_id, q.order_key
FROM json_each(CAST(sqlc.arg(given) AS TEXT)) AS g
CROSS JOIN outbox_queue AS q ON q.message_id = g.value ->> '$.id'
WHERE q.token = unhex(g.value ->> '$.token')
    AND q.token <> x'00000000000000000000000000000000'
    AND (NOT CAST(sqlc.arg(live) AS BOOLEAN) OR q.leased_until > CAST(sqlc.arg(now) AS INTEGER))
ORDER BY q.message_id;

-- RenewQueue extends leases, never shortening one but to the latest instant. Guard: the caller's. Index: the primary key. Locks: none.
-- name: RenewQueue :exec
UPDATE outbox_queue
SET leased_until = MIN(MAX(leased_until, CAST(sqlc.arg(until) AS INTEGER)), CAST(sqlc.arg(latest) AS INTEGER))
WHERE message_id IN (SELECT i.value FROM json_each(CAST(sqlc.arg(ids) AS TEXT)) AS i);

-- RenewOrder extends the order lease of a message likewise. Guard: not blocked. Index: order_lease_message. Locks: none.
-- name: RenewOrder :exec
UPDATE outbox_order_lease
SET leased_until = MIN(MAX(leased_until, CAST(sqlc.arg(until) AS INTEGER)), CAST(sqlc.arg(latest) AS INTEGER))
WHERE message_id = CAST(sqlc.arg(message_id) AS INTEGER)
    AND NOT blocked;

-- RenewRead returns the leases as they are now and whether a pause asks running handlers to stop (pause_mode -1: not paused). An ordered
-- message whose order lease went to another is left out: it is no longer ours.
-- Guard: the order lease. Index: the primary keys, order_lease_message. Locks: none.
-- name: RenewRead :many
SELECT
    q.message_id, q.leased_until,
    CAST(COALESCE((
        SELECT MAX(z.mode)
        FROM outbox_pause AS z
        WHERE z.consumer IN (q.consumer, '*') AND z.target IN (q.target, '*') AND z.kind IN (q.kind, '*') AND z.tenant IN (q.tenant, '*')
    ), -1) AS INT32) AS pause_mode
FROM json_each(CAST(sqlc.arg(ids) AS TEXT)) AS i
CROSS JOIN outbox_queue AS q ON q.message_id = i.value
WHERE q.order_key = ''
    OR EXISTS (SELECT 1 FROM outbox_order_lease AS o WHERE o.message_id = q.message_id AND NOT o.blocked);

-- ReleaseQueue gives leases back, the attempts unspent; unsure is true where the handlers had started, and what was unsure stays so.
-- Guard: the caller's. Index: the primary key. Locks: none.
-- name: ReleaseQueue :exec
UPDATE outbox_queue
SET attempt = attempt - 1,
    unsure = unsure OR CAST(sqlc.arg(unsure) AS BOOLEAN),
    token = x'00000000000000000000000000000000',
    leased_until = -62135596800000000,
    leased_by = 0
WHERE message_id IN (SELECT i.value FROM json_each(CAST(sqlc.arg(ids) AS TEXT)) AS i);
