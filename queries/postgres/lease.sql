-- Lease: find due lanes, lease due messages, keep, extend and give back a lease.
--
-- Boundaries, everywhere: due when due_at <= now, over when leased_until <= now, too old when the expiry <= now, spent when
-- attempt >= limit. Predicates that bound an index scan use now(); guards that judge a lease use clock_timestamp(). Ids come in rising
-- order: width_bucket finds a row's own argument by bisection.

-- DueLanes lists the lanes that have a due message, with the instant the earliest one came due: a loose scan that reads one index
-- entry a lane. Each seed (consumer, target, kind) names where it goes on: after (tenant, priority), or, when not all tenants are in
-- scope, within exactly that tenant after that priority. Start with priority -32769.
-- Guard: paused lanes are left out; the scope is the seeds' tenants. Index: queue_due. Locks: none.
-- name: DueLanes :many
WITH RECURSIVE lane AS (
    SELECT
        generate_subscripts(sqlc.arg(kinds)::text[], 1) AS seed,
        unnest(sqlc.arg(consumers)::text[]) AS consumer,
        unnest(sqlc.arg(targets)::text[]) AS target,
        unnest(sqlc.arg(kinds)::text[]) AS kind,
        unnest(sqlc.arg(after_tenants)::text[]) AS tenant,
        unnest(sqlc.arg(after_priorities)::integer[]) AS priority,
        '9999-12-31 00:00:00+00'::timestamptz AS due_at
    UNION ALL
    SELECT lane.seed, lane.consumer, lane.target, lane.kind, l.tenant, l.priority, l.due_at
    FROM lane
    CROSS JOIN LATERAL (
        (
            SELECT q.tenant, q.priority::integer AS priority, q.due_at
            FROM outbox.queue AS q
            WHERE sqlc.arg(all_tenants)::boolean
                AND q.state = 0
                AND q.consumer = lane.consumer
                AND q.target = lane.target
                AND q.kind = lane.kind
                AND (q.tenant, q.priority) > (lane.tenant, lane.priority)
            ORDER BY q.tenant, q.priority, q.due_at
            LIMIT 1
        )
        UNION ALL
        (
            SELECT q.tenant, q.priority::integer AS priority, q.due_at
            FROM outbox.queue AS q
            WHERE NOT sqlc.arg(all_tenants)::boolean
                AND q.state = 0
                AND q.consumer = lane.consumer
                AND q.target = lane.target
                AND q.kind = lane.kind
                AND q.tenant = lane.tenant
                AND q.priority > lane.priority
            ORDER BY q.priority, q.due_at
            LIMIT 1
        )
    ) AS l
)
SELECT
    lane.seed::integer AS seed,
    lane.tenant::text AS tenant,
    lane.priority::integer AS priority,
    lane.due_at::timestamptz AS due_at
FROM lane
WHERE lane.due_at <= now()
    AND NOT EXISTS (
        SELECT FROM outbox.pause AS z
        WHERE z.consumer IN (lane.consumer, '*')
            AND z.target IN (lane.target, '*')
            AND z.kind IN (lane.kind, '*')
            AND z.tenant IN (lane.tenant, '*')
    )
LIMIT sqlc.arg(max_rows)::integer;

