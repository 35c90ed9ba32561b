-- Inspect: read only. Lists are paged by key and bounded in what they examine; counts are capped.

-- ShowMessage reads one message whole, payload included, with its queue row or its settlement.
-- Guard: scope. Index: primary keys. Locks: none.
-- name: ShowMessage :many
SELECT
    m.id, m.tenant, m.consumer, m.target, m.kind, m.key, m.order_key, m.priority::integer AS priority, m.max_age,
    m.source_position, m.source_event_id, m.created_at, m.digest, m.metadata, m.payload,
    COALESCE(
        s.outcome,
        CASE
            WHEN q.state = 1 THEN 'parked'
            WHEN q.token <> E'\\x00000000000000000000000000000000'::bytea AND q.leased_until > clock_timestamp() THEN 'leased'
            ELSE 'pending'
        END
    )::text AS state,
    COALESCE(s.attempt, q.attempt, 0)::integer AS attempt,
    COALESCE(s.epoch, q.epoch, 0)::bigint AS epoch,
    COALESCE(s.replays, q.replays, 0)::integer AS replays,
    COALESCE(s.replayed_at, q.replayed_at, '0001-01-01 00:00:00+00')::timestamptz AS replayed_at,
    COALESCE(s.cause, '')::text AS cause,
    COALESCE(s.reason, q.last_error, '')::text AS reason,
    COALESCE(s.result, '')::text AS result,
    COALESCE(s.settled_at, '0001-01-01 00:00:00+00')::timestamptz AS settled_at,
    COALESCE(q.attempt_limit, 0)::integer AS attempt_limit,
    COALESCE(q.due_at, '0001-01-01 00:00:00+00')::timestamptz AS due_at,
    COALESCE(q.born_at, '0001-01-01 00:00:00+00')::timestamptz AS born_at,
    COALESCE(q.expires_at, '0001-01-01 00:00:00+00')::timestamptz AS expires_at,
    COALESCE(q.leased_until, '0001-01-01 00:00:00+00')::timestamptz AS leased_until,
    COALESCE((SELECT w.name FROM outbox.worker AS w WHERE w.id = COALESCE(s.settled_by, q.leased_by)), '')::text AS worker
FROM outbox.message AS m
LEFT JOIN outbox.settlement AS s ON s.message_id = m.id
LEFT JOIN outbox.queue AS q ON q.message_id = m.id
WHERE m.id = sqlc.arg(id)::bigint
    AND (sqlc.arg(all_tenants)::boolean OR m.tenant = ANY (sqlc.arg(scope)::text[]));

-- ListOpen pages open messages above after_id in id order, at most max_rows matches among at most examine looked at; empty filters match all.
-- The last row looked at comes back with matched false when the page was cut by examine. Late commits below after_id are not shown.
-- Guard: scope. Index: queue_pkey, message_pkey. Locks: none.
-- name: ListOpen :many
WITH seen AS (
    SELECT
        q.message_id, q.consumer, q.target, q.kind, q.tenant, q.order_key, q.attempt, q.epoch, q.replays, q.replayed_at, q.due_at,
        q.leased_until, q.last_error,
        CASE
            WHEN q.state = 1 THEN 'parked'
            -- A viewer may not read tokens; a lease that is not over has one.
            WHEN q.leased_until > clock_timestamp() THEN 'leased'
            ELSE 'pending'
        END AS state
    FROM outbox.queue AS q
    WHERE q.message_id > sqlc.arg(after_id)::bigint
    ORDER BY q.message_id
    LIMIT sqlc.arg(examine)::integer
),
matching AS (
    SELECT s.*
    FROM seen AS s
    WHERE (sqlc.arg(all_tenants)::boolean OR s.tenant = ANY (sqlc.arg(scope)::text[]))
        AND sqlc.arg(consumer)::text IN ('', s.consumer)
        AND sqlc.arg(target)::text IN ('', s.target)
        AND sqlc.arg(kind)::text IN ('', s.kind)
        AND sqlc.arg(state)::text IN ('', s.state)
    ORDER BY s.message_id
    LIMIT sqlc.arg(max_rows)::integer
)
SELECT
    t.message_id::bigint AS id, t.tenant::text AS tenant, t.consumer::text AS consumer, t.target::text AS target, t.kind::text AS kind,
    m.key::text AS key, t.order_key::text AS order_key, t.state::text AS state, t.attempt::integer AS attempt, t.epoch::bigint AS epoch,
    t.replays::integer AS replays, t.replayed_at::timestamptz AS replayed_at, ''::text AS cause, t.last_error::text AS reason,
    m.created_at::timestamptz AS created_at, t.due_at::timestamptz AS due_at, t.leased_until::timestamptz AS leased_until,
    '0001-01-01 00:00:00+00'::timestamptz AS settled_at, true::boolean AS matched
