-- Doctor: read only, what `fencepost doctor` looks at beside the statements of inspect.sql. Each is bounded in what it reads.

-- ReadSurroundings reads what the server, the schema and the session are like, one fact a row: settings (section setting), tables with their
-- storage parameters (table), indexes as valid, invalid or missing (index), and what the
-- age of the oldest snapshot leaves out: whether all sessions show theirs, and the age in microseconds of the oldest prepared transaction (session).
-- schema_name is the schema's. Guard: none. Index: the catalogue's. Locks: none.
-- name: ReadSurroundings :many
WITH relation AS (
    SELECT c.oid, c.relname::text AS name, c.relkind, COALESCE(array_to_string(c.reloptions, ' '), '') AS options
    FROM pg_catalog.pg_class AS c
    INNER JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = sqlc.arg(schema_name)::text
)
SELECT 'setting'::text AS section, s.name::text AS name, s.setting::text AS value
FROM pg_catalog.pg_settings AS s
WHERE s.name IN ('autovacuum', 'fsync', 'full_page_writes', 'server_version', 'synchronous_commit', 'synchronous_standby_names', 'track_counts')
UNION ALL
SELECT 'setting', 'role', current_user::text
UNION ALL
SELECT 'setting', 'standby', pg_is_in_recovery()::text
UNION ALL
SELECT 'table', r.name, r.options
FROM relation AS r
WHERE r.relkind = 'r'
UNION ALL
SELECT 'index', COALESCE(e.name, i.name), COALESCE(i.state, 'missing')
FROM (
    VALUES
        ('audit_message'), ('audit_pkey'), ('claim_held'), ('claim_over'), ('claim_pkey'), ('event_id_unique'), ('event_order'),
        ('event_pkey'), ('incarnation_pkey'), ('message_key_unique'), ('message_pkey'), ('order_lease_message'), ('order_lease_pkey'),
        ('pause_pkey'), ('queue_due'), ('queue_order'), ('queue_parked'), ('queue_pkey'), ('reader_pkey'), ('schema_version_pkey'),
        ('settlement_pkey'), ('settlement_undelivered'), ('worker_name'), ('worker_pkey')
) AS e (name)
FULL JOIN (
    SELECT r.name, CASE WHEN x.indisvalid AND x.indisready THEN 'valid' ELSE 'invalid' END AS state
    FROM relation AS r
    INNER JOIN pg_catalog.pg_index AS x ON x.indexrelid = r.oid
) AS i ON i.name = e.name
UNION ALL
-- Without this role the age of other roles' snapshots does not show.
SELECT 'session', 'sees all', pg_has_role('pg_read_all_stats', 'USAGE')::text
UNION ALL
SELECT 'session', 'prepared transaction', COALESCE((max(extract(epoch FROM clock_timestamp() - p.prepared)) * 1000000)::bigint, 0)::text
FROM pg_catalog.pg_prepared_xacts AS p
WHERE p.database = current_database();