-- LeaseDue leases the due messages of the given lanes, each from its watermark (after_due, after_id) on, at most quota a lane and
-- max_rows in all; token is fresh for this call. Of a lane it examines at most examine entries. What may not run again (attempts
-- spent, too old) is settled as dead in the same go and takes nobody's turn; under block_on_dead it waits for its order key as a lease does.
-- It returns every row it picked with its lane and fate: 0 refused by its order lease, 1 granted, 2 buried; fate 4, a lane that was
-- examined up to its bound without filling its quota: go on there; and always one closing row, fate 3, with the database's now().
-- Guard: lane, scope, pause, due, free (a leased_until further ahead than the longest lease counts as over: a clock stepped back);
-- for an order key: the head of the key among committed rows, and the order lease, taken here or not granted.
-- Index: queue_due for a lane, queue_order for the head, primary keys else. Locks: the picked queue rows, skipping locked ones, so
-- without waiting; then order leases in (tenant, order_key) order. Statements that end leases take those in id order: where smaller ids of
-- two keys committed late, the two orders may meet in a deadlock, which the server ends and the driver's repeat hides.
-- name: LeaseDue :many
WITH lane AS (
    SELECT l.*
    FROM (
        SELECT
            generate_subscripts(sqlc.arg(kinds)::text[], 1) AS lane_no,
            unnest(sqlc.arg(kinds)::text[]) AS kind,
            unnest(sqlc.arg(tenants)::text[]) AS tenant,
            unnest(sqlc.arg(priorities)::smallint[]) AS priority,
            unnest(sqlc.arg(after_dues)::timestamptz[]) AS after_due,
            unnest(sqlc.arg(after_ids)::bigint[]) AS after_id,
            unnest(sqlc.arg(attempt_limits)::integer[]) AS attempt_limit,
            unnest(sqlc.arg(max_ages)::bigint[]) AS max_age
    ) AS l
    WHERE (sqlc.arg(all_tenants)::boolean OR l.tenant = ANY (sqlc.arg(scope)::text[]))
        AND NOT EXISTS (
            SELECT FROM outbox.pause AS z
            WHERE z.consumer IN (sqlc.arg(consumer)::text, '*')
                AND z.target IN (sqlc.arg(target)::text, '*')
                AND z.kind IN (l.kind, '*')
                AND z.tenant IN (l.tenant, '*')
        )
),
-- One instant for both leases: two readings of the clock would let one outlive the other.
stamp AS (
    SELECT clock_timestamp() + sqlc.arg(lease)::bigint * interval '1 microsecond' AS until
),
pick AS (
    SELECT
        l.lane_no,
        p.message_id,
        p.order_key,
        p.due_at,
        p.attempt >= GREATEST(l.attempt_limit, p.attempt_limit) AS spent,
        -- LEAST ignores the null of a lane without an age limit.
        LEAST(p.expires_at, p.born_at + NULLIF(l.max_age, 0) * interval '1 microsecond') <= now() AS aged
    FROM lane AS l
    CROSS JOIN LATERAL (
        SELECT c.message_id, c.order_key, c.due_at, c.attempt, c.attempt_limit, c.expires_at, c.born_at
        FROM (
            SELECT e.message_id, e.due_at, e.order_key, e.leased_until
            FROM outbox.queue AS e
            WHERE e.state = 0
                AND e.consumer = sqlc.arg(consumer)::text
                AND e.target = sqlc.arg(target)::text
                AND e.kind = l.kind
                AND e.tenant = l.tenant
                AND e.priority = l.priority
                AND e.due_at <= now()
                AND (e.due_at, (e.message_id + 0)) > (l.after_due, l.after_id)
            ORDER BY e.due_at, (e.message_id + 0)
            LIMIT sqlc.arg(examine)::integer
        ) AS s
        CROSS JOIN LATERAL (
            SELECT q.message_id, q.order_key, q.due_at, q.attempt, q.attempt_limit, q.expires_at, q.born_at
            FROM outbox.queue AS q
            WHERE q.message_id = s.message_id
                AND (q.state + 0) = 0 -- so that no statistics make queue_due look attractive
                AND q.due_at <= now()
                AND (q.leased_until <= now() OR q.leased_until > clock_timestamp() + sqlc.arg(longest_lease)::bigint * interval '1 microsecond')
            FOR UPDATE OF q SKIP LOCKED
        ) AS c
        WHERE (s.leased_until <= now() OR s.leased_until > clock_timestamp() + sqlc.arg(longest_lease)::bigint * interval '1 microsecond')
            AND (s.order_key = '' OR s.message_id = (
                SELECT h.message_id
                FROM outbox.queue AS h
                WHERE h.consumer = sqlc.arg(consumer)::text
                    AND h.target = sqlc.arg(target)::text
                    AND h.tenant = l.tenant
                    AND h.order_key = s.order_key
                    AND h.order_key <> ''
                ORDER BY (h.message_id + 0)
                LIMIT 1
            ))
        LIMIT sqlc.arg(quota)::integer
    ) AS p
    LIMIT sqlc.arg(max_rows)::integer
),
-- A lease takes its order key, and under block_on_dead a death does too, by the same rule: one that took the key from a message that runs
-- would let another run beside it once the key is unblocked.
ordered AS (
    INSERT INTO outbox.order_lease AS o (consumer, target, tenant, order_key, message_id, leased_until, blocked)
    SELECT
        q.consumer, q.target, q.tenant, q.order_key, q.message_id,
        CASE WHEN d.dies THEN '0001-01-01 00:00:00+00'::timestamptz ELSE (SELECT s.until FROM stamp AS s) END,
        d.dies
    FROM outbox.queue AS q
    CROSS JOIN LATERAL (
        SELECT q.message_id = ANY (ARRAY(SELECT p.message_id FROM pick AS p WHERE p.spent OR p.aged)) AS dies
    ) AS d
    WHERE q.message_id = ANY (ARRAY(
        SELECT p.message_id FROM pick AS p WHERE p.order_key <> '' AND (NOT p.spent AND NOT p.aged OR sqlc.arg(block_on_dead)::boolean)
    ))
    ORDER BY q.tenant, q.order_key
    ON CONFLICT (consumer, target, tenant, order_key) DO UPDATE
        SET message_id = excluded.message_id, leased_until = excluded.leased_until, blocked = excluded.blocked
        WHERE NOT o.blocked
            AND (o.leased_until <= clock_timestamp()
                OR o.leased_until > clock_timestamp() + sqlc.arg(longest_lease)::bigint * interval '1 microsecond')
    RETURNING message_id
),
doomed AS (
    DELETE FROM outbox.queue AS q
    WHERE q.message_id = ANY (ARRAY(
        SELECT p.message_id
        FROM pick AS p
        WHERE (p.spent OR p.aged)
            AND (p.order_key = '' OR NOT sqlc.arg(block_on_dead)::boolean OR p.message_id IN (SELECT o.message_id FROM ordered AS o))
    ))
    RETURNING q.message_id, q.attempt, q.epoch, q.replays, q.replayed_at, q.leased_by, q.leased_until, q.last_error, q.order_key
),
buried AS (
    INSERT INTO outbox.settlement (message_id, outcome, cause, reason, attempt, epoch, replays, replayed_at, settled_by)
    SELECT
        d.message_id,
        'dead',
        CASE
            WHEN NOT (SELECT p.spent FROM pick AS p WHERE p.message_id = d.message_id) THEN 'age'
            WHEN d.leased_until = '0001-01-01 00:00:00+00' THEN 'attempts'
            ELSE 'exhausted'
        END,
        CASE
            WHEN NOT (SELECT p.spent FROM pick AS p WHERE p.message_id = d.message_id) THEN 'too old'
            WHEN d.leased_until = '0001-01-01 00:00:00+00' THEN 'attempts spent'
            ELSE 'leases lost until attempts ran out'
        END || CASE WHEN btrim(d.last_error) = '' THEN '' ELSE '; last error: ' || d.last_error END,
        d.attempt, d.epoch, d.replays, d.replayed_at, d.leased_by
    FROM doomed AS d
    RETURNING message_id, cause, reason
),
-- A dead head that does not block its key lets it go.
freed AS (
    DELETE FROM outbox.order_lease AS o
    WHERE o.message_id = ANY (ARRAY(SELECT d.message_id FROM doomed AS d WHERE d.order_key <> ''))
        AND NOT o.blocked
        AND NOT sqlc.arg(block_on_dead)::boolean
),
granted AS (
    UPDATE outbox.queue AS q
    SET attempt = q.attempt + 1,
        epoch = q.epoch + 1,
        -- A token that is still there belongs to a lease that was lost: nobody knows how far its handler came.
        unsure = q.unsure OR q.token <> E'\\x00000000000000000000000000000000'::bytea,
        token = sqlc.arg(token)::bytea,
        leased_by = sqlc.arg(worker)::bigint,
        leased_until = (SELECT s.until FROM stamp AS s)
    WHERE q.message_id = ANY (ARRAY(
        SELECT p.message_id
        FROM pick AS p
        WHERE NOT p.spent AND NOT p.aged
            AND (p.order_key = '' OR p.message_id IN (SELECT o.message_id FROM ordered AS o))
    ))
    RETURNING q.message_id, q.attempt, q.epoch, q.replays, q.unsure, q.leased_until
),
fate AS (
    SELECT p.lane_no, 1 AS fate, p.due_at, g.message_id, g.attempt, g.epoch, g.replays, g.unsure, g.leased_until, '' AS cause, '' AS reason
    FROM granted AS g
    INNER JOIN pick AS p ON p.message_id = g.message_id
    UNION ALL
    SELECT p.lane_no, 2, p.due_at, d.message_id, d.attempt, d.epoch, d.replays, false, d.leased_until, b.cause, b.reason
    FROM doomed AS d
    INNER JOIN pick AS p ON p.message_id = d.message_id
    INNER JOIN buried AS b ON b.message_id = d.message_id
)
SELECT
    f.lane_no::integer AS lane_no,
    f.fate::integer AS fate,
    f.due_at::timestamptz AS due_at,
    f.message_id::bigint AS id,
    m.tenant::text AS tenant,
    m.kind::text AS kind,
    m.key::text AS key,
    m.order_key::text AS order_key,
    m.priority::integer AS priority,
    m.source_position::bigint AS source_position,
    m.source_event_id::text AS source_event_id,
    m.created_at::timestamptz AS created_at,
    m.metadata::text AS metadata,
    m.payload::bytea AS payload,
    f.attempt::integer AS attempt,
    f.epoch::bigint AS epoch,
    f.replays::integer AS replays,
    f.unsure::boolean AS unsure,
    f.leased_until::timestamptz AS leased_until,
    f.cause::text AS cause,
    f.reason::text AS reason
