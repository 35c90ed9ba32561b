-- Move: what `fencepost move` does in the file whose outbox goes to PostgreSQL. Rows leave as JSON arrays of objects whose names are the columns of
-- PostgreSQL, bytes in its hex form and instants in its own, so that it reads them as rows of its tables.

-- MovePaused says whether everything is paused. Guard: none. Index: the primary key. Locks: none.
-- name: MovePaused :one
SELECT CAST(EXISTS (
    SELECT 1 FROM outbox_pause AS z WHERE z.consumer = '*' AND z.target = '*' AND z.kind = '*' AND z.tenant = '*'
) AS BOOLEAN) AS paused;

-- MoveLeased counts the live leases and says when the last of them ends. One that ends later than latest counts as over.
-- Guard: live. Index: none, it reads all open messages, once. Locks: none.
-- name: MoveLeased :one
SELECT COUNT(*) AS leased, CAST(COALESCE(MAX(q.leased_until), CAST(sqlc.arg(now) AS INTEGER)) AS INTEGER) AS until
FROM outbox_queue AS q
WHERE q.leased_until > CAST(sqlc.arg(now) AS INTEGER) AND q.leased_until <= CAST(sqlc.arg(latest) AS INTEGER);

-- MoveRevoke takes lost leases away, as the next lease of the message would: the attempts stay spent, and the next lease is unsure. A sender that comes
-- back with one finds it stale.
-- Guard: leased, not live. Index: none, it reads all open messages, once. Locks: none.
-- name: MoveRevoke :exec
UPDATE outbox_queue
SET unsure = 1,
    token = x'00000000000000000000000000000000',
    leased_until = -62135596800000000,
    leased_by = 0
WHERE token <> x'00000000000000000000000000000000'
    AND (leased_until <= CAST(sqlc.arg(now) AS INTEGER) OR leased_until > CAST(sqlc.arg(latest) AS INTEGER));

-- MoveUnorder removes the order leases that are over. Guard: not blocked, not live. Index: none, it reads all order leases, once. Locks: none.
-- name: MoveUnorder :exec
DELETE FROM outbox_order_lease
WHERE NOT blocked
    AND (leased_until <= CAST(sqlc.arg(now) AS INTEGER) OR leased_until > CAST(sqlc.arg(latest) AS INTEGER));

-- MoveSize returns how many messages and events there are, the highest ids ever given to messages, acts, workers and events, what stream it is, and how
-- many batches are open.
-- Guard: none. Index: message_key_unique and event_id_unique, read once as a whole; batch_open. Locks: none.
-- name: MoveSize :one
SELECT
    CAST((SELECT COUNT(*) FROM outbox_message) + (SELECT COUNT(*) FROM outbox_event) AS INTEGER) AS total,
    CAST(COALESCE((SELECT s.seq FROM sqlite_sequence AS s WHERE s.name = 'outbox_message'), 0) AS INTEGER) AS message,
    CAST(COALESCE((SELECT s.seq FROM sqlite_sequence AS s WHERE s.name = 'outbox_audit'), 0) AS INTEGER) AS audit,
    CAST(COALESCE((SELECT s.seq FROM sqlite_sequence AS s WHERE s.name = 'outbox_worker'), 0) AS INTEGER) AS worker,
    CAST(COALESCE((SELECT s.seq FROM sqlite_sequence AS s WHERE s.name = 'outbox_event'), 0) AS INTEGER) AS event,
    (SELECT COUNT(*) FROM outbox_batch AS b WHERE b.completed_at = 253402214400000000) AS batches,
    i.id AS stream, i.purged_position, i.purged_digest
FROM outbox_incarnation AS i;