-- AuditMessages looks whether the three tables and the order leases agree about the messages above after_id, at most examine rows of each
-- table, in one snapshot. It returns a row for each problem, in words, and last a row without one: the id up to which it looked (0 = there
-- is nothing further), the messages seen, and the highest id there is.
-- Guard: none: it tells ids, no content. Index: message_pkey, queue_pkey, settlement_pkey, order_lease_message. Locks: none.
-- name: AuditMessages :many
WITH m AS (
    SELECT x.id, x.consumer, x.target, x.kind, x.tenant, x.order_key, x.priority
    FROM outbox.message AS x
    WHERE x.id > sqlc.arg(after_id)::bigint
    ORDER BY x.id
    LIMIT sqlc.arg(examine)::integer
),
q AS (
    SELECT x.message_id, x.leased_until, x.consumer, x.target, x.kind, x.tenant, x.order_key, x.priority
    FROM outbox.queue AS x
    WHERE x.message_id > sqlc.arg(after_id)::bigint
    ORDER BY x.message_id
    LIMIT sqlc.arg(examine)::integer
),
s AS (
    SELECT x.message_id, x.outcome, x.epoch, x.attempt
    FROM outbox.settlement AS x
    WHERE x.message_id > sqlc.arg(after_id)::bigint
    ORDER BY x.message_id
    LIMIT sqlc.arg(examine)::integer
),
o AS (
    SELECT x.message_id, x.leased_until, x.blocked, x.consumer, x.target, x.tenant, x.order_key
    FROM outbox.order_lease AS x
    WHERE x.message_id > sqlc.arg(after_id)::bigint
    ORDER BY x.message_id
    LIMIT sqlc.arg(examine)::integer
),
-- A table that filled its limit was seen only so far; null when none did. LEAST ignores nulls.
bound AS (
    SELECT LEAST(
        (SELECT max(m.id) FROM m HAVING count(*) >= sqlc.arg(examine)::integer),
        (SELECT max(q.message_id) FROM q HAVING count(*) >= sqlc.arg(examine)::integer),
        (SELECT max(s.message_id) FROM s HAVING count(*) >= sqlc.arg(examine)::integer),
        (SELECT max(o.message_id) FROM o HAVING count(*) >= sqlc.arg(examine)::integer)
    ) AS upto
),
together AS (
    SELECT
        COALESCE(m.id, q.message_id, s.message_id, o.message_id) AS id,
        m.id IS NOT NULL AS stored,
        q.message_id IS NOT NULL AS open,
        s.message_id IS NOT NULL AS settled,
        o.message_id IS NOT NULL AS keyed,
        (q.consumer, q.target, q.kind, q.tenant, q.order_key, q.priority)
            IS DISTINCT FROM (m.consumer, m.target, m.kind, m.tenant, m.order_key, m.priority) AS strayed,
        (o.consumer, o.target, o.tenant, o.order_key) IS DISTINCT FROM (m.consumer, m.target, m.tenant, m.order_key) AS misplaced,
        q.order_key, q.leased_until, s.outcome, s.epoch, s.attempt, o.blocked, o.leased_until AS keyed_until
    FROM m
    FULL JOIN q ON q.message_id = m.id
    FULL JOIN s ON s.message_id = COALESCE(m.id, q.message_id)
    FULL JOIN o ON o.message_id = COALESCE(m.id, q.message_id, s.message_id)
)
SELECT t.id::bigint AS id, p.problem::text AS problem, 0::bigint AS messages, 0::bigint AS highest
FROM together AS t
CROSS JOIN LATERAL (
    VALUES
        (t.stored AND NOT t.open AND NOT t.settled, 'message is neither open nor settled'),
        (t.stored AND t.open AND t.settled, 'message is open and settled'),
        (t.open AND NOT t.stored, 'queue row has no message'),
        (t.settled AND NOT t.stored, 'settlement has no message'),
        (t.open AND t.stored AND t.strayed, 'message is queued in another lane than its own'),
        (t.settled AND t.epoch < t.attempt, 'message settled at an attempt beyond its epoch'),
        (t.open AND t.order_key <> '' AND t.leased_until > clock_timestamp() AND (NOT t.keyed OR t.blocked), 'message has a live lease without that of its order key'),
        (t.keyed AND t.misplaced, 'order lease is of another key than its message'),
        (t.keyed AND t.blocked AND t.outcome IS DISTINCT FROM 'dead', 'message blocks its order key and is not dead'),
        (t.keyed AND NOT t.blocked AND t.keyed_until IS DISTINCT FROM t.leased_until, 'order lease is not that of its message')
) AS p (found, problem)
WHERE p.found AND t.id <= COALESCE((SELECT b.upto FROM bound AS b), 9223372036854775807)
UNION ALL
SELECT
    COALESCE((SELECT b.upto FROM bound AS b), 0),
    '',
    (SELECT count(*) FROM m WHERE m.id <= COALESCE((SELECT b.upto FROM bound AS b), 9223372036854775807)),
    GREATEST(
        (SELECT x.id FROM outbox.message AS x ORDER BY x.id DESC LIMIT 1),
        (SELECT x.message_id FROM outbox.queue AS x ORDER BY x.message_id DESC LIMIT 1),
        (SELECT x.message_id FROM outbox.settlement AS x ORDER BY x.message_id DESC LIMIT 1),
        0
    );