FROM matching AS t
CROSS JOIN LATERAL (SELECT x.key, x.created_at FROM outbox.message AS x WHERE x.id = t.message_id OFFSET 0) AS m
UNION ALL
(
    SELECT
        s.message_id, '', '', '', '', '', '', '', 0, 0, 0, now(), '', '', now(), now(), now(), now(), false
    FROM seen AS s
    WHERE (SELECT count(*) FROM seen) >= sqlc.arg(examine)::integer
        AND (SELECT count(*) FROM matching) < sqlc.arg(max_rows)::integer
    ORDER BY s.message_id DESC
    LIMIT 1
);

-- ListUndelivered pages settled messages of one outcome (dead, cancelled or expired), newest first, before (before_at, before_id); empty
-- filters match all. Bounds and the closing row as ListOpen.
-- Guard: scope. Index: settlement_undelivered read backwards, message_pkey. Locks: none.
-- name: ListUndelivered :many
WITH seen AS (
    SELECT s.message_id, s.outcome, s.cause, s.reason, s.attempt, s.epoch, s.replays, s.replayed_at, s.settled_at
    FROM outbox.settlement AS s
    WHERE s.outcome = sqlc.arg(outcome)::text
        AND s.outcome <> 'delivered'
        AND (s.settled_at, (s.message_id + 0)) < (sqlc.arg(before_at)::timestamptz, sqlc.arg(before_id)::bigint)
    ORDER BY s.settled_at DESC, (s.message_id + 0) DESC
    LIMIT sqlc.arg(examine)::integer
),
matching AS (
    SELECT s.*, m.tenant, m.consumer, m.target, m.kind, m.key, m.order_key, m.created_at
    FROM seen AS s
    CROSS JOIN LATERAL (
        SELECT x.tenant, x.consumer, x.target, x.kind, x.key, x.order_key, x.created_at FROM outbox.message AS x WHERE x.id = s.message_id OFFSET 0
    ) AS m
    WHERE (sqlc.arg(all_tenants)::boolean OR m.tenant = ANY (sqlc.arg(scope)::text[]))
        AND sqlc.arg(consumer)::text IN ('', m.consumer)
        AND sqlc.arg(target)::text IN ('', m.target)
        AND sqlc.arg(kind)::text IN ('', m.kind)
    LIMIT sqlc.arg(max_rows)::integer
)
SELECT
    t.message_id::bigint AS id, t.tenant::text AS tenant, t.consumer::text AS consumer, t.target::text AS target, t.kind::text AS kind,
    t.key::text AS key, t.order_key::text AS order_key, t.outcome::text AS state, t.attempt::integer AS attempt, t.epoch::bigint AS epoch,
    t.replays::integer AS replays, t.replayed_at::timestamptz AS replayed_at, t.cause::text AS cause, t.reason::text AS reason,
    t.created_at::timestamptz AS created_at, '0001-01-01 00:00:00+00'::timestamptz AS due_at,
    '0001-01-01 00:00:00+00'::timestamptz AS leased_until, t.settled_at::timestamptz AS settled_at, true::boolean AS matched
FROM matching AS t
UNION ALL
(
    SELECT
        s.message_id, '', '', '', '', '', '', '', 0, 0, 0, now(), '', '', now(), now(), now(), s.settled_at, false
    FROM seen AS s
    WHERE (SELECT count(*) FROM seen) >= sqlc.arg(examine)::integer
        AND (SELECT count(*) FROM matching) < sqlc.arg(max_rows)::integer
    ORDER BY s.settled_at, s.message_id
    LIMIT 1
);