-- MoveBound returns the id up to which the tables go out together: of the next max_rows messages, acts, events or claims, as many as have no more
-- than max_bytes in front of them (0 = there is nothing further). An event's id is its position, a claim's the number of its row.
-- Guard: none. Index: the primary keys. Locks: none.
-- name: MoveBound :one
SELECT CAST(COALESCE(MIN(b.upto), 0) AS INTEGER) AS upto
FROM (
    SELECT MAX(w.id) AS upto
    FROM (
        SELECT m.id, SUM(m.size) OVER (ORDER BY m.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS ahead
        FROM (
            SELECT x.id, octet_length(x.payload) + octet_length(x.metadata) AS size
            FROM outbox_message AS x
            WHERE x.id > CAST(sqlc.arg(after_id) AS INTEGER)
            ORDER BY x.id
            LIMIT CAST(sqlc.arg(max_rows) AS INTEGER)
        ) AS m
    ) AS w
    WHERE COALESCE(w.ahead, 0) <= CAST(sqlc.arg(max_bytes) AS INTEGER)
    UNION ALL
    SELECT MAX(w.id)
    FROM (SELECT x.id FROM outbox_audit AS x WHERE x.id > CAST(sqlc.arg(after_id) AS INTEGER) ORDER BY x.id LIMIT CAST(sqlc.arg(max_rows) AS INTEGER)) AS w
    UNION ALL
    SELECT MAX(w.id)
    FROM (
        SELECT m.id, SUM(m.size) OVER (ORDER BY m.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS ahead
        FROM (
            SELECT x.position AS id, octet_length(x.payload) + octet_length(x.metadata) AS size
            FROM outbox_event AS x
            WHERE x.position > CAST(sqlc.arg(after_id) AS INTEGER)
            ORDER BY x.position
            LIMIT CAST(sqlc.arg(max_rows) AS INTEGER)
        ) AS m
    ) AS w
    WHERE COALESCE(w.ahead, 0) <= CAST(sqlc.arg(max_bytes) AS INTEGER)
    UNION ALL
    SELECT MAX(w.id)
    FROM (
        SELECT m.id, SUM(m.size) OVER (ORDER BY m.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS ahead
        FROM (
            SELECT x.rowid AS id, octet_length(x.result) + octet_length(x.reason) AS size
            FROM outbox_claim AS x
            WHERE x.rowid > CAST(sqlc.arg(after_id) AS INTEGER)
            ORDER BY x.rowid
            LIMIT CAST(sqlc.arg(max_rows) AS INTEGER)
        ) AS m
    ) AS w
    WHERE COALESCE(w.ahead, 0) <= CAST(sqlc.arg(max_bytes) AS INTEGER)
) AS b;

-- MoveOut returns, of each table, the rows with an id above after_id up to upto, all pauses and readers, and which stream it is; with the last id how many
-- claims there are.
-- Guard: none. Index: the primary keys, order_lease_message. Locks: none: one snapshot.
-- name: MoveOut :one
SELECT
    CAST((SELECT COUNT(*) FROM outbox_message AS m WHERE m.id > CAST(sqlc.arg(after_id) AS INTEGER) AND m.id <= CAST(sqlc.arg(upto) AS INTEGER))
        + (SELECT COUNT(*) FROM outbox_event AS e WHERE e.position > CAST(sqlc.arg(after_id) AS INTEGER) AND e.position <= CAST(sqlc.arg(upto) AS INTEGER))
        AS INTEGER) AS count,
    CAST((
        SELECT json_group_array(json_object(
            'id', m.id, 'source_position', m.source_position, 'max_age', m.max_age,
            'created_at', datetime(m.created_at / 1000000, 'unixepoch') || printf('.%06d+00', m.created_at % 1000000),
            'priority', m.priority, 'tenant', m.tenant, 'consumer', m.consumer, 'target', m.target, 'kind', m.kind, 'key', m.key,
            'order_key', m.order_key, 'source_event_id', m.source_event_id, 'digest', '\x' || hex(m.digest), 'metadata', m.metadata,
            'payload', '\x' || hex(m.payload)
        ))
        FROM outbox_message AS m
        WHERE m.id > CAST(sqlc.arg(after_id) AS INTEGER) AND m.id <= CAST(sqlc.arg(upto) AS INTEGER)
    ) AS TEXT) AS messages,
    CAST((
        SELECT json_group_array(json_object(
            'message_id', q.message_id, 'leased_by', q.leased_by, 'epoch', q.epoch,
            'due_at', datetime(q.due_at / 1000000, 'unixepoch') || printf('.%06d+00', q.due_at % 1000000),
            'born_at', datetime(q.born_at / 1000000, 'unixepoch') || printf('.%06d+00', q.born_at % 1000000),
            'expires_at', datetime(q.expires_at / 1000000, 'unixepoch') || printf('.%06d+00', q.expires_at % 1000000),
            'leased_until', datetime(q.leased_until / 1000000, 'unixepoch') || printf('.%06d+00', q.leased_until % 1000000),
            'replayed_at', datetime(q.replayed_at / 1000000, 'unixepoch') || printf('.%06d+00', q.replayed_at % 1000000),
            'attempt', q.attempt, 'attempt_limit', q.attempt_limit, 'replays', q.replays, 'priority', q.priority, 'state', q.state,
            'unsure', q.unsure, 'token', '\x' || hex(q.token), 'consumer', q.consumer, 'target', q.target, 'kind', q.kind, 'tenant', q.tenant,
            'order_key', q.order_key, 'last_error', q.last_error
        ))
        FROM outbox_queue AS q
        WHERE q.message_id > CAST(sqlc.arg(after_id) AS INTEGER) AND q.message_id <= CAST(sqlc.arg(upto) AS INTEGER)
    ) AS TEXT) AS queue,
    CAST((
        SELECT json_group_array(json_object(
            'message_id', s.message_id, 'epoch', s.epoch, 'settled_by', s.settled_by,
            'settled_at', datetime(s.settled_at / 1000000, 'unixepoch') || printf('.%06d+00', s.settled_at % 1000000),
            'replayed_at', datetime(s.replayed_at / 1000000, 'unixepoch') || printf('.%06d+00', s.replayed_at % 1000000),
            'attempt', s.attempt, 'replays', s.replays, 'outcome', s.outcome, 'cause', s.cause, 'reason', s.reason, 'result', s.result
        ))
        FROM outbox_settlement AS s
        WHERE s.message_id > CAST(sqlc.arg(after_id) AS INTEGER) AND s.message_id <= CAST(sqlc.arg(upto) AS INTEGER)
    ) AS TEXT) AS settlements,
    CAST((
        SELECT json_group_array(json_object(
            'message_id', o.message_id,
            'leased_until', datetime(o.leased_until / 1000000, 'unixepoch') || printf('.%06d+00', o.leased_until % 1000000),
            'blocked', o.blocked, 'consumer', o.consumer, 'target', o.target, 'tenant', o.tenant, 'order_key', o.order_key
        ))
        FROM outbox_order_lease AS o
        WHERE o.message_id > CAST(sqlc.arg(after_id) AS INTEGER) AND o.message_id <= CAST(sqlc.arg(upto) AS INTEGER)
    ) AS TEXT) AS order_leases,
    CAST((
        SELECT json_group_array(json_object(
            'id', a.id, 'message_id', a.message_id, 'at', datetime(a.at / 1000000, 'unixepoch') || printf('.%06d+00', a.at % 1000000),
            'action', a.action, 'tenant', a.tenant, 'actor', a.actor, 'reason', a.reason, 'detail', a.detail
        ))
        FROM outbox_audit AS a
        WHERE a.id > CAST(sqlc.arg(after_id) AS INTEGER) AND a.id <= CAST(sqlc.arg(upto) AS INTEGER)
    ) AS TEXT) AS audits,
    CAST((
        SELECT json_group_array(json_object(
            'paused_at', datetime(z.paused_at / 1000000, 'unixepoch') || printf('.%06d+00', z.paused_at % 1000000),
            'mode', z.mode, 'consumer', z.consumer, 'target', z.target, 'kind', z.kind, 'tenant', z.tenant, 'actor', z.actor, 'reason', z.reason
        ))
        FROM outbox_pause AS z
    ) AS TEXT) AS pauses,
    CAST((
        SELECT json_group_array(json_object(
            'position', e.position, 'transaction_id', e.transaction_id, 'recorded_at', datetime(e.recorded_at / 1000000, 'unixepoch') || printf('.%06d+00', e.recorded_at % 1000000),
            'tenant', e.tenant, 'stream', e.stream, 'type', e.type, 'event_id', e.event_id, 'digest', '\x' || hex(e.digest), 'metadata', e.metadata,
            'payload', '\x' || hex(e.payload)
        ))
        FROM outbox_event AS e
        WHERE e.position > CAST(sqlc.arg(after_id) AS INTEGER) AND e.position <= CAST(sqlc.arg(upto) AS INTEGER)
    ) AS TEXT) AS events,
    CAST((
        SELECT json_group_array(json_object(
            'epoch', c.epoch, 'claimed_at', datetime(c.claimed_at / 1000000, 'unixepoch') || printf('.%06d+00', c.claimed_at % 1000000),
            'held_until', datetime(c.held_until / 1000000, 'unixepoch') || printf('.%06d+00', c.held_until % 1000000),
            'ended_at', datetime(c.ended_at / 1000000, 'unixepoch') || printf('.%06d+00', c.ended_at % 1000000),
            'state', c.state, 'token', '\x' || hex(c.token), 'tenant', c.tenant, 'scope', c.scope, 'key', c.key,
            'digest', '\x' || hex(c.digest), 'reason', c.reason, 'result', '\x' || hex(c.result)
        ))
        FROM outbox_claim AS c
        WHERE c.rowid > CAST(sqlc.arg(after_id) AS INTEGER) AND c.rowid <= CAST(sqlc.arg(upto) AS INTEGER)
    ) AS TEXT) AS claims,
    CAST(CASE WHEN CAST(sqlc.arg(upto) AS INTEGER) = 9223372036854775807 THEN (SELECT COUNT(*) FROM outbox_claim) ELSE 0 END AS INTEGER) AS claims_in_all,
    CAST((
        SELECT json_group_array(json_object(
            'transaction_id', r.transaction_id, 'position', r.position, 'saved_at', datetime(r.saved_at / 1000000, 'unixepoch') || printf('.%06d+00', r.saved_at % 1000000),
            'name', r.name, 'incarnation', r.incarnation, 'digest', '\x' || hex(r.digest)
        ))
        FROM outbox_reader AS r
    ) AS TEXT) AS readers,
    CAST((
        SELECT json_group_array(json_object(
            'purged_transaction_id', i.purged_transaction_id, 'purged_position', i.purged_position, 'id', i.id, 'purged_digest', '\x' || hex(i.purged_digest)
        ))
        FROM outbox_incarnation AS i
    ) AS TEXT) AS incarnations;