FROM fate AS f
CROSS JOIN LATERAL (
    SELECT x.tenant, x.kind, x.key, x.order_key, x.priority, x.source_position, x.source_event_id, x.created_at, x.metadata, x.payload
    FROM outbox.message AS x
    WHERE x.id = f.message_id
) AS m
UNION ALL
SELECT p.lane_no, 0, p.due_at, p.message_id, '', '', '', '', 0, 0, '', now(), '', ''::bytea, 0, 0, 0, false, now(), '', ''
FROM pick AS p
WHERE p.message_id NOT IN (SELECT f.message_id FROM fate AS f)
UNION ALL
SELECT l.lane_no, 4, b.due_at, b.message_id, '', '', '', '', 0, 0, '', now(), '', ''::bytea, 0, 0, 0, false, now(), '', ''
FROM lane AS l
CROSS JOIN LATERAL (
    SELECT e.due_at, e.message_id
    FROM outbox.queue AS e
    WHERE e.state = 0
        AND e.consumer = sqlc.arg(consumer)::text
        AND e.target = sqlc.arg(target)::text
        AND e.kind = l.kind
        AND e.tenant = l.tenant
        AND e.priority = l.priority
        AND e.due_at <= now()
        AND (e.due_at, (e.message_id + 0)) > (l.after_due, l.after_id)
        AND (SELECT count(*) FROM pick AS p WHERE p.lane_no = l.lane_no) < sqlc.arg(quota)::integer
        -- Where max_rows cut the pass, the lanes before the one it was cut in were examined as far as any.
        AND ((SELECT count(*) FROM pick AS p) < sqlc.arg(max_rows)::integer OR l.lane_no < (SELECT max(p.lane_no) FROM pick AS p))
    ORDER BY e.due_at, (e.message_id + 0)
    OFFSET sqlc.arg(examine)::integer - 1
    LIMIT 1
) AS b
UNION ALL
SELECT 0, 3, now(), 0, '', '', '', '', 0, 0, '', now(), '', ''::bytea, 0, 0, 0, false, now(), '', '';