-- ListHeads lists the heads of order keys that were first due more than age microseconds ago and hold others up, or are held up themselves by
-- a dead message, with what they wait for: blocker, the id of that dead message (0 = none), else paused, parked, leased_until and due_at. A
-- head with a live lease at its first attempt is left out: it is being performed, and may just have become the head of a long queue. It looks
-- at the keys after (consumer, target, tenant, order_key), at most examine of them, and returns last a row with message id 0: the last key it
-- looked at when there are more, empty texts when not. Start with empty texts.
-- Guard: none: it tells no content but the key. Index: queue_order, queue_pkey, order_lease_pkey. Locks: none.
-- name: ListHeads :many
WITH RECURSIVE head AS (
    SELECT
        sqlc.arg(after_consumer)::text AS consumer,
        sqlc.arg(after_target)::text AS target,
        sqlc.arg(after_tenant)::text AS tenant,
        sqlc.arg(after_order_key)::text AS order_key,
        0::bigint AS message_id,
        0 AS seen
    UNION ALL
    SELECT k.consumer, k.target, k.tenant, k.order_key, k.message_id, head.seen + 1
    FROM head
    CROSS JOIN LATERAL (
        SELECT q.consumer, q.target, q.tenant, q.order_key, q.message_id
        FROM outbox.queue AS q
        WHERE q.order_key <> ''
            AND (q.consumer, q.target, q.tenant, q.order_key) > (head.consumer, head.target, head.tenant, head.order_key)
        ORDER BY q.consumer, q.target, q.tenant, q.order_key, (q.message_id + 0)
        LIMIT 1
    ) AS k
    WHERE head.seen < sqlc.arg(examine)::integer
)
SELECT
    h.consumer::text AS consumer, h.target::text AS target, h.tenant::text AS tenant, h.order_key::text AS order_key, h.message_id::bigint AS id,
    q.kind::text AS kind, q.attempt::integer AS attempt, (q.state = 1)::boolean AS parked,
    EXISTS (
        SELECT FROM outbox.pause AS z
        WHERE z.consumer IN (q.consumer, '*') AND z.target IN (q.target, '*') AND z.kind IN (q.kind, '*') AND z.tenant IN (q.tenant, '*')
    )::boolean AS paused,
    COALESCE(b.message_id, 0)::bigint AS blocker,
    q.leased_until::timestamptz AS leased_until, q.due_at::timestamptz AS due_at, q.born_at::timestamptz AS born_at, now()::timestamptz AS now
FROM head AS h
CROSS JOIN LATERAL (
    SELECT x.consumer, x.target, x.kind, x.tenant, x.attempt, x.state, x.leased_until, x.due_at, x.born_at
    FROM outbox.queue AS x
    WHERE x.message_id = h.message_id
    OFFSET 0
) AS q
LEFT JOIN LATERAL (
    SELECT o.message_id
    FROM outbox.order_lease AS o
    WHERE o.consumer = h.consumer AND o.target = h.target AND o.tenant = h.tenant AND o.order_key = h.order_key AND o.blocked
    OFFSET 0
) AS b ON true
WHERE h.seen > 0
    AND q.born_at <= now() - sqlc.arg(age)::bigint * interval '1 microsecond'
    AND NOT (q.attempt = 1 AND q.leased_until > now())
    AND (b.message_id IS NOT NULL OR EXISTS (
        SELECT FROM outbox.queue AS n
        WHERE n.consumer = h.consumer AND n.target = h.target AND n.tenant = h.tenant AND n.order_key = h.order_key AND n.order_key <> ''
            AND (n.message_id + 0) > h.message_id
    ))
UNION ALL
(
    SELECT e.consumer, e.target, e.tenant, e.order_key, 0, '', 0, false, false, 0, now(), now(), now(), now()
    FROM (
        SELECT h.consumer, h.target, h.tenant, h.order_key, 0 AS place FROM head AS h WHERE h.seen = sqlc.arg(examine)::integer
        UNION ALL
        SELECT '', '', '', '', 1
    ) AS e
    ORDER BY e.place
    LIMIT 1
);

-- ReadHorizon says how far the stream can be read: the position of the newest event there is (0 = none was ever appended); the age in
-- microseconds of the oldest that nobody can read yet (0 = all can); whether the tables were restored from a dump and nobody has adopted the
-- stream yet; and the oldest transaction that has written, which is what holds events back: who it is, in words, and its age in microseconds. It
-- may be another database's. Where none does, or the role may not see it, the words are empty.
-- Guard: none: it tells a place. Index: event_order, incarnation_pkey. Locks: none.
-- name: ReadHorizon :many
SELECT
    COALESCE(
        (SELECT e.position FROM outbox.event AS e ORDER BY e.transaction_id DESC, e.position DESC LIMIT 1),
        i.purged_position
    )::bigint AS newest,
    COALESCE((
        SELECT (extract(epoch FROM clock_timestamp() - e.recorded_at) * 1000000)::bigint
        FROM outbox.event AS e
        WHERE e.transaction_id >= i.base + pg_snapshot_xmin(pg_current_snapshot())::text::bigint AND i.written_by = i.xmin::text::bigint
        ORDER BY e.transaction_id, e.position
        LIMIT 1
    ), 0)::bigint AS unread,
    (i.written_by <> i.xmin::text::bigint)::boolean AS restored,
    COALESCE(o.holder, '')::text AS holder,
    COALESCE((extract(epoch FROM clock_timestamp() - o.since) * 1000000)::bigint, 0)::bigint AS held