-- ListDelivered pages delivered messages below before_id, newest id first; empty filters match all. Bounds and the closing row as ListOpen.
-- Guard: scope. Index: settlement_pkey read backwards, message_pkey. Locks: none.
-- name: ListDelivered :many
WITH seen AS (
    SELECT s.message_id, s.outcome, s.attempt, s.epoch, s.replays, s.replayed_at, s.settled_at
    FROM outbox.settlement AS s
    WHERE s.message_id < sqlc.arg(before_id)::bigint
    ORDER BY s.message_id DESC
    LIMIT sqlc.arg(examine)::integer
),
matching AS (
    SELECT s.*, m.tenant, m.consumer, m.target, m.kind, m.key, m.order_key, m.created_at
    FROM seen AS s
    CROSS JOIN LATERAL (
        SELECT x.tenant, x.consumer, x.target, x.kind, x.key, x.order_key, x.created_at FROM outbox.message AS x WHERE x.id = s.message_id OFFSET 0
    ) AS m
    WHERE s.outcome = 'delivered'
        AND (sqlc.arg(all_tenants)::boolean OR m.tenant = ANY (sqlc.arg(scope)::text[]))
        AND sqlc.arg(consumer)::text IN ('', m.consumer)
        AND sqlc.arg(target)::text IN ('', m.target)
        AND sqlc.arg(kind)::text IN ('', m.kind)
    LIMIT sqlc.arg(max_rows)::integer
)
SELECT
    t.message_id::bigint AS id, t.tenant::text AS tenant, t.consumer::text AS consumer, t.target::text AS target, t.kind::text AS kind,
    t.key::text AS key, t.order_key::text AS order_key, t.outcome::text AS state, t.attempt::integer AS attempt, t.epoch::bigint AS epoch,
    t.replays::integer AS replays, t.replayed_at::timestamptz AS replayed_at, ''::text AS cause, ''::text AS reason,
    t.created_at::timestamptz AS created_at, '0001-01-01 00:00:00+00'::timestamptz AS due_at,
    '0001-01-01 00:00:00+00'::timestamptz AS leased_until, t.settled_at::timestamptz AS settled_at, true::boolean AS matched
FROM matching AS t
UNION ALL
(
    SELECT
        s.message_id, '', '', '', '', '', '', '', 0, 0, 0, now(), '', '', now(), now(), now(), now(), false
    FROM seen AS s
    WHERE (SELECT count(*) FROM seen) >= sqlc.arg(examine)::integer
        AND (SELECT count(*) FROM matching) < sqlc.arg(max_rows)::integer
    ORDER BY s.message_id
    LIMIT 1
);

-- ListPauses lists the kill switches. Guard: scope (a wildcard concerns everybody). Index: pause_pkey (the table is small). Locks: none.
-- name: ListPauses :many
SELECT z.consumer, z.target, z.kind, z.tenant, z.mode::integer AS mode, z.actor, z.reason, z.paused_at
FROM outbox.pause AS z
WHERE (sqlc.arg(all_tenants)::boolean OR z.tenant = '*' OR z.tenant = ANY (sqlc.arg(scope)::text[]))
ORDER BY z.consumer, z.target, z.kind, z.tenant
LIMIT 1000;

-- ListCredentials lists named workers without what they are verified by, a row for each consumer and tenant that one is let in for.
-- Guard: none. Index: credential_pkey, credential_scope_pkey (the tables are small). Locks: none.
-- name: ListCredentials :many
SELECT c.name, c.created_at, c.created_by, c.created_for, c.revoked_at, c.revoked_by, c.revoked_for, s.consumer, s.tenant
FROM outbox.credential AS c
INNER JOIN outbox.credential_scope AS s ON s.name = c.name
ORDER BY c.name, s.consumer, s.tenant
LIMIT sqlc.arg(max_rows)::integer;

-- CountLanes counts pending messages by lane, each count capped at cap: due now, deferred, leased, and the earliest due time. It goes on
-- after (consumer, target, kind, tenant, priority), at most max_rows lanes; start with empty texts and priority -32769.
-- Guard: scope. Index: queue_due. Locks: none.
-- name: CountLanes :many
WITH RECURSIVE lane AS (
    SELECT
        sqlc.arg(after_consumer)::text AS consumer,
        sqlc.arg(after_target)::text AS target,
        sqlc.arg(after_kind)::text AS kind,
        sqlc.arg(after_tenant)::text AS tenant,
        sqlc.arg(after_priority)::integer AS priority,
        false AS found
    UNION ALL
    SELECT l.consumer, l.target, l.kind, l.tenant, l.priority, true
    FROM lane
    CROSS JOIN LATERAL (
        SELECT q.consumer, q.target, q.kind, q.tenant, q.priority::integer AS priority
        FROM outbox.queue AS q
        WHERE q.state = 0
            AND (q.consumer, q.target, q.kind, q.tenant, q.priority) > (lane.consumer, lane.target, lane.kind, lane.tenant, lane.priority)
        ORDER BY q.consumer, q.target, q.kind, q.tenant, q.priority
        LIMIT 1
    ) AS l
)
SELECT
    lane.consumer::text AS consumer,
    lane.target::text AS target,
    lane.kind::text AS kind,
    lane.tenant::text AS tenant,
    lane.priority::integer AS priority,
    c.due::bigint AS due,
    c.deferred::bigint AS deferred,
    c.leased::bigint AS leased,
    COALESCE(c.earliest, '0001-01-01 00:00:00+00')::timestamptz AS earliest,
    statement_timestamp()::timestamptz AS now