-- LeaseSuccessors leases the next message of each order key whose message was just settled, with every guard of LeaseDue, so that a hot
-- key need not wait for a scan. Kinds come with their limits; a head that is spent or too old is left to LeaseDue, which buries it.
-- Guard: as LeaseDue. Index: queue_order for the head, the primary key for the rest. Locks: as LeaseDue.
-- name: LeaseSuccessors :many
WITH wanted AS (
    SELECT
        unnest(sqlc.arg(tenants)::text[]) AS tenant,
        unnest(sqlc.arg(order_keys)::text[]) AS order_key
),
handled AS (
    SELECT
        unnest(sqlc.arg(kinds)::text[]) AS kind,
        unnest(sqlc.arg(attempt_limits)::integer[]) AS attempt_limit,
        unnest(sqlc.arg(max_ages)::bigint[]) AS max_age
),
stamp AS (
    SELECT clock_timestamp() + sqlc.arg(lease)::bigint * interval '1 microsecond' AS until
),
pick AS (
    SELECT p.message_id
    FROM wanted AS w
    CROSS JOIN LATERAL (
        SELECT h.message_id
        FROM outbox.queue AS h
        WHERE h.consumer = sqlc.arg(consumer)::text
            AND h.target = sqlc.arg(target)::text
            AND h.tenant = w.tenant
            AND h.order_key = w.order_key
            AND h.order_key <> ''
        ORDER BY (h.message_id + 0)
        LIMIT 1
    ) AS s
    CROSS JOIN LATERAL (
        SELECT q.message_id, q.kind, q.attempt, q.attempt_limit, q.expires_at, q.born_at
        FROM outbox.queue AS q
        WHERE q.message_id = s.message_id
            AND (q.state + 0) = 0 -- so that no statistics make queue_due look attractive
            AND q.due_at <= now()
            AND (q.leased_until <= now() OR q.leased_until > clock_timestamp() + sqlc.arg(longest_lease)::bigint * interval '1 microsecond')
        FOR UPDATE OF q SKIP LOCKED
    ) AS p
    INNER JOIN handled AS k ON k.kind = p.kind
    WHERE (sqlc.arg(all_tenants)::boolean OR w.tenant = ANY (sqlc.arg(scope)::text[]))
        AND p.attempt < GREATEST(k.attempt_limit, p.attempt_limit)
        AND LEAST(p.expires_at, p.born_at + NULLIF(k.max_age, 0) * interval '1 microsecond') > now()
        AND NOT EXISTS (
            SELECT FROM outbox.pause AS z
            WHERE z.consumer IN (sqlc.arg(consumer)::text, '*')
                AND z.target IN (sqlc.arg(target)::text, '*')
                AND z.kind IN (p.kind, '*')
                AND z.tenant IN (w.tenant, '*')
        )
    LIMIT sqlc.arg(max_rows)::integer
),
ordered AS (
    INSERT INTO outbox.order_lease AS o (consumer, target, tenant, order_key, message_id, leased_until)
    SELECT q.consumer, q.target, q.tenant, q.order_key, q.message_id, (SELECT s.until FROM stamp AS s)
    FROM outbox.queue AS q
    WHERE q.message_id = ANY (ARRAY(SELECT p.message_id FROM pick AS p))
    ORDER BY q.tenant, q.order_key
    ON CONFLICT (consumer, target, tenant, order_key) DO UPDATE
        SET message_id = excluded.message_id, leased_until = excluded.leased_until
        WHERE NOT o.blocked
            AND (o.leased_until <= clock_timestamp()
                OR o.leased_until > clock_timestamp() + sqlc.arg(longest_lease)::bigint * interval '1 microsecond')
    RETURNING message_id
),
granted AS (
    UPDATE outbox.queue AS q
    SET attempt = q.attempt + 1,
        epoch = q.epoch + 1,
        unsure = q.unsure OR q.token <> E'\\x00000000000000000000000000000000'::bytea,
        token = sqlc.arg(token)::bytea,
        leased_by = sqlc.arg(worker)::bigint,
        leased_until = (SELECT s.until FROM stamp AS s)
    WHERE q.message_id = ANY (ARRAY(SELECT o.message_id FROM ordered AS o))
    RETURNING q.message_id, q.due_at, q.attempt, q.epoch, q.replays, q.unsure, q.leased_until
)
SELECT
    g.due_at::timestamptz AS due_at,
    g.message_id::bigint AS id,
    m.tenant::text AS tenant,
    m.kind::text AS kind,
    m.key::text AS key,
    m.order_key::text AS order_key,
    m.priority::integer AS priority,
    m.source_position::bigint AS source_position,
    m.source_event_id::text AS source_event_id,
    m.created_at::timestamptz AS created_at,
    m.metadata::text AS metadata,
    m.payload::bytea AS payload,
    g.attempt::integer AS attempt,
    g.epoch::bigint AS epoch,
    g.replays::integer AS replays,
    g.unsure::boolean AS unsure,
    g.leased_until::timestamptz AS leased_until
