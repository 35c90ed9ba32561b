-- Doctor: read only, what `fencepost doctor` looks at beside the statements of inspect.sql. Each is bounded in what it reads. What surrounds the
-- tables is read in Go: it takes the pragmas, which are not for sqlc.

-- AuditMessagesBound returns the id up to which the tables can be compared, each having skip rows or fewer between after_id and it (0 = there is
-- nothing further), and the highest id there is. Guard: none: ids. Index: the primary keys, order_lease_message. Locks: none.
-- name: AuditMessagesBound :one
SELECT
    CAST(COALESCE(MIN(b.upto), 0) AS INTEGER) AS upto,
    CAST(COALESCE(MAX(b.highest), 0) AS INTEGER) AS highest
FROM (
    SELECT
        (SELECT x.id FROM outbox_message AS x WHERE x.id > CAST(sqlc.arg(after_id) AS INTEGER)
            ORDER BY x.id LIMIT 1 OFFSET CAST(sqlc.arg(skip) AS INTEGER)) AS upto,
        (SELECT MAX(x.id) FROM outbox_message AS x) AS highest
    UNION ALL
    SELECT
        (SELECT x.message_id FROM outbox_queue AS x WHERE x.message_id > CAST(sqlc.arg(after_id) AS INTEGER)
            ORDER BY x.message_id LIMIT 1 OFFSET CAST(sqlc.arg(skip) AS INTEGER)),
        (SELECT MAX(x.message_id) FROM outbox_queue AS x)
    UNION ALL
    SELECT
        (SELECT x.message_id FROM outbox_settlement AS x WHERE x.message_id > CAST(sqlc.arg(after_id) AS INTEGER)
            ORDER BY x.message_id LIMIT 1 OFFSET CAST(sqlc.arg(skip) AS INTEGER)),
        (SELECT MAX(x.message_id) FROM outbox_settlement AS x)
    UNION ALL
    SELECT
        (SELECT x.message_id FROM outbox_order_lease AS x WHERE x.message_id > CAST(sqlc.arg(after_id) AS INTEGER)
            ORDER BY x.message_id LIMIT 1 OFFSET CAST(sqlc.arg(skip) AS INTEGER)),
        NULL
) AS b;

-- AuditMessagesCount counts the messages above after_id up to upto. Guard: none. Index: the primary key. Locks: none.
-- name: AuditMessagesCount :one
SELECT COUNT(*) AS messages
FROM outbox_message AS m
WHERE m.id > CAST(sqlc.arg(after_id) AS INTEGER) AND m.id <= CAST(sqlc.arg(upto) AS INTEGER);