FROM lane
CROSS JOIN LATERAL (
    SELECT
        count(*) FILTER (WHERE e.due_at <= now() AND e.leased_until <= now()) AS due,
        count(*) FILTER (WHERE e.due_at > now()) AS deferred,
        count(*) FILTER (WHERE e.leased_until > now()) AS leased,
        min(e.due_at) AS earliest
    FROM (
        SELECT q.due_at, q.leased_until
        FROM outbox.queue AS q
        WHERE q.state = 0
            AND q.consumer = lane.consumer
            AND q.target = lane.target
            AND q.kind = lane.kind
            AND q.tenant = lane.tenant
            AND q.priority = lane.priority
        ORDER BY q.due_at
        LIMIT sqlc.arg(cap)::integer
    ) AS e
) AS c
WHERE lane.found
    AND (sqlc.arg(all_tenants)::boolean OR lane.tenant = ANY (sqlc.arg(scope)::text[]))
LIMIT sqlc.arg(max_rows)::integer;

-- CountParked counts parked messages by (consumer, target, kind), cap at most in all.
-- Guard: scope. Index: queue_parked. Locks: none.
-- name: CountParked :many
SELECT e.consumer::text AS consumer, e.target::text AS target, e.kind::text AS kind, count(*)::bigint AS parked
FROM (
    SELECT q.consumer, q.target, q.kind
    FROM outbox.queue AS q
    WHERE q.state = 1
        AND (sqlc.arg(all_tenants)::boolean OR q.tenant = ANY (sqlc.arg(scope)::text[]))
    ORDER BY q.consumer, q.target, q.kind, q.tenant
    LIMIT sqlc.arg(cap)::integer
) AS e
GROUP BY e.consumer, e.target, e.kind
ORDER BY e.consumer, e.target, e.kind;

-- CountUndelivered counts dead, cancelled and expired messages, each capped at cap.
-- Guard: none: counts over all tenants, without any of their content. Index: settlement_undelivered. Locks: none.
-- name: CountUndelivered :many
SELECT o.outcome::text AS outcome, c.settled::bigint AS settled
FROM (VALUES ('dead'), ('cancelled'), ('expired')) AS o (outcome)
CROSS JOIN LATERAL (
    SELECT count(*) AS settled
    FROM (
        SELECT s.settled_at
        FROM outbox.settlement AS s
        WHERE s.outcome = o.outcome AND s.outcome <> 'delivered'
        ORDER BY s.settled_at
        LIMIT sqlc.arg(cap)::integer
    ) AS e
) AS c;

-- ReadHealth reads what slows a queue down: the age of the oldest snapshot in this database (microseconds), live and dead rows of the queue,
-- and the server's estimate of settled messages. schema_name is the schema's.
-- Guard: none. Index: the catalogue's. Locks: none.
-- name: ReadHealth :many
SELECT
    COALESCE((
        SELECT (max(extract(epoch FROM clock_timestamp() - a.xact_start)) * 1000000)::bigint
        FROM pg_catalog.pg_stat_activity AS a
        WHERE a.backend_xmin IS NOT NULL AND a.datname = current_database() AND a.pid <> pg_backend_pid()
    ), 0)::bigint AS oldest_snapshot,
    COALESCE(t.n_live_tup, 0)::bigint AS live_rows,
    COALESCE(t.n_dead_tup, 0)::bigint AS dead_rows,
    COALESCE(u.n_live_tup, 0)::bigint AS settled_estimate,
    clock_timestamp()::timestamptz AS now,
    current_setting('server_version')::text AS server_version
FROM (SELECT 1 AS one) AS o
LEFT JOIN pg_catalog.pg_stat_all_tables AS t ON t.schemaname = sqlc.arg(schema_name)::text AND t.relname = 'queue'
LEFT JOIN pg_catalog.pg_stat_all_tables AS u ON u.schemaname = sqlc.arg(schema_name)::text AND u.relname = 'settlement';