FROM granted AS g
CROSS JOIN LATERAL (
    SELECT x.tenant, x.kind, x.key, x.order_key, x.priority, x.source_position, x.source_event_id, x.created_at, x.metadata, x.payload
    FROM outbox.message AS x
    WHERE x.id = g.message_id
) AS m;

-- Renew extends live leases, never shortening one but to the longest lease (a clock stepped back), and says whether a pause asks running handlers to stop (pause_mode -1: not paused).
-- A row that does not come back is no longer ours: ended, over, cancelled; FindFates tells which. Neither does an ordered one whose order
-- lease went to another message: that can happen while this statement waits for a locked row beyond the end of the lease.
-- Guard: id, token, a lease that is not over, for an order key the order lease. Index: primary keys. Locks: queue rows, then order leases, in id order.
-- name: Renew :many
WITH stamp AS (
    SELECT
        t.at + sqlc.arg(lease)::bigint * interval '1 microsecond' AS until,
        t.at + sqlc.arg(longest_lease)::bigint * interval '1 microsecond' AS latest
    FROM (SELECT clock_timestamp() AS at) AS t
),
renewed AS (
    UPDATE outbox.queue AS q
    SET leased_until = LEAST(GREATEST(q.leased_until, (SELECT s.until FROM stamp AS s)), (SELECT s.latest FROM stamp AS s))
    WHERE q.message_id = ANY (sqlc.arg(ids)::bigint[])
        AND q.token = substring(sqlc.arg(tokens)::bytea, 16 * width_bucket(q.message_id, sqlc.arg(ids)::bigint[]) - 15, 16)
        AND octet_length(sqlc.arg(tokens)::bytea) = 16 * cardinality(sqlc.arg(ids)::bigint[])
        AND q.leased_until > clock_timestamp()
    RETURNING q.message_id, q.leased_until, q.consumer, q.target, q.kind, q.tenant, q.order_key
),
kept AS (
    UPDATE outbox.order_lease AS o
    SET leased_until = LEAST(GREATEST(o.leased_until, (SELECT s.until FROM stamp AS s)), (SELECT s.latest FROM stamp AS s))
    WHERE o.message_id = ANY (ARRAY(SELECT r.message_id FROM renewed AS r WHERE r.order_key <> ''))
        AND NOT o.blocked
    RETURNING o.message_id
)
SELECT
    r.message_id::bigint AS id,
    r.leased_until::timestamptz AS leased_until,
    COALESCE((
        SELECT max(z.mode)
        FROM outbox.pause AS z
        WHERE z.consumer IN (r.consumer, '*')
            AND z.target IN (r.target, '*')
            AND z.kind IN (r.kind, '*')
            AND z.tenant IN (r.tenant, '*')
    ), -1)::integer AS pause_mode