-- AuditMessages returns the ids above after_id up to upto about which the three tables and the order leases disagree, with the problems in words,
-- one a line. Guard: none: it tells ids, no content. Index: the primary keys, order_lease_message. Locks: none.
-- name: AuditMessages :many
WITH known AS (
    SELECT x.id FROM outbox_message AS x WHERE x.id > CAST(sqlc.arg(after_id) AS INTEGER) AND x.id <= CAST(sqlc.arg(upto) AS INTEGER)
    UNION
    SELECT x.message_id FROM outbox_queue AS x WHERE x.message_id > CAST(sqlc.arg(after_id) AS INTEGER) AND x.message_id <= CAST(sqlc.arg(upto) AS INTEGER)
    UNION
    SELECT x.message_id FROM outbox_settlement AS x
    WHERE x.message_id > CAST(sqlc.arg(after_id) AS INTEGER) AND x.message_id <= CAST(sqlc.arg(upto) AS INTEGER)
    UNION
    SELECT x.message_id FROM outbox_order_lease AS x
    WHERE x.message_id > CAST(sqlc.arg(after_id) AS INTEGER) AND x.message_id <= CAST(sqlc.arg(upto) AS INTEGER)
),
audited AS (
    SELECT
        k.id,
        CASE WHEN m.id IS NOT NULL AND q.message_id IS NULL AND s.message_id IS NULL
            THEN 'message is neither open nor settled' || char(10) ELSE '' END
        || CASE WHEN m.id IS NOT NULL AND q.message_id IS NOT NULL AND s.message_id IS NOT NULL
            THEN 'message is open and settled' || char(10) ELSE '' END
        || CASE WHEN q.message_id IS NOT NULL AND m.id IS NULL
            THEN 'queue row has no message' || char(10) ELSE '' END
        || CASE WHEN s.message_id IS NOT NULL AND m.id IS NULL
            THEN 'settlement has no message' || char(10) ELSE '' END
        || CASE WHEN q.message_id IS NOT NULL AND m.id IS NOT NULL
                AND (q.consumer, q.target, q.kind, q.tenant, q.order_key, q.priority) <> (m.consumer, m.target, m.kind, m.tenant, m.order_key, m.priority)
            THEN 'message is queued in another lane than its own' || char(10) ELSE '' END
        || CASE WHEN s.epoch < s.attempt
            THEN 'message settled at an attempt beyond its epoch' || char(10) ELSE '' END
        || CASE WHEN q.order_key <> '' AND q.leased_until > CAST(sqlc.arg(now) AS INTEGER) AND (o.message_id IS NULL OR o.blocked)
            THEN 'message has a live lease without that of its order key' || char(10) ELSE '' END
        || CASE WHEN o.message_id IS NOT NULL
                AND (m.id IS NULL OR (o.consumer, o.target, o.tenant, o.order_key) <> (m.consumer, m.target, m.tenant, m.order_key))
            THEN 'order lease is of another key than its message' || char(10) ELSE '' END
        || CASE WHEN o.blocked AND COALESCE(s.outcome, '') <> 'dead'
            THEN 'message blocks its order key and is not dead' || char(10) ELSE '' END
        || CASE WHEN NOT o.blocked AND (q.message_id IS NULL OR o.leased_until <> q.leased_until)
            THEN 'order lease is not that of its message' || char(10) ELSE '' END
        AS problems
    FROM known AS k
    LEFT JOIN outbox_message AS m ON m.id = k.id
    LEFT JOIN outbox_queue AS q ON q.message_id = k.id
    LEFT JOIN outbox_settlement AS s ON s.message_id = k.id
    LEFT JOIN outbox_order_lease AS o ON o.message_id = k.id
)
SELECT a.id, CAST(a.problems AS TEXT) AS problems
FROM audited AS a
WHERE a.problems <> ''
ORDER BY a.id;