FROM outbox.incarnation AS i
LEFT JOIN LATERAL (
    SELECT h.holder, h.since
    FROM (
        SELECT
            a.backend_xid AS xid,
            'pid ' || a.pid || ' in database ' || (SELECT d.datname FROM pg_catalog.pg_database AS d WHERE d.oid = a.datid) AS holder,
            a.xact_start AS since
        FROM pg_catalog.pg_stat_activity AS a
        UNION ALL
        SELECT p.transaction, 'the prepared transaction ' || p.gid, p.prepared
        FROM pg_catalog.pg_prepared_xacts AS p
    ) AS h
    WHERE h.xid = pg_snapshot_xmin(pg_current_snapshot())::xid
    LIMIT 1
) AS o ON true
WHERE i.one;

-- ListReaders lists the named readers after a name, in the order of their names, with how they stand (standing): 0 the stream goes on there,
-- 1 no such place, or none any more once a restored stream is adopted, 2 what followed it was purged; and behind, the age in microseconds of
-- the oldest event that a reader could read and has not (0 = there is none).
-- Guard: none: it tells places. Index: reader_pkey, incarnation_pkey, event_order. Locks: none.
-- name: ListReaders :many
SELECT
    r.name, r.position, r.saved_at,
    s.standing::smallint AS standing,
    COALESCE((
        SELECT (extract(epoch FROM clock_timestamp() - e.recorded_at) * 1000000)::bigint
        FROM outbox.event AS e
        WHERE (e.transaction_id, e.position) > (r.transaction_id, r.position)
            AND e.transaction_id < i.base + pg_snapshot_xmin(pg_current_snapshot())::text::bigint
            AND s.standing = 0
        ORDER BY e.transaction_id, e.position
        LIMIT 1
    ), 0)::bigint AS behind
FROM outbox.reader AS r
INNER JOIN outbox.incarnation AS i ON i.one
CROSS JOIN LATERAL (
    SELECT
        CASE
            WHEN r.incarnation <> i.id OR i.written_by <> i.xmin::text::bigint THEN 1
            WHEN (i.purged_transaction_id, i.purged_position) > (r.transaction_id, r.position) THEN 2
            WHEN i.purged_position = r.position AND i.purged_digest = r.digest THEN 0
            -- By its place alone: digests are content, which viewers do not see.
            WHEN EXISTS (
                SELECT FROM outbox.event AS e WHERE e.position = r.position AND e.transaction_id = r.transaction_id
            ) THEN 0
            ELSE 1
        END AS standing
    OFFSET 0
) AS s
WHERE r.name > sqlc.arg(after_name)::text
ORDER BY r.name
LIMIT sqlc.arg(max_rows)::integer;

-- ListLapsedClaims lists claims whose holder's time ran out more than age microseconds ago and that nobody took over since, the first to run
-- out first.
-- Guard: none: it tells no content but the key. Index: claim_held. Locks: none.
-- name: ListLapsedClaims :many
SELECT c.tenant, c.scope, c.key, c.epoch, c.held_until::timestamptz AS held_until, now()::timestamptz AS now
FROM outbox.claim AS c
WHERE c.state = 0 AND c.held_until <= now() - sqlc.arg(age)::bigint * interval '1 microsecond'
ORDER BY c.held_until
LIMIT sqlc.arg(max_rows)::integer;

-- ListStuckBatches lists batches that are not completed and should be looked at, the oldest first: those not sealed more than age microseconds after
-- they were begun, and (broken) those that are sealed and have no open row. It looks at no more than examine of the open ones.
-- Guard: none: it tells no content but the key. Index: batch_open, batch_row_fate. Locks: none.
-- name: ListStuckBatches :many
SELECT b.id, b.tenant, b.consumer, b.key, b.created_at, (b.sealed_at < '9999-12-31 00:00:00+00')::boolean AS broken, now()::timestamptz AS now
FROM (
    SELECT x.id, x.tenant, x.consumer, x.key, x.created_at, x.sealed_at
    FROM outbox.batch AS x
    WHERE x.completed_at = '9999-12-31 00:00:00+00'
    ORDER BY x.id
    LIMIT sqlc.arg(examine)::integer
) AS b
WHERE (b.sealed_at = '9999-12-31 00:00:00+00' AND b.created_at <= now() - sqlc.arg(age)::bigint * interval '1 microsecond')
    OR (b.sealed_at < '9999-12-31 00:00:00+00' AND (
        SELECT r.number FROM outbox.batch_row AS r WHERE r.batch_id = b.id AND r.fate = 0 ORDER BY r.number DESC LIMIT 1
    ) IS NULL)
ORDER BY b.id;
