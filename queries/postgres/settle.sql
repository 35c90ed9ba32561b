-- Settle: what came of a leased message, one statement per outcome.
--
-- Every settle takes the ids in rising order with their tokens, changes only rows whose token is still the current one and whose lease
-- is not over, and returns the rows it changed; a row that does not come back is classified by FindFates. Rows are found by primary key
-- alone, whatever the statistics say. A row's own argument stands at its id's position in the array: width_bucket finds it by bisection,
-- where array_position would read half the array for each row. Tokens come one after the other in one bytea, 16 bytes each, because the n-th
-- element of a bytea[] is reached through all before it: with 500 messages that was a microsecond for each.

-- SettleDelivered records success, with results unless none has one; accept_late takes a token that is still current although its lease is over.
-- Guard: id, token, consumer, target, scope, lease. Index: primary keys. Locks: queue rows, then order leases, in id order.
-- name: SettleDelivered :many
WITH gone AS (
    DELETE FROM outbox.queue AS q
    WHERE q.message_id = ANY (sqlc.arg(ids)::bigint[])
        AND q.token = substring(sqlc.arg(tokens)::bytea, 16 * width_bucket(q.message_id, sqlc.arg(ids)::bigint[]) - 15, 16)
        AND octet_length(sqlc.arg(tokens)::bytea) = 16 * cardinality(sqlc.arg(ids)::bigint[])
        AND q.consumer = sqlc.arg(consumer)::text
        AND q.target = sqlc.arg(target)::text
        AND (sqlc.arg(all_tenants)::boolean OR q.tenant = ANY (sqlc.arg(scope)::text[]))
        -- Without this, accept_late would take the token that everybody knows for that of a message nobody holds.
        AND q.token <> E'\\x00000000000000000000000000000000'::bytea
        AND (sqlc.arg(accept_late)::boolean OR q.leased_until > clock_timestamp())
    RETURNING q.message_id, q.attempt, q.epoch, q.replays, q.replayed_at, q.leased_by, q.order_key
),
freed AS (
    DELETE FROM outbox.order_lease AS o
    WHERE o.message_id = ANY (ARRAY(SELECT g.message_id FROM gone AS g WHERE g.order_key <> ''))
        AND NOT o.blocked
)
INSERT INTO outbox.settlement (message_id, outcome, attempt, epoch, replays, replayed_at, settled_by, result)
SELECT
    g.message_id, 'delivered', g.attempt, g.epoch, g.replays, g.replayed_at, g.leased_by,
    COALESCE((sqlc.arg(results)::text[])[width_bucket(g.message_id, sqlc.arg(ids)::bigint[])], '')
FROM gone AS g
RETURNING message_id AS id;

-- SettleDropped removes delivered messages at once, envelope included: no settlement stays and the key is free again.
-- Guard: as SettleDelivered. Index: primary keys. Locks: as SettleDelivered, then the message rows.
-- name: SettleDropped :many
WITH gone AS (
    DELETE FROM outbox.queue AS q
    WHERE q.message_id = ANY (sqlc.arg(ids)::bigint[])
        AND q.token = substring(sqlc.arg(tokens)::bytea, 16 * width_bucket(q.message_id, sqlc.arg(ids)::bigint[]) - 15, 16)
        AND octet_length(sqlc.arg(tokens)::bytea) = 16 * cardinality(sqlc.arg(ids)::bigint[])
        AND q.consumer = sqlc.arg(consumer)::text
        AND q.target = sqlc.arg(target)::text
        AND (sqlc.arg(all_tenants)::boolean OR q.tenant = ANY (sqlc.arg(scope)::text[]))
        -- Without this, accept_late would take the token that everybody knows for that of a message nobody holds.
        AND q.token <> E'\\x00000000000000000000000000000000'::bytea
        AND (sqlc.arg(accept_late)::boolean OR q.leased_until > clock_timestamp())
    RETURNING q.message_id, q.attempt, q.epoch, q.replays, q.replayed_at, q.leased_by, q.order_key
),
freed AS (
    DELETE FROM outbox.order_lease AS o
    WHERE o.message_id = ANY (ARRAY(SELECT g.message_id FROM gone AS g WHERE g.order_key <> ''))
        AND NOT o.blocked
)
DELETE FROM outbox.message AS m
WHERE m.id = ANY (ARRAY(SELECT g.message_id FROM gone AS g))
RETURNING m.id;

