-- Purge: retention. Each statement removes at most its limit and tells where it came to, so that nothing runs long. The ids of the
-- envelopes to delete come from the settlement rows the statement deleted itself: the other way round orphans messages beside a replay.

-- PurgeDelivered removes delivered messages settled more than keep microseconds ago, oldest id first, looking at the settlements above
-- after_id, at most max_rows of them. It returns the removed ids and, last, the last id it looked at with removed false.
-- Guard: outcome delivered, strictly older than the cut-off. Index: settlement_pkey, message_pkey. Locks: settlement rows in id order,
-- skipping locked ones, then message rows.
-- name: PurgeDelivered :many
WITH seen AS (
    SELECT s.message_id, s.outcome, s.settled_at
    FROM outbox.settlement AS s
    WHERE s.message_id > sqlc.arg(after_id)::bigint
    ORDER BY s.message_id
    LIMIT sqlc.arg(max_rows)::integer
),
old AS (
    SELECT s.message_id
    FROM outbox.settlement AS s
    WHERE s.message_id = ANY (ARRAY(
        SELECT e.message_id FROM seen AS e
        WHERE e.outcome = 'delivered' AND e.settled_at < clock_timestamp() - sqlc.arg(keep)::bigint * interval '1 microsecond'
    ))
    AND s.outcome = 'delivered'
    ORDER BY s.message_id
    FOR UPDATE SKIP LOCKED
),
gone AS (
    DELETE FROM outbox.settlement AS s
    WHERE s.message_id = ANY (ARRAY(SELECT o.message_id FROM old AS o))
    RETURNING s.message_id
),
removed AS (
    DELETE FROM outbox.message AS m
    WHERE m.id = ANY (ARRAY(SELECT g.message_id FROM gone AS g))
    RETURNING m.id
)
SELECT r.id::bigint AS id, true AS removed FROM removed AS r
UNION ALL
(SELECT e.message_id, false FROM seen AS e ORDER BY e.message_id DESC LIMIT 1);

-- PurgeUndelivered removes messages of one outcome (dead, cancelled or expired) settled more than keep microseconds ago, oldest first, at
-- most max_rows, and fewer when others hold some of those: what is locked is left for the next call. A key that a purged dead message
-- blocked is free again.
-- Guard: outcome, strictly older than the cut-off. Index: settlement_undelivered, then primary keys. Locks: settlement rows in id order,
-- skipping locked ones, then message rows, then order leases.
-- name: PurgeUndelivered :many
WITH old AS (
    SELECT s.message_id
    FROM outbox.settlement AS s
    WHERE s.message_id = ANY (ARRAY(
        SELECT e.message_id
        FROM outbox.settlement AS e
        WHERE e.outcome = sqlc.arg(outcome)::text
            AND e.outcome <> 'delivered'
            AND e.settled_at < statement_timestamp() - sqlc.arg(keep)::bigint * interval '1 microsecond'
        ORDER BY e.settled_at, (e.message_id + 0)
        LIMIT sqlc.arg(max_rows)::integer
    ))
    AND s.outcome = sqlc.arg(outcome)::text
    ORDER BY s.message_id
    FOR UPDATE SKIP LOCKED
),
gone AS (
    DELETE FROM outbox.settlement AS s
    WHERE s.message_id = ANY (ARRAY(SELECT o.message_id FROM old AS o))
    RETURNING s.message_id
),
removed AS (
    DELETE FROM outbox.message AS m
    WHERE m.id = ANY (ARRAY(SELECT g.message_id FROM gone AS g))
    RETURNING m.id, m.order_key
),
freed AS (
    DELETE FROM outbox.order_lease AS o
    WHERE o.message_id = ANY (ARRAY(SELECT r.id FROM removed AS r WHERE r.order_key <> ''))
        AND o.blocked
)
SELECT r.id::bigint AS id FROM removed AS r;

-- ExpireUnleased settles as expired what nobody ever leased within its age and grace microseconds more. It looks at the open messages above
-- after_id, at most examine of them, and returns the last one seen with expired false.
-- Guard: pending, never leased (epoch 0), expires_at + grace in the past. Index: queue_pkey. Locks: queue rows in id order, skipping
-- locked ones.
-- name: ExpireUnleased :many
WITH seen AS (
    SELECT q.message_id, q.epoch, q.state, q.expires_at
    FROM outbox.queue AS q
    WHERE q.message_id > sqlc.arg(after_id)::bigint
    ORDER BY q.message_id
    LIMIT sqlc.arg(examine)::integer
),
old AS (
    SELECT q.message_id
    FROM outbox.queue AS q
    WHERE q.message_id = ANY (ARRAY(
        SELECT s.message_id FROM seen AS s
        WHERE s.epoch = 0 AND s.state = 0
            AND s.expires_at <= clock_timestamp() - sqlc.arg(grace)::bigint * interval '1 microsecond'
    ))
    AND q.epoch = 0
    ORDER BY q.message_id
    FOR UPDATE SKIP LOCKED
),
gone AS (
    DELETE FROM outbox.queue AS q
    WHERE q.message_id = ANY (ARRAY(SELECT o.message_id FROM old AS o))
    RETURNING q.message_id, q.attempt, q.epoch, q.replays, q.replayed_at
),
expired AS (
    INSERT INTO outbox.settlement (message_id, outcome, reason, attempt, epoch, replays, replayed_at)
    SELECT g.message_id, 'expired', 'never leased within its age', g.attempt, g.epoch, g.replays, g.replayed_at
    FROM gone AS g
    RETURNING message_id
)
SELECT e.message_id::bigint AS id, true AS expired FROM expired AS e
UNION ALL
(SELECT s.message_id, false FROM seen AS s ORDER BY s.message_id DESC LIMIT 1);

-- PurgeWorkers forgets senders not seen for keep microseconds; a lease they still hold runs out by itself.
-- Guard: last seen before the cut-off. Index: worker_pkey (the table is small). Locks: the worker rows.
-- name: PurgeWorkers :many
DELETE FROM outbox.worker AS w
WHERE w.id = ANY (ARRAY(
    SELECT o.id
    FROM outbox.worker AS o
    WHERE o.seen_at < clock_timestamp() - sqlc.arg(keep)::bigint * interval '1 microsecond'
    ORDER BY o.id
    LIMIT sqlc.arg(max_rows)::integer
))
-- Again, for one that was touched while this waited.
AND w.seen_at < clock_timestamp() - sqlc.arg(keep)::bigint * interval '1 microsecond'
RETURNING w.id;
