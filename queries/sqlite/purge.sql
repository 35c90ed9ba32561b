-- Purge: retention. Each operation looks at no more than its limit and tells where it came to, so that nothing runs long: a walk goes on after
-- the last row looked at, and is over when nothing comes back. The queries whose names end in See look; what they find is removed by its id.
--
-- One transaction writes at a time, so two janitors take turns and neither is ever told that the other is busy.

-- PurgeSee looks at the settlements above after_id, at most max_rows of them, oldest id first, and says of each whether it was settled before the
-- cut-off of its outcome (0 = none, for what is kept).
-- Guard: scope, strictly older than the cut-off. Index: the primary keys. Locks: none.
-- name: PurgeSee :many
SELECT
    s.message_id, s.outcome,
    CAST(
        s.settled_at < CASE s.outcome
            WHEN 'delivered' THEN CAST(sqlc.arg(delivered) AS INTEGER)
            WHEN 'dead' THEN CAST(sqlc.arg(dead) AS INTEGER)
            WHEN 'cancelled' THEN CAST(sqlc.arg(cancelled) AS INTEGER)
            ELSE CAST(sqlc.arg(expired) AS INTEGER)
        END
        AND (CAST(sqlc.arg(all_tenants) AS BOOLEAN) OR EXISTS (
            SELECT 1
            FROM outbox_message AS m
            WHERE m.id = s.message_id
                AND +m.tenant IN (SELECT t.value FROM json_each(CAST(sqlc.arg(scope) AS TEXT)) AS t)
        ))
        AS BOOLEAN
    ) AS old
FROM outbox_settlement AS s
WHERE s.message_id > CAST(sqlc.arg(after_id) AS INTEGER)
ORDER BY s.message_id
LIMIT CAST(sqlc.arg(max_rows) AS INTEGER);

-- PurgeUndeliveredSee looks at the messages of one outcome settled before the cut-off and after (after_at, after_id), at most max_rows of them,
-- oldest first, and says of each whether it is in scope. The plus takes the affinity off the pair and COLLATE gives an id, which has none, a
-- collation: without both SQLite would seek by the instant alone and read again what was settled at that very one.
-- Guard: scope, outcome, strictly older than the cut-off. Index: settlement_undelivered, the primary key. Locks: none.
-- name: PurgeUndeliveredSee :many
SELECT
    s.message_id, s.settled_at,
    CAST(
        CAST(sqlc.arg(all_tenants) AS BOOLEAN) OR EXISTS (
            SELECT 1
            FROM outbox_message AS m
            WHERE m.id = s.message_id
                AND +m.tenant IN (SELECT t.value FROM json_each(CAST(sqlc.arg(scope) AS TEXT)) AS t)
        )
        AS BOOLEAN
    ) AS in_scope
FROM outbox_settlement AS s
WHERE s.outcome = CAST(sqlc.arg(outcome) AS TEXT)
    AND s.outcome <> 'delivered'
    AND s.settled_at < CAST(sqlc.arg(cutoff) AS INTEGER)
    AND (s.settled_at, s.message_id) > (+CAST(sqlc.arg(after_at) AS INTEGER), +CAST(sqlc.arg(after_id) AS INTEGER) COLLATE BINARY)
ORDER BY s.settled_at, s.message_id
LIMIT CAST(sqlc.arg(max_rows) AS INTEGER);

-- ExpireUnleasedSee looks at the open messages above after_id, at most examine of them, and says of each whether nobody ever leased it by the
-- cut-off: its expiry and the grace.
-- Guard: scope, pending, never leased (epoch 0), expires_at not after the cut-off. Index: the primary key. Locks: none.
-- name: ExpireUnleasedSee :many
SELECT
    q.message_id,
    CAST(
        q.epoch = 0 AND q.state = 0 AND q.expires_at <= CAST(sqlc.arg(cutoff) AS INTEGER)
        AND (CAST(sqlc.arg(all_tenants) AS BOOLEAN) OR q.tenant IN (SELECT t.value FROM json_each(CAST(sqlc.arg(scope) AS TEXT)) AS t))
        AS BOOLEAN
    ) AS old