-- SettleRetry frees messages for another attempt after their delay (microseconds). One that is too old by now is written as dead, cause
-- age, and returned so (aged). last_errors are at most 256 bytes and stay with the queue row; reasons are kept for the dead.
-- Guard: id, token, consumer, target, scope, lease. Index: primary keys. Locks: queue rows, then order leases, in id order.
-- name: SettleRetry :many
WITH mine AS (
    SELECT
        q.message_id,
        LEAST(
            q.expires_at,
            q.born_at + NULLIF((sqlc.arg(max_ages)::bigint[])[width_bucket(q.message_id, sqlc.arg(ids)::bigint[])], 0) * interval '1 microsecond'
        ) <= clock_timestamp() AS aged
    FROM outbox.queue AS q
    WHERE q.message_id = ANY (sqlc.arg(ids)::bigint[])
        AND q.token = substring(sqlc.arg(tokens)::bytea, 16 * width_bucket(q.message_id, sqlc.arg(ids)::bigint[]) - 15, 16)
        AND octet_length(sqlc.arg(tokens)::bytea) = 16 * cardinality(sqlc.arg(ids)::bigint[])
        AND q.consumer = sqlc.arg(consumer)::text
        AND q.target = sqlc.arg(target)::text
        AND (sqlc.arg(all_tenants)::boolean OR q.tenant = ANY (sqlc.arg(scope)::text[]))
        AND q.leased_until > clock_timestamp()
    ORDER BY q.message_id
    FOR UPDATE
),
retried AS (
    UPDATE outbox.queue AS q
    SET due_at = LEAST(
            clock_timestamp() + (sqlc.arg(delays)::bigint[])[width_bucket(q.message_id, sqlc.arg(ids)::bigint[])] * interval '1 microsecond',
            '9999-12-31 00:00:00+00'::timestamptz
        ),
        attempt = q.attempt - CASE WHEN sqlc.arg(unspent)::boolean THEN 1 ELSE 0 END,
        unsure = (sqlc.arg(unsures)::boolean[])[width_bucket(q.message_id, sqlc.arg(ids)::bigint[])],
        last_error = (sqlc.arg(last_errors)::text[])[width_bucket(q.message_id, sqlc.arg(ids)::bigint[])],
        token = E'\\x00000000000000000000000000000000',
        leased_until = '0001-01-01 00:00:00+00',
        leased_by = 0
    WHERE q.message_id = ANY (ARRAY(SELECT m.message_id FROM mine AS m WHERE NOT m.aged))
    RETURNING q.message_id, q.attempt, q.order_key
),
aged AS (
    DELETE FROM outbox.queue AS q
    WHERE q.message_id = ANY (ARRAY(SELECT m.message_id FROM mine AS m WHERE m.aged))
    RETURNING q.message_id, q.attempt, q.epoch, q.replays, q.replayed_at, q.leased_by, q.order_key
),
buried AS (
    INSERT INTO outbox.settlement (message_id, outcome, cause, reason, attempt, epoch, replays, replayed_at, settled_by)
    SELECT
        a.message_id, 'dead', 'age', (sqlc.arg(reasons)::text[])[width_bucket(a.message_id, sqlc.arg(ids)::bigint[])],
        a.attempt, a.epoch, a.replays, a.replayed_at, a.leased_by
    FROM aged AS a
),
freed AS (
    DELETE FROM outbox.order_lease AS o
    WHERE o.message_id = ANY (ARRAY(
            SELECT r.message_id FROM retried AS r WHERE r.order_key <> ''
            UNION ALL
            SELECT a.message_id FROM aged AS a WHERE a.order_key <> '' AND NOT sqlc.arg(block_on_dead)::boolean
        ))
        AND NOT o.blocked
),
blocked AS (
    UPDATE outbox.order_lease AS o
    SET blocked = true, leased_until = '0001-01-01 00:00:00+00'
    WHERE o.message_id = ANY (ARRAY(SELECT a.message_id FROM aged AS a WHERE a.order_key <> '' AND sqlc.arg(block_on_dead)::boolean))
)
SELECT r.message_id::bigint AS id, r.attempt::integer AS attempt, false AS aged FROM retried AS r
UNION ALL
SELECT a.message_id, a.attempt, true FROM aged AS a;