FROM renewed AS r
WHERE r.order_key = '' OR r.message_id IN (SELECT k.message_id FROM kept AS k);

-- Release gives leases back whose handlers never started or were interrupted: at once due again, the attempt unspent. unsures are true where
-- a handler had started: nobody knows how far it came. What was unsure stays so.
-- Guard: id and token, not nobody's; a lease that is over but not taken by anybody is given back too. Index: primary keys.
-- Locks: queue rows, then order leases, in id order.
-- name: Release :many
WITH given_back AS (
    UPDATE outbox.queue AS q
    SET attempt = q.attempt - 1,
        unsure = q.unsure OR (sqlc.arg(unsures)::boolean[])[width_bucket(q.message_id, sqlc.arg(ids)::bigint[])],
        token = E'\\x00000000000000000000000000000000',
        leased_until = '0001-01-01 00:00:00+00',
        leased_by = 0
    WHERE q.message_id = ANY (sqlc.arg(ids)::bigint[])
        AND q.token = substring(sqlc.arg(tokens)::bytea, 16 * width_bucket(q.message_id, sqlc.arg(ids)::bigint[]) - 15, 16)
        AND octet_length(sqlc.arg(tokens)::bytea) = 16 * cardinality(sqlc.arg(ids)::bigint[])
        AND q.token <> E'\\x00000000000000000000000000000000'::bytea
    RETURNING q.message_id, q.order_key
),
freed AS (
    DELETE FROM outbox.order_lease AS o
    WHERE o.message_id = ANY (ARRAY(SELECT g.message_id FROM given_back AS g WHERE g.order_key <> ''))
        AND NOT o.blocked
)
SELECT g.message_id::bigint AS id FROM given_back AS g;