FROM outbox_queue AS q
WHERE q.message_id > CAST(sqlc.arg(after_id) AS INTEGER)
ORDER BY q.message_id
LIMIT CAST(sqlc.arg(examine) AS INTEGER);

-- PurgeAuditSee looks at operators' acts above after_id, at most max_rows of them, and says of each whether it was before the cut-off.
-- Guard: scope, strictly older than the cut-off. Index: the primary key. Locks: none.
-- name: PurgeAuditSee :many
SELECT
    a.id,
    CAST(
        a.at < CAST(sqlc.arg(cutoff) AS INTEGER)
        AND (CAST(sqlc.arg(all_tenants) AS BOOLEAN) OR a.tenant IN (SELECT t.value FROM json_each(CAST(sqlc.arg(scope) AS TEXT)) AS t))
        AS BOOLEAN
    ) AS old
FROM outbox_audit AS a
WHERE a.id > CAST(sqlc.arg(after_id) AS INTEGER)
ORDER BY a.id
LIMIT CAST(sqlc.arg(max_rows) AS INTEGER);

-- PurgeAuditErase forgets operators' acts. Guard: the caller's. Index: the primary key. Locks: none.
-- name: PurgeAuditErase :exec
DELETE FROM outbox_audit
WHERE id IN (SELECT i.value FROM json_each(CAST(sqlc.arg(ids) AS TEXT)) AS i);

-- PurgeWorkers forgets senders not seen since the cut-off; a lease they still hold runs out by itself.
-- Guard: last seen before the cut-off. Index: the primary key (the table is small). Locks: none.
-- name: PurgeWorkers :many
DELETE FROM outbox_worker
WHERE id IN (
    SELECT o.id
    FROM outbox_worker AS o
    WHERE o.seen_at < CAST(sqlc.arg(cutoff) AS INTEGER)
    ORDER BY o.id
    LIMIT CAST(sqlc.arg(max_rows) AS INTEGER)
)
RETURNING id;

-- PurgeEventsSee looks at the oldest events, beginning after the mark, at most max_rows of them, and says of each whether it may go: recorded before the cut-off, and no
-- further than every named reader came (with force: whatever they did).
-- Guard: strictly older than the cut-off, readers. Index: the primary keys; all readers, which are few. Locks: none.
-- name: PurgeEventsSee :many
SELECT
    e.position, e.digest,
    CAST(
        e.recorded_at < CAST(sqlc.arg(cutoff) AS INTEGER)
        AND (CAST(sqlc.arg(force) AS BOOLEAN) OR NOT EXISTS (
            SELECT 1 FROM outbox_reader AS r WHERE (r.transaction_id, r.position) < (e.transaction_id, e.position)
        ))
        AS BOOLEAN
    ) AS goes
FROM outbox_event AS e
WHERE e.position > (SELECT i.purged_position FROM outbox_incarnation AS i)
ORDER BY e.position
LIMIT CAST(sqlc.arg(max_rows) AS INTEGER);

-- PurgeEventsErase removes the events up to a position. Guard: the caller's. Index: the primary key. Locks: none.
-- name: PurgeEventsErase :exec
DELETE FROM outbox_event
WHERE position <= CAST(sqlc.arg(position) AS INTEGER);

-- PurgeEventsMark tells which was the last event removed. Guard: none, it is one row. Index: the primary key. Locks: none.
-- name: PurgeEventsMark :exec
UPDATE outbox_incarnation
SET purged_transaction_id = CAST(sqlc.arg(position) AS INTEGER),
    purged_position = CAST(sqlc.arg(position) AS INTEGER),
    purged_digest = CAST(sqlc.arg(digest) AS BLOB)
WHERE one = 1;