-- ListHeads lists the heads of order keys that were first due more than age microseconds ago and hold others up, or are held up themselves by
-- a dead message, with what they wait for: blocker, the id of that dead message (0 = none), else paused, parked, leased_until and due_at. A
-- head with a live lease at its first attempt is left out: it is being performed, and may just have become the head of a long queue. It looks
-- at the keys after (consumer, target, tenant, order_key), at most examine of them, by a loose index scan as CountLanes does, and returns the last
-- one, whether it is held or not, when there may be more. Start with empty texts.
-- Guard: none: it tells no content but the key. Index: queue_order, the primary keys. Locks: none.
-- name: ListHeads :many
WITH RECURSIVE head AS (
    SELECT
        CAST(sqlc.arg(after_consumer) AS TEXT) AS consumer,
        CAST(sqlc.arg(after_target) AS TEXT) AS target,
        CAST(sqlc.arg(after_tenant) AS TEXT) AS tenant,
        CAST(sqlc.arg(after_order_key) AS TEXT) AS order_key,
        0 AS message_id,
        0 AS seen
    UNION ALL
    SELECT q.consumer, q.target, q.tenant, q.order_key, q.message_id, head.seen + 1
    FROM head
    CROSS JOIN outbox_queue AS q ON q.message_id = (
        SELECT n.message_id
        FROM outbox_queue AS n
        WHERE n.order_key <> ''
            AND (n.consumer, n.target, n.tenant, n.order_key) > (+head.consumer, +head.target, +head.tenant, +head.order_key)
        ORDER BY n.consumer, n.target, n.tenant, n.order_key, n.message_id
        LIMIT 1
    )
    WHERE head.seen < CAST(sqlc.arg(examine) AS INTEGER)
),
looked AS (
    SELECT
        q.*, h.seen, o.message_id AS blocker,
        q.born_at <= CAST(sqlc.arg(born_before) AS INTEGER)
            AND NOT (q.attempt = 1 AND q.leased_until > CAST(sqlc.arg(now) AS INTEGER))
            AND (o.message_id IS NOT NULL OR EXISTS (
                SELECT 1 FROM outbox_queue AS n
                WHERE n.consumer = q.consumer AND n.target = q.target AND n.tenant = q.tenant AND n.order_key = q.order_key AND n.order_key <> ''
                    AND n.message_id > q.message_id
            )) AS held
    FROM head AS h
    CROSS JOIN outbox_queue AS q ON q.message_id = h.message_id
    LEFT JOIN outbox_order_lease AS o
        ON o.consumer = q.consumer AND o.target = q.target AND o.tenant = q.tenant AND o.order_key = q.order_key AND o.blocked
)
SELECT
    l.consumer, l.target, l.tenant, l.order_key, l.message_id AS id, l.kind, CAST(l.attempt AS INT32) AS attempt,
    CAST(l.state = 1 AS BOOLEAN) AS parked,
    CAST(EXISTS (
        SELECT 1 FROM outbox_pause AS z
        WHERE z.consumer IN (l.consumer, '*') AND z.target IN (l.target, '*') AND z.kind IN (l.kind, '*') AND z.tenant IN (l.tenant, '*')
    ) AS BOOLEAN) AS paused,
    CAST(COALESCE(l.blocker, 0) AS INTEGER) AS blocker, l.leased_until, l.due_at, l.born_at,
    CAST(l.held AS BOOLEAN) AS held, CAST(l.seen = CAST(sqlc.arg(examine) AS INTEGER) AS BOOLEAN) AS final
FROM looked AS l
WHERE l.held OR l.seen = CAST(sqlc.arg(examine) AS INTEGER);

-- ReadSurroundings reads what the file and the connection are like, one fact a row. fsync is off where a commit is not synced at all. An index has its
-- table's prefix off; those of primary keys cannot be missing.
-- Guard: none. Index: none, the catalogue has a few rows. Locks: none.
-- name: ReadSurroundings :many
SELECT 'setting' AS section, 'server_version' AS name, CAST('SQLite ' || sqlite_version() AS TEXT) AS value
UNION ALL
SELECT 'setting', 'role', 'file'
UNION ALL
SELECT 'setting', 'path', d.file FROM pragma_database_list AS d WHERE d.name = 'main'
UNION ALL
SELECT 'setting', 'journal_mode', p.journal_mode FROM pragma_journal_mode AS p
UNION ALL
SELECT 'setting', 'fsync', CASE p.synchronous WHEN 0 THEN 'off' ELSE 'on' END FROM pragma_synchronous AS p
UNION ALL
SELECT 'setting', 'synchronous', CASE p.synchronous WHEN 0 THEN 'off' WHEN 1 THEN 'normal' WHEN 2 THEN 'full' ELSE 'extra' END FROM pragma_synchronous AS p
UNION ALL
SELECT 'setting', 'busy_timeout', CAST(p.timeout AS TEXT) FROM pragma_busy_timeout AS p
UNION ALL
SELECT 'setting', 'page_size', CAST(p.page_size AS TEXT) FROM pragma_page_size AS p
UNION ALL
SELECT 'setting', 'page_count', CAST(p.page_count AS TEXT) FROM pragma_page_count AS p
UNION ALL
SELECT 'setting', 'freelist_count', CAST(p.freelist_count AS TEXT) FROM pragma_freelist_count AS p
UNION ALL
SELECT 'table', substr(t.name, 8), '' FROM sqlite_schema AS t WHERE t.type = 'table' AND t.name GLOB 'outbox_*'
UNION ALL
SELECT 'index', CAST(e.value AS TEXT), CASE WHEN i.name IS NULL THEN 'missing' ELSE 'valid' END
FROM json_each('["audit_message", "claim_held", "claim_over", "order_lease_message", "queue_due", "queue_order", "queue_parked", "settlement_undelivered", "worker_name"]') AS e
LEFT JOIN sqlite_schema AS i ON i.type = 'index' AND i.name = 'outbox_' || e.value
UNION ALL
SELECT 'session', 'sees all', 'true'
UNION ALL
SELECT 'session', 'prepared transaction', '0';

