-- Purge: retention. Each statement looks at no more than its limit and tells where it came to, so that nothing runs long: a walk goes on
-- after the last row looked at, and is over when only the closing row comes back. The ids of the envelopes to delete come from the
-- settlement rows the statement deleted itself: the other way round orphans messages beside a replay.
--
-- One process is at a step at a time: a statement that does not get the janitor's advisory lock of this schema, which ends with its transaction,
-- does nothing and says busy.

-- PurgeDelivered removes delivered messages settled more than keep microseconds ago, oldest id first, looking at the settlements above
-- after_id, at most max_rows of them. It returns the removed ids and, last, the last id it looked at with removed false.
-- Guard: lock, scope, outcome delivered, strictly older than the cut-off. Index: settlement_pkey, message_pkey. Locks: the janitor's, then
-- settlement rows in id order, skipping locked ones, then message rows.
-- name: PurgeDelivered :many
WITH turn AS MATERIALIZED (
    SELECT pg_try_advisory_xact_lock(hashtextextended('fencepost janitor ' || sqlc.arg(schema_name)::text, 0)) AS mine
),
seen AS (
    SELECT s.message_id, s.outcome, s.settled_at
    FROM outbox.settlement AS s
    WHERE s.message_id > sqlc.arg(after_id)::bigint
        AND (SELECT t.mine FROM turn AS t)
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
    AND s.settled_at < clock_timestamp() - sqlc.arg(keep)::bigint * interval '1 microsecond'
    AND (sqlc.arg(all_tenants)::boolean OR EXISTS (
        SELECT FROM outbox.message AS m WHERE m.id = s.message_id AND m.tenant = ANY (sqlc.arg(scope)::text[])
    ))
    ORDER BY s.message_id
    FOR UPDATE OF s SKIP LOCKED
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
SELECT r.id::bigint AS id, true AS removed, false AS busy FROM removed AS r
UNION ALL
(SELECT e.message_id, false, false FROM seen AS e ORDER BY e.message_id DESC LIMIT 1)
UNION ALL
SELECT 0, false, true FROM turn AS t WHERE NOT t.mine;

-- PurgeUndelivered removes messages of one outcome (dead, cancelled or expired) settled more than keep microseconds ago, oldest first, looking
-- at those settled after (after_at, after_id), at most max_rows of them. A key that a purged dead message blocked is free again. It returns
-- the removed ids and, last, the last place it looked at with removed false.
-- Guard: lock, scope, outcome, strictly older than the cut-off. Index: settlement_undelivered, then primary keys. Locks: the janitor's, then
-- settlement rows in id order, skipping locked ones, then message rows, then order leases.
-- name: PurgeUndelivered :many
WITH turn AS MATERIALIZED (
    SELECT pg_try_advisory_xact_lock(hashtextextended('fencepost janitor ' || sqlc.arg(schema_name)::text, 0)) AS mine
),
seen AS (
    SELECT e.message_id, e.settled_at
    FROM outbox.settlement AS e
    WHERE e.outcome = sqlc.arg(outcome)::text
        AND e.outcome <> 'delivered'
        AND e.settled_at < statement_timestamp() - sqlc.arg(keep)::bigint * interval '1 microsecond'
        AND (e.settled_at, (e.message_id + 0)) > (sqlc.arg(after_at)::timestamptz, sqlc.arg(after_id)::bigint)
        AND (SELECT t.mine FROM turn AS t)
    ORDER BY e.settled_at, (e.message_id + 0)
    LIMIT sqlc.arg(max_rows)::integer
),
old AS (
    SELECT s.message_id
    FROM outbox.settlement AS s
    WHERE s.message_id = ANY (ARRAY(SELECT e.message_id FROM seen AS e))
        -- Replayed and settled again meanwhile, it is not old any more.
        AND s.outcome = sqlc.arg(outcome)::text
        AND s.settled_at < statement_timestamp() - sqlc.arg(keep)::bigint * interval '1 microsecond'
        AND (sqlc.arg(all_tenants)::boolean OR EXISTS (
            SELECT FROM outbox.message AS m WHERE m.id = s.message_id AND m.tenant = ANY (sqlc.arg(scope)::text[])
        ))
    ORDER BY s.message_id
    FOR UPDATE OF s SKIP LOCKED
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
SELECT r.id::bigint AS id, '0001-01-01 00:00:00+00'::timestamptz AS settled_at, true AS removed, false AS busy FROM removed AS r
UNION ALL
(SELECT e.message_id, e.settled_at, false, false FROM seen AS e ORDER BY e.settled_at DESC, e.message_id DESC LIMIT 1)
UNION ALL
SELECT 0, '0001-01-01 00:00:00+00'::timestamptz, false, true FROM turn AS t WHERE NOT t.mine;

-- ExpireUnleased settles as expired what nobody ever leased within its age and grace microseconds more. It looks at the open messages above
-- after_id, at most examine of them, and returns the expired ids and, last, the last one it looked at with expired false.
-- Guard: lock, scope, pending, never leased (epoch 0), expires_at + grace in the past. Index: queue_pkey. Locks: the janitor's, then queue
-- rows in id order, skipping locked ones.
-- name: ExpireUnleased :many
WITH turn AS MATERIALIZED (
    SELECT pg_try_advisory_xact_lock(hashtextextended('fencepost janitor ' || sqlc.arg(schema_name)::text, 0)) AS mine
),
seen AS (
    SELECT q.message_id, q.epoch, q.state, q.tenant, q.expires_at
    FROM outbox.queue AS q
    WHERE q.message_id > sqlc.arg(after_id)::bigint
        AND (SELECT t.mine FROM turn AS t)
    ORDER BY q.message_id
    LIMIT sqlc.arg(examine)::integer
),
old AS (
    SELECT q.message_id
    FROM outbox.queue AS q
    WHERE q.message_id = ANY (ARRAY(
        SELECT s.message_id FROM seen AS s
        WHERE s.epoch = 0 AND s.state = 0
            AND (sqlc.arg(all_tenants)::boolean OR s.tenant = ANY (sqlc.arg(scope)::text[]))
            AND s.expires_at <= clock_timestamp() - sqlc.arg(grace)::bigint * interval '1 microsecond'
    ))
    AND q.epoch = 0
    AND (q.state + 0) = 0
    AND q.expires_at <= clock_timestamp() - sqlc.arg(grace)::bigint * interval '1 microsecond'
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
SELECT e.message_id::bigint AS id, true AS expired, false AS busy FROM expired AS e
UNION ALL
(SELECT s.message_id, false, false FROM seen AS s ORDER BY s.message_id DESC LIMIT 1)
UNION ALL
SELECT 0, false, true FROM turn AS t WHERE NOT t.mine;

-- PurgeAudit forgets operators' acts of more than keep microseconds ago, oldest first, looking at those above after_id, at most max_rows of
-- them. It returns the removed ids and, last, the last one it looked at with removed false.
-- Guard: lock, scope, strictly older than the cut-off. Index: audit_pkey. Locks: the janitor's, then the audit rows.
-- name: PurgeAudit :many
WITH turn AS MATERIALIZED (
    SELECT pg_try_advisory_xact_lock(hashtextextended('fencepost janitor ' || sqlc.arg(schema_name)::text, 0)) AS mine
),
seen AS (
    SELECT a.id, a.at, a.tenant
    FROM outbox.audit AS a
    WHERE a.id > sqlc.arg(after_id)::bigint
        AND (SELECT t.mine FROM turn AS t)
    ORDER BY a.id
    LIMIT sqlc.arg(max_rows)::integer
),
removed AS (
    DELETE FROM outbox.audit AS a
    WHERE a.id = ANY (ARRAY(
        SELECT e.id FROM seen AS e
        WHERE e.at < clock_timestamp() - sqlc.arg(keep)::bigint * interval '1 microsecond'
            AND (sqlc.arg(all_tenants)::boolean OR e.tenant = ANY (sqlc.arg(scope)::text[]))
    ))
    RETURNING a.id
)
SELECT r.id::bigint AS id, true AS removed, false AS busy FROM removed AS r
UNION ALL
(SELECT e.id, false, false FROM seen AS e ORDER BY e.id DESC LIMIT 1)
UNION ALL
SELECT 0, false, true FROM turn AS t WHERE NOT t.mine;

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

-- CountOld counts what a purge with these periods (microseconds; 0 keeps for ever) would remove of the settlements above after_id, at most
-- max_rows of them: a row an outcome, and last, with an empty outcome, the last id it looked at.
-- Guard: scope, strictly older than the cut-off. Index: settlement_pkey, message_pkey. Locks: none.
-- name: CountOld :many
WITH seen AS (
    SELECT
        s.message_id,
        s.outcome,
        s.settled_at < clock_timestamp() - CASE s.outcome
            WHEN 'delivered' THEN NULLIF(sqlc.arg(keep_delivered)::bigint, 0)
            WHEN 'dead' THEN NULLIF(sqlc.arg(keep_dead)::bigint, 0)
            WHEN 'cancelled' THEN NULLIF(sqlc.arg(keep_cancelled)::bigint, 0)
            ELSE NULLIF(sqlc.arg(keep_expired)::bigint, 0)
        END * interval '1 microsecond' AS old
    FROM outbox.settlement AS s
    WHERE s.message_id > sqlc.arg(after_id)::bigint
    ORDER BY s.message_id
    LIMIT sqlc.arg(max_rows)::integer
)
SELECT e.outcome::text AS outcome, count(*)::bigint AS old, 0::bigint AS last
FROM seen AS e
WHERE e.old
    AND (sqlc.arg(all_tenants)::boolean OR EXISTS (
        SELECT FROM outbox.message AS m WHERE m.id = e.message_id AND m.tenant = ANY (sqlc.arg(scope)::text[])
    ))
GROUP BY e.outcome
UNION ALL
(SELECT '', 0, e.message_id FROM seen AS e ORDER BY e.message_id DESC LIMIT 1);

-- CountOverdue counts what ExpireUnleased with this grace would settle of the open messages above after_id, at most examine of them, and
-- returns the last id it looked at. Guard: as ExpireUnleased. Index: queue_pkey. Locks: none.
-- name: CountOverdue :many
SELECT
    count(*) FILTER (
        WHERE s.epoch = 0 AND s.state = 0
            AND (sqlc.arg(all_tenants)::boolean OR s.tenant = ANY (sqlc.arg(scope)::text[]))
            AND s.expires_at <= clock_timestamp() - sqlc.arg(grace)::bigint * interval '1 microsecond'
    )::bigint AS overdue,
    COALESCE(max(s.message_id), 0)::bigint AS last
FROM (
    SELECT q.message_id, q.epoch, q.state, q.tenant, q.expires_at
    FROM outbox.queue AS q
    WHERE q.message_id > sqlc.arg(after_id)::bigint
    ORDER BY q.message_id
    LIMIT sqlc.arg(examine)::integer
) AS s;

-- PurgeEvents removes the oldest events of the stream, at most max_rows, those recorded more than keep microseconds ago and no further than every named
-- reader came (with force: whatever they did), and marks the place. It stops at the first event that stays, so that the mark tells all that is gone;
-- it begins after the mark, since an old snapshot may keep the index entries of what is gone.
-- Guard: lock, the incarnation's row its own, horizon, strictly older than the cut-off, readers. Index: event_order, event_pkey. Locks: the
-- janitor's, then the incarnation's row and the event rows.
-- name: PurgeEvents :many
WITH turn AS MATERIALIZED (
    SELECT pg_try_advisory_xact_lock(hashtextextended('fencepost janitor ' || sqlc.arg(schema_name)::text, 0)) AS mine
),
seen AS MATERIALIZED (
    SELECT
        e.transaction_id, e.position, e.digest,
        (e.recorded_at < statement_timestamp() - sqlc.arg(keep)::bigint * interval '1 microsecond'
            AND (sqlc.arg(force)::boolean OR NOT EXISTS (
                SELECT FROM outbox.reader AS r WHERE (r.transaction_id, r.position) < (e.transaction_id, e.position)
            ))) AS goes
    FROM outbox.event AS e
    WHERE (e.transaction_id, e.position) > (
        (SELECT i.purged_transaction_id FROM outbox.incarnation AS i), (SELECT i.purged_position FROM outbox.incarnation AS i)
    )
    AND e.transaction_id < (
        SELECT i.base + pg_snapshot_xmin(pg_current_snapshot())::text::bigint FROM outbox.incarnation AS i WHERE i.written_by = i.xmin::text::bigint
    )
    AND (SELECT t.mine FROM turn AS t)
    ORDER BY e.transaction_id, e.position
    LIMIT sqlc.arg(max_rows)::integer
),
old AS MATERIALIZED (
    SELECT s.transaction_id, s.position, s.digest
    FROM (
        SELECT x.transaction_id, x.position, x.digest, bool_and(x.goes) OVER (ORDER BY x.transaction_id, x.position) AS goes
        FROM seen AS x
    ) AS s
    WHERE s.goes
),
gone AS (
    DELETE FROM outbox.event AS e
    WHERE e.position = ANY (ARRAY(SELECT o.position FROM old AS o))
    RETURNING e.position
),
marked AS (
    UPDATE outbox.incarnation AS i
    SET purged_transaction_id = l.transaction_id, purged_position = l.position, purged_digest = l.digest,
        written_by = pg_current_xact_id()::xid::text::bigint
    FROM (SELECT o.transaction_id, o.position, o.digest FROM old AS o ORDER BY o.transaction_id DESC, o.position DESC LIMIT 1) AS l
    WHERE i.one AND (i.purged_transaction_id, i.purged_position) < (l.transaction_id, l.position)
)
SELECT (SELECT count(*) FROM gone AS g)::bigint AS removed, (NOT t.mine)::boolean AS busy FROM turn AS t;

-- PurgeClaims removes claims that ended, or whose holder's time ran out, more than keep microseconds ago, oldest first, looking at those after a
-- place, at most max_rows of them. It returns the last place it looked at and how many it removed there and before; nothing when there was none to
-- look at. A receipt stays while its event may still be delivered: as long as the bus's message of it, whose key is that of package events, is open,
-- or dead and may be replayed.
-- Guard: lock, scope, not held, strictly older than the cut-off, message. Index: claim_over, claim_pkey, message_key_unique, settlement_pkey. Locks:
-- the janitor's, then claim rows.
-- name: PurgeClaims :many
WITH turn AS MATERIALIZED (
    SELECT pg_try_advisory_xact_lock(hashtextextended('fencepost janitor ' || sqlc.arg(schema_name)::text, 0)) AS mine
),
seen AS MATERIALIZED (
    SELECT CASE WHEN c.state = 0 THEN c.held_until ELSE c.ended_at END AS over_at, c.tenant, c.scope, c.key
    FROM outbox.claim AS c
    WHERE CASE WHEN c.state = 0 THEN c.held_until ELSE c.ended_at END < statement_timestamp() - sqlc.arg(keep)::bigint * interval '1 microsecond'
        AND (CASE WHEN c.state = 0 THEN c.held_until ELSE c.ended_at END, c.tenant, c.scope, c.key)
            > (sqlc.arg(after_at)::timestamptz, sqlc.arg(after_tenant)::text, sqlc.arg(after_scope)::text, sqlc.arg(after_key)::text)
        AND (SELECT t.mine FROM turn AS t)
    ORDER BY CASE WHEN c.state = 0 THEN c.held_until ELSE c.ended_at END, c.tenant, c.scope, c.key
    LIMIT sqlc.arg(max_rows)::integer
),
gone AS (
    DELETE FROM outbox.claim AS c
    USING seen AS s
    WHERE c.tenant = s.tenant AND c.scope = s.scope AND c.key = s.key
        AND CASE WHEN c.state = 0 THEN c.held_until ELSE c.ended_at END = s.over_at
        AND (sqlc.arg(all_tenants)::boolean OR c.tenant = ANY (sqlc.arg(tenants)::text[]))
        -- Values, not EXISTS, so that each is looked up by its key.
        AND COALESCE((
            SELECT COALESCE((SELECT e.outcome <> 'dead' FROM outbox.settlement AS e WHERE e.message_id = m.id), false)
            FROM outbox.message AS m
            WHERE m.tenant = s.tenant
                AND m.consumer = split_part(s.scope, ':', 1)
                AND m.key = split_part(s.scope, ':', 1) || ':' || s.key || ':0'
        ), true)
    RETURNING c.key
)
SELECT l.over_at::timestamptz AS over_at, l.tenant, l.scope, l.key, (SELECT count(*) FROM gone AS g)::bigint AS removed, false AS busy
FROM (SELECT s.over_at, s.tenant, s.scope, s.key FROM seen AS s ORDER BY s.over_at DESC, s.tenant DESC, s.scope DESC, s.key DESC LIMIT 1) AS l
UNION ALL
SELECT '0001-01-01 00:00:00+00'::timestamptz, '', '', '', 0, true FROM turn AS t WHERE NOT t.mine;

-- PurgeBatches removes a batch that was completed more than keep microseconds ago, the oldest first: at most max_rows of its rows, and the batch itself
-- with the last of them. It returns how many of both it removed; no batch and no row when there is none to remove.
-- Guard: lock, scope, completed, strictly older than the cut-off. Index: batch_completed, batch_row_pkey. Locks: the janitor's, then the batch, if
-- nobody is opening it again, and the rows; beside a replay that has just its row, one of the two is tried again.
-- name: PurgeBatches :many
WITH turn AS MATERIALIZED (
    SELECT pg_try_advisory_xact_lock(hashtextextended('fencepost janitor ' || sqlc.arg(schema_name)::text, 0)) AS mine
),
old AS MATERIALIZED (
    SELECT b.id
    FROM outbox.batch AS b
    WHERE b.completed_at < LEAST(
            statement_timestamp() - sqlc.arg(keep)::bigint * interval '1 microsecond', '9999-12-31 00:00:00+00'::timestamptz
        )
        AND b.completed_at < '9999-12-31 00:00:00+00'
        AND (sqlc.arg(all_tenants)::boolean OR b.tenant = ANY (sqlc.arg(scope)::text[]))
        AND (SELECT t.mine FROM turn AS t)
    ORDER BY b.completed_at, (b.id + 0)
    LIMIT 1
    FOR UPDATE SKIP LOCKED
),
seen AS MATERIALIZED (
    SELECT r.number
    FROM outbox.batch_row AS r
    WHERE r.batch_id = (SELECT o.id FROM old AS o)
    ORDER BY r.number
    LIMIT sqlc.arg(max_rows)::integer
),
gone AS (
    DELETE FROM outbox.batch_row AS r
    WHERE r.batch_id = (SELECT o.id FROM old AS o) AND r.number <= (SELECT max(s.number) FROM seen AS s)
    RETURNING r.number
),
erased AS (
    DELETE FROM outbox.batch AS b
    WHERE b.id = (SELECT o.id FROM old AS o)
        AND (SELECT count(*) FROM seen AS s) < sqlc.arg(max_rows)::integer
    RETURNING b.id
)
SELECT
    (SELECT count(*) FROM erased AS e)::bigint AS batches,
    (SELECT count(*) FROM gone AS g)::bigint AS rows_removed,
    (NOT t.mine)::boolean AS busy
FROM turn AS t;