-- PurgeClaimsSee looks at claims that ended, or whose holder's time ran out, before the cut-off and after a place, at most max_rows of them, oldest
-- first, and says of each whether it goes: it is in scope, and is no receipt of an event that may still be delivered, since the bus's message of it,
-- whose key is that of package events, is open, or dead and may be replayed. The pluses are those of PurgeUndeliveredSee.
-- Guard: scope, not held, strictly older than the cut-off, message. Index: claim_over, message_key_unique, the primary key. Locks: none.
-- name: PurgeClaimsSee :many
SELECT
    c.over_at, c.tenant, c.scope, c.key,
    CAST(
        (CAST(sqlc.arg(all_tenants) AS BOOLEAN) OR c.tenant IN (SELECT t.value FROM json_each(CAST(sqlc.arg(tenants) AS TEXT)) AS t))
        AND COALESCE((
            SELECT COALESCE((SELECT e.outcome <> 'dead' FROM outbox_settlement AS e WHERE e.message_id = m.id), FALSE)
            FROM outbox_message AS m
            WHERE m.tenant = c.tenant
                AND m.consumer = substr(c.scope, 1, instr(c.scope, ':') - 1)
                AND m.key = substr(c.scope, 1, instr(c.scope, ':')) || c.key || ':0'
        ), TRUE)
        AS BOOLEAN
    ) AS goes
FROM outbox_claim AS c
WHERE c.over_at < CAST(sqlc.arg(cutoff) AS INTEGER)
    AND (c.over_at, c.tenant, c.scope, c.key)
        > (CAST(sqlc.arg(after_at) AS INTEGER), +CAST(sqlc.arg(after_tenant) AS TEXT), +CAST(sqlc.arg(after_scope) AS TEXT), +CAST(sqlc.arg(after_key) AS TEXT))
ORDER BY c.over_at, c.tenant, c.scope, c.key
LIMIT CAST(sqlc.arg(max_rows) AS INTEGER);

-- PurgeClaimsErase removes one claim. Guard: the caller's. Index: claim_pkey. Locks: none.
-- name: PurgeClaimsErase :exec
DELETE FROM outbox_claim
WHERE tenant = CAST(sqlc.arg(tenant) AS TEXT) AND scope = CAST(sqlc.arg(scope) AS TEXT) AND key = CAST(sqlc.arg(key) AS TEXT);

-- PurgeBatchesPick picks the batch that was completed first, before the cut-off.
-- Guard: scope, completed, strictly older than the cut-off. Index: batch_completed. Locks: none.
-- name: PurgeBatchesPick :many
SELECT b.id
FROM outbox_batch AS b
WHERE b.completed_at < CAST(sqlc.arg(cutoff) AS INTEGER) AND b.completed_at < 253402214400000000
    AND (CAST(sqlc.arg(all_tenants) AS BOOLEAN) OR b.tenant IN (SELECT t.value FROM json_each(CAST(sqlc.arg(scope) AS TEXT)) AS t))
ORDER BY b.completed_at, b.id
LIMIT 1;

-- PurgeBatchesRows removes the first rows of a batch. Guard: the caller's. Index: the primary key. Locks: none.
-- name: PurgeBatchesRows :many
DELETE FROM outbox_batch_row
WHERE batch_id = CAST(sqlc.arg(batch_id) AS INTEGER)
    AND number IN (
        SELECT r.number FROM outbox_batch_row AS r
        WHERE r.batch_id = CAST(sqlc.arg(batch_id) AS INTEGER)
        ORDER BY r.number
        LIMIT CAST(sqlc.arg(max_rows) AS INTEGER)
    )
RETURNING number;

-- PurgeBatchesErase removes a batch. Guard: the caller's. Index: the primary key. Locks: none.
-- name: PurgeBatchesErase :exec
DELETE FROM outbox_batch
WHERE id = CAST(sqlc.arg(id) AS INTEGER);