-- ReadHorizon gives the position of the newest event there is (0 = none was ever appended). All that is committed can be read, and a file has no
-- sign that it was restored. Guard: none: it tells a place. Index: the primary keys. Locks: none.
-- name: ReadHorizon :many
SELECT CAST(COALESCE((SELECT MAX(e.position) FROM outbox_event AS e), i.purged_position) AS INTEGER) AS newest
FROM outbox_incarnation AS i;

-- ListReaders lists the named readers after a name, in the order of their names, with how they stand (standing): 0 the stream goes on there,
-- 1 no such place, 2 what followed it was purged; and oldest, when the oldest event was recorded that a reader has not read (the longest time
-- from now = there is none). Guard: none: it tells places. Index: the primary keys. Locks: none.
-- name: ListReaders :many
SELECT
    r.name, r.position, r.saved_at,
    CAST(CASE
        WHEN r.incarnation <> i.id THEN 1
        WHEN i.purged_position > r.position THEN 2
        WHEN i.purged_position = r.position AND i.purged_digest = r.digest THEN 0
        WHEN EXISTS (SELECT 1 FROM outbox_event AS e WHERE e.position = r.position AND e.digest = r.digest) THEN 0
        ELSE 1
    END AS INT16) AS standing,
    CAST(COALESCE((
        SELECT e.recorded_at
        FROM outbox_event AS e
        WHERE e.position > r.position
        ORDER BY e.position
        LIMIT 1
    ), 9223372036854775807) AS INTEGER) AS oldest
FROM outbox_reader AS r
CROSS JOIN outbox_incarnation AS i
WHERE r.name > CAST(sqlc.arg(after_name) AS TEXT)
ORDER BY r.name
LIMIT CAST(sqlc.arg(max_rows) AS INTEGER);

-- ListLapsedClaims lists claims whose holder's time ran out before a time and that nobody took over since, the first to run out first.
-- Guard: none: it tells no content but the key. Index: claim_held. Locks: none.
-- name: ListLapsedClaims :many
SELECT c.tenant, c.scope, c.key, c.epoch, c.held_until
FROM outbox_claim AS c
WHERE c.state = 0 AND c.held_until <= CAST(sqlc.arg(held_before) AS INTEGER)
ORDER BY c.held_until
LIMIT CAST(sqlc.arg(max_rows) AS INTEGER);

-- ListStuckBatches lists batches that are not completed and should be looked at, the oldest first: those not sealed that were begun before an instant,
-- and (broken) those that are sealed and have no open row. It looks at no more than examine of the open ones.
-- Guard: none: it tells no content but the key. Index: batch_open, batch_row_fate. Locks: none.
-- name: ListStuckBatches :many
SELECT b.id, b.tenant, b.consumer, b.key, b.created_at, CAST(b.sealed_at < 253402214400000000 AS BOOLEAN) AS broken
FROM (
    SELECT x.id, x.tenant, x.consumer, x.key, x.created_at, x.sealed_at
    FROM outbox_batch AS x
    WHERE x.completed_at = 253402214400000000
    ORDER BY x.id
    LIMIT CAST(sqlc.arg(examine) AS INTEGER)
) AS b
WHERE (b.sealed_at = 253402214400000000 AND b.created_at <= CAST(sqlc.arg(created_before) AS INTEGER))
    OR (b.sealed_at < 253402214400000000 AND NOT EXISTS (SELECT 1 FROM outbox_batch_row AS r WHERE r.batch_id = b.id AND r.fate = 0))
ORDER BY b.id;