-- SettleDead records messages that will not run again, with their causes and reasons. With block_on_dead the order lease stays, blocked:
-- the key waits until the message is replayed or purged, or the key is unblocked.
-- Guard: id, token, consumer, target, scope, lease. Index: primary keys. Locks: queue rows, then order leases, in id order.
-- name: SettleDead :many
WITH gone AS (
    DELETE FROM outbox.queue AS q
    WHERE q.message_id = ANY (sqlc.arg(ids)::bigint[])
        AND q.token = substring(sqlc.arg(tokens)::bytea, 16 * width_bucket(q.message_id, sqlc.arg(ids)::bigint[]) - 15, 16)
        AND octet_length(sqlc.arg(tokens)::bytea) = 16 * cardinality(sqlc.arg(ids)::bigint[])
        AND q.consumer = sqlc.arg(consumer)::text
        AND q.target = sqlc.arg(target)::text
        AND (sqlc.arg(all_tenants)::boolean OR q.tenant = ANY (sqlc.arg(scope)::text[]))
        AND q.leased_until > clock_timestamp()
    RETURNING q.message_id, q.attempt, q.epoch, q.replays, q.replayed_at, q.leased_by, q.order_key
),
freed AS (
    DELETE FROM outbox.order_lease AS o
    WHERE o.message_id = ANY (ARRAY(SELECT g.message_id FROM gone AS g WHERE g.order_key <> ''))
        AND NOT o.blocked
        AND NOT sqlc.arg(block_on_dead)::boolean
),
blocked AS (
    UPDATE outbox.order_lease AS o
    SET blocked = true, leased_until = '0001-01-01 00:00:00+00'
    WHERE o.message_id = ANY (ARRAY(SELECT g.message_id FROM gone AS g WHERE g.order_key <> ''))
        AND sqlc.arg(block_on_dead)::boolean
)
INSERT INTO outbox.settlement (message_id, outcome, cause, reason, attempt, epoch, replays, replayed_at, settled_by)
SELECT
    g.message_id, 'dead',
    (sqlc.arg(causes)::text[])[width_bucket(g.message_id, sqlc.arg(ids)::bigint[])],
    (sqlc.arg(reasons)::text[])[width_bucket(g.message_id, sqlc.arg(ids)::bigint[])],
    g.attempt, g.epoch, g.replays, g.replayed_at, g.leased_by
FROM gone AS g
RETURNING message_id AS id;

-- SettleParked sets messages aside whose outcome is unknown: no lease takes them until an operator resolves them.
-- Guard: id, token, consumer, target, scope, lease. Index: primary keys. Locks: queue rows, then order leases, in id order.
-- name: SettleParked :many
WITH parked AS (
    UPDATE outbox.queue AS q
    SET state = 1,
        unsure = true,
        last_error = (sqlc.arg(last_errors)::text[])[width_bucket(q.message_id, sqlc.arg(ids)::bigint[])],
        token = E'\\x00000000000000000000000000000000',
        leased_until = '0001-01-01 00:00:00+00',
        leased_by = 0
    WHERE q.message_id = ANY (sqlc.arg(ids)::bigint[])
        AND q.token = substring(sqlc.arg(tokens)::bytea, 16 * width_bucket(q.message_id, sqlc.arg(ids)::bigint[]) - 15, 16)
        AND octet_length(sqlc.arg(tokens)::bytea) = 16 * cardinality(sqlc.arg(ids)::bigint[])
        AND q.consumer = sqlc.arg(consumer)::text
        AND q.target = sqlc.arg(target)::text
        AND (sqlc.arg(all_tenants)::boolean OR q.tenant = ANY (sqlc.arg(scope)::text[]))
        AND q.leased_until > clock_timestamp()
    RETURNING q.message_id, q.order_key
),
freed AS (
    DELETE FROM outbox.order_lease AS o
    WHERE o.message_id = ANY (ARRAY(SELECT p.message_id FROM parked AS p WHERE p.order_key <> ''))
        AND NOT o.blocked
)
SELECT p.message_id::bigint AS id FROM parked AS p;

-- FindFates tells what stands for the given ids now: the classification of rows that a settle, a renewal or an operator's statement did not
-- change. state is the outcome of a settled message, else pending, leased or parked; an id that does not come back is unknown in this scope.
-- token is the current one, zeros when free. Guard: scope. Index: primary keys. Locks: none.
-- name: FindFates :many
SELECT
    m.id,
    COALESCE(
        s.outcome,
        CASE
            WHEN q.state = 1 THEN 'parked'
            WHEN q.token <> E'\\x00000000000000000000000000000000'::bytea AND q.leased_until > clock_timestamp() THEN 'leased'
            ELSE 'pending'
        END
    )::text AS state,
    COALESCE(s.epoch, q.epoch, 0)::bigint AS epoch,
    COALESCE(s.attempt, q.attempt, 0)::integer AS attempt,
    COALESCE(s.cause, '')::text AS cause,
    COALESCE(s.reason, q.last_error, '')::text AS reason,
    (q.token IS NOT NULL AND q.token <> E'\\x00000000000000000000000000000000'::bytea)::boolean AS held
FROM outbox.message AS m
LEFT JOIN outbox.settlement AS s ON s.message_id = m.id
LEFT JOIN outbox.queue AS q ON q.message_id = m.id
WHERE m.id = ANY (sqlc.arg(ids)::bigint[])
    AND (sqlc.arg(all_tenants)::boolean OR m.tenant = ANY (sqlc.arg(scope)::text[]));
